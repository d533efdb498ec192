// An arm and a clock without a device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "warpsmith/measure/arm.h"

namespace warpsmith::measure {

struct Clock {
  double seconds = 0;
};

// An arm whose calls take `call_ns` by the clock, with normal noise, and that writes down what is asked of
// it.
class FakeArm : public Arm {
 public:
  FakeArm(Clock& clock, std::vector<char>& order, std::vector<char>& renewals, char name, double call_ns,
          double noise, std::uint64_t seed)
      : clock_(clock),
        order_(order),
        renewals_(renewals),
        name_(name),
        call_ns_(call_ns),
        noise_(0, noise),
        random_(seed) {}

  void begin(std::uint64_t key) override {
    EXPECT_EQ(renewed_, 0);
    begun.push_back(key);
  }
  void renew(std::uint64_t key, int calls) override {
    EXPECT_TRUE(keys.insert(key).second) << "values were used twice";
    renewed_ = calls;
    renewals_.push_back(name_);
  }
  Run run(int calls) override {
    EXPECT_EQ(renewed_, calls) << "a run without new values";
    EXPECT_EQ(renewals_.back(), name_) << "the other arm's values are the warmer ones";
    renewed_ = 0;
    order_.push_back(name_);
    ++runs;
    last_calls = calls;
    if (runs == fail_at) return {Verdict::kCrash, "died", 0};
    const double ns = call_ns_ * calls * slower() * std::exp(noise_(random_));
    clock_.seconds += ns * 1e-9;
    return {Verdict::kOk, "", static_cast<std::int64_t>(ns)};
  }
  std::optional<int> unwritten(int calls) override {
    if (runs == lazy_at) return calls - 1;
    return std::nullopt;
  }
  Run inspect(int call) override {
    inspected.push_back(call);
    if (runs >= wrong_from) return {Verdict::kWrongOutput, "wrong", 0};
    return {};
  }

  Run stop_short(std::uint64_t key, int calls, int made) override {
    EXPECT_TRUE(keys.insert(key).second) << "values were used twice";
    EXPECT_GE(made, 1);
    EXPECT_LT(made, calls);
    ++stopped;
    if (works_ahead) return {Verdict::kOutOfBounds, kWorkedAhead, 0};
    return {};
  }

  bool works_ahead = false;
  int stopped = 0;
  std::set<std::uint64_t> keys;
  std::vector<int> inspected;
  std::vector<std::uint64_t> begun;
  int runs = 0, last_calls = 0, fail_at = -1, lazy_at = -1, wrong_from = 1 << 30;
  std::function<double()> slower = [] { return 1.0; };  // times

 private:
  Clock& clock_;
  std::vector<char>& order_;
  std::vector<char>& renewals_;
  char name_;
  double call_ns_;
  std::normal_distribution<double> noise_;
  std::mt19937_64 random_;
  int renewed_ = 0;
};

}  // namespace warpsmith::measure

// Operands of a candidate that doubles, in a memory file that stands in for the GPU's: for children of tiers
// `extension` and `python`.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>

#include "warpsmith/device/extension_session.h"

namespace warpsmith::device {

class OperandsInMemory : public ::testing::Test {
 protected:
  static constexpr int kSets = 5;
  static constexpr std::int64_t kCount = 100;
  static constexpr std::uint64_t kBytes = kCount * sizeof(float), kStride = 4096;

  void map() {
    fd_ = ::memfd_create("operands", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(fd_, kSets * 2 * kStride), 0);
    memory_ =
        static_cast<char*>(::mmap(nullptr, kSets * 2 * kStride, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  void TearDown() override {
    if (memory_ != nullptr) ::munmap(memory_, kSets * 2 * kStride);
    if (fd_ >= 0) ::close(fd_);
  }

  float* input(int set) { return reinterpret_cast<float*>(memory_ + set * 2 * kStride); }
  float* output(int set) { return reinterpret_cast<float*>(memory_ + set * 2 * kStride + kStride); }
  static ExtensionLayout layout() {
    ExtensionLayout l;
    l.inputs = {{"x", task::Dtype::kFloat32, {4, 25}, kBytes}};
    l.outputs = {{"out", task::Dtype::kFloat32, {4, 25}, kBytes}};
    l.sets = kSets;
    for (std::uint64_t set = 0; set < kSets; ++set)
      for (const std::uint64_t tensor : {0ull, 1ull}) l.offsets.push_back((2 * set + tensor) * kStride);
    return l;
  }
  // New inputs, poisoned outputs.
  void renew(float base) {
    for (int set = 0; set < kSets; ++set)
      for (int i = 0; i < kCount; ++i) {
        input(set)[i] = base + static_cast<float>(set * 1000 + i);
        std::memset(&output(set)[i], 0xFF, sizeof(float));
      }
  }
  // Whether an output is factor_ x + more_.
  bool right(int set) {
    for (int i = 0; i < kCount; ++i)
      if (output(set)[i] != factor_ * input(set)[i] + more_) return false;
    return true;
  }
  bool poisoned(int set) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(output(set));
    for (std::uint64_t i = 0; i < kBytes; ++i)
      if (bytes[i] != 0xFF) return false;
    return true;
  }
  // Rows of four calls of at least 0.1 s each, before whose ends nothing is read or written: whoever loaded
  // the candidate has a session. One is stopped within the second call, one behind it, one behind the third.
  // (On a busy machine it may be another.) Calls that have not been made have other values then.
  void pause_in_a_row() {
    options_.call_timeout_s = 10;
    for (const std::optional<int> more : {std::optional<int>(), {0}, {1}}) {
      renew(3);
      int made = -1;
      const auto look = [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        for (made = 0; made < 4 && right(made);) ++made;
        for (int set = made; set < 4; ++set) EXPECT_TRUE(poisoned(set)) << set;
        EXPECT_EQ(session_->begun(), more ? made : made + 1);
        EXPECT_EQ(session_->between_calls(), more.has_value());
        renew(4);
      };
      const ExtensionRun run = session_->time(0, 4, [] {}, {0.15, more, look});
      ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
      EXPECT_FALSE(run.did_not_wait);
      ASSERT_GE(made, more.value_or(0));
      ASSERT_LE(made, 3);
      for (int set = 0; set < 4; ++set) EXPECT_EQ(set < made ? poisoned(set) : right(set), true) << set;
    }
    renew(5);
    const auto fail = [] { ADD_FAILURE() << "a stop behind the last call"; };
    for (const std::optional<int> more : {std::optional<int>(), {0}}) {
      const ExtensionRun run = session_->time(0, 4, [] {}, {100, more, fail});
      EXPECT_EQ(run.verdict, Verdict::kOk);
      EXPECT_FALSE(run.did_not_wait);
    }
    // So many calls are not left.
    EXPECT_FALSE(session_->time(0, 4, [] {}, {0.15, 4, fail}).did_not_wait);
    for (int set = 0; set < 4; ++set) EXPECT_TRUE(right(set)) << set;
  }
  GpuShare share() const {
    GpuShare s;
    s.fd = fd_;
    s.bytes = kSets * 2 * kStride;
    return s;
  }
  // Loads, prepares, runs two sets, as options_ say.
  ExtensionRun whole(const ExtensionLayout& operands) {
    session_ = std::make_unique<ExtensionSession>(options_);
    ExtensionRun run = session_->load();
    if (run.verdict == Verdict::kOk) run = session_->prepare(operands, share());
    renew(1);
    if (run.verdict == Verdict::kOk) run = session_->run(0, 2);
    return run;
  }

  float factor_ = 2, more_ = 0;
  ExtensionOptions options_;
  std::unique_ptr<ExtensionSession> session_;
  int fd_ = -1;
  char* memory_ = nullptr;
};

}  // namespace warpsmith::device

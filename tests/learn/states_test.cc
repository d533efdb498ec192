// An optimiser's states beside the weights, on the host and in a file.
#include "warpsmith/learn/states.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/learn/optimizer.h"

namespace warpsmith::learn {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kN = 2 * Moments::kAtATime + 5000;  // three pieces, the last one short

struct Values {
  explicit Values(at::ScalarType type) {
    at::manual_seed(5);
    master = at::randn({kN});
    weights = master.to(type);
    first = at::randn({kN}) * 0.01;
    second = first.square();
    with_master = type != at::kFloat;
  }
  States states(bool in_bytes, const StatesPlan& plan) const {
    return States(weights, with_master ? master : at::Tensor(), first, second, in_bytes, plan);
  }
  at::Tensor weights, master, first, second;
  bool with_master;
};

// Something that depends on every state, and on which elements they are.
void update(States& states, const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  std::int64_t next = 0;
  states.each([&](const States::Run& run) {
    EXPECT_EQ(run.begin, next) << "in order, and each element once";
    next += run.count;
    const at::Tensor number = at::arange(run.begin, run.begin + run.count).to(at::kFloat) / kN;
    run.first.mul_(0.9).add_(number, 0.1);
    run.second.mul_(0.99).add_(run.first.square(), 0.01);
    run.master.sub_(run.first / (run.second.sqrt() + 1e-3), 0.01);
    if (run.master.data_ptr() != weights.narrow(0, run.begin, run.count).data_ptr())
      weights.narrow(0, run.begin, run.count).copy_(run.master);
  });
  EXPECT_EQ(next, kN);
}

at::Tensor all_of(const States& states, States::Which which) {
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < kN; begin += Moments::kAtATime)
    parts.push_back(states.read(which, begin).clone());
  return at::cat(parts);
}

StatesPlan plan_of(std::int64_t beside, const std::filesystem::path& folder) {
  return {.beside = beside, .folder = folder, .piece = Moments::kAtATime};
}

TEST(States, WhereTheyLieChangesNothing) {
  const Scratch scratch;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const bool in_bytes : {false, true}) {
      const Values right(type);
      States beside = right.states(in_bytes, plan_of(kN, {}));
      for (int round = 0; round < 3; ++round) update(beside, right.weights);
      for (const std::int64_t some : {std::int64_t{0}, Moments::kAtATime + 7})
        for (const std::filesystem::path& folder : {std::filesystem::path(), scratch.path()}) {
          const Values values(type);
          States states = values.states(in_bytes, plan_of(some, folder));
          for (int round = 0; round < 3; ++round) {
            if (round == 1) states.fetch();  // ahead of time
            update(states, values.weights);
            if (round == 1) (void)states.read(States::Which::kFirst, Moments::kAtATime);
          }
          EXPECT_TRUE(at::equal(values.weights, right.weights)) << type << in_bytes << some << folder;
          for (const auto which : {States::Which::kMaster, States::Which::kFirst, States::Which::kSecond})
            EXPECT_TRUE(at::equal(all_of(states, which), all_of(beside, which)))
                << type << in_bytes << some << folder;
        }
    }
}

TEST(States, BytesAreCountedWhereTheyLie) {
  const Scratch scratch;
  const Values values(at::kBFloat16);
  const auto of = [&](std::int64_t beside, const std::filesystem::path& folder) {
    return values.states(false, plan_of(beside, folder)).bytes();
  };
  EXPECT_EQ(of(kN, {}).beside, 12 * kN);
  EXPECT_EQ(of(kN, {}).all(), 12 * kN);
  EXPECT_EQ(of(Moments::kAtATime, {}).beside, 12 * Moments::kAtATime);
  EXPECT_EQ(of(Moments::kAtATime, {}).host, 12 * (kN - Moments::kAtATime));
  EXPECT_EQ(of(0, scratch.path()).disk, 12 * kN);
  EXPECT_EQ(model::state_bytes(true, false), 12);
  EXPECT_EQ(to_string(of(Moments::kAtATime, {})), "48.0 MiB beside the weights, 48.1 MiB on the host");
}

TEST(States, PlanFillsTheGpuThenTheHostThenFiles) {
  constexpr std::int64_t kMany = 1'000'000'000;  // 12 GB of states
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  OptimizerSettings settings;
  EXPECT_EQ(plan_states(settings, kMany, true, std::nullopt, 0).beside, kMany);
  EXPECT_EQ(plan_states(settings, kMany, true, 12 * kGiB, 0).beside, kMany);
  const StatesPlan some = plan_states(settings, kMany, true, 8 * kGiB, 64 * kGiB);
  EXPECT_GT(some.beside, kMany / 10);
  EXPECT_LT(some.beside, 7 * kMany / 10);
  EXPECT_TRUE(some.folder.empty());
  settings.states_folder = "/scratch";
  EXPECT_TRUE(plan_states(settings, kMany, true, 8 * kGiB, 64 * kGiB).folder.empty());
  EXPECT_EQ(plan_states(settings, kMany, true, 8 * kGiB, kGiB).folder, "/scratch");
  settings.states_folder.clear();
  const auto refused = [&] {
    try {
      (void)plan_states(settings, kMany, true, 8 * kGiB, kGiB);
      return std::string("not refused");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(refused(), HasSubstr("would lie on the host, which has 1.0 GiB. `states: nvme`"));
  settings.states = "host";
  EXPECT_THAT(refused(), HasSubstr("11.2 GiB of them would lie on the host"));
}

TEST(States, AFileLeavesNothingBehind) {
  const Scratch scratch;
  const Values values(at::kFloat);
  const States states = values.states(false, plan_of(0, scratch.path()));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(States, AFolderThatCannotBeWrittenIsNamed) {
  const Values values(at::kFloat);
  try {
    values.states(false, plan_of(0, "/proc/nowhere"));
    ADD_FAILURE() << "it should throw";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("/proc/nowhere"));
  }
  EXPECT_THROW(values.states(false, {.beside = 0, .folder = {}, .piece = 1000}), Error);
}

}  // namespace
}  // namespace warpsmith::learn

// The two sides of a timing on the GPU. Each renewal takes one of several places in memory, by its key (kPlacements): which
// addresses an arm has decides which channels and slices of cache it meets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "candidate.h"
#include "harness.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

// Places that fit: kPlacements, or fewer where operands are large.
int gpu_places(const device::Gpu& gpu, std::uint64_t bytes_a_call, int calls);

class GpuBaselineArm : public Arm {
 public:
  // `reference` runs on the GPU. All that is referred to must outlive it.
  GpuBaselineArm(GpuHarness& harness, const task::Task& task, const Reference& reference, const task::Dims& dims,
                 int most_calls);
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int) override { return std::nullopt; }
  Run inspect(int) override { return {}; }
  // One call from an idle GPU, on the values of the last renewal: nanoseconds.
  Run run_idle();

 private:
  device::GpuOutcome enqueue(int first_call, int calls);
  std::vector<GpuHarness::Stretch> memory_of(int calls) const;

  GpuHarness& harness_;
  const task::Task& task_;
  task::Dims dims_;
  int places_, most_calls_, first_ = 0;
  GpuOperands operands_;
  std::optional<Reference::Calls> calls_;
  std::uint64_t key_ = 0;
  Hold hold_;
};

class GpuCandidateArm : public Arm {
 public:
  // `bounds`: by output, for inspect(), which compares with the reference in its own precision.
  GpuCandidateArm(GpuCandidate& candidate, const Reference& reference, std::vector<double> bounds, const task::Dims& dims,
                  int most_calls);
  // Bad where the candidate has no room for its operands.
  const device::GpuOutcome& outcome() const { return layout_.outcome(); }
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int calls) override;
  Run inspect(int call) override;
  Run run_idle();

 private:
  device::GpuOutcome enqueue(int calls);
  Run run_calls(int calls);
  Run inspect_call(int call);
  std::uint64_t input_bytes_of(std::size_t input) const;

  GpuCandidate& candidate_;
  GpuHarness& harness_;
  const task::Task& task_;
  std::vector<double> bounds_;
  task::Dims dims_;
  int places_, most_calls_, first_ = 0;
  GpuLayout layout_;
  GpuOperands fresh_inputs_;  // one set, for inspect()
  Reference::Calls right_;    // bound to them
  device::GpuMemory output_regions_;
  device::PinnedMemory flags_;
  std::uint64_t key_ = 0;
  int unwritten_ = -1;
  Hold hold_;
};

}  // namespace warpsmith::measure

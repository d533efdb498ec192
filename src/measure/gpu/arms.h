// The two sides of a timing on the GPU. Each renewal takes one of several places in memory, by its key: which
// addresses an arm has decides which channels and slices of cache it meets, and of one place alone an
// interval would be narrow and wrong.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "call_check.h"
#include "calls.h"
#include "candidate.h"
#include "harness.h"
#include "inputs.h"
#include "outputs.h"
#include "timing/calls_a_row.h"
#include "timing/places.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

// Sets of operands to lie in: 2,048, and fewer where they are large.
int gpu_sets(const device::Gpu& gpu, std::uint64_t bytes_a_call);
// Calls in a row that leave at least four places in so many sets, where there are as many as eight.
int most_calls_a_row(int sets);
// Places for rows of up to `calls` calls and one more to warm up: in so many sets, and 4 to 384 of them;
// fewer where operands are large.
int gpu_places(const device::Gpu& gpu, std::uint64_t bytes_a_call, int calls);

class GpuBaselineArm : public Arm {
 public:
  // `reference` runs on the GPU. All that is referred to must outlive it. `most_places`: no more of them than
  // this, for an estimate.
  GpuBaselineArm(GpuHarness& harness, const task::Task& task, const Reference& reference,
                 const task::Dims& dims, int most_calls, int most_places = std::numeric_limits<int>::max());
  // Another baseline than eager, held to what eager gives within `bounds` (by output). Throws what `make`
  // does.
  GpuBaselineArm(GpuHarness& harness, const task::Task& task, const Reference& reference,
                 const task::Dims& dims, int most_calls, const MakeGpuCalls& make,
                 const std::vector<double>& bounds);
  void begin(std::uint64_t key) override { deck_.begin(key); }
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  int place() const override { return place_; }
  int most_calls() const { return most_calls_; }  // in a row
  int places() const { return places_; }          // fewer where calls take long
  std::optional<int> unwritten(int) override { return std::nullopt; }
  Run inspect(int call) override;  // eager itself is right by definition
  // One call from an idle GPU, on the values of the last renewal: nanoseconds.
  Run run_idle();
  // From now on rows are timed as the host enqueues them, from an idle GPU. run() does so by itself where not
  // even one call could be enqueued ahead: a recurrent network may launch more kernels than the GPU's queue
  // holds.
  void pace_by_host() { paced_by_host_ = true; }
  bool is_paced_by_host() const { return paced_by_host_; }
  // What it took the host to enqueue the last row.
  double enqueue_ns() const { return enqueue_ns_; }
  // Remembers what the last row's untimed call has read, until the next renewal.
  void remember();
  // Whether nobody has written to memory of this arm's that is no operand, or to what is remembered. Waits.
  bool memory_is_whole();

 private:
  void renew_here(std::uint64_t key, int calls);
  void fill(int first_call, int calls);
  Run run_from_idle(int calls);
  device::GpuOutcome enqueue(int first_call, int calls);
  std::vector<GpuRegion> memory_of(int calls) const;

  GpuHarness& harness_;
  const task::Task& task_;
  task::Dims dims_;
  GpuInputs inputs_;
  int places_, most_calls_, place_ = 0;
  int calls_in_row_ = 0;  // of the last renewal
  bool paced_by_host_ = false;
  PlaceDeck deck_;
  GpuOperands operands_;
  std::optional<GpuOperands> copy_;  // of one set's inputs …
  int remembered_ = -1;              // … of this set's; -1: of none
  device::PinnedMemory differs_{sizeof(int)};
  std::unique_ptr<GpuCalls> calls_;        // a row for each place
  std::optional<Reference::Calls> right_;  // eager on the same operands, where `calls_` are another's
  std::vector<double> bounds_;
  std::uint64_t key_ = 0;
  double enqueue_ns_ = 0;
};

class GpuCandidateArm : public Arm {
 public:
  // `bounds`: by output, for inspect(), which compares with the reference in its own precision.
  GpuCandidateArm(GpuCandidate& candidate, const Reference& reference, std::vector<double> bounds,
                  const task::Dims& dims);
  int most_calls() const { return most_calls_a_row(layout_.sets()); }  // in a row
  // Bad where the candidate has no room for its operands.
  const device::GpuOutcome& outcome() const { return layout_.outcome(); }
  void begin(std::uint64_t key) override { deck_.begin(key); }
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  int place() const override { return first_ / (calls_ + 1); }
  std::optional<int> unwritten(int calls) override;
  Run inspect(int call) override;
  Run run_idle();
  Run stop_short(std::uint64_t key, int calls, int made) override;
  // A row of calls from an idle GPU, on the values of the last renewal, by both clocks.
  GpuTimes row_from_idle(int calls);
  // Whether what the harness keeps on the device for this arm is as it was put there.
  bool tables_are_whole() const;
  double enqueue_ns() const { return enqueue_ns_; }

 private:
  device::GpuOutcome enqueue(int first_call, int calls);
  // Enqueues the untimed call, and then only new values for the others and all that a row begins with: what
  // the untimed call could do for them is gone.
  device::GpuOutcome warm_up(int calls);
  void fill(int first_call, int calls);
  Ran wait_and_look();                      // at the canaries
  std::optional<Run> run_calls(int calls);  // nothing: not all was enqueued in time
  Run inspect_call(int call);

  GpuCandidate& candidate_;
  GpuHarness& harness_;
  const task::Task& task_;
  GpuInputs inputs_;
  int first_ = 0, calls_ = 1;  // of the last renewal
  PlaceDeck deck_;
  GpuLayout layout_;
  GpuCallCheck check_;
  std::optional<GpuOutputs> outputs_;
  std::uint64_t key_ = 0;
  int unwritten_ = -1;
  double enqueue_ns_ = 0;
};

}  // namespace warpsmith::measure

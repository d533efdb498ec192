#include "arms.h"

#include <algorithm>
#include <cmath>

#include "timing/judge.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

constexpr int kSets = 2048, kFewestPlaces = 4, kMostPlaces = 384;
constexpr int kTries = 10;           // of a run whose calls were not enqueued in time
constexpr double kCopyTimeout = 30;  // seconds
constexpr double kBaselineTimeout = 60;
constexpr double kPlacesS = 1;  // what making a baseline's places may take: of slow calls there are few
constexpr const char* kLate = "this host was too slow to keep the GPU's queue filled, ten times in a row";
constexpr const char* kItsOwnLate =
    "its launches, copies and fills were not enqueued in time to keep the GPU's queue filled, ten times in a "
    "row";

// How many sets a sixteenth of the GPU's memory has room for.
std::uint64_t sets_in_memory(const device::Gpu& gpu, std::uint64_t bytes_a_call) {
  return gpu.facts().memory_bytes / 16 / std::max<std::uint64_t>(1, bytes_a_call);
}

int first_set(int place, int most_calls) { return place * (most_calls + 1); }

Ran as_ran(const device::GpuOutcome& outcome, double ns = 0) {
  return {outcome.verdict, outcome.detail, static_cast<std::int64_t>(std::llround(ns))};
}

}  // namespace

int gpu_sets(const device::Gpu& gpu, std::uint64_t bytes_a_call) {
  return static_cast<int>(std::clamp<std::uint64_t>(sets_in_memory(gpu, bytes_a_call), 2, kSets));
}

int most_calls_a_row(int sets) { return std::clamp(sets / kFewestPlaces - 1, 1, kMostCallsARow); }

int gpu_places(const device::Gpu& gpu, std::uint64_t bytes_a_call, int calls) {
  const int wanted = std::clamp(kSets / (calls + 1), kFewestPlaces, kMostPlaces);
  return static_cast<int>(
      std::clamp<std::uint64_t>(sets_in_memory(gpu, bytes_a_call) / (static_cast<std::uint64_t>(calls) + 1),
                                1, static_cast<std::uint64_t>(wanted)));
}

GpuBaselineArm::GpuBaselineArm(GpuHarness& harness, const task::Task& task, const Reference& reference,
                               const task::Dims& dims, int most_calls, int most_places)
    : harness_(harness),
      task_(task),
      dims_(dims),
      inputs_(reference, dims),
      places_(std::min(
          most_places,
          gpu_places(harness.gpu(), input_bytes(task, dims) + output_bytes(task, dims), most_calls))),
      most_calls_(most_calls),
      operands_(harness, input_specs(task, dims), places_ * (most_calls + 1)) {
  calls_ =
      std::make_unique<EagerCalls>(reference, dims, spans_of(operands_, 0, operands_.sets()), most_calls + 1);
  // Every place has outputs from the start, each at addresses of its own.
  const double begin = seconds_now();
  for (place_ = 0; place_ < places_; ++place_) {
    renew_here(name_key("first"), most_calls);
    fill(0, most_calls);
    enqueue(0, most_calls);
    if (const device::GpuOutcome done = harness.gpu().wait(kBaselineTimeout); !done.ok())
      throw device::GpuError("the baseline on the GPU: " + done.detail, done);
    if (seconds_now() - begin > kPlacesS) places_ = place_ + 1;
  }
  place_ = 0;
}

GpuBaselineArm::GpuBaselineArm(GpuHarness& harness, const task::Task& task, const Reference& reference,
                               const task::Dims& dims, int most_calls, const MakeGpuCalls& make,
                               const std::vector<double>& bounds)
    : GpuBaselineArm(harness, task, reference, dims, most_calls) {
  calls_.reset();
  reference.release_memory();  // that of eager's outputs
  right_.emplace(reference.bind(dims, spans_of(operands_, 0, operands_.sets())));
  for (const double bound : bounds) bounds_.push_back(bound * kBoundOfTimed);
  // A graph of a recurrent network has tens of thousands of launches: one place's calls say what all would
  // take.
  const double begin = seconds_now();
  calls_ = make(spans_of(operands_, 0, most_calls_ + 1));
  const double one_s = std::max(1e-6, seconds_now() - begin);
  if (places_ == 1) return;
  places_ = static_cast<int>(std::clamp<double>(kPlacesS / one_s, 1, places_));
  if (places_ == 1) return;
  calls_.reset();
  calls_ = make(spans_of(operands_, 0, places_ * (most_calls_ + 1)));
}

void GpuBaselineArm::renew(std::uint64_t key, int calls) {
  place_ = deck_.draw(places_);
  renew_here(key, calls);
}

void GpuBaselineArm::renew_here(std::uint64_t key, int calls) {
  key_ = key;
  calls_in_row_ = calls;
  remembered_ = -1;
  // The memory of this place's last outputs goes back to torch's allocator, and the next run's come from
  // there; those of other places stay where they are.
  calls_->drop_outputs(first_set(place_, most_calls_));
  fill(calls, 1);
}

void GpuBaselineArm::fill(int first_call, int calls) {
  for (int call = first_call; call < first_call + calls; ++call)
    inputs_.add(call_seed(key_, call), operands_, first_set(place_, most_calls_) + call);
  inputs_.fill(harness_);
}

// What the calls read; and where the outputs lie, as far as that is known: most likely where the last ones
// were.
std::vector<GpuRegion> GpuBaselineArm::memory_of(int calls) const {
  std::vector<GpuRegion> memory;
  for (int call = 0; call < calls; ++call)
    for (std::size_t i = 0; i < task_.inputs.size(); ++i)
      memory.push_back(
          {operands_.address(first_set(place_, most_calls_) + call, i), operands_.specs()[i].bytes});
  for (const std::span<const std::byte> output : calls_->output_memory(first_set(place_, most_calls_), calls))
    memory.push_back({reinterpret_cast<device::GpuAddress>(output.data()), output.size()});
  return memory;
}

device::GpuOutcome GpuBaselineArm::enqueue(int first_call, int calls) {
  calls_->run(first_set(place_, most_calls_) + first_call, calls);
  return {};
}

Arm::Run GpuBaselineArm::run(int calls) {
  if (paced_by_host_) {
    enqueue(calls, 1);  // untimed
    fill(0, calls);
    return run_from_idle(calls);
  }
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) renew(random_key({key_, static_cast<std::uint64_t>(tries)}), calls);
    enqueue(calls, 1);  // untimed
    fill(0, calls);     // behind it, as a candidate's are
    const std::vector<GpuRegion> memory = memory_of(calls);
    const GpuTimes times = harness_.clock().time_calls(
        memory, [&] { return enqueue(0, calls); }, kBaselineTimeout);
    if (!times.outcome.ok())
      throw device::GpuError("the baseline on the GPU: " + times.outcome.detail, times.outcome);
    enqueue_ns_ = times.enqueue_ns;
    if (!times.late) return as_ran(times.outcome, times.queued_ns);
  }
  if (calls > 1) throw Error(kLate);
  pace_by_host();
  return run(calls);
}

Arm::Run GpuBaselineArm::run_idle() {
  fill(0, 1);
  return run_from_idle(1);
}

Arm::Run GpuBaselineArm::run_from_idle(int calls) {
  const GpuTimes times = harness_.clock().time_idle([&] { return enqueue(0, calls); }, kBaselineTimeout);
  if (!times.outcome.ok())
    throw device::GpuError("the baseline on the GPU: " + times.outcome.detail, times.outcome);
  enqueue_ns_ = times.host_ns;
  return as_ran(times.outcome, times.queued_ns);
}

Arm::Run GpuBaselineArm::inspect(int call) {
  if (!right_) return {};
  const int set = first_set(place_, most_calls_) + call;
  right_->run(set, 1);
  const std::vector<Comparison> compared = calls_->compare(set, *right_, bounds_);
  right_->drop_outputs();
  return wrong_in_a_timed_call(compared, task_, dims_);
}

void GpuBaselineArm::remember() {
  if (!copy_) copy_.emplace(harness_, operands_.specs(), 1);
  remembered_ = first_set(place_, most_calls_) + calls_in_row_;
  for (std::size_t i = 0; i < operands_.specs().size(); ++i)
    device::copy(copy_->address(0, i), operands_.address(remembered_, i), operands_.specs()[i].bytes);
}

bool GpuBaselineArm::memory_is_whole() {
  int* differs = differs_.as<int>();
  *differs = 0;
  operands_.look_at_canaries();
  operands_.look_between(0, operands_.sets());
  for (std::size_t i = 0; remembered_ >= 0 && i < operands_.specs().size(); ++i)
    harness_.kernels().compare(copy_->address(0, i), operands_.address(remembered_, i),
                               operands_.specs()[i].bytes, 0, differs);
  harness_.gpu().settle(kCopyTimeout);
  return *differs == 0 && !operands_.problem() && operands_.tables_are_whole();
}

GpuCandidateArm::GpuCandidateArm(GpuCandidate& candidate, const Reference& reference,
                                 std::vector<double> bounds, const task::Dims& dims)
    : candidate_(candidate),
      harness_(candidate.harness()),
      task_(candidate.task()),
      inputs_(reference, dims),
      layout_(harness_, task_, candidate.plan(), candidate.program(), dims,
              gpu_sets(harness_.gpu(), input_bytes(task_, dims) + output_bytes(task_, dims)),
              harness_.gpu().facts().memory_bytes / 8),
      check_(harness_, task_, reference, dims, std::move(bounds)) {
  if (!layout_.outcome().ok()) return;
  outputs_.emplace(harness_, task_, layout_.operands());
  harness_.gpu().settle(kCopyTimeout);
}

void GpuCandidateArm::renew(std::uint64_t key, int calls) {
  key_ = key;
  calls_ = calls;
  first_ = first_set(deck_.draw(std::clamp(layout_.sets() / (calls + 1), 1, kMostPlaces)), calls);
  layout_.poison(first_ + calls, 1);
  inputs_.add(call_seed(key, calls), layout_.operands(), first_ + calls);
  inputs_.fill(harness_);
  inputs_.release_memory();
}

void GpuCandidateArm::fill(int first_call, int calls) {
  layout_.poison(first_ + first_call, calls);
  for (int call = first_call; call < first_call + calls; ++call)
    inputs_.add(call_seed(key_, call), layout_.operands(), first_ + call);
  inputs_.fill(harness_);
  inputs_.release_memory();
}

Arm::Run GpuCandidateArm::run(int calls) {
  try {
    for (int tries = 0; tries < kTries; ++tries) {
      if (tries > 0) renew(random_key({key_, static_cast<std::uint64_t>(tries)}), calls);
      if (const std::optional<Run> run = run_calls(calls)) return *run;
    }
    // The baseline's were, in the same rounds.
    return {Verdict::kUnstable, kItsOwnLate, 0};
  } catch (const device::GpuError& e) {
    if (!e.outcome().context_lost) throw;
    return candidate_.ran(e.outcome());
  }
}

device::GpuOutcome GpuCandidateArm::enqueue(int first_call, int calls) {
  device::GpuOutcome outcome;
  for (int call = first_call; call < first_call + calls && outcome.ok(); ++call)
    outcome = candidate_.program().enqueue(first_ + call);
  return outcome;
}

device::GpuOutcome GpuCandidateArm::warm_up(int calls) {
  candidate_.program().restore_variables();
  device::GpuOutcome outcome = candidate_.program().enqueue(first_ + calls);
  if (!outcome.ok()) return outcome;
  fill(0, calls);
  // Nothing is left of the calls before: variables, shared memory, lines that were to stay in L2.
  harness_.gpu().reset_persisting_l2();
  candidate_.program().restore_variables();
  harness_.kernels().scrub_shared_memory();
  return outcome;
}

Ran GpuCandidateArm::wait_and_look() {
  layout_.operands().look_at_canaries();
  if (const device::GpuOutcome done = harness_.gpu().wait(kCopyTimeout); !done.ok())
    return candidate_.ran(done);
  if (const std::optional<std::string> problem = layout_.operands().problem())
    return {Verdict::kOutOfBounds, *problem + ", in a timed call", 0};
  return {};
}

std::optional<Arm::Run> GpuCandidateArm::run_calls(int calls) {
  if (const device::GpuOutcome warm = warm_up(calls); !warm.ok()) return candidate_.ran(warm);
  std::vector<GpuRegion> memory;
  for (int call = 0; call < calls; ++call) layout_.add_memory(first_ + call, memory);
  const GpuTimes times = harness_.clock().time_calls(
      memory, [&] { return enqueue(0, calls); }, candidate_.timeout_s() * (calls + 1));
  if (!times.outcome.ok()) return candidate_.ran(times.outcome);
  enqueue_ns_ = times.enqueue_ns;
  outputs_->look(first_, calls, false, key_);
  if (const Ran looked = wait_and_look(); looked.verdict != Verdict::kOk) return looked;
  unwritten_ = outputs_->found().value_or(-1);
  return times.late ? std::nullopt : std::optional<Run>(as_ran(times.outcome, times.queued_ns));
}

Arm::Run GpuCandidateArm::stop_short(std::uint64_t key, int calls, int made) {
  try {
    renew(key, calls);
    device::GpuOutcome outcome = warm_up(calls);
    if (outcome.ok()) outcome = enqueue(0, made);
    if (outcome.ok()) outcome = harness_.gpu().wait(candidate_.timeout_s() * (made + 1));
    if (!outcome.ok()) return candidate_.ran(outcome);
    outputs_->look(first_ + made, calls - made, true, key_);
    layout_.operands().look_between(first_, calls + 1);
    if (const Ran looked = wait_and_look(); looked.verdict != Verdict::kOk) return looked;
    if (outputs_->found()) return {Verdict::kOutOfBounds, kWorkedAhead, 0};
    key_ = random_key({key, name_key("others")});
    fill(made, calls - made);
    outcome = enqueue(made, calls - made);
    if (outcome.ok()) outcome = harness_.gpu().wait(candidate_.timeout_s() * (calls - made + 1));
    if (!outcome.ok()) return candidate_.ran(outcome);
    // Answers that were kept are most likely the next call's.
    const bool next = (random_key({key, name_key("next")}) & 1) != 0;
    return inspect_call(next ? made
                             : made + static_cast<int>(key % static_cast<std::uint64_t>(calls - made)));
  } catch (const device::GpuError& e) {
    if (!e.outcome().context_lost) throw;
    return candidate_.ran(e.outcome());
  }
}

std::optional<int> GpuCandidateArm::unwritten(int) {
  return unwritten_ < 0 ? std::nullopt : std::optional<int>(unwritten_);
}

bool GpuCandidateArm::tables_are_whole() const {
  return outputs_->table_is_whole() && layout_.operands().tables_are_whole();
}

GpuTimes GpuCandidateArm::row_from_idle(int calls) {
  fill(0, calls);
  candidate_.program().restore_variables();
  return harness_.clock().time_idle([&] { return enqueue(0, calls); }, candidate_.timeout_s() * calls);
}

Arm::Run GpuCandidateArm::run_idle() {
  const GpuTimes times = row_from_idle(1);
  if (!times.outcome.ok()) return candidate_.ran(times.outcome);
  return as_ran(times.outcome, times.queued_ns);
}

Arm::Run GpuCandidateArm::inspect(int call) {
  try {
    return inspect_call(call);
  } catch (const device::GpuError& e) {
    if (!e.outcome().context_lost) throw;
    return candidate_.ran(e.outcome());
  }
}

Arm::Run GpuCandidateArm::inspect_call(int call) {
  return check_.look(call_seed(key_, call), layout_.operands(), first_ + call);
}

}  // namespace warpsmith::measure

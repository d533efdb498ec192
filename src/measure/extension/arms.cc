#include "arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "gpu/arms.h"
#include "hack.h"
#include "stopped_row.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCopyTimeout = 30;  // seconds
constexpr double kBaselineTimeout = 60;
constexpr int kEmptyIntervals = 21;
constexpr int kOverheads = 3;  // taken, of which the least counts
constexpr std::uint64_t kOwnBytes = 4096;
constexpr std::uint64_t kStops = 4;          // tries, until one comes within the row
constexpr double kLaterStop = 1.3;           // times as late as one that came within its row is the next one
constexpr int kMostMore = 16;                // calls that a row makes until it comes to its stop
constexpr std::uint64_t kMuch = 1ull << 30;  // bytes of operands that are not kept beside the next ones
constexpr const char* kLateResults = "its results come behind its answer";
constexpr const char* kDidNotWait =
    "its row did not wait where it was to be stopped: it writes to words of its process that are not its own";
constexpr const char* kInTimedCall = ", in a timed call";

// Inputs, then outputs.
std::vector<GpuOperandSpec> all_specs(const task::Task& task, const task::Dims& dims) {
  std::vector<GpuOperandSpec> specs = input_specs(task, dims);
  for (const task::TensorSpec& output : task.outputs)
    specs.push_back({output.name, tensor_bytes(output, dims), 0});
  return specs;
}

// For what is timed: a wait that sleeps is up to 0.2 ms late.
void settle_awake(const GpuHarness& harness) { harness.gpu().settle(kCopyTimeout, kCopyTimeout); }

// As many as gpu_places() has, and no more than the child can be told.
int places_for(const GpuHarness& harness, const task::Task& task, const task::Dims& dims, int most_calls) {
  const std::uint64_t offsets =
      (task.inputs.size() + task.outputs.size()) * static_cast<std::uint64_t>(most_calls + 1);
  const int most = static_cast<int>(device::kMostExtensionOffsets / std::max<std::uint64_t>(1, offsets));
  return std::clamp(gpu_places(harness.gpu(), input_bytes(task, dims) + output_bytes(task, dims), most_calls),
                    1, std::max(1, most));
}

// Sets of operands: for the calls of a row and an untimed one; of what is so large that it has one place and
// one call, one set for both.
int sets_of(int places, int most_calls) {
  return places > 1 || most_calls > 1 ? places * (most_calls + 1) : 1;
}

Ran as_ran(const device::ExtensionRun& run) { return {run.verdict, run.detail, run.elapsed_ns}; }

// Adds the time of its life to `seconds`.
class Spending {
 public:
  explicit Spending(double& seconds) : seconds_(seconds) {}
  ~Spending() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  double& seconds_;
  const Clock::time_point begin_ = Clock::now();
};

std::int64_t ns_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

// The processor's own caches, too, for it is both sides': a row of the baseline alone would find them as it
// left them, and one beside the candidate would not.
void flush(const GpuHarness& harness) {
  evict_private_caches();
  harness.kernels().flush_l2();
  harness.gpu().settle(kCopyTimeout);
}

// The same behind the values of a row, all at once: nothing of them is there before all is enqueued and the
// caches are empty, and what waits on the GPU for these values finds it busy until the flush is done. In
// nanoseconds by the GPU's clock: longer where another process has work there.
double fill_and_flush(GpuHarness& harness, GpuInputs& inputs) {
  inputs.fill_ahead(harness);
  harness.gpu().settle(kCopyTimeout);
  return harness.clock().time_at_once(
      [&] {
        inputs.fill(harness);
        harness.kernels().flush_l2();
        evict_private_caches();
      },
      kCopyTimeout);
}

// HostBaseline::values_ns(), into these sets.
double values_alone(GpuHarness& harness, GpuInputs& inputs, const GpuOperands& operands, int calls,
                    std::uint64_t key) {
  constexpr int kTimes = 9;
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    for (int call = 0; call < calls; ++call)
      inputs.add(random_key({key, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(call)}), operands,
                 (i * calls + call) % operands.sets());
    times.push_back(fill_and_flush(harness, inputs));
  }
  return stats::median(times);
}

}  // namespace

void settle(const GpuHarness& harness) { harness.gpu().settle(kCopyTimeout); }

namespace {

ExtensionOverhead overhead_now(const GpuHarness& harness, device::ExtensionSession& empty,
                               GpuOperands& something) {
  std::vector<double> intervals, outside, looks, again, arms;
  for (int i = 0; i < kEmptyIntervals; ++i) {
    const device::ExtensionRun run = empty.time(0, 1, [&] { flush(harness); });
    if (run.verdict != Verdict::kOk) throw Error("a child without a candidate: " + run.detail);
    for (std::vector<double>* times : {&looks, &again}) {
      const Clock::time_point begin = Clock::now();
      something.look_at_canaries();
      settle_awake(harness);
      times->push_back(static_cast<double>(ns_since(begin)));
    }
    intervals.push_back(static_cast<double>(run.elapsed_ns));
    outside.push_back(static_cast<double>(run.elapsed_ns - run.event_ns));
    arms.push_back(static_cast<double>(run.arm_ns));
  }
  return {stats::median(intervals), stats::median(outside), stats::median(looks), stats::median(again),
          stats::median(arms)};
}

}  // namespace

ExtensionOverhead measure_overhead(const GpuHarness& harness, device::ExtensionSession& empty) {
  GpuOperands something(harness, {{"nothing", kOwnBytes, 0}}, 1);
  ExtensionOverhead least = overhead_now(harness, empty, something);
  for (int i = 1; i < kOverheads; ++i) {
    const ExtensionOverhead other = overhead_now(harness, empty, something);
    if (other.interval_ns < least.interval_ns) least = other;
  }
  return least;
}

ExtensionCandidate::ExtensionCandidate(GpuHarness& harness, const task::Task& task,
                                       device::ExtensionSession session)
    : harness_(harness), task_(task), session_(std::move(session)) {}

Ran ExtensionCandidate::load() { return as_ran(session_.load()); }

std::unique_ptr<GpuOperands> ExtensionCandidate::lay_out(const task::Dims& dims, int sets, Ran* outcome) {
  if (laid_out_bytes_ >= kMuch) {
    operands_.reset();
    if (session_.alive()) (void)session_.forget();  // if that fails, so does what comes now
  }
  auto operands = std::make_unique<GpuOperands>(harness_, all_specs(task_, dims), sets, true);
  device::ExtensionLayout layout;
  const auto add = [&](const task::TensorSpec& tensor, std::vector<device::ExtensionTensor>& to,
                       std::size_t index) {
    to.push_back({tensor.name, tensor.dtype, task::shape_at(tensor, dims), operands->specs()[index].bytes});
  };
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) add(task_.inputs[i], layout.inputs, i);
  for (std::size_t i = 0; i < task_.outputs.size(); ++i)
    add(task_.outputs[i], layout.outputs, task_.inputs.size() + i);
  layout.scalars = task_.scalars;
  layout.sets = sets;
  for (int set = 0; set < sets; ++set)
    for (std::size_t i = 0; i < operands->specs().size(); ++i)
      layout.offsets.push_back(operands->address(set, i) - operands->memory().address());
  laid_out_bytes_ = operands->memory().bytes();
  *outcome = session_.alive() ? as_ran(session_.prepare(layout, *operands->memory().share()))
                              : Ran{Verdict::kCrash, "its process ended between two shapes", 0};
  return operands;
}

Ran ExtensionCandidate::prepare(const task::Dims& dims, int sets) {
  dims_ = dims;
  Ran outcome;
  operands_ = lay_out(dims, sets, &outcome);
  return outcome;
}

std::vector<std::span<std::byte>> ExtensionCandidate::inputs(int set) {
  return operand_spans(*operands_, set, 0, task_.inputs.size());
}

std::vector<std::span<const std::byte>> ExtensionCandidate::outputs(int set) {
  const auto spans = operand_spans(*operands_, set, task_.inputs.size(), task_.outputs.size());
  return {spans.begin(), spans.end()};
}

void ExtensionCandidate::poison(int sets) {
  std::vector<GpuRegion> memory;
  for (int set = 0; set < sets; ++set)
    for (const std::span<const std::byte> output : outputs(set)) memory.push_back(region_of(output));
  harness_.kernels().poison(memory);
}

Ran ExtensionCandidate::run(int sets) {
  harness_.kernels().scrub_shared_memory();
  settle(harness_);
  const Clock::time_point begin = Clock::now();
  const device::ExtensionRun run = session_.run(0, sets);
  harness_.clock().add_timed(static_cast<double>(ns_since(begin)));
  if (run.verdict != Verdict::kOk) return as_ran(run);
  operands_->look_at_canaries();
  settle(harness_);
  if (const std::optional<std::string> problem = operands_->problem())
    return {Verdict::kOutOfBounds, *problem, 0};
  return {};
}

ExtensionArm::ExtensionArm(ExtensionCandidate& candidate, const Reference& reference,
                           std::vector<double> bounds, const task::Dims& dims, int most_calls,
                           const ExtensionOverhead& overhead)
    : candidate_(candidate),
      harness_(candidate.harness()),
      task_(candidate.task()),
      inputs_(reference, dims),
      places_(places_for(harness_, task_, dims, most_calls)),
      most_calls_(most_calls),
      overhead_(overhead),
      operands_(candidate.lay_out(dims, sets_of(places_, most_calls), &outcome_)),
      make_check_([this, &reference, dims, bounds = std::move(bounds)] {
        return std::make_unique<GpuCallCheck>(harness_, task_, reference, dims, bounds);
      }),
      outputs_(harness_, task_, *operands_) {
  settle(harness_);
}

void ExtensionArm::renew(std::uint64_t key, int calls) {
  const Spending spending(spent_.renew);
  key_ = key;
  place_ = deck_.draw(places_);
  first_ = place_ * (most_calls_ + 1);
  renew_operands(calls, 1);  // of the untimed call
  inputs_.fill(harness_);
}

void ExtensionArm::renew_operands(int first_call, int calls) {
  std::vector<GpuRegion> memory;
  for (int call = first_call; call < first_call + calls; ++call) {
    for (std::size_t i = 0; i < task_.outputs.size(); ++i) {
      const std::size_t output = task_.inputs.size() + i;
      memory.push_back({operands_->address(set_of(call), output), operands_->specs()[output].bytes});
    }
    inputs_.add(call_seed(key_, call), *operands_, set_of(call));
  }
  harness_.kernels().poison(memory);
}

Arm::Run ExtensionArm::look_at_outputs(int first_call, int calls, bool written) {
  const Spending spending(spent_.looks);
  outputs_.look(first_ + first_call, calls, written, key_);
  operands_->look_at_canaries();
  settle_awake(harness_);
  if (const std::optional<std::string> problem = operands_->problem())
    return {Verdict::kOutOfBounds, *problem + kInTimedCall, 0};
  return {};
}

double ExtensionArm::look_alone_ns(int calls) {
  constexpr int kTimes = 9;
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const Clock::time_point begin = Clock::now();
    outputs_.look(first_, calls, false, key_);
    operands_->look_at_canaries();
    settle_awake(harness_);
    times.push_back(static_cast<double>(ns_since(begin)));
  }
  look_calls_ = calls;
  look_alone_ns_ = overhead_.look_ns + std::max(0., stats::median(times) - overhead_.again_ns);
  return look_alone_ns_;
}

double ExtensionArm::values_ns(int calls, std::uint64_t key) {
  return values_alone(harness_, inputs_, *operands_, calls, key);
}

double ExtensionArm::idle_call_ns(int calls) {
  // The first call of a row takes longer, and that is not meant.
  constexpr int kTimes = 9, kFewest = 256;
  const int repeated = 1 + kFewest / calls;
  std::vector<double> times;
  for (int i = -1; i < kTimes; ++i) {  // the first makes what the others give back
    // The first place: the others have no room for what the child makes for calls that do nothing.
    key_ = random_key({name_key("idle"), static_cast<std::uint64_t>(i + 1)});
    place_ = first_ = 0;
    renew_operands(calls, 1);
    inputs_.fill(harness_);
    const device::ExtensionRun run = row(calls, nullptr, repeated);
    if (run.verdict != Verdict::kOk) throw Error("calls that do nothing: " + run.detail);
    if (i >= 0) times.push_back(static_cast<double>(run.elapsed_ns));
  }
  return std::max(0., stats::median(times) - overhead_.interval_ns) / (calls * repeated);
}

// The others' values come behind the untimed call: what that could do for them is gone.
device::ExtensionRun ExtensionArm::row(int calls, const device::ExtensionSession::Pause* pause,
                                       int idle_times) {
  const Spending spending(spent_.rows);
  harness_.gpu().reset_persisting_l2();
  harness_.kernels().scrub_shared_memory();
  settle(harness_);
  const auto before_clock = [&] {
    const Spending of_it(spent_.before_clock);
    renew_operands(0, calls);
    last_values_ns_ = fill_and_flush(harness_, inputs_);
  };
  device::ExtensionSession& session = candidate_.session();
  if (idle_times > 0) return session.time_idle(first_, calls, idle_times, before_clock);
  return pause == nullptr ? session.time(first_, calls, before_clock)
                          : session.time(first_, calls, before_clock, *pause);
}

Arm::Run ExtensionArm::run(int calls) {
  if (outcome_.verdict != Verdict::kOk) return outcome_;
  const device::ExtensionRun run = row(calls);
  if (run.verdict != Verdict::kOk) return {run.verdict, run.detail + kInTimedCall, 0};
  // At once: work that goes on behind the answer is found with outputs that are not there, or holds this up.
  const Clock::time_point begin = Clock::now();
  Run looked = look_at_outputs(0, calls);
  const auto look = static_cast<double>(ns_since(begin));
  if (looked.verdict == Verdict::kOk && outputs_.found())
    looked = look_at_unwritten(*outputs_.found(), calls);
  if (looked.verdict != Verdict::kOk) return looked;
  if (calls != look_calls_) look_alone_ns(calls);
  const double late = look - look_alone_ns_;
  const double armed = static_cast<double>(run.arm_ns) - overhead_.arm_ns;
  const auto by_clock = static_cast<double>(run.elapsed_ns);
  call_ns_ = by_clock / calls;
  ours_.push_back(by_clock - overhead_.outside_ns);
  events_.push_back(static_cast<double>(run.event_ns));
  late_.push_back(late);
  armed_.push_back(armed);
  values_.push_back(last_values_ns_);
  double elapsed = by_clock + charge_beside_clock(armed, by_clock) + charge_beside_clock(late, by_clock);
  if (values_alone_ns_ > 0)
    elapsed += charge_beside_clock(values_beyond(last_values_ns_, values_alone_ns_), by_clock);
  // Where the GPU was the last to be done, the host's part was hidden behind it.
  const double hosts = std::min(calls * most_taken_off_ns_,
                                std::max(0., calls * call_overhead_ns_ - static_cast<double>(run.drain_ns)));
  taken_off_ns_ += hosts / calls;
  ++rows_taken_off_;
  const double without = std::max(elapsed / 4, elapsed - overhead_.interval_ns - hosts);
  return {Verdict::kOk, "", std::max<std::int64_t>(1, std::llround(without))};
}

Arm::Run ExtensionArm::look_at_unwritten(int call, int calls) {
  constexpr int kAtMost = 3;
  int begin = 0;
  for (int i = 0; i < kAtMost; ++i) {
    if (const Run looked = inspect(call); looked.verdict != Verdict::kOk) return looked;
    // It is right: because the right answer looks so, or because it has been written since.
    if (const Run looked = look_at_outputs(begin, calls - begin); looked.verdict != Verdict::kOk)
      return looked;
    if (outputs_.found() != call - begin)
      return {Verdict::kWrongOutput, std::string(kLateResults) + kInTimedCall, 0};
    // One that looks so may hide those behind it.
    begin = call + 1;
    if (begin == calls) break;
    if (const Run looked = look_at_outputs(begin, calls - begin); looked.verdict != Verdict::kOk)
      return looked;
    if (!outputs_.found()) break;
    call = begin + *outputs_.found();
  }
  return {};
}

// A signal finds those who do the work of several calls within one that takes long; words find those who idle
// where a signal tells nothing of them.
Arm::Run ExtensionArm::stop_short(std::uint64_t key, int calls, int made) {
  const Spent before = spent_;
  double stopped = 0;
  Run looked;
  {
    const Spending spending(stopped);
    looked = stop_rows(key, calls, made);
  }
  spent_ = before;
  spent_.stopped += stopped;
  return looked;
}

Arm::Run ExtensionArm::stop_rows(std::uint64_t key, int calls, int made) {
  constexpr std::uint64_t kRows = 3;  // the first by a signal
  for (std::uint64_t number = 0; number < kRows; ++number) {
    const Stop kind = number == 0 ? Stop::kSignal : Stop::kWord;
    const std::uint64_t row_key = random_key({key, number});
    if (const Run looked = stop_row(kind, row_key, calls, made); looked.verdict != Verdict::kOk)
      return looked;
    made = 1 + static_cast<int>(row_key % static_cast<std::uint64_t>(calls - 1));
  }
  return {};
}

Arm::Run ExtensionArm::stop_row(Stop kind, std::uint64_t key, int calls, int made) {
  double& share = stop_share_[kind == Stop::kWord ? 1 : 0];
  for (std::uint64_t tries = 0; tries < kStops; ++tries) {
    const std::uint64_t row_key = random_key({key, tries});
    renew(row_key, calls);
    Run looked;
    int begun = calls;
    const auto look_and_renew = [&] {
      looked = look_behind_stop(calls, &begun);
      if (looked.verdict != Verdict::kOk || begun == calls) return;
      // On other values: answers that were kept for the first ones are wrong.
      key_ = random_key({key_, name_key("others")});
      renew_operands(begun, calls - begun);
      inputs_.fill(harness_);
      settle(harness_);
    };
    device::ExtensionSession::Pause pause{share * made * call_ns_ * 1e-9, std::nullopt, look_and_renew};
    if (kind == Stop::kWord)
      pause.more = static_cast<int>(row_key % static_cast<std::uint64_t>(std::min(calls, kMostMore)));
    const device::ExtensionRun run = row(calls, &pause);
    if (run.verdict != Verdict::kOk) return {run.verdict, run.detail + kInTimedCall, 0};
    if (run.did_not_wait) return {Verdict::kOutOfBounds, kDidNotWait, 0};
    if (looked.verdict == Verdict::kOk && begun < calls) looked = look_at_others(begun, calls);
    if (looked.verdict != Verdict::kOk || ((begun > 1 || calls == 2) && begun < calls)) return looked;
    // Calls may all be enqueued long before the GPU is done with them.
    share = begun < calls ? std::min(1.0, kLaterStop * share) : share / 3;
  }
  return {};
}

Arm::Run ExtensionArm::look_behind_stop(int calls, int* begun) {
  constexpr double kLeast = 1e-3;  // seconds
  constexpr int kLooks = 12, kComparisons = 3;
  const StoppedRow row{calls,
                       [&](int begin, std::optional<int>* call) {
                         Run looked = look_at_outputs(begin, calls - begin);
                         if (outputs_.found()) *call = begin + *outputs_.found();
                         return looked;
                       },
                       [&](int call) { return inspect(call); }};
  const device::ExtensionSession& session = candidate_.session();
  // Until what it has begun must be done, at first; then for as long as two more calls take.
  const double call_s = call_ns_ * 1e-9, longest_s = kLeast + 2 * call_s;
  double wait_s = std::max(kLeast, call_s / 4);
  const auto wait = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(wait_s)); };
  int written = -1, said = 0, returned = 0;
  OutOfStep step = OutOfStep::kNo;
  for (int i = 0; i < kLooks; ++i) {
    wait();
    const bool waited = wait_s >= longest_s;
    const int before = written;
    said = std::min(calls, session.begun());
    returned = session.between_calls() ? said : std::max(0, said - 1);
    if (const Run looked = count_written(row, said, &written); looked.verdict != Verdict::kOk) return looked;
    step = out_of_step(written, said, returned);
    if (step == OutOfStep::kAhead) break;
    if (step == OutOfStep::kBehind) {  // where other work comes between on the GPU, it takes longer
      wait_s *= 2;
      continue;
    }
    // With all begun there is nothing that could come too early.
    if (said == calls || (waited && written == before)) break;
    wait_s = std::max(wait_s, longest_s);
  }
  if (step == OutOfStep::kAhead) return {Verdict::kOutOfBounds, kWorkedAhead, 0};
  if (step == OutOfStep::kBehind)
    return {Verdict::kWrongOutput, std::string(kDeferredResults) + kInTimedCall, 0};
  // Whose work is put off has something else there. (Other work may have come between two of its launches.)
  Run last = returned > 0 ? inspect(returned - 1) : Run{};
  for (int i = 1; i < kComparisons && last.verdict == Verdict::kWrongOutput; ++i) {
    wait();
    wait_s *= 2;
    last = inspect(returned - 1);
  }
  *begun = std::max(1, said);
  if (last.verdict != Verdict::kOk || *begun == calls) return last;
  operands_->look_between(first_, calls + 1);
  if (const Run looked = look_at_outputs(*begun, calls - *begun, true); looked.verdict != Verdict::kOk)
    return looked;
  return outputs_.found() ? Run{Verdict::kOutOfBounds, kWorkedAhead, 0} : Run{};
}

Arm::Run ExtensionArm::look_at_others(int begun, int calls) {
  if (const Run looked = look_at_outputs(begun, calls - begun); looked.verdict != Verdict::kOk) return looked;
  // Answers that were kept are those of the next calls.
  if (const Run looked = inspect(begun); looked.verdict != Verdict::kOk) return looked;
  const auto drawn = static_cast<int>(key_ % static_cast<std::uint64_t>(calls - begun));
  return inspect(begun + outputs_.found().value_or(drawn));
}

Arm::Run ExtensionArm::inspect(int call) {
  const Spending spending(spent_.compared);
  if (!check_) check_ = make_check_();
  return check_->look(call_seed(key_, call), *operands_, set_of(call));
}

ExtensionArm::Clocks ExtensionArm::clocks() const {
  if (ours_.empty()) return {};
  return {stats::median(ours_), stats::median(events_), stats::median(late_), stats::median(armed_),
          stats::median(values_)};
}

std::string ExtensionArm::spent() const {
  return fmt::format("values {:.2f}, rows {:.2f}, looks {:.2f}, compared {:.2f}, stopped {:.2f}",
                     spent_.renew + spent_.before_clock, spent_.rows - spent_.before_clock, spent_.looks,
                     spent_.compared, spent_.stopped);
}

void ExtensionArm::forget_clocks() {
  for (std::vector<double>* times : {&ours_, &events_, &late_, &armed_, &values_}) times->clear();
}

HostClockBaseline::HostClockBaseline(GpuHarness& harness, const task::Task& task, const Reference& reference,
                                     const task::Dims& dims, int most_calls)
    : harness_(harness),
      task_(task),
      dims_(dims),
      inputs_(reference, dims),
      places_(gpu_places(harness.gpu(), input_bytes(task, dims) + output_bytes(task, dims), most_calls)),
      most_calls_(most_calls),
      operands_(harness, input_specs(task, dims), sets_of(places_, most_calls)),
      calls_(reference.bind(dims, spans_of(operands_, 0, operands_.sets()))),
      own_(kOwnBytes) {
  for (int i = 0; i < kOverheads; ++i) {
    std::vector<double> empty;
    for (int j = 0; j < kEmptyIntervals; ++j) empty.push_back(static_cast<double>(interval(0)));
    empty_ns_ = i == 0 ? stats::median(empty) : std::min(empty_ns_, stats::median(empty));
  }
}

void HostClockBaseline::renew(std::uint64_t key, int calls) {
  calls_->drop_outputs();
  place_ = deck_.draw(places_);
  first_ = place_ * (most_calls_ + 1);
  const int filled = operands_.sets() > 1 ? calls + 1 : calls;
  for (int call = 0; call < filled; ++call) inputs_.add(call_seed(key, call), operands_, first_ + call);
  inputs_.fill(harness_);
}

double HostClockBaseline::values_ns(int calls, std::uint64_t key) {
  return values_alone(harness_, inputs_, operands_, calls, key);
}

// As the child does it: flushed, then something small, so that the GPU is awake, then the clock.
std::int64_t HostClockBaseline::interval(int calls) {
  flush(harness_);
  device::fill_bytes(own_.address(), 0, own_.bytes());
  settle(harness_);
  const Clock::time_point begin = Clock::now();
  if (calls > 0) calls_->run(first_, calls);
  const device::GpuOutcome done = harness_.gpu().wait(kBaselineTimeout, kBaselineTimeout);
  const std::int64_t elapsed = ns_since(begin);
  if (!done.ok()) throw device::GpuError("the baseline on the GPU: " + done.detail, done);
  return elapsed;
}

Arm::Run HostClockBaseline::run(int calls) {
  harness_.gpu().reset_persisting_l2();
  calls_->run(operands_.sets() > 1 ? first_ + calls : first_, 1);  // untimed
  harness_.gpu().settle(kBaselineTimeout);
  calls_->drop_outputs();
  const auto elapsed = static_cast<double>(interval(calls));
  return {Verdict::kOk, "",
          std::max<std::int64_t>(1, std::llround(std::max(elapsed / 4, elapsed - empty_ns_)))};
}

ChildBaseline::ChildBaseline(std::shared_ptr<ExtensionCandidate> child, const Reference& reference,
                             std::vector<double> bounds, const task::Dims& dims, int most_calls,
                             const ExtensionOverhead& overhead)
    : child_(std::move(child)), arm_(*child_, reference, std::move(bounds), dims, most_calls, overhead) {
  if (arm_.outcome().verdict != Verdict::kOk)
    throw Error("the reference in a process of its own: " + arm_.outcome().detail);
}

double ChildBaseline::take_off_call(int calls) {
  const double ns = arm_.idle_call_ns(calls);
  arm_.take_off_call(ns, ns);
  return ns;
}

Arm::Run ChildBaseline::run(int calls) {
  const Run run = arm_.run(calls);
  if (run.verdict != Verdict::kOk) throw Error("the reference in a process of its own: " + run.detail);
  return run;
}

}  // namespace warpsmith::measure

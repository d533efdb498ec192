#include "warpsmith/measure/arm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/host.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kAlignment = 256;  // as device operands

bool is_poison(std::span<const std::byte> value) {
  return std::all_of(value.begin(), value.end(), [](std::byte b) { return b == std::byte{0xFF}; });
}

// The first set of the place that a renewal takes.
int first_set(std::uint64_t key, int calls) {
  return static_cast<int>(random_key({key, name_key("place")}) % kPlacements) * (calls + 1);
}

// Zeroed private pages.
class Pages {
 public:
  explicit Pages(std::uint64_t bytes) : bytes_(std::max<std::uint64_t>(bytes, 1)) {
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw system_error("cannot map operands of the baseline", errno);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  std::uint64_t bytes_;
};

}  // namespace

std::uint64_t call_seed(std::uint64_t key, int call) {
  return random_key({key, name_key("timed"), static_cast<std::uint64_t>(call)});
}

struct BaselineArm::State {
  State(const Reference& the_reference, const ValueSource& the_source, task::Dims the_dims,
        std::uint64_t bytes)
      : reference(the_reference), source(the_source), dims(std::move(the_dims)), pages(bytes) {}
  const Reference& reference;
  const ValueSource& source;
  task::Dims dims;
  Pages pages;
  std::vector<std::vector<std::span<std::byte>>> inputs;  // [set][input]
  int first = 0;                                          // set of the last renewal
  std::unique_ptr<Reference::Calls> calls;
};

BaselineArm::BaselineArm(const task::Task& task, const Reference& reference, const ValueSource& source,
                         const task::Dims& dims, int most_calls) {
  const auto padded = [&](const task::TensorSpec& input) {
    return (task::misalignment_at(input, dims) + tensor_bytes(input, dims) + kAlignment - 1) / kAlignment *
           kAlignment;
  };
  std::uint64_t set_bytes = 0;
  for (const task::TensorSpec& input : task.inputs) set_bytes += padded(input);
  const int sets = kPlacements * (most_calls + 1);
  state_ = std::make_unique<State>(reference, source, dims, set_bytes * static_cast<std::uint64_t>(sets));
  std::byte* at = state_->pages.data();
  for (int set = 0; set < sets; ++set) {
    auto& spans = state_->inputs.emplace_back();
    for (const task::TensorSpec& input : task.inputs) {
      spans.emplace_back(at + task::misalignment_at(input, dims), tensor_bytes(input, dims));
      at += padded(input);
    }
  }
  state_->calls = std::make_unique<Reference::Calls>(reference.bind(dims, state_->inputs));
}

BaselineArm::~BaselineArm() = default;

void BaselineArm::renew(std::uint64_t key, int calls) {
  // The outputs of the last run go back to the allocator: the next run's come from there, mapped.
  state_->calls->drop_outputs();
  state_->first = first_set(key, calls);
  for (int call = 0; call <= calls; ++call) {
    const auto& inputs = state_->inputs.at(static_cast<std::size_t>(state_->first + call));
    fill_inputs(state_->source, state_->reference, state_->dims, -1, call_seed(key, call), 0, inputs);
  }
}

Arm::Run BaselineArm::run(int calls) {
  Run result;
  evict_private_caches();
  state_->calls->run(state_->first + calls, 1);
  state_->calls->drop_outputs();
  result.elapsed_ns = state_->calls->run(state_->first, calls);
  return result;
}

std::optional<int> BaselineArm::unwritten(int) { return std::nullopt; }

Arm::Run BaselineArm::inspect(int) { return {}; }

CandidateProcess::CandidateProcess(const task::Task& task, const task::LaunchPlan& plan,
                                   const device::TwinOptions& options)
    : task_(task), plan_(plan), session_(options) {}

Ran CandidateProcess::prepare(const task::Dims& dims, int sets) {
  dims_ = dims;
  std::vector<device::Operand> operands;
  for (const task::TensorSpec& input : task_.inputs)
    operands.push_back({input.name, tensor_bytes(input, dims), false, task::misalignment_at(input, dims)});
  for (const task::TensorSpec& output : task_.outputs)
    operands.push_back({output.name, tensor_bytes(output, dims), true, 0, output.dtype});
  try {
    const task::ConcretePlan plan = plan_.evaluate(task::plan_bindings(task_, dims));
    const device::TwinRun run = session_.prepare(plan, operands, sets);
    return {run.verdict, run.detail, 0};
  } catch (const task::PlanError& e) {
    return {e.out_of_memory ? Verdict::kOutOfMemory : Verdict::kLaunchError,
            "kernel.cu:" + std::to_string(e.line) + ": " + e.message, 0};
  }
}

Ran CandidateProcess::run(int sets) {
  device::TwinRun run = session_.run_and_hold(0, sets);
  return {run.verdict, std::move(run.detail), run.elapsed_ns};
}

std::vector<std::span<std::byte>> CandidateProcess::inputs(int set) {
  std::vector<std::span<std::byte>> spans;
  for (const task::TensorSpec& input : task_.inputs) spans.push_back(session_.operand(set, input.name));
  return spans;
}

std::vector<std::span<const std::byte>> CandidateProcess::outputs(int set) {
  std::vector<std::span<const std::byte>> spans;
  for (const task::TensorSpec& output : task_.outputs) spans.push_back(session_.operand(set, output.name));
  return spans;
}

CandidateArm::CandidateArm(CandidateProcess& process, const task::Task& task, const Reference& reference,
                           const ValueSource& source, std::vector<double> bounds, double handshake_ns)
    : process_(process),
      task_(task),
      reference_(reference),
      source_(source),
      bounds_(std::move(bounds)),
      handshake_ns_(std::llround(handshake_ns)) {}

void CandidateArm::renew(std::uint64_t key, int calls) {
  key_ = key;
  process_.session().poison(0, calls + 1);
  for (int call = 0; call <= calls; ++call) {
    fill_inputs(source_, reference_, process_.dims(), -1, call_seed(key, call), 0, process_.inputs(call));
  }
}

Arm::Run CandidateArm::run(int calls) {
  evict_private_caches();
  device::TwinRun run = process_.session().run(calls, 1);
  if (run.verdict == Verdict::kOk) run = process_.session().run_and_hold(0, calls);
  return {run.verdict, std::move(run.detail), std::max(run.elapsed_ns / 4, run.elapsed_ns - handshake_ns_)};
}

bool CandidateArm::any_place(int call, const std::function<bool(std::span<const std::byte>)>& is) {
  constexpr std::uint64_t kPlaces = 16;  // of each output: its last element and others
  for (std::size_t i = 0; i < task_.outputs.size(); ++i) {
    const std::span<const std::byte> bytes = process_.outputs(call)[i];
    const std::uint64_t size = task::size_of(task_.outputs[i].dtype), count = bytes.size() / size;
    for (std::uint64_t place = 0; place < kPlaces && count > 0; ++place) {
      const std::uint64_t element =
          place == 0 ? count - 1 : random_key({key_, static_cast<std::uint64_t>(call), place}) % count;
      if (is(bytes.subspan(element * size, size))) return true;
    }
  }
  return false;
}

std::optional<int> CandidateArm::unwritten(int calls) {
  for (int call = 0; call < calls; ++call)
    if (any_place(call, is_poison)) return call;
  return std::nullopt;
}

Arm::Run CandidateArm::stop_short(std::uint64_t key, int calls, int made) {
  renew(key, calls);
  device::TwinRun run = process_.session().run(calls, 1);
  if (run.verdict == Verdict::kOk) run = process_.session().run_and_hold(0, made);
  if (run.verdict != Verdict::kOk) return {run.verdict, std::move(run.detail), 0};
  for (int call = made; call < calls; ++call)
    if (any_place(call, std::not_fn(is_poison))) return {Verdict::kOutOfBounds, kWorkedAhead, 0};
  renew(random_key({key, name_key("others")}), calls);
  run = process_.session().run_and_hold(made, calls - made);
  if (run.verdict != Verdict::kOk) return {run.verdict, std::move(run.detail), 0};
  return inspect(made + static_cast<int>(key % static_cast<std::uint64_t>(calls - made)));
}

Arm::Run CandidateArm::inspect(int call) {
  // Of what the candidate shares only its results count, as they are now: the right answer is that for the
  // values that were drawn for this call.
  std::vector<std::vector<std::byte>> results, drawn;
  for (std::size_t i = 0; i < task_.outputs.size(); ++i) {
    const std::span<const std::byte> output = process_.outputs(call)[i];
    results.emplace_back(output.begin(), output.end());
  }
  const std::vector<std::span<std::byte>> given = process_.inputs(call);
  for (const std::span<std::byte> input : given) drawn.emplace_back(input.size());
  fill_inputs(source_, reference_, process_.dims(), -1, call_seed(key_, call), 0,
              {drawn.begin(), drawn.end()});
  for (std::size_t i = 0; i < drawn.size(); ++i)
    if (!std::ranges::equal(given[i], drawn[i]))
      return {Verdict::kInputModified, "writes to input `" + task_.inputs[i].name + "` in a timed call", 0};
  const std::vector<OutputValues> right = reference_.run(process_.dims(), {drawn.begin(), drawn.end()});
  for (std::size_t i = 0; i < right.size(); ++i) {
    const Comparison comparison = compare(results[i], right[i], bounds_.at(i) * kBoundOfTimed);
    if (!comparison.agrees)
      return {Verdict::kWrongOutput,
              "in a timed call: " + describe(comparison, task_.outputs[i].name, right[i]) + " (shape " +
                  describe(process_.dims()) + ")",
              0};
  }
  return {};
}

Arm* AnyOf::taken(std::uint64_t key) const {
  return arms_[random_key({key, name_key("process")}) % arms_.size()];
}

void AnyOf::renew(std::uint64_t key, int calls) {
  now_ = taken(key);
  now_->renew(key, calls);
}

Arm::Run AnyOf::stop_short(std::uint64_t key, int calls, int made) {
  return taken(key)->stop_short(key, calls, made);
}

}  // namespace warpsmith::measure

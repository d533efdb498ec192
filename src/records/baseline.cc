#include "warpsmith/records/baseline.h"

#include <algorithm>
#include <array>

#include "warpsmith/base/error.h"

namespace warpsmith {

namespace {

constexpr std::array<std::string_view, 3> kStates = {"covered", "missing", "not_covered"};

}  // namespace

const std::vector<std::string>& known_baselines() {
  static const std::vector<std::string> kNames = {"eager", "cuda_graph", "torch_compile",
                                                  "torch_compile_reduce_overhead", "cudnn"};
  return kNames;
}

std::string_view to_string(BaselineState state) { return kStates[static_cast<std::size_t>(state)]; }

void from_text(std::string_view name, BaselineState& state) {
  const auto found = std::find(kStates.begin(), kStates.end(), name);
  if (found == kStates.end()) throw Error("unknown state of a baseline `" + std::string(name) + "`");
  state = static_cast<BaselineState>(found - kStates.begin());
}

namespace {

Fields<BaselineTiming> make_baseline_fields() {
  using T = BaselineTiming;
  Fields<T> fields = {
      field("task", &T::task, {.meaning = "task", .presence = Presence::kNeeded}),
      field("baseline", &T::name,
            {.meaning = "`eager`, `cuda_graph`, `torch_compile`, `torch_compile_reduce_overhead`, `cudnn`",
             .presence = Presence::kNeeded,
             .width = kLongestText}),
      field("math", &T::math,
            {.meaning = "arithmetic: `strict` or `torch_default`",
             .presence = Presence::kWritten,
             .width = 16}),
      field("state", &T::state,
            {.meaning = "`covered`: there is a number; `missing`: this machine lacks what it takes, or it "
                        "failed; `not_covered`: it has no such operator",
             .presence = Presence::kNeeded,
             .width = 16}),
      field("reason", &T::reason, {.meaning = "why it is not covered"}),
      field("flags", &T::flags, {.meaning = "versions, and what was switched on or off (JSON)"}),
      field("device_kind", &T::device_kind, {.meaning = "device kind", .json = "/device/kind"}),
      field("device_name", &T::device_name, {.meaning = "name of the device", .json = "/device/name"}),
      field("device_uuid", &T::device_uuid, {.meaning = "UUID of the GPU", .json = "/device/uuid"}),
      field("seconds", &T::seconds,
            {.unit = "s", .meaning = "that it took, compilation included", .presence = Presence::kWritten}),
  };
  const Fields<T> covered = {
      field(
          "ratio", &T::ratio,
          {.meaning = "time of `eager` / time of the baseline, timed in pairs. Of `eager`: against a second "
                      "copy of itself, so 1 within the noise",
           .presence = Presence::kNeeded}),
      field("low", &T::low,
            {.meaning = "lower end of the 95 % interval of `ratio`",
             .presence = Presence::kNeeded,
             .json = "/interval/0"}),
      field("high", &T::high,
            {.meaning = "its upper end", .presence = Presence::kNeeded, .json = "/interval/1"}),
      field("imprecise", &T::imprecise,
            {.meaning = "1: the time budget ended before the interval was narrow enough",
             .presence = Presence::kWritten}),
      field("eager_ns", &T::eager_ns,
            {.unit = "ns",
             .meaning = "median of one call of `eager` in the pair. Of torch.compile `eager` is Python's",
             .presence = Presence::kNeeded}),
      field("baseline_ns", &T::baseline_ns,
            {.unit = "ns", .meaning = "median of one call of the baseline", .presence = Presence::kNeeded}),
      field("variance", &T::variance,
            {.meaning = "between the buckets, of the log-ratio", .presence = Presence::kWritten}),
      field("rounds", &T::rounds, {.meaning = "paired rounds", .presence = Presence::kWritten}),
      field("batch", &T::batch,
            {.meaning = "calls of the baseline in each timed interval", .presence = Presence::kWritten}),
      field("shape", &T::shape, {.meaning = "timing shape (`M=256 N=1024`)", .presence = Presence::kWritten}),
  };
  for (Field<T> one : covered) {
    one.where = [](const T& t) { return t.state == BaselineState::kCovered; };
    fields.push_back(std::move(one));
  }
  return fields;
}

}  // namespace

const Fields<BaselineTiming>& baseline_fields() {
  static const Fields<BaselineTiming> fields = make_baseline_fields();
  return fields;
}

Json to_json(const BaselineTiming& timing) { return fields_to_json(baseline_fields(), timing); }

BaselineTiming baseline_timing_from_json(const Json& json) {
  return record_from_json(baseline_fields(), json, "baseline record");
}

}  // namespace warpsmith

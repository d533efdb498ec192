// What a task's baselines took on a device, each timed in pairs with `eager`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/field.h"

namespace warpsmith {

enum class BaselineState {
  kCovered,     // there is a number
  kMissing,     // this machine lacks what it takes, or it failed
  kNotCovered,  // it has no such operator
};
std::string_view to_string(BaselineState state);              // "covered", "missing", "not_covered"
void from_text(std::string_view name, BaselineState& state);  // throws Error

// Those that a GPU has, in the order in which they are timed: "eager", "cuda_graph", "torch_compile",
// "torch_compile_reduce_overhead", "cudnn". On the CPU there is eager alone.
const std::vector<std::string>& known_baselines();

// One baseline of one task on one device.
struct BaselineTiming {
  std::string task;
  std::string name;  // "eager", "torch_compile", …
  std::string math;  // "strict" or "torch_default"
  BaselineState state = BaselineState::kMissing;
  std::string reason;  // where it is not covered
  // Where it is:
  double ratio = 0;                      // time of eager / time of this baseline: over 1 it is the faster one
  double low = 0, high = 0;              // its 95 % interval
  bool imprecise = false;                // the time budget ended before the interval was narrow enough
  double eager_ns = 0, baseline_ns = 0;  // medians a call
  double variance = 0;                   // between the buckets
  int rounds = 0, batch = 1;             // paired rounds; calls in each timed interval
  std::vector<std::pair<std::string, std::int64_t>> shape;
  std::map<std::string, std::string> flags;  // versions, and what was switched on or off
  std::string device_kind, device_name, device_uuid;
  double seconds = 0;  // that it took
};
const Fields<BaselineTiming>& baseline_fields();
Json to_json(const BaselineTiming& timing);
BaselineTiming baseline_timing_from_json(const Json& json);  // throws Error

}  // namespace warpsmith

// What became of a candidate: the closed list. An enum, never an exception.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace warpsmith {

enum class Verdict {
  kOk,
  kCompileError,
  kCompileTimeout,
  kUnsupported,  // this device or the twin lacks a feature: no reward, no success, and no failure either
  kLaunchError,
  kWrongOutput,
  kNondeterministic,
  kInputModified,
  kOutOfBounds,
  kCrash,
  kTimeout,
  kOutOfMemory,
  kSandboxViolation,
  kTooFast,
  kUnstable,
  kHack,         // its kind stands in the record's detail
  kNotMeasured,  // node loss, wrong GPU, full disk: no reward, tried again
};

inline constexpr std::array<std::string_view, 17> kVerdictNames = {
    "ok",           "compile_error",    "compile_timeout",   "unsupported",   "launch_error",
    "wrong_output", "nondeterministic", "input_modified",    "out_of_bounds", "crash",
    "timeout",      "out_of_memory",    "sandbox_violation", "too_fast",      "unstable",
    "hack",         "not_measured"};

constexpr std::string_view to_string(Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

constexpr std::optional<Verdict> parse_verdict(std::string_view name) {
  for (std::size_t i = 0; i < kVerdictNames.size(); ++i)
    if (kVerdictNames[i] == name) return static_cast<Verdict>(i);
  return std::nullopt;
}

void from_text(std::string_view name, Verdict& verdict);  // throws Error

// Compiled, ran and gave the right answers. `unstable` and `too_fast` are no successes.
constexpr bool is_success(Verdict verdict) { return verdict == Verdict::kOk; }

// Gave the right answers, whether or not it could be timed: what stages 1 and 2 learn from, where speed plays
// no part.
constexpr bool is_correct(Verdict verdict) {
  return verdict == Verdict::kOk || verdict == Verdict::kUnstable;
}

// Says something about the candidate (an `unsupported` or `not_measured` one may be fine elsewhere).
constexpr bool is_failure(Verdict v) {
  return v != Verdict::kOk && v != Verdict::kUnsupported && v != Verdict::kNotMeasured;
}

}  // namespace warpsmith

// Why a shard's attempt ended. Each cause has its own retry rule.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace warpsmith {

enum class EndCause {
  kFinished,   // exit 0
  kUserError,  // exit 2: a mistake in the input; never retried
  kFailed,     // another exit code
  kCrash,      // a signal
  kTimeout,
  kOutOfMemory,
  kNodeFailure,
  kPreempted,
  kCancelled,
  kLaunchFailure,
  kDiskFull,
  kUnknown,  // the executor no longer knows: records decide
  kStopped,  // cancelled from outside (scancel, an administrator): somebody wants it to end
};

inline constexpr std::array<std::string_view, 13> kEndCauseNames = {
    "finished",  "user_error", "failed",         "crash",     "timeout", "out_of_memory", "node_failure",
    "preempted", "cancelled",  "launch_failure", "disk_full", "unknown", "stopped"};

constexpr std::string_view to_string(EndCause cause) {
  return kEndCauseNames[static_cast<std::size_t>(cause)];
}

constexpr std::optional<EndCause> parse_end_cause(std::string_view name) {
  for (std::size_t i = 0; i < kEndCauseNames.size(); ++i)
    if (kEndCauseNames[i] == name) return static_cast<EndCause>(i);
  return std::nullopt;
}

}  // namespace warpsmith

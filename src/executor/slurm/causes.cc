#include "causes.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace warpsmith::executor {

bool never_starts(const std::string& reason) {
  static const std::set<std::string, std::less<>> kReasons = {
      "BadConstraints",   "InvalidAccount",     "InvalidQOS",         "AccountNotAllowed",
      "QOSNotAllowed",    "PartitionTimeLimit", "PartitionNodeLimit", "DependencyNeverSatisfied",
      "JobHoldMaxRequeue"};
  return kReasons.contains(reason);
}

bool failed_to_launch(const std::string& reason) {
  std::string lower = reason;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find("launch") != std::string::npos;
}

EndCause cause_of(const SlurmTask& task, bool by_us) {
  constexpr int kUnopenableOutput = 53;
  switch (task.state) {
    case SlurmState::kCompleted:
      return EndCause::kFinished;
    case SlurmState::kCancelled:
      return by_us ? EndCause::kCancelled : EndCause::kStopped;
    case SlurmState::kFailed:
      if (task.signal == kUnopenableOutput || failed_to_launch(task.reason)) return EndCause::kLaunchFailure;
      if (task.signal != 0) return EndCause::kCrash;
      return task.exit_code == kExitUsage ? EndCause::kUserError : EndCause::kFailed;
    case SlurmState::kTimeout:
    case SlurmState::kDeadline:
      return EndCause::kTimeout;
    case SlurmState::kNodeFail:
    case SlurmState::kBootFail:
      return EndCause::kNodeFailure;
    case SlurmState::kPreempted:
      return EndCause::kPreempted;
    case SlurmState::kOutOfMemory:
      return EndCause::kOutOfMemory;
    default:
      return EndCause::kUnknown;
  }
}

}  // namespace warpsmith::executor

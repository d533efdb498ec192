#include "causes.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace warpsmith::executor {

bool never_starts(std::string_view reason) {
  static const std::set<std::string, std::less<>> kReasons = {
      "BadConstraints",    "InvalidAccount",     "InvalidQOS",         "AccountNotAllowed",
      "QOSNotAllowed",     "PartitionTimeLimit", "PartitionNodeLimit", "DependencyNeverSatisfied",
      "JobHoldMaxRequeue", "MaxMemPerLimit"};
  const auto has = [&](std::string_view part) { return reason.find(part) != std::string_view::npos; };
  const bool limit = reason.starts_with("QOS") || reason.starts_with("Assoc");
  return kReasons.contains(reason) ||
         (limit && (has("PerJob") || has("PerNode") || reason.starts_with("QOSMin")));
}

bool waits_for_own_jobs(std::string_view reason) {
  return reason == "AssocMaxJobsLimit" ||
         (reason.starts_with("QOSMax") && reason.find("PerUser") != std::string_view::npos);
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

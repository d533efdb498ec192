#include "child_end.h"

#include <csignal>

namespace warpsmith::device {

ChildEnd read_end(const process::ChildResult& end) {
  using process::Ending;
  const bool forbidden_here = end.ending == Ending::kSignaled && end.signal == SIGSYS;
  // As a sandbox's own process says it of the one inside.
  const bool forbidden_inside = end.ending == Ending::kExited && end.exit_code == 128 + SIGSYS;
  if (forbidden_here || forbidden_inside)
    return {Verdict::kSandboxViolation, "a system call that the sandbox forbids"};
  if (end.ending == Ending::kMemoryLimit) return {Verdict::kOutOfMemory, "over its memory limit"};
  if (end.ending == Ending::kOutputLimit)
    return {Verdict::kSandboxViolation, end.problem.empty() ? "wrote more than it may" : end.problem};
  if (end.ending == Ending::kSignaled && end.signal == SIGKILL)
    return {Verdict::kOutOfMemory, "ended by signal 9, as the kernel does where memory is short"};
  if (end.ending == Ending::kSignaled)
    return {Verdict::kCrash, "ended by signal " + std::to_string(end.signal)};
  return {Verdict::kCrash,
          "the candidate ended its process (exit code " + std::to_string(end.exit_code) + ")"};
}

ChildEnd end_silent(process::Child& child) {
  if (!child.running()) return read_end(child.wait());
  child.kill();
  return {Verdict::kTimeout, "no answer within its time"};
}

}  // namespace warpsmith::device

// What a task itself is worth: its reference run on a device, and whether programs that compute nothing
// would pass all that a candidate is checked on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct TaskFindings {
  std::string task;
  double eager_ns = 0;  // of a call at the timing shape, roughly; on a GPU alone, else 0
  int cases = 0;        // that were asked: every shape, every distribution (oracle.h)
  // Cases that no candidate is asked, with the reason: there the reference misses its own float64 answer.
  std::vector<std::string> undecidable;
  // Answers that cost nothing and pass every case: "`out`: zeros", "`out`: one constant, 0.5", "`out`: a
  // constant for each shape", "`out`: input `x` as it is".
  std::vector<std::string> cheap;
  // The same of the shapes that are timed alone, where they do not pass at every other: KernelBench's table
  // takes a program that is right at its own shape.
  std::vector<std::string> cheap_when_timed;
  // Inputs whose values change nothing, at no shape: a program that never reads them passes.
  std::vector<std::string> unread;
  double unread_share = 0;   // of the bytes of all inputs at the largest shape
  bool much_unread = false;  // over 5 % of these bytes, or every input that is no parameter of a module
  std::string unread_names() const;  // "`a`, `b` and 3 more"; or empty
  // Every output has a cheap answer, much is unread, or no case can be decided: a speedup there says nothing.
  // (A bias before a norm is not needed, and small.)
  bool degenerate = false;
  // Why, in one line; empty where it is not.
  std::string why() const;
};

Json to_json(const TaskFindings& findings);

// On the host, at the task's `math`. configure_torch() must have been called. Throws Error where the
// reference fails, with torch's words.
TaskFindings check_task(const task::Task& task, int seeds, std::uint64_t seed);
// The same where the oracle's reference runs. Of large shapes (is_large()) one seed of the task's own values
// is asked, and no other: the smaller shapes show the others.
TaskFindings check_task(const task::Task& task, Oracle& oracle, std::vector<CheckCase> cases);

// A shard of `warpsmith-measure` whose params have `check_tasks: true`: items {"id": TASK}; params
// `datasets`, `device_kind` ("cpu", a GPU type, or "auto"), `device_names`, `threads`, `check_seeds`, `math`,
// `unsandboxed` (the compiler of the harness).
// With `compile_only: true` references are compiled and not run.
// A record has the findings, or `error`, and `device`, the name of what it ran on.
void run_task_checks(ShardSession& shard);

}  // namespace warpsmith::measure

// What a task itself is worth: its reference run on a device, and whether programs that compute nothing
// would pass all that a candidate is checked on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/measure/reference.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct TaskFindings {
  std::string task;
  int cases = 0;  // that were asked: every shape, every distribution (oracle.h)
  // Cases that no candidate is asked, with the reason: there the reference misses its own float64 answer.
  std::vector<std::string> undecidable;
  // Answers that cost nothing and pass every case: "`out`: zeros", "`out`: one constant, 0.5", "`out`: a
  // constant for each shape", "`out`: input `x` as it is".
  std::vector<std::string> cheap;
  // Inputs whose values change nothing, at no shape: a program that never reads them passes.
  std::vector<std::string> unread;
  // Every output has a cheap answer, some input is never needed, or no case can be decided: a speedup there
  // says nothing.
  bool degenerate = false;
  // Why, in one line; empty where it is not.
  std::string why() const;
};

Json to_json(const TaskFindings& findings);

// At the task's `math`. configure_torch() must have been called, for Place::kGpu load_torch_cuda() too.
// Throws Error where the reference fails, with torch's words.
TaskFindings check_task(const task::Task& task, Place place, int seeds, std::uint64_t seed);

// A shard of `warpsmith-measure` whose params have `check_tasks: true`: items {"id": TASK}; params
// `datasets`, `device_kind` ("cpu", a GPU type, or "auto"), `device_names`, `threads`, `check_seeds`, `math`.
// With `compile_only: true` references are compiled and not run.
// A record has the findings, or `error`, and `device`, the name of what it ran on.
void run_task_checks(ShardSession& shard);

}  // namespace warpsmith::measure

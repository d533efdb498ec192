// warpsmith-measure JOB.json SHARD: checks and times candidates, or (`check_tasks`) looks at tasks
// themselves.
#include "warpsmith/measure/job.h"
#include "warpsmith/measure/task_check.h"
#include "warpsmith/process/child.h"

int main(int argc, char** argv) {
  using namespace warpsmith;
  return shard_main("warpsmith-measure", argc, argv, [](ShardSession& shard) {
    process::become_subreaper();  // no candidate outlives us
    if (shard.job().params.value("check_tasks", false))
      measure::run_task_checks(shard);
    else
      measure::run_shard(shard);
  });
}

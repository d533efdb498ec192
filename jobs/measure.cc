// warpsmith-measure JOB.json SHARD: checks and times candidates, or (`check_tasks`) looks at tasks themselves.
#include <cstdlib>
#include <exception>
#include <string>

#include "warpsmith/base/log.h"
#include "warpsmith/measure/job.h"
#include "warpsmith/measure/task_check.h"
#include "warpsmith/process/child.h"

int main(int argc, char** argv) {
  using namespace warpsmith;
  start_logging("warpsmith-measure");
  if (argc != 3) {
    log_error("usage: warpsmith-measure JOB.json SHARD");
    return kExitUsage;
  }
  try {
    process::become_subreaper();  // no candidate outlives us
    ShardSession shard(argv[1], std::stoul(argv[2]));
    if (shard.job().params.value("check_tasks", false))
      measure::run_task_checks(shard);
    else
      measure::run_shard(shard);
    return kExitOk;
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    log_error(e.what());
    return kExitFailed;
  }
}

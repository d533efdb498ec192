// What a state or a reason of Slurm's means for a shard; the table is in slurm.h.
#pragma once

#include <string>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/records/end_cause.h"

namespace warpsmith::executor {

// The reason is one for which a job waits until somebody changes it, not until there is room.
bool never_starts(const std::string& reason);

// "JobLaunchFailure", "launch failed requeued held": the batch script could not be started.
bool failed_to_launch(const std::string& reason);

// Why a task ended that Slurm says has ended. `by_us`: we had asked for its cancellation.
EndCause cause_of(const SlurmTask& task, bool by_us);

}  // namespace warpsmith::executor

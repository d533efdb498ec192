// What a state or a reason of Slurm's means for a shard; the table is in slurm.h.
#pragma once

#include <string>
#include <string_view>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/records/end_cause.h"

namespace warpsmith::executor {

// The reason is one for which a job waits until somebody changes it or a limit, not until there is room. The
// limits of an account or QOS on one job or one node are among them.
bool never_starts(std::string_view reason);

// A limit of the account or QOS on what this user has at a time: jobs that end make room.
bool waits_for_own_jobs(std::string_view reason);

// "JobLaunchFailure", "launch failed requeued held": the batch script could not be started.
bool failed_to_launch(const std::string& reason);

// Why a task ended that Slurm says has ended. `by_us`: we had asked for its cancellation.
EndCause cause_of(const SlurmTask& task, bool by_us);

}  // namespace warpsmith::executor

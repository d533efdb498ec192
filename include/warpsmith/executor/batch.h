// What a shard looks like to Slurm: the batch script of an array and its environment. Pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::executor {

// A word for /bin/sh, in quotes where it needs them.
std::string shell_word(std::string_view word);

// Runs task SLURM_ARRAY_TASK_ID as shard `base` + that, by warpsmith-shard in `programs`. `model`: any of the
// array's shards; they differ in their number alone.
std::string batch_script(const run::ShardStart& model, std::uint32_t base, const workflow::SitePlace& place,
                         const std::filesystem::path& programs);

// What repeats a shard in /bin/sh, without its limits: in `folder` (empty: not said), with the variables that
// the executor sets. `place`: of the site, with what it puts around programs; null: this machine. One line
// where nothing stands around the program.
std::string command_by_hand(const run::ShardStart& shard, const std::filesystem::path& folder,
                            const workflow::SitePlace* place);

// Ours without SLURM_*, SBATCH_* and their like: a shard is a job of its own, not a step of the controller's.
// The place's environment is added.
std::vector<std::string> batch_environment(const std::map<std::string, std::string>& ours,
                                           const workflow::SitePlace& place);

// A job as `place` has it, with `gpus` GPUs on its node, our environment and our umask: name, script, folders
// and sizes are the caller's to say.
SlurmJob job_at(const workflow::SitePlace& place, int gpus);

}  // namespace warpsmith::executor

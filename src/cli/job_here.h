// Job programs that a command runs on this machine, without a workflow: for `validate`, `bench` and `import`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

// Tasks by the folder of theirs: job programs look a task up by its id there.
std::map<std::filesystem::path, std::vector<task::Task>> by_dataset(const std::vector<task::Task>& tasks);

// Until all have ended. Throws Error (kExitInterrupted) where a signal asks for the end, and ends them.
void wait_for_all(std::vector<process::Child>& children);

// Runs a job program on `items` and returns the records of all shards. `shards` run beside each other. The
// program follows from the job's name: "compile…" or "measure…". Throws Error with the program's log, and its
// exit code, where it fails; with kExitInterrupted where a signal asks for the end. `gpu`: the UUID of the
// one that it may see; empty: those that we see.
ShardRecords run_job(const std::filesystem::path& run, const std::string& job_name,
                     const std::vector<Json>& items, const Json& params, int shards,
                     const std::string& gpu = "");

// The first of this machine's usable GPUs that is of type `device`, or of any where that is `auto`. Nothing:
// there is none, or `device` is `cpu`.
std::optional<process::Gpu> find_gpu(const std::string& device);

}  // namespace warpsmith::cli

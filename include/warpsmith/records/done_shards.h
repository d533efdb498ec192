// Jobs whose program keeps no records of its own (`records: none` of a command stage): its exit code 0 stands for all
// items of a shard. Then the controller writes down which shards are done, a line {"shard": 3} each, in the file
// done.jsonl of the job's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "warpsmith/records/job.h"

namespace warpsmith {

bool keeps_no_records(const JobFile& job);

// On disk when it returns. Throws Error.
void append_done_shards(const std::filesystem::path& job_folder, const std::vector<std::uint32_t>& shards);

// Empty where there is no such file; a line that was cut short is passed over.
std::set<std::uint32_t> read_done_shards(const std::filesystem::path& job_folder);

}  // namespace warpsmith

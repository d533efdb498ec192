// When a shard is done: most are as soon as each of their items has a record. There are two other kinds of
// jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "warpsmith/records/job.h"

namespace warpsmith {

// Its shards write extra records behind those of their items (`measure`: baselines). So they are done with
// their end record alone.
bool has_extras(const JobFile& job);

// Its program keeps no records of its own (`records: none` of a command stage): its exit code 0 stands for
// all items of a shard. Then the controller writes down which shards are done, a line {"shard": 3} each, in
// the file done.jsonl of the job's folder.
bool keeps_no_records(const JobFile& job);

// On disk when it returns. Throws Error.
void append_done_shards(const std::filesystem::path& job_folder, const std::vector<std::uint32_t>& shards);

// Empty where there is no such file; a line that was cut short is passed over.
std::set<std::uint32_t> read_done_shards(const std::filesystem::path& job_folder);

}  // namespace warpsmith

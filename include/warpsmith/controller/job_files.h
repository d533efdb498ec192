// Jobs on disk: what the controller writes before a job runs, and what it reads back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/controller/replay.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/stages/stage.h"

namespace warpsmith::controller {

// Beside the job file of a service, while it can be asked: {"url", "host", "pid"}.
inline constexpr const char* kServiceFile = "service.json";
inline constexpr const char* kWeightsFile = "weights.json";  // beside it: what somebody wants it to serve
std::filesystem::path service_file(const std::filesystem::path& stage_folder);  // a stage has one such job

// items.jsonl of a request, and its digest: a job that a stage asks for again must have the same.
std::string items_text(const stages::JobRequest& request);

// Writes items.jsonl, the request's files, and last job.json. What is there already is written again, with
// the same content.
void write_job(const std::filesystem::path& folder, const JobFile& job, const stages::JobRequest& request,
               const std::string& items);

// Puts the records that `replay` knows into the first attempt of each shard; shards that have an attempt are
// left alone.
void prefill_records(const std::filesystem::path& folder, const JobFile& job,
                     const std::vector<std::string>& ids, const ReplayTimings& replay);

// All items with their records, in order, and the extra records. `run`: attempt folders are given relative to
// it.
stages::JobResult read_results(const std::filesystem::path& run, const std::filesystem::path& job_folder,
                               const JobFile& job, const std::vector<std::string>& ids);

// Whole records of items that a shard has written so far, cheaply: for progress. An item that several
// attempts wrote counts several times.
std::uint64_t count_records(const std::filesystem::path& shard_folder);

}  // namespace warpsmith::controller

// The file that describes one job to a job program, and its place on disk.
//
//   <stage folder>/<round>/<job>/
//     job.json       this file
//     items.jsonl    one JSON object a line, each with a string `id` unique in the job
//     <shard>/       made when the shard is started; log.txt: what it prints on stderr
//       <attempt>/   records.jsonl, blob.bin, …: one folder for each attempt, claimed by mkdir
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/field.h"

namespace warpsmith {

// What one shard may use. 0 or empty: not limited, or the site's default.
struct Resources {
  int cpus = 1;
  std::uint64_t memory_bytes = 0;
  int gpus = 0;
  std::string gpu_type;            // empty: any
  double time_s = 0;               // wall clock of one attempt
  std::uint64_t output_bytes = 0;  // what an attempt may write in its shard folder
  int ranks = 1, nodes = 1;
  int shards_a_gpu = 0;  // that may share it, each of which asks for one GPU; 0 or 1: it is the shard's own
  double gpus_held() const { return shards_a_gpu > 1 ? static_cast<double>(gpus) / shards_a_gpu : gpus; }
  friend bool operator==(const Resources&, const Resources&) = default;
};
const Fields<Resources>& resource_fields();
inline const Fields<Resources>& fields_of(const Resources&) { return resource_fields(); }
Json to_json(const Resources& r);
Resources resources_from_json(const Json& json);

// A round that asks the same answers again, turn after turn, has jobs for each: "generate", "compile" and
// "measure" of the first, "generate-2", … of the second.
inline constexpr int kMostTurns = 16;
std::string job_of_turn(const std::string& kind, int turn);
// "measure" of "measure-2"; other names as they are.
std::string_view kind_of_job(std::string_view job);

struct JobFile {
  std::string program;  // "warpsmith-measure"; or, for `command` stages, argv[0] of the user's program
  // `command` stages only: argv[1…]. Job file and shard number are appended.
  std::vector<std::string> arguments;
  std::string run, stage, hash8;  // names, for messages; hash8: first 8 digits of the stage's hash
  int round = 0;
  std::string job;    // "generate", "compile", "measure", "train", …; "generate-2": job_of_turn()
  std::string token;  // unique name of the job over all runs; the Slurm job's name
  std::uint64_t seed = 0;
  std::string run_folder = "../../../../..";                    // from the job's folder: runs are relocatable
  std::vector<std::pair<std::uint64_t, std::uint64_t>> shards;  // [begin, end) in items.jsonl
  Resources resources;
  Json params = Json::object();  // what the program wants to know; documented at the program
};
const Fields<JobFile>& job_file_fields();
Json to_json(const JobFile& job);
JobFile job_file_from_json(const Json& json);
JobFile read_job_file(const std::filesystem::path& path);

}  // namespace warpsmith

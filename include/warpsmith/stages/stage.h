// A stage kind as a state machine: records so far in, next jobs out. Pure: no file, clock or thread; what it is given and
// the order in which it is given it decide what it answers, so that a controller that was killed rebuilds it by replay.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/records/job.h"
#include "warpsmith/workflow/spec.h"
#include "warpsmith/task/task.h"

namespace warpsmith::stages {

// A job that a stage wants to run. The controller packs items into shards and writes job.json, items.jsonl and `files`.
struct JobRequest {
  int round = 0;
  std::string job;      // "collect", "generate", "compile", "measure", "train", "command"
  std::string program;  // "warpsmith-generate", or the user's program
  std::vector<std::string> arguments;
  Json params = Json::object();
  std::vector<Json> items;                    // each with a string "id"
  std::map<std::string, std::string> files;   // further files beside job.json: name -> content
  Resources resources;
  double expected_item_s = 1;
  bool one_shard = false;                     // never split (train; measure on one host)
};

struct ItemResult {
  std::string id;
  Json record;        // null: the item was lost with a failed shard that the stage tolerates
  std::string folder; // attempt folder with its blobs, relative to the run folder
};

struct JobResult {
  int round = 0;
  std::string job;
  std::vector<ItemResult> items;  // in the order of the request's items
};

// What a stage leaves for those that need it; written to <stage folder>/output.json. Its SHA-256 enters their hashes.
//   {"schema": "warpsmith.stage_output/1", "stage", "kind",
//    "candidates": [{"candidate": {…}, "measurement": {…}}, …],      every distinct candidate that it made, in order
//    "checkpoint": "checkpoints/sft-1200",                            stages that train; relative to the run folder
//    "summary": {…}}
using StageOutput = Json;

// Numbers for people while it works: round, rounds, loss, best and median speedup so far, valid share.
using StageProgress = Json;

struct StageStep {
  std::vector<JobRequest> jobs;  // to run now; several may run side by side
  bool finished = false;
  StageOutput output;            // once finished
  StageProgress progress = Json::object();
};

// What a stage may look at when it is made.
struct StageInputs {
  workflow::StageSpec spec;
  std::vector<task::Task> tasks;                 // of the dataset folder
  std::map<std::string, StageOutput> upstream;   // outputs of all stages that it needs, directly or not, by instance name
  std::vector<std::string> upstream_order;       // in the order of the workflow
};

class Stage {
 public:
  virtual ~Stage() = default;
  virtual StageStep start() = 0;
  // One call for each job of earlier steps, when all its shards have ended, in the order in which they ended.
  virtual StageStep on_job(const JobResult& result) = 0;
};

// Throws Error where the inputs do not fit (a checkpoint is missing upstream).
std::unique_ptr<Stage> make_stage(StageInputs inputs);

// How many rounds and jobs a stage will have at most, for `plan`: pairs of job name and items, round by round.
struct PlannedJob {
  int round = 0;
  std::string job;
  std::uint64_t items = 0;      // an upper bound where it depends on results
  bool upper_bound = false;
};
std::vector<PlannedJob> planned_jobs(const workflow::StageSpec& spec, const std::vector<task::Task>& tasks);

}  // namespace warpsmith::stages

// A stage kind as a state machine: records so far in, next jobs out. Pure: no file, clock or thread; what it
// is given and the order in which it is given it decide what it answers, so that a controller that was killed
// rebuilds it by replay.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/job.h"
#include "warpsmith/task/task.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::stages {

// A job that a stage wants to run. The controller packs items into shards and writes job.json, items.jsonl
// and `files`.
struct JobRequest {
  int round = 0;  // looping stages count from 1, the others have round 0
  // "collect", "generate", "compile", "measure", "train", "export", "command", "service"; of later turns
  // "generate-2", …: job_of_turn()
  std::string job;
  std::string program;  // "warpsmith-generate", or the user's program
  std::vector<std::string> arguments;
  // The controller adds "-" and the stage's hash8 to a `checkpoint_prefix`, and sets `stage_folder` where it
  // is there: the stage's folder, relative to the run folder.
  Json params = Json::object();
  std::vector<Json> items;                   // each with a string "id"
  std::map<std::string, std::string> files;  // further files beside job.json: name -> content
  Resources resources;
  double expected_item_s = 1;  // in the mean
  std::vector<double> item_s;  // of each item, where they differ; only their ratios count
  bool one_shard = false;      // never split (train; measure on one host)
  int least_shards = 1;        // where there are as many items
};

struct ItemResult {
  std::string id;
  Json record;         // null: the item was lost with a failed shard that the stage tolerates
  std::string folder;  // attempt folder with its blobs, relative to the run folder
};

struct JobResult {
  int round = 0;
  std::string job;
  std::vector<ItemResult> items;  // in the order of the request's items
  std::vector<Json> extras = {};  // records that are no item's: {"extra": true, "baseline": {…}} of `measure`
};

// What a stage leaves for those that need it; written to <stage folder>/output.json. Its SHA-256 enters their
// hashes. A JSON object:
//
//   schema          "warpsmith.stage_output/1"
//   stage, kind
//   device          device kind: "cpu"
//   wanted_device,  where the workflow asks for a GPU: what it asks for, and what the site had
//   device_found
//   lacks           why nothing was measured; every candidate has the verdict not_measured
//   protocol        measured under it; other stages take a number over where theirs is the same
//   candidates      a list: every distinct candidate that the stage came upon, in order
//     candidate, measurement   also of those that did not compile
//     folder        attempt folder with the measurement's samples, relative to the run folder
//     expected      of dataset files: the verdict that they must get ("ok", "wrong_hidden", …)
//     known_from    stage from whose output the verdict was taken over
//     code          {target: digest} of what it was compiled to, where known (toolchain/code_structure.h)
//   tasks           collect, measure with candidates from elsewhere: a list for results.h5
//     id, title, level, ops, split, reference
//   samples         self_supervised, contrastive, measure: a list of all samples, also repeated ones
//     round, item, sample, task
//     group         "train", "heldout_combination", …
//     candidate, verdict
//     speedup       where the verdict is ok; unrounded
//     repeated      true: a program that no model wrote, and that was known before
//     known         true: such a program, or one that differs from a program of others in names and constants
//                   alone, in its source or in its machine code; any other is novel
//     cut_off       true: the answer ended at max_tokens
//     turn          over 1: it was asked again; item and sample are those of the first turn
//     behind        1, where the policy that drew it lacked one update of the newest model when its round
//                   began (`ahead`)
//     reward        contrastive
//     discounted    contrastive with several turns: the reward with those of later turns
//     advantage     contrastive, where its group was not skipped
//   checkpoint      stages that train: relative to the run folder; beside it checkpoint_digest and step
//   checkpoint_of,  measure: what was evaluated; or candidates_of, candidates_of_run
//   evaluated
//   examples        sft: what its examples can be made from again; stage 2 replays them
//   rounds          looping stages: a list of {round, loss, …figures…, turns: [{…figures…}, …] of several},
//                   with `tokens` that the model wrote where they are counted,
//                   with `skip` (also of the summary, over all rounds, which has them once more): {guessed,
//                   skipped, blind, …} (surrogate.h)
//   records         command: what the program wrote, but for its candidates
//   summary         {…figures…, groups: {train: {…figures…}, …}}; with a `policy` or teachers also server and
//                   teachers: tokens, money, refused samples (server_json() in src/stages/samples.h)
//
// Figures: samples, ok, valid_share, distinct, distinct_share (by source), distinct_forms,
// distinct_form_share (identifiers and constants renamed), verdicts: {name: count}; best, best_author
// (Origin::kind), median, mean, geomean, p25, p75, wins (share whose interval lies above 1.01), above_1_01
// (share whose score does) over the correct ones that are the stage's own, which are the novel ones where a
// model writes; repeated: correct ones that repeat a program which no model wrote; known: these and correct
// ones that differ from such a program in names and constants alone; novel: the other correct ones;
// novel_programs: distinct ones of these; one_draw: geometric mean over all samples of max(1, speedup), one
// without a correct program counting 1; one_draw_unfloored: of the speedup, counting 0.01; host_bound: tasks
// whose baseline waits for the host, which these leave out. `not_measured` and `unsupported` samples are in
// no mean, and in no share but those of what is distinct.
using StageOutput = Json;

// Numbers for people while it works: round, rounds, ahead (the round that is sampled ahead), and of the round
// before: loss, best, best_author,
// median and geomean speedup, wins, above_1_01, host_bound, repeated, known, novel, valid_share,
// distinct_share, mean_reward, groups_skipped, skip, note.
using StageProgress = Json;

struct StageStep {
  std::vector<JobRequest> jobs;  // to run now; several may run side by side
  bool finished = false;
  StageOutput output;  // once finished
  StageProgress progress = Json::object();
  Json round = nullptr;  // looping stages: as in the output's `rounds`, the one that has ended last
};

// method::normal_form() of its files, one after the other: equal for programs that differ in names, constants
// and layout only.
std::string structure_of(const Candidate& candidate);

// What a stage may look at when it is made.
struct StageInputs {
  workflow::StageSpec spec;
  std::vector<task::Task> tasks;  // of the dataset folder
  std::map<std::string, StageOutput>
      upstream;  // outputs of all stages that it needs, directly or not, by instance name
  std::vector<std::string> upstream_order;  // in the order of the workflow
  // structure_of() every program of any tier that lies in the dataset's folders, of all tasks, held-out ones
  // too; may be null.
  std::shared_ptr<const std::set<std::string>> peoples_structures = nullptr;
  // The same of what templates write for tasks that a model is to solve, which nobody learns from; may be
  // null.
  std::shared_ptr<const std::set<std::string>> template_structures = nullptr;
};

// Sizes of a stage's model, as warpsmith-train has them (model::decoder_settings_from_json()).
Json decoder_json(const workflow::StageSpec& stage);
Json lora_json(const workflow::LoraSettings& lora);

class Stage {
 public:
  virtual ~Stage() = default;
  virtual StageStep start() = 0;
  // One call for each job of earlier steps, when all its shards have ended, in the order in which they ended.
  virtual StageStep on_job(const JobResult& result) = 0;
};

// Throws Error where the inputs do not fit (a checkpoint is missing upstream).
std::unique_ptr<Stage> make_stage(StageInputs inputs);

// How many rounds and jobs a stage will have at most, for `plan`: pairs of job name and items, round by
// round.
struct PlannedJob {
  int round = 0;
  std::string job;
  std::uint64_t items = 0;     // 0: known only when the stages and jobs before have ended
  bool upper_bound = false;    // it depends on results, and is this at most
  double expected_item_s = 1;  // as in JobRequest
  bool one_shard = false;
  int least_shards = 1;
  std::string program;
  Resources resources;
};
std::vector<PlannedJob> planned_jobs(const workflow::StageSpec& spec, const std::vector<task::Task>& tasks);

}  // namespace warpsmith::stages

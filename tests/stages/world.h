// A world in memory that answers the jobs of a stage: no process, no file, no clock.
//
// A program's fate stands in its text: "ok 1.50 name" compiles and is measured at 1.50x; "bad name" does not
// compile; "wrong name" compiles and computes something else; "unsupported name", "unstable name",
// "imprecise 1.50 name" (interval of ±10 %); "hack KIND reason" is found out; "once name" looked too good and
// did not come again; "lost name" goes with its shard when it is to be
// measured. "… code=X" is compiled to code X, "… registers=N" to a kernel with so many.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/stages/stage.h"

namespace warpsmith::stages {

task::Task make_task(const std::string& id);  // "out = f_<id>(x)"
// Tasks a, b (train), c (new combination), d (new operation).
StageInputs make_inputs(const std::string& name, const std::string& kind, workflow::StageSettings settings);

// An output of a stage named `stage` with these programs of one task, fates as above, measured under
// make_inputs' protocol.
StageOutput output_with(const std::string& stage, const std::string& task,
                        const std::vector<std::string>& sources, const std::string& origin = "dataset");
void add_upstream(StageInputs& inputs, const std::string& stage, StageOutput output);
// A stage `rl` of stage 3 for task `a`, behind `collect` with these programs and `ssl` with a checkpoint.
StageInputs with_model(workflow::ContrastiveSettings settings,
                       const std::vector<std::string>& programs = {"ok 1.00 p", "ok 2.00 q"});

Candidate program(const std::string& task, const std::string& source,
                  const std::string& origin = "generated");
Measurement fate(const Candidate& candidate);

// As many as the item asks for.
inline std::vector<std::string> repeat(const Json& item, const std::string& text) {
  return std::vector<std::string>(item.at("n").get<std::size_t>(), text);
}

struct World {
  // Answers to a prompt; by default none.
  std::function<std::vector<std::string>(const JobRequest&, const Json& item)> answer;
  std::function<Json(const std::string& task)> collected;  // record of a `collect` item
  std::function<Json(const Json& item)> command;
  std::vector<Json> extras;            // records of `measure` jobs that are no item's
  std::vector<std::string> lost;       // ids of items of any job that are lost
  Json spent;                          // of a server, for each prompt; null: it is none
  std::size_t exemplars_left_out = 0;  // of each prompt that has as many
  std::vector<JobRequest> log;         // all that was asked for
  // Which of so many open jobs ends next; null: the one that was asked for first.
  std::function<std::size_t(std::size_t open)> next;

  JobResult run(const JobRequest& job);
  // Drives a stage to its end and returns its output. Fails the test where the stage asks for nothing and is
  // not finished.
  StageOutput drive(Stage& stage);
  StageOutput drive(const StageInputs& inputs);

  std::vector<std::string> jobs() const;                 // "1/generate", … in order
  const JobRequest& job(const std::string& name) const;  // the first named so
  std::size_t count(const std::string& job) const;       // by job name, over all rounds
};

std::vector<Json> examples_of(const JobRequest& train);  // lines of examples.jsonl
std::vector<std::string> ids_of(const std::vector<Json>& items);
// Everything of a request, as text.
std::string dump(const JobRequest& job);

}  // namespace warpsmith::stages

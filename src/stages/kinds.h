// The stage kinds, one file each.
#pragma once

#include <memory>

#include "warpsmith/stages/stage.h"

namespace warpsmith::stages {

std::unique_ptr<Stage> make_collect(StageInputs inputs);
std::unique_ptr<Stage> make_sft(StageInputs inputs);
std::unique_ptr<Stage> make_self_supervised(StageInputs inputs);
std::unique_ptr<Stage> make_contrastive(StageInputs inputs);
std::unique_ptr<Stage> make_evaluate(StageInputs inputs);
std::unique_ptr<Stage> make_command(StageInputs inputs);
std::unique_ptr<Stage> make_service(StageInputs inputs);

// Adds the export of its model to a stage that trains, where one is wanted.
std::unique_ptr<Stage> make_exported(const workflow::StageSpec& spec, std::unique_ptr<Stage> stage);

// A step that asks for one job.
StageStep ask(JobRequest job, StageProgress progress);

// Throws Error: `stage` got the result of a job that it is not waiting for.
[[noreturn]] void unexpected(const workflow::StageSpec& spec, const JobResult& result);

}  // namespace warpsmith::stages

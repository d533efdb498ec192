// What `warpsmith plan` shows to people: a table with a row a stage, and below it what needs words.
#pragma once

#include <string>
#include <vector>

#include "gpu_types.h"
#include "plan_cost.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::cli {

// What a stage will do at most.
struct Extent {
  int rounds = 0;
  std::uint64_t jobs = 0, shards = 0, items = 0;
  bool upper_bound = false;
  bool open = false;  // a job's items are known when the stage is under way
};
Extent extent_of(const workflow::StageSpec& stage);

struct ShownPlan {
  const workflow::WorkflowSpec& spec;
  const std::vector<plan::StagePlan>& plans;
  const PlanCost& cost;
  const TypeCosts& types;
  const std::vector<process::Gpu>& gpus;  // of the place
};
// Lines of at most `width` characters where names and columns allow it; 0: 110.
std::string plan_text(const ShownPlan& shown, const CommandContext& context, std::size_t width);

}  // namespace warpsmith::cli

// What the GPU stages of a workflow would take on each type of GPU, by what earlier runs took there.
//
// A stage uses GPUs where it is measured on one or has a job with `gpus`. Of each type it is asked what all
// such stages that are to run would take if their jobs with GPUs ran on it. Instances of a matrix over types
// count for their own type alone. Figures are of the same job of a stage of the same kind, on that type; of a
// type that has none, nothing is said.
//
// Time: jobs and rounds of a stage one after the other. On a site all shards of a job run side by side, and
// stages that do not need one another, too: what they wait in a queue is not in it. On this machine as many
// shards run at once as its GPUs and CPUs allow, and stages one after the other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan_cost.h"
#include "warpsmith/workflow/devices.h"

namespace CLI {
class App;
}

namespace warpsmith::cli {

struct TypeCost {
  std::string type;
  std::string
      lack;  // why nothing is expected of it: "no earlier run on L40 of sft/train"; empty: all is known
  double time_s = 0;
  StageCost sum;               // of all its stages; its `unknown` are jobs without a GPU
  std::set<std::string> from;  // folders of the runs
  bool has_price() const { return lack.empty() && sum.priced && sum.unpriced.empty(); }
};

struct TypeCosts {
  std::vector<std::string> stages;  // that use GPUs and are to run
  std::vector<TypeCost> types;      // by name
  bool priced = false;              // the site has prices of hours
  bool queued = false;              // on a site, where jobs may wait
  double deadline_s = 0;            // 0: none

  // Of the types with figures, of those that are expected to end by the deadline; null: there is none.
  const TypeCost* fastest() const;
  const TypeCost* cheapest() const;  // of those with a price
};

struct TypeQuestion {
  const workflow::WorkflowSpec& of_file;  // as loaded
  const workflow::WorkflowSpec& spec;     // after look_at_place()
  std::vector<plan::StagePlan> plans;
  const workflow::SiteSpec* site;  // null: this machine …
  workflow::GpuStocks machine;     // … with these
  int cpus = 1;
  double deadline_s = 0;
};
TypeCosts type_costs(const TypeQuestion& question, UsageFinder& usages);

// For people, a line each; none where no stage uses GPUs and no deadline is asked for.
std::vector<std::string> type_lines(const TypeCosts& costs);
Json to_json(const TypeCosts& costs);

// --deadline; its text as seconds, 0 where it is empty. Throws Error with kExitUsage.
void add_deadline_option(CLI::App& command, std::string& deadline);
double deadline_seconds(const std::string& deadline);

}  // namespace warpsmith::cli

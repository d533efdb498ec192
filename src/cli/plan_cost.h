// What stages may cost, from what earlier executions took.
//
// The controller leaves stages/<stage>/<hash8>/usage.json where a stage ends. An estimate takes the seconds
// of an item from there, by job, and the resources from the workflow of today: hours of a GPU or a CPU are
// those for which a shard holds it, starts and lost attempts included.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/stages/stage.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::cli {

// What a stage's jobs took, from a usage.json.
struct StageUsage {
  struct Job {
    std::string program;
    double jobs = 0, items = 0;               // rounds that had it, and its items over all of them
    double item_s = 0;                        // wall time; 0: not known
    std::map<std::string, double> item_s_on;  // the same on GPUs of a type
    // Of a shard that asks for these: on its type of GPU, where that is known; else as a whole.
    double item_s_with(const Resources& resources) const;
  };
  std::string source;  // its folder
  std::string stage, kind;
  std::int64_t written = 0;  // seconds since 1970
  std::map<std::string, Job> jobs;
};

struct StageCost {
  double gpu_hours = 0, cpu_hours = 0;
  double money = 0;     // by the site's prices
  bool priced = false;  // some of it has a price, which may be 0
  std::string currency;
  std::set<std::string> unpriced;    // GPU types of these hours that have none, where any type has
  bool at_most = false;              // depends on results, and is this at most
  std::vector<std::string> unknown;  // jobs of which nothing is known: not in the sums
  std::string source;                // from where it was learnt; empty: nothing is known

  void add(const StageCost& other);  // all but `unknown` and `source`
};

// `usage`: of an earlier execution; nullptr: there is none.
StageCost stage_cost(const std::vector<stages::PlannedJob>& jobs, const StageUsage* usage,
                     const workflow::Prices& prices = {});

// "about 12 GPU-hours (30.00 in money), 3 CPU-hours"; no GPU-hours where there are none, and no money where
// there are no prices.
std::string sum_text(const StageCost& cost);
Json to_json(const StageCost& cost);

// Looks for a stage's usage: the newest version in `run`; else in the newest of the other runs in `results`
// whose timings are their own, that has a stage of the same name and kind. What cannot be read is not there.
class UsageFinder {
 public:
  UsageFinder(std::filesystem::path run, const std::filesystem::path& results);
  // nullptr: nobody knows.
  const StageUsage* find(const std::string& stage, const std::string& kind);
  // One that says how long an item of that job takes on GPUs of `type` (Job::item_s_on; empty: item_s): of a
  // stage of the kind, of the same name rather than of another, the newest; in `run`, else in the newest
  // other run that has one. Twins are no GPUs.
  const StageUsage* find_on(const std::string& type, const workflow::StageSpec& stage,
                            const stages::PlannedJob& job);

 private:
  const std::vector<StageUsage>& usages_of(const std::filesystem::path& run);

  std::filesystem::path run_;
  std::vector<std::filesystem::path> others_;  // newest first
  std::map<std::string, StageUsage> found_;    // by stage; without source: looked for in vain
  std::map<std::filesystem::path, std::vector<StageUsage>> all_;  // of a run; read when it is asked for
};

// Items of the job: what is known under way only is taken to be as much as last time.
double items_of(const stages::PlannedJob& job, const StageUsage::Job& known);
std::string hours_text(double hours);  // "120", "3.5", "0.012"
// "7.50 EUR", "7.50 in money"
std::string money_text(double money, const std::string& currency);

struct PlanCost {
  std::vector<StageCost> stages;  // each as a whole, in the order of the workflow
  StageCost all;                  // of the stages that will or may run; unknown: their names
  double budget_gpu_hours = 0;    // 0: none
  double used_gpu_hours = 0;      // by the run so far
};

PlanCost plan_cost(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans,
                   const std::filesystem::path& run, UsageFinder& finder);
// Of all that is to run, in one line: "at most 12 GPU-hours, 3 CPU-hours, over the budget of 10 GPU-hours
// (0.5 used so far)"
std::string total_text(const PlanCost& cost);
Json total_json(const PlanCost& cost);

}  // namespace warpsmith::cli

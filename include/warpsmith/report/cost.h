// What a run's stages cost: sums over attempts of shards. Pure functions of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// All attempts of the jobs of one name in a version of a stage, over its rounds; or a sum of such rows.
struct CostRow {
  std::string stage, hash8, job;
  bool set_aside = false;  // of results that were set aside or removed since
  std::int64_t shards = 0, attempts = 0;
  double wall_s = 0, cpu_s = 0;
  double held_cpu_s = 0;  // wall time times the CPUs that were asked for
  bool cpus_known = true;
  double gpu_hours = 0;           // wall time times the GPUs that were asked for
  double money = 0;               // by the site's prices; 0: it has none for what was held
  double unpriced_gpu_hours = 0;  // of these, those without a price
  double lost_s = 0;  // wall time of attempts that left items undone, so that others had to go on with them
  std::int64_t peak_memory_bytes = 0,
               memory_bytes = 0;  // largest of an attempt; largest limit (0: there was none)

  // CPU time as a share of what was held; nothing where that is not known.
  std::optional<double> cpu_efficiency() const;
  double lost_share() const { return wall_s > 0 ? lost_s / wall_s : 0; }
};

// A row for each version of a stage and each of its jobs: versions in the order of `results.stages`, jobs in
// the order in which they first ended.
std::vector<CostRow> cost_rows(const store::Results& results);
CostRow cost_total(const std::vector<CostRow>& rows);

// Seconds by the jobs that took them.
struct JobSeconds {
  double generation = 0, compilation = 0, measurement = 0, training = 0, other = 0;
  double all() const { return generation + compilation + measurement + training + other; }
};

// What a stage, or a run, took for its novel programs above 1.01x: distinct ones, of tasks that are not
// degenerate and whose baseline is not bound by the host.
struct NovelCost {
  std::string stage, hash8;
  std::int64_t programs = 0;
  std::int64_t of_template = 0;  // of them: a template of the grammar writes the same
  // That models wrote, teachers and checking models included; nothing: not known.
  std::optional<std::int64_t> tokens;
  JobSeconds gpu, cpu;
  // By the site's prices, of GPU-hours, of CPU-hours without a GPU, and of servers' tokens; nothing where it
  // has none for any of them.
  std::optional<double> money;
  bool all_priced = true;  // false: some GPU-hours or servers have no price, so it was more
  // Nothing where there is no program to divide by.
  std::optional<double> each(double total) const {
    return programs > 0 ? std::optional(total / static_cast<double>(programs)) : std::nullopt;
  }
};

struct NovelCosts {
  std::vector<NovelCost> stages;  // those that drew from a model
  NovelCost run;                  // all stages; a program that several of them have drawn counts once
  std::string currency;           // Results::currency
};

// Of current versions, in the order of the workflow, without what was set aside.
NovelCosts novel_costs(const store::Results& results);
std::string novel_costs_html(const NovelCosts& costs);
Json novel_costs_json(const NovelCosts& costs);

}  // namespace warpsmith::report

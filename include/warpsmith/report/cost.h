// What a run's stages cost: sums over attempts of shards. Pure functions of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  double gpu_hours = 0;  // wall time times the GPUs that were asked for
  double money = 0;      // by the site's prices; 0: it has none for what was held
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

}  // namespace warpsmith::report

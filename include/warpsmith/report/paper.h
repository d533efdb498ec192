// The tables of CUDA-L1 (arXiv 2507.14111) from a run: 4 (levels by baselines), 5 (stages) and 6 (GPU types),
// with the paper's convention for missing kernels beside ours. Pure functions of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// The fastest correct program of each task of a set, over one baseline on one kind of device.
struct PaperRow {
  std::string device, stage, hash8;  // stage: in table 5 alone
  std::string baseline;
  std::optional<std::int64_t> level;  // nothing: all of them
  std::string authors;                // whose programs count: "model", or "all" where no model wrote any
  // Tasks: of the set; with a program whose verdict says something; with a correct one; without one, but with
  // a program that is correct at the task's own shape (is_one_shape()).
  std::int64_t total = 0, attempted = 0, valid = 0, one_shape = 0;
  // The paper's convention, by which one shape is enough. Over eager, torch.compile and reduce-overhead: all
  // tasks of the set, one without a number counts 1. Over cuda_graph and cudnn: the tasks that have one.
  std::optional<stats::Spread> paper;
  std::int64_t above = 0;  // of them with a score above 1.01
  // Ours: the tasks that have a number, but those that are degenerate or whose baseline is bound by the host.
  std::optional<stats::Spread> ours;
  std::int64_t wins = 0;      // of them with an interval above 1.01
  std::int64_t left_out = 0;  // measured, and degenerate or bound by the host
};

struct PaperTables {
  std::vector<PaperRow> levels;   // table 4: by device, baseline and level
  std::vector<PaperRow> stages;   // table 5: by stage, over the baseline that it was timed with
  std::vector<PaperRow> devices;  // table 6: by device and baseline; empty where there is one device
};

// Current versions of stages are wanted (store::current_versions).
PaperTables paper_tables(const store::Results& results);

std::string paper_html(const PaperTables& tables);
std::string paper_csv(const PaperTables& tables);  // a line a row; `table`: 4, 5, 6
Json paper_json(const PaperTables& tables);

}  // namespace warpsmith::report

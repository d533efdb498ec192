// The report of a run: one HTML file that works offline, tables as CSV or JSON. Stages are in the order of
// the workflow.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// A whole page: style, data, scripts and the plotting library inside it; first what the run says in a few
// sentences. Tables can be read without scripts, which sort, filter and colour. What the stages changed is drawn without a
// library; the other plots need the Chart.js that was found when this was built, and the page says so without
// it. `results`: of each stage one version (store::current_versions). `note`: a sentence for the head of the
// page.
std::string html(const store::Results& results, const std::string& note = "");

// A table of results.h5 with a header line of its column names; RFC 4180, unknown values are empty. Of
// `measurements` with speedups over each baseline. All versions of stages that `results` has. Throws Error
// where there is no such table. `fast_p` and `paper_tables`: the rows of fast_p.h and paper.h.
std::string csv(const store::Results& results, const std::string& table = "measurements");
std::vector<std::string> table_names();  // that csv() knows

// {"stages": […], "samples": […], "training": […], "measurements": […], "baselines": […], "evaluations": […],
// "best": […], "verdicts": […], "headline": {…}, "across_devices": […] (devices.h), "fast_p": […] (fast_p.h),
// "paper_tables": {…} (paper.h), "learning": […], "pass_at_k": […] (learning.h), "rounds": […], "cost": […],
// "cost_total": {…}, "novel_cost": {…} (cost.h), "currency": that of their money, or null}. Rows of tables
// have the names of the columns of results.h5.
std::string json(const store::Results& results);

}  // namespace warpsmith::report

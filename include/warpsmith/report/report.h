// The report of a run: one HTML file that works offline, tables as CSV or JSON. Stages are in the order of
// the workflow.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// A whole page, with its style, its script and its plots (SVG) inside; first what the run says in a few
// sentences. All of it can be read without the script, which sorts, filters and colours. `results`: of each
// stage one version (store::current_versions). `note`: a sentence for the head of the page.
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

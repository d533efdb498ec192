// The report of a run: one HTML file that works offline, tables as CSV or JSON. Stages are in the order of the workflow.
#pragma once

#include <string>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// A whole page: style, data and the plotting library inside it. Plots need the Chart.js that was found when this was built;
// without it the page holds the tables and says so. `results`: of each stage one version (store::current_versions).
std::string html(const store::Results& results);

// Measurements, one line each, with a header line; RFC 4180. All versions of stages that `results` has.
std::string csv(const store::Results& results);

// {"stages": […], "evaluations": […], "best": […], "verdicts": […], "headline": {…}, "across_devices": […]
// (devices.h), "cost": […], "cost_total": {…}, "measurements": […]}
std::string json(const store::Results& results);

}  // namespace warpsmith::report

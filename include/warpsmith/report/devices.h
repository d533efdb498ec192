// What a portability sweep found: the same tasks on several devices, side by side. Pure functions of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// A stage of the sweep: a device that was asked for.
struct DeviceColumn {
  std::string device;  // as the workflow says: "L40"
  std::string found;   // "real", "twin", "none"; empty: device kind cpu was asked for
  std::string stage, hash8;
  bool finished = false;
  std::int64_t tasks = 0;                // with a speedup, but those whose baseline is bound by the host
  std::optional<double> geometric_mean;  // over these
  std::int64_t host_bound = 0;           // the tasks left out for it
  double wins = 0, above = 0;            // shares of the tasks, as in Headline
  // "L40", "L40 (CPU twin)", "CPU": no GPU is named alone that has not produced the numbers below it.
  std::string title() const;
};

// The fastest correct program of a task there; where none was correct, why.
struct DeviceCell {
  std::string text;  // "no device", a verdict, or empty: not measured yet
  std::optional<double> speedup;
  double low = 0, high = 0;  // 95 % interval
  std::string candidate;
  bool host_bound = false;
  bool win = false;  // one of the task's correct programs is a win (stats::is_win)
};

struct DeviceTable {
  std::string base;  // the stage in the workflow
  std::vector<DeviceColumn> columns;
  std::vector<std::string> tasks;
  std::vector<std::vector<DeviceCell>> rows;  // by task, then by column
};

// One table for each stage of the workflow whose instances were measured for more than one device; current
// versions alone. Columns: GPUs, the CPU, twins, then devices that were not there, each in the workflow's
// order.
std::vector<DeviceTable> device_tables(const store::Results& results);

// The section of the page; empty where there is no such table.
std::string devices_html(const std::vector<DeviceTable>& tables);
// [{"stage", "columns": [{"device", "found", "stage", "hash8", "tasks", "host_bound", "wins",
//   "above_1_01", "geometric_mean"}, …],
//   "tasks": [{"task", "cells": [{"speedup", "interval", "candidate", "win", "host_bound", "text"}, …]}, …]},
//   …]
Json devices_json(const std::vector<DeviceTable>& tables);

// " (CPU twin)" for a stage whose numbers a twin produced, else nothing: goes behind its name.
std::string twin_mark(const store::Results& results, const std::string& stage, const std::string& hash8);

}  // namespace warpsmith::report

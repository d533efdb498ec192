// The figures of a run while it goes on: metrics.jsonl, and the same as TensorBoard's event files below
// tensorboard/. They are copies of what records and outputs hold: nothing is read back but by people, and a
// fault here costs a message and no run. Format document: results/README.md.
//
// A controller that goes on with a run is told the same rounds and steps once more; a row that is there
// already is not written again, and one that was lost is. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "warpsmith/base/files.h"
#include "warpsmith/records/field.h"

namespace warpsmith::controller {

// Figures that a stage's records do not have are not set.
struct MetricRow {
  double time = 0;  // seconds since 1970
  std::string stage, hash8;
  std::string kind;  // kStepRow, …
  std::int64_t round = 0;
  std::optional<std::int64_t> step;
  std::optional<double> loss, learning_rate, grad_norm, kl, clip_share, ratio_mean, entropy;
  std::optional<double> mean_reward, valid_share, novel_share, distinct_share, best, median, geomean, wins,
      one_draw;
  std::optional<std::int64_t> samples, novel, tokens, groups, groups_skipped, groups_without_spread,
      truncated;
  std::optional<double> seconds, gpu_s;
};
inline constexpr const char* kStepRow = "step";    // of the optimiser
inline constexpr const char* kRoundRow = "round";  // of a looping stage, at its end
inline constexpr const char* kStageRow = "stage";  // at its end, over all its rounds

const Fields<MetricRow>& metric_fields();

// `place` with the figures of a step's record, a round or a summary of output.json: their keys are the names
// of the fields; what is no number is none of them (`groups` of a summary). Nothing for a step without a
// number.
std::optional<MetricRow> metric_row(const MetricRow& place, const Json& figures);

class Metrics {
 public:
  Metrics(fs::path run, std::function<void(const std::string&)> tell)
      : run_(std::move(run)), tell_(std::move(tell)) {}

  // Unless there is a row of that stage version, kind, round and step.
  void add(const MetricRow& row);
  // Of the optimiser steps whose records stand in this shard's folder by now, those that are new.
  void add_steps_so_far(const MetricRow& place, const fs::path& shard_folder);
  bool has(const MetricRow& row);
  // The stage version begins anew.
  void forget(const std::string& stage, const std::string& hash8);
  // That a model wrote for the stage version, in all rounds that have ended.
  std::int64_t samples(const std::string& stage, const std::string& hash8) const;

 private:
  struct Version {
    std::unordered_set<std::string> rows;  // by kind, round and step
    std::int64_t samples = 0;
    std::optional<AppendFile> events;  // of this life
  };
  void guarded(const std::function<void()>& work);
  void open();
  void take(const MetricRow& row, bool* is_new);
  void rewrite(const std::function<bool(const MetricRow&)>& keeps);
  void open_events(const std::string& version_name);
  fs::path events_folder(const std::string& version_name) const {
    return run_ / "tensorboard" / version_name;
  }

  const fs::path run_;
  const std::function<void(const std::string&)> tell_;
  bool is_open_ = false, broken_ = false;
  std::optional<AppendFile> file_;
  std::map<std::string, Version> versions_;  // by "<stage>-<hash8>"
  std::map<fs::path, std::uint64_t> read_;   // bytes of records.jsonl
};

}  // namespace warpsmith::controller

#include "metrics.h"

#include <unistd.h>

#include <ctime>
#include <utility>
#include <vector>

#include "event_file.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::controller {

namespace {

std::string version_name(const std::string& stage, const std::string& hash8) { return stage + "-" + hash8; }

std::string row_name(const MetricRow& row) {
  return row.kind + "/" + std::to_string(row.round) +
         (row.kind == kStepRow ? "/" + std::to_string(row.step.value_or(0)) : "");
}

std::string line_of(const MetricRow& row) {
  return fields_to_json(metric_fields(), row).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string event_of(const MetricRow& row) {
  Scalars scalars;
  for (const Field<MetricRow>& field : metric_fields()) {
    if (field.notes.presence == Presence::kNeeded || field.name == "step") continue;  // where, not what
    if (const Json value = field.get_json(row); value.is_number())
      scalars.emplace_back(row.kind + "/" + field.name, value.get<double>());
  }
  return scalars_event(row.time, row.kind == kStepRow ? row.step.value_or(0) : row.round, scalars);
}

// Every good line. False where there are others.
bool read_rows(const fs::path& file, const std::function<void(const MetricRow&)>& take) {
  bool whole = true;
  const auto take_line = [&](Json&& line, std::uint64_t) {
    try {
      take(record_from_json(metric_fields(), line, file.string()));
    } catch (const Error&) {
      whole = false;
    }
  };
  const JsonLinesScan scan = scan_json_lines(file, 0, take_line, [&](const BadContent&) { whole = false; });
  return whole && !scan.cut_tail;
}

}  // namespace

const Fields<MetricRow>& metric_fields() {
  using R = MetricRow;
  constexpr Presence kPlace = Presence::kNeeded;
  static const Fields<R> fields = {
      field("time", &R::time,
            {.unit = "s",
             .meaning = "when it was noted, since 1970; of a row that was lost and is "
                        "written again: when the last job of its round ended",
             .presence = kPlace}),
      field("stage", &R::stage, {.meaning = "stage", .presence = kPlace}),
      field("hash8", &R::hash8, {.meaning = "and its version", .presence = kPlace}),
      field("kind", &R::kind,
            {.meaning = "`step` of the optimiser; `round` that has ended; `stage` that has finished: over "
                        "all its rounds",
             .presence = kPlace}),
      field("round", &R::round, {.meaning = "round of the stage; 0: it has none", .presence = kPlace}),
      field("step", &R::step, {.meaning = "number of the optimiser step; of rounds: after its training"}),
      field("loss", &R::loss, {.unit = "nats a token", .meaning = "loss; of rounds: of its last step"}),
      field("learning_rate", &R::learning_rate, {.meaning = "learning rate"}),
      field("grad_norm", &R::grad_norm, {.meaning = "norm of the gradient, before clipping"}),
      field("kl", &R::kl, {.unit = "nats a token", .meaning = "GRPO: KL to the reference model"}),
      field("clip_share", &R::clip_share, {.meaning = "GRPO: share of tokens that were clipped"}),
      field("ratio_mean", &R::ratio_mean, {.meaning = "GRPO: mean ratio of probabilities"}),
      field("entropy", &R::entropy,
            {.unit = "nats a token", .meaning = "GRPO: entropy, estimated by the samples"}),
      field("mean_reward", &R::mean_reward, {.meaning = "mean reward of the samples"}),
      field("valid_share", &R::valid_share, {.meaning = "share of the samples that are correct and timed"}),
      field(
          "novel_share", &R::novel_share,
          {.meaning = "share of the samples that are so, and novel; of stages without a model: that are so"}),
      field("distinct_share", &R::distinct_share, {.meaning = "share of distinct programs, by source"}),
      field("best", &R::best,
            {.meaning = "best speedup, of the novel programs; of stages without a model: of all, as are "
                        "the next three"}),
      field("median", &R::median, {.meaning = "median speedup"}),
      field("geomean", &R::geomean, {.meaning = "geometric mean of the speedups"}),
      field("wins", &R::wins, {.meaning = "share whose 95 % interval lies above 1.01"}),
      field("one_draw", &R::one_draw,
            {.meaning = "geometric mean over all samples of max(1, speedup), a failure counting 1"}),
      field("samples", &R::samples, {.meaning = "samples; of stages without a model: programs"}),
      field(
          "novel", &R::novel,
          {.meaning =
               "correct and timed samples that are novel; of stages without a model: all that are correct"}),
      field("tokens", &R::tokens,
            {.meaning = "of steps: tokens in it; of rounds: tokens that the model wrote, where they are "
                        "counted"}),
      field("groups", &R::groups, {.meaning = "GRPO: groups of samples"}),
      field("groups_skipped", &R::groups_skipped, {.meaning = "of these, those that teach nothing"}),
      field("groups_without_spread", &R::groups_without_spread, {.meaning = "the same, of a step"}),
      field("truncated", &R::truncated, {.meaning = "samples of the step that max_tokens cut off"}),
      field("seconds", &R::seconds, {.unit = "s", .meaning = "that the step took"}),
      field("gpu_s", &R::gpu_s,
            {.unit = "s",
             .meaning = "wall time of the attempts of the round's (the stage's) shards, times "
                        "the GPUs that each held"}),
  };
  return fields;
}

std::optional<MetricRow> metric_row(const MetricRow& place, const Json& figures) {
  MetricRow row = place;
  try {
    for (const Field<MetricRow>& field : metric_fields()) {
      if (field.notes.presence == Presence::kNeeded) continue;
      if (const auto found = figures.find(field.name); found != figures.end() && found->is_number())
        field.set_json(row, *found);
    }
  } catch (const Json::exception&) {  // a number that does not fit
    return std::nullopt;
  }
  if (row.kind == kStepRow && !row.step) return std::nullopt;
  if (row.novel && row.samples.value_or(0) > 0)
    row.novel_share = static_cast<double>(*row.novel) / static_cast<double>(*row.samples);
  return row;
}

void Metrics::guarded(const std::function<void()>& work) {
  if (broken_) return;
  try {
    open();
    work();
  } catch (const std::exception& e) {
    broken_ = true;
    tell_(std::string("metrics.jsonl and tensorboard/ go without what follows, until the run is gone on "
                      "with: ") +
          e.what());
  }
}

void Metrics::open() {
  if (std::exchange(is_open_, true)) return;
  bool twice = false;
  const bool whole = read_rows(run_ / "metrics.jsonl", [&](const MetricRow& row) {
    bool is_new = false;
    take(row, &is_new);
    twice |= !is_new;
  });
  if (!whole || twice) {
    versions_.clear();
    rewrite([this](const MetricRow& row) {
      bool is_new = false;
      take(row, &is_new);
      return is_new;
    });
  }
  for (const auto& [name, version] : versions_)
    if (!path_exists(events_folder(name))) open_events(name);
}

void Metrics::take(const MetricRow& row, bool* is_new) {
  Version& version = versions_[version_name(row.stage, row.hash8)];
  *is_new = version.rows.insert(row_name(row)).second;
  if (*is_new && row.kind == kRoundRow) version.samples += row.samples.value_or(0);
}

void Metrics::rewrite(const std::function<bool(const MetricRow&)>& keeps) {
  std::string text;
  read_rows(run_ / "metrics.jsonl", [&](const MetricRow& row) {
    if (keeps(row)) text += line_of(row);
  });
  file_.reset();
  write_file_atomic(run_ / "metrics.jsonl", text);
}

// A file of this life with all rows so far takes the place of earlier ones, which may lack a last row.
void Metrics::open_events(const std::string& name) {
  const fs::path folder = events_folder(name);
  make_folders(folder);
  const std::vector<fs::path> before = folder_entries(folder);
  const std::time_t now = std::time(nullptr);
  std::string text = event_file_head(static_cast<double>(now));
  read_rows(run_ / "metrics.jsonl", [&](const MetricRow& row) {
    if (version_name(row.stage, row.hash8) == name) text += event_of(row);
  });
  const fs::path file = folder / ("events.out.tfevents." + std::to_string(now) + "." + process::host_name() +
                                  "." + std::to_string(::getpid()));
  write_file_atomic(file, text);
  for (const fs::path& old : before)
    if (old != file) fs::remove(old);
  versions_[name].events.emplace(file);
}

// The event comes first: a row without one would stay without it.
void Metrics::add(const MetricRow& row) {
  guarded([&] {
    bool is_new = false;
    take(row, &is_new);
    if (!is_new) return;
    const std::string name = version_name(row.stage, row.hash8);
    if (!versions_[name].events) open_events(name);
    versions_[name].events->append(event_of(row));
    if (!file_) file_.emplace(run_ / "metrics.jsonl");
    file_->append(line_of(row));
  });
}

void Metrics::add_steps_so_far(const MetricRow& place, const fs::path& shard_folder) {
  std::vector<MetricRow> rows;
  guarded([&] {
    for (int attempt = 1;; ++attempt) {
      const fs::path file = shard_folder / std::to_string(attempt) / "records.jsonl";
      if (!path_exists(file)) return;
      const auto take_line = [&](Json&& record, std::uint64_t) {
        if (!record.is_object() || !record.contains("loss")) return;
        if (const auto row = metric_row(place, record)) rows.push_back(*row);
      };
      std::uint64_t& read = read_[file];
      read = scan_json_lines(file, read, take_line, [](const BadContent&) {}).whole_bytes;
    }
  });
  for (const MetricRow& row : rows) add(row);
}

bool Metrics::has(const MetricRow& row) {
  bool there = false;
  guarded([&] {
    const auto version = versions_.find(version_name(row.stage, row.hash8));
    there = version != versions_.end() && version->second.rows.contains(row_name(row));
  });
  return there;
}

void Metrics::forget(const std::string& stage, const std::string& hash8) {
  guarded([&] {
    const std::string name = version_name(stage, hash8);
    if (versions_.erase(name) == 0) return;
    rewrite([&](const MetricRow& row) { return version_name(row.stage, row.hash8) != name; });
    fs::remove_all(events_folder(name));
  });
}

std::int64_t Metrics::samples(const std::string& stage, const std::string& hash8) const {
  const auto version = versions_.find(version_name(stage, hash8));
  return version == versions_.end() ? 0 : version->second.samples;
}

}  // namespace warpsmith::controller

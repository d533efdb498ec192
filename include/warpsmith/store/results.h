// What a run found, as tables: the rows of results.h5. Layout and a worked example: results/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::store {

inline constexpr const char* kSchema = "warpsmith.results/1";

struct TaskRow {
  std::string id, title, split, ops, reference;
  std::int64_t level = 0;
};

struct CandidateRow {
  std::string id, task, tier, origin, stage, detail, parent, source;
  std::int64_t round = 0;
};

// One compilation in a stage.
struct CompileRow {
  std::string candidate, stage, verdict, log;
  std::int64_t round = 0;
  double seconds = 0;
  bool cached = false;
};

// One measurement in a stage. Its raw samples are Results::samples[sample_begin, sample_begin + sample_count): first all
// times of the baseline, then all of the candidate, in nanoseconds a call.
struct MeasurementRow {
  std::string stage;
  std::int64_t round = 0;
  Measurement value;  // without `device`, `blob`
  std::int64_t device = -1;  // index into devices
  std::int64_t sample_begin = 0, sample_count = 0;
};

// One program that a model wrote, with what became of it.
struct SampleRow {
  std::string stage, task, group, candidate, verdict;
  std::int64_t round = 0;
  double speedup = 0;  // 0 where it is no success
};

struct TrainingRow {
  std::string stage;
  std::int64_t round = 0, step = 0, tokens = 0;
  double loss = 0, learning_rate = 0, grad_norm = 0, seconds = 0;
  double kl = 0, clip_share = 0, ratio_mean = 0;  // GRPO only
};

struct StageRow {
  std::string name, kind, hash8, summary;  // summary: JSON
  bool finished = false;
};

// One shard of a job: how far its records have been taken, and what it asked for.
struct ShardRow {
  std::string folder;  // relative to the run folder
  std::string stage, job, program, resources;  // resources: JSON
  std::int64_t round = 0, shard = 0, records = 0, attempts = 0;
  bool ended = false;
};

struct Results {
  std::string run, workflow, host, version;
  std::string provenance;  // run.json as text
  std::vector<TaskRow> tasks;
  std::vector<CandidateRow> candidates;
  std::vector<CompileRow> compiles;
  std::vector<MeasurementRow> measurements;
  std::vector<std::int64_t> samples;  // ns a call
  std::vector<DeviceFacts> devices;
  std::vector<SampleRow> generated;
  std::vector<TrainingRow> training;
  std::vector<StageRow> stages;
  std::vector<ShardRow> shards;
};

// Writes `results` to `file` as a whole: into a file beside it, closed, synced, renamed over it. Readers see the old file or
// the new one, never half of one. Throws Error.
void write_results(const std::filesystem::path& file, const Results& results);

// Throws Error where the file is short, damaged, of another schema, or no HDF5 file.
Results read_results(const std::filesystem::path& file);

// Every whole record below `run_folder`, also of stages that are still at work or have failed.
Results read_run(const std::filesystem::path& run_folder);

struct Aggregated {
  bool written = false;     // false: the file was there, whole and up to date
  std::string reason;       // "new", "damaged: …", "12 shards have new records"
  std::size_t measurements = 0, candidates = 0;
  double seconds = 0;
};
// Brings <run_folder>/results.h5 up to date with the records; rebuilds it where it is missing, short or damaged (its SHA-256
// stands in results.h5.sha256, as sha256sum writes it), or where `rebuild`.
Aggregated aggregate(const std::filesystem::path& run_folder, bool rebuild = false);

}  // namespace warpsmith::store

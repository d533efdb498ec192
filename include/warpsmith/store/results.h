// What a run found, as tables: the rows of results.h5. Layout and a worked example: results/README.md.
//
// A stage that was run again after a change has several versions, each in a folder of its own,
// stages/<stage>/<hash8>/. Rows of all of them are kept, each with its `stage` and `hash8`; the version that
// the workflow came to last is the current one. Rows of current versions come first, in the order of the
// workflow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::store {

inline constexpr const char* kSchema = "warpsmith.results/18";

struct TaskRow {
  std::string id, title, split, ops, reference, degenerate, stage, hash8;
  std::int64_t level = 0;
};

// `stage` and `hash8` made it; hash8 is empty where that version's folder is gone.
struct CandidateRow {
  std::string id, task, tier, origin, stage, hash8, detail, parent, source;
  std::int64_t round = 0;
};

// One compilation in a stage.
struct CompileRow {
  std::string candidate, stage, hash8, verdict, log;
  std::int64_t round = 0;
  double seconds = 0;
  bool cached = false;
};

// One measurement in a stage. Its raw samples are Results::samples[sample_begin, sample_begin +
// sample_count): first all times of the baseline, then all of the candidate, in nanoseconds a call.
struct MeasurementRow {
  std::string stage, hash8;
  std::int64_t round = 0;
  Measurement value;         // without `device`, `blob`
  std::int64_t device = -1;  // index into devices
  std::int64_t sample_begin = 0, sample_count = 0;
};

// What a baseline of a task took on a device, as a stage had it. One row for each task, baseline and device:
// the first that has a number.
struct BaselineRow {
  std::string stage, hash8;
  std::int64_t round = 0;
  BaselineTiming value;
};

// One program that a model wrote, with what became of it.
struct SampleRow {
  std::string stage, hash8, task, group, candidate, verdict;
  std::int64_t round = 0;
  double speedup = 0;     // 0 where it is no success
  bool repeated = false;  // it is a copy of a program that no model wrote
  bool known =
      false;  // so, or but for names and constants, of source or code: its speed is not the stage's merit
  bool of_template = false;  // not known, and a template writes the same for a task that was to be solved
  std::int64_t turn = 1;     // of its round
  std::int64_t behind = 0;   // updates of the newest model that its policy lacked, when its round began
};

// What a checking model says of a program whose score jumped: advice.
struct OpinionRow {
  std::string stage, hash8, candidate, task;
  std::int64_t round = 0;
  double score = 0, before = 1;     // of the program, and of the task's best before it
  std::string says, reason, model;  // says: "hack", "honest", "unclear", "no answer"
  std::string cases;                // JSON: the known cases that the question quoted
};

struct TrainingRow {
  std::string stage, hash8;
  std::int64_t round = 0, step = 0, tokens = 0;
  double loss = 0, learning_rate = 0, grad_norm = 0, seconds = 0;
  // GRPO only:
  double kl = 0, clip_share = 0, ratio_mean = 0, entropy = 0;
  std::int64_t groups = 0, groups_without_spread = 0, truncated = 0;
};

// One version of a stage.
struct StageRow {
  std::string name, kind, hash8, summary;  // summary: JSON
  std::int64_t place = -1;  // of the stage in the workflow, counting from 0; -1: no longer in it
  bool current = false, finished = false;
  std::string output_digest;  // SHA-256 of output.json; empty where unfinished
  std::string base;           // name in the workflow; of a matrix's instances the same
  std::string device;         // as the workflow says: cpu, or a GPU type; empty in runs of older versions
  std::string
      device_found;  // what the site had of that GPU: "real", "twin" (measured on device kind cpu), "none"
};

// One shard of a job: how far its records have been taken, and what it asked for.
struct ShardRow {
  std::string folder;                                 // relative to the run folder
  std::string stage, hash8, job, program, resources;  // resources: JSON
  std::int64_t round = 0, shard = 0, records = 0, attempts = 0;
  bool ended = false;
  std::optional<std::int64_t> tokens;  // that a model wrote, of a `generate` job; nothing: not known
};

// One attempt of a shard that has ended: what it asked for and what it took.
struct AttemptRow {
  std::string stage, hash8, job, cause;  // cause: why it ended, EndCause
  std::string where;                     // host and process, or Slurm job and node; empty: it had not started
  std::string gpu_type;                  // asked for; empty: any
  std::int64_t round = 0, shard = 0, attempt = 1;
  std::int64_t exit_code = 0, signal = 0;
  std::int64_t items = 0, open = 0;  // that got their record in it, and that the shard has left
  std::int64_t cpus = 0, gpus = 0;   // asked for; cpus 0: not known
  std::int64_t shards_a_gpu = 1;     // that might share the GPU
  std::int64_t memory_bytes = 0, peak_memory_bytes = 0;  // asked for (0: not limited), and used
  double time_s = 0, wall_s = 0, cpu_s = 0;              // asked for (0: not limited), and taken
  double money = 0;                                      // by the site's prices; 0: it has none
  bool set_aside = false;                                // what came of it was set aside or removed since
};

struct Results {
  std::string run, workflow, host, version;
  std::string provenance;  // run.json as text
  std::string currency;    // of `money`, as the run's site says; empty: not known. Not in the file
  std::vector<TaskRow> tasks;
  std::vector<CandidateRow> candidates;
  std::vector<CompileRow> compiles;
  std::vector<MeasurementRow> measurements;
  std::vector<std::int64_t> samples;  // ns a call
  std::vector<BaselineRow> baselines;
  std::vector<DeviceFacts> devices;
  std::vector<SampleRow> generated;
  std::vector<TrainingRow> training;
  std::vector<OpinionRow> opinions;
  std::vector<StageRow> stages;
  std::vector<ShardRow> shards;
  std::vector<AttemptRow> attempts;
};

// Writes `results` to `file` as a whole: into a file beside it, closed, synced, renamed over it. Readers see
// the old file or the new one, never half of one. Throws Error.
void write_results(const std::filesystem::path& file, const Results& results);

// Also a file of schema 5 or later, whose measurements lack what was added since. Throws Error where the file
// is short, damaged, of another schema, or no HDF5 file.
Results read_results(const std::filesystem::path& file);

// SHA-256 of the output.json that stages wrote, by stage and hash8, as the journal has it.
using OutputDigests = std::map<std::pair<std::string, std::string>, std::string>;

// Every whole record below `run_folder`, also of stages that are still at work or have failed. What is
// damaged is left out, with a warning that names stage, place and the command that makes it anew: lines with
// a wrong checksum, records whose samples are damaged or give another score, an output.json that is not the
// one in `outputs`. Without `attempts`: these stand in the journal alone. Throws Error where there is no such
// folder.
Results read_run(const std::filesystem::path& run_folder, const OutputDigests& outputs = {});

// Without what older versions of stages left; `stages` keeps a row of each. Every row's device and samples
// stay right.
Results current_versions(Results results);

// A version of a stage in a run folder. state.json says which is current and how the workflow orders the
// stages; where it is missing, the version written last counts, and stages are in the order of their names. A
// stage that waits for others to be run again has no current version.
struct StageVersion {
  std::string stage, hash8;
  std::int64_t place = -1;
  bool current = false;
};
// In the order of the rows: current ones in the order of the workflow, then the others.
std::vector<StageVersion> stage_versions(const std::filesystem::path& run_folder);

struct Aggregated {
  bool written = false;  // false: the file was there, whole and up to date
  std::string reason;    // "new", "damaged: …", "12 shards have new records"
  std::size_t measurements = 0, candidates = 0, attempts = 0;
  double seconds = 0;
};
// Brings <run_folder>/results.h5 up to date with the records; rebuilds it where it is missing, short or
// damaged (its SHA-256 stands in results.h5.sha256, as sha256sum writes it), or where `rebuild`. `attempts`
// and `outputs`: all that the run's journal tells of, attempts in its order.
Aggregated aggregate(const std::filesystem::path& run_folder, bool rebuild = false,
                     std::vector<AttemptRow> attempts = {}, const OutputDigests& outputs = {});

// Puts `results` in the place of `file` and its SHA-256 in <file>.sha256. Before the file changes the old
// checksum is removed: whoever reads the checksum, the file and the checksum again, and found the same twice,
// has a pair.
void replace_results(const std::filesystem::path& file, const Results& results);

}  // namespace warpsmith::store

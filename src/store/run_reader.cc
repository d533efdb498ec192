// From a run folder to rows: which files there are, and their rows put together.
#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "in_order.h"
#include "record_rows.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

// Parsing of records gains from a second thread; more would be taken from the programs that are measured
// meanwhile.
constexpr std::size_t kThreads = 2;

template <typename Row>
void move_to_end(std::vector<Row>& to, std::vector<Row>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

class RunReader {
 public:
  RunReader(const fs::path& run_folder, const OutputDigests& outputs)
      : run_folder_(run_folder), outputs_(outputs) {}

  Results read() {
    read_provenance();
    for (const StageVersion& version : stage_versions(run_folder_)) list_version(version);
    out_.samples.reserve(sample_bytes_ / sizeof(std::int64_t));
    in_order(
        parts_.size(), kThreads, [&](std::size_t i) { return parts_[i](); },
        [&](Results&& part) { add(std::move(part)); });
    sort_training();
    return std::move(out_);
  }

 private:
  using Part = std::function<Results()>;

  void read_provenance() {
    const fs::path run_json = run_folder_ / "run.json";
    out_.run = run_folder_.filename().string();
    try {
      if (path_exists(run_json)) {
        const std::string text = read_file(run_json);
        const Json run = parse_json(text, run_json.string());
        out_.run = run.value("name", out_.run);
        out_.host = run.value("host", "");
        out_.version = run.value("version", "");
        workflow_file_ = run.value("workflow_file", workflow_file_);
        out_.provenance = text;
      }
    } catch (const Error& e) {
      log_warning(std::string(e.what()) + "; results.h5 goes without it");
    } catch (const Json::exception&) {
      log_warning(run_json.string() +
                  ": its values are not of the types that they should be; results.h5 goes without it");
    }
    const fs::path workflow = run_folder_ / "workflow.yaml";
    try {
      if (path_exists(workflow)) out_.workflow = read_file(workflow);
    } catch (const Error& e) {
      log_warning(std::string(e.what()) + "; results.h5 goes without it");
    }
  }

  // The command that makes a stage anew.
  std::string cure(const std::string& stage) const {
    return "`warpsmith run " + workflow_file_ + " --run-dir " + run_folder_.string() + " --force " + stage +
           "`";
  }

  void list_version(const StageVersion& version) {
    const fs::path folder = run_folder_ / "stages" / version.stage / version.hash8;
    const auto digest = outputs_.find({version.stage, version.hash8});
    parts_.push_back([this, folder, version, said = digest == outputs_.end() ? "" : digest->second] {
      return read_output(folder, version, said, cure(version.stage));
    });
    for (const auto& [round, round_folder] : numbered_folders(folder))
      for (const fs::path& job_folder : folders(round_folder)) list_job(job_folder, version, round);
  }

  // A job whose job.json is missing or damaged still has its records: its folder bears the job's name.
  JobFile read_job(const fs::path& folder, const StageVersion& version, bool begun) const {
    const fs::path file = folder / "job.json";
    JobFile job;
    job.job = folder.filename().string();
    try {
      if (!begun && !path_exists(file)) return job;
      JobFile read = read_job_file(file);
      if (!read.params.is_object()) throw BadContent(file, file.string() + ": `params` is no JSON object");
      return read;
    } catch (const Error& e) {
      log_warning("stage " + version.stage + ", job " + folder.string() + ": " + e.what() +
                  "; results.h5 has its records, and goes without its program and resources; " +
                  cure(version.stage) + " makes the stage anew");
    }
    return job;
  }

  void list_job(const fs::path& folder, const StageVersion& version, std::int64_t round) {
    const auto shards = numbered_folders(folder);
    JobPlace place{.folder = folder,
                   .version = version,
                   .round = round,
                   .job = read_job(folder, version, !shards.empty()),
                   .done = {},
                   .cure = cure(version.stage)};
    if (keeps_no_records(place.job)) try {
        place.done = read_done_shards(folder);
      } catch (const Error& e) {
        log_warning("stage " + version.stage + ": " + e.what() +
                    "; results.h5 goes without the shards in it");
      }
    const auto job = std::make_shared<const JobPlace>(std::move(place));
    const std::string_view kind = kind_of_job(job->job.job);
    if (kind == "measure" || kind == "compile") parts_.push_back([job] { return read_item_rows(*job); });
    if (!job->done.empty()) parts_.push_back([this, job] { return read_done_rows(*job, run_folder_); });
    for (const auto& [number, shard] : shards) {
      if (job->done.contains(static_cast<std::uint32_t>(number))) continue;
      if (kind == "measure") expect_samples(shard);
      parts_.push_back([this, job, shard = shard, number = number] {
        return read_shard_rows(*job, run_folder_, shard, number);
      });
    }
  }

  // Room for all samples at once: they are most of what is read.
  void expect_samples(const fs::path& shard_folder) {
    for (const auto& [attempt, folder] : numbered_folders(shard_folder)) {
      std::error_code error;
      const auto bytes = fs::file_size(folder / "blob.bin", error);
      if (!error) sample_bytes_ += bytes;
    }
  }

  void add(Results&& part) {
    for (TaskRow& task : part.tasks)
      if (tasks_seen_.insert(task.id).second) out_.tasks.push_back(std::move(task));
    for (CandidateRow& row : part.candidates) add_candidate(std::move(row));
    std::vector<std::int64_t> devices;
    for (DeviceFacts& facts : part.devices) devices.push_back(device_index(std::move(facts)));
    const auto samples = static_cast<std::int64_t>(out_.samples.size());
    for (MeasurementRow& row : part.measurements) {
      if (row.device >= 0) row.device = devices[static_cast<std::size_t>(row.device)];
      if (row.sample_count > 0) row.sample_begin += samples;
    }
    out_.samples.insert(out_.samples.end(), part.samples.begin(), part.samples.end());
    move_to_end(out_.measurements, part.measurements);
    for (BaselineRow& row : part.baselines) add_baseline(std::move(row));
    move_to_end(out_.compiles, part.compiles);
    move_to_end(out_.generated, part.generated);
    move_to_end(out_.training, part.training);
    move_to_end(out_.opinions, part.opinions);
    move_to_end(out_.stages, part.stages);
    move_to_end(out_.shards, part.shards);
  }

  // The first row of a program stays; the version that made it is known once it is met there.
  void add_candidate(CandidateRow&& row) {
    const auto [it, is_new] = candidates_seen_.emplace(row.id, out_.candidates.size());
    if (is_new) {
      out_.candidates.push_back(std::move(row));
      return;
    }
    CandidateRow& known = out_.candidates[it->second];
    if (known.hash8.empty() && known.stage == row.stage) known.hash8 = row.hash8;
  }

  // Every shard has those of its tasks.
  void add_baseline(BaselineRow&& row) {
    const BaselineTiming& v = row.value;
    const auto [it, is_new] = baselines_seen_.emplace(
        row.stage + '\n' + row.hash8 + '\n' + v.task + '\n' + v.name + '\n' + v.device_kind,
        out_.baselines.size());
    if (is_new) {
      out_.baselines.push_back(std::move(row));
    } else if (BaselineRow& known = out_.baselines[it->second];
               known.value.state == BaselineState::kMissing && v.state != BaselineState::kMissing) {
      known = std::move(row);
    }
  }

  std::int64_t device_index(DeviceFacts&& facts) {
    const auto [it, is_new] =
        devices_seen_.emplace(device_key(facts), static_cast<std::int64_t>(out_.devices.size()));
    if (is_new) out_.devices.push_back(std::move(facts));
    return it->second;
  }

  // By step within each version; the order of the versions stays.
  void sort_training() {
    auto& rows = out_.training;
    for (auto begin = rows.begin(); begin != rows.end();) {
      const auto end = std::find_if(begin, rows.end(), [&](const TrainingRow& row) {
        return row.stage != begin->stage || row.hash8 != begin->hash8;
      });
      std::stable_sort(begin, end,
                       [](const TrainingRow& a, const TrainingRow& b) { return a.step < b.step; });
      begin = end;
    }
  }

  const fs::path run_folder_;
  const OutputDigests& outputs_;
  std::string workflow_file_ = "WORKFLOW";
  std::vector<Part> parts_;
  std::uintmax_t sample_bytes_ = 0;
  Results out_;
  std::unordered_set<std::string> tasks_seen_;
  std::unordered_map<std::string, std::size_t> candidates_seen_;
  std::unordered_map<std::string, std::int64_t> devices_seen_;
  std::unordered_map<std::string, std::size_t> baselines_seen_;
};

}  // namespace

Results read_run(const fs::path& run_folder, const OutputDigests& outputs) {
  if (!is_folder(run_folder)) throw Error("no run folder " + run_folder.string(), kExitUsage);
  try {
    return RunReader(run_folder, outputs).read();
  } catch (const Error& e) {
    throw e.with_context("while reading the records of " + run_folder.string());
  }
}

}  // namespace warpsmith::store

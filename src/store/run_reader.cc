// From the records of a run folder to rows.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "warpsmith/base/files.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

// Subfolders whose names are numbers, in their order (rounds, shards).
std::vector<std::pair<std::int64_t, fs::path>> numbered_folders(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc() && end == name.data() + name.size() && entry.is_directory()) found.emplace_back(number, entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> folders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class RunReader {
 public:
  explicit RunReader(const fs::path& run_folder) : run_folder_(run_folder) {}

  Results read() {
    read_provenance();
    for (const fs::path& stage : folders(run_folder_ / "stages"))
      for (const fs::path& version : folders(stage)) read_stage(version);
    std::stable_sort(out_.training.begin(), out_.training.end(), [](const TrainingRow& a, const TrainingRow& b) {
      return std::tie(a.stage, a.step) < std::tie(b.stage, b.step);
    });
    return std::move(out_);
  }

 private:
  void read_provenance() {
    const fs::path run_json = run_folder_ / "run.json";
    if (fs::exists(run_json)) {
      out_.provenance = read_file(run_json);
      const Json run = parse_json(out_.provenance, run_json.string());
      out_.run = run.value("name", run_folder_.filename().string());
      out_.host = run.value("host", "");
      out_.version = run.value("version", "");
    }
    if (fs::exists(run_folder_ / "workflow.yaml")) out_.workflow = read_file(run_folder_ / "workflow.yaml");
  }

  void read_stage(const fs::path& folder) {
    StageRow row;
    row.name = folder.parent_path().filename().string();
    row.hash8 = folder.filename().string();
    const fs::path output_file = folder / "output.json";
    if (fs::exists(output_file)) {
      const Json output = read_json_file(output_file);
      row.finished = true;
      row.kind = output.value("kind", "");
      row.summary = output.value("summary", Json::object()).dump();
      for (const Json& task : output.value("tasks", Json::array())) add_task(task);
      for (const Json& sample : output.value("samples", Json::array())) add_sample(sample, row.name);
      for (const Json& entry : output.value("candidates", Json::array()))
        if (const auto it = entry.find("candidate"); it != entry.end()) add_candidate(*it, row.name, 0);
    }
    for (const auto& [round, round_folder] : numbered_folders(folder))
      for (const fs::path& job : folders(round_folder)) read_job(job, row.name, round);
    out_.stages.push_back(std::move(row));
  }

  void read_job(const fs::path& folder, const std::string& stage, std::int64_t round) {
    if (!fs::exists(folder / "job.json")) return;
    const JobFile job = read_job_file(folder / "job.json");
    if (job.job == "measure" || job.job == "compile")
      scan_json_lines(folder / "items.jsonl", 0, [&](Json&& item, std::uint64_t) {
        if (const auto it = item.find("candidate"); it != item.end() && it->is_object()) add_candidate(*it, stage, round);
      });
    for (const auto& [number, shard_folder] : numbered_folders(folder)) {
      const ShardRecords records = read_shard_records(shard_folder);
      ShardRow shard;
      shard.folder = fs::relative(shard_folder, run_folder_).string();
      shard.stage = stage;
      shard.job = job.job;
      shard.program = job.program;
      shard.resources = to_json(job.resources).dump();
      shard.round = round;
      shard.shard = number;
      shard.records = static_cast<std::int64_t>(records.records.size());
      shard.attempts = static_cast<std::int64_t>(numbered_folders(shard_folder).size());
      shard.ended = records.ended;
      for (const auto& [item, record] : records.records) add_record(job, stage, round, record, records.folder.at(item));
      out_.shards.push_back(std::move(shard));
    }
  }

  void add_record(const JobFile& job, const std::string& stage, std::int64_t round, const Json& record, const fs::path& folder) {
    if (job.job == "measure") add_measurement(stage, round, record, folder);
    else if (job.job == "compile") add_compile(stage, round, record);
    else if (job.job == "train") add_training(stage, round, record);
    else if (job.job == "collect")
      for (const Json& entry : record.value("candidates", Json::array()))
        if (const auto it = entry.find("candidate"); it != entry.end()) add_candidate(*it, stage, round);
  }

  void add_task(const Json& task) {
    TaskRow row;
    row.id = task.value("id", "");
    if (!tasks_seen_.insert(row.id).second) return;
    row.title = task.value("title", "");
    row.split = task.value("split", "");
    row.reference = task.value("reference", "");
    row.level = task.value("level", 0);
    for (const Json& op : task.value("ops", Json::array())) row.ops += (row.ops.empty() ? "" : " ") + op.get<std::string>();
    out_.tasks.push_back(std::move(row));
  }

  void add_candidate(const Json& json, const std::string& stage, std::int64_t round) {
    std::string id = json.value("id", "");
    if (!candidates_seen_.insert(id).second) return;
    const Candidate candidate = candidate_from_json(json);
    CandidateRow row;
    row.id = std::move(id);
    row.task = candidate.task;
    row.tier = to_string(candidate.tier);
    row.origin = candidate.origin.kind;
    row.stage = candidate.origin.stage.empty() ? stage : candidate.origin.stage;
    row.round = candidate.origin.stage.empty() ? round : candidate.origin.round;
    row.detail = candidate.origin.detail;
    row.parent = candidate.origin.parent;
    for (const SourceFile& file : candidate.files) {
      if (candidate.files.size() > 1) row.source += "// ==== " + file.path + "\n";
      row.source += file.content;
    }
    out_.candidates.push_back(std::move(row));
  }

  void add_sample(const Json& json, const std::string& stage) {
    SampleRow row;
    row.stage = stage;
    row.task = json.value("task", "");
    row.group = json.value("group", "");
    row.candidate = json.value("candidate", "");
    row.verdict = json.value("verdict", "");
    row.round = json.value("round", 0);
    row.speedup = json.value("speedup", 0.0);
    out_.generated.push_back(std::move(row));
  }

  void add_compile(const std::string& stage, std::int64_t round, const Json& record) {
    CompileRow row;
    row.candidate = record.value("item", "");
    row.stage = stage;
    row.round = round;
    row.verdict = record.value("verdict", "");
    row.log = record.value("log", "");
    row.seconds = record.value("seconds", 0.0);
    row.cached = record.value("cached", false);
    out_.compiles.push_back(std::move(row));
  }

  void add_training(const std::string& stage, std::int64_t round, const Json& record) {
    TrainingRow row;
    row.stage = stage;
    row.round = round;
    row.step = record.value("step", std::int64_t{0});
    row.tokens = record.value("tokens", std::int64_t{0});
    row.loss = record.value("loss", 0.0);
    row.learning_rate = record.value("learning_rate", 0.0);
    row.grad_norm = record.value("grad_norm", 0.0);
    row.seconds = record.value("seconds", 0.0);
    row.kl = record.value("kl", 0.0);
    row.clip_share = record.value("clip_share", 0.0);
    row.ratio_mean = record.value("ratio_mean", 0.0);
    out_.training.push_back(std::move(row));
  }

  void add_measurement(const std::string& stage, std::int64_t round, const Json& record, const fs::path& folder) {
    MeasurementRow row;
    row.stage = stage;
    row.round = round;
    row.value = measurement_from_json(record);
    if (row.value.candidate.empty()) row.value.candidate = record.value("item", "");
    if (row.value.device) {
      row.device = device_index(*row.value.device);
      row.value.device.reset();
    }
    if (!row.value.blob.empty()) {
      const Measurement& m = row.value;
      const std::string bytes = read_samples(folder, {m.blob, m.blob_offset, m.blob_bytes, m.blob_crc});
      row.sample_begin = static_cast<std::int64_t>(out_.samples.size());
      row.sample_count = static_cast<std::int64_t>(bytes.size() / sizeof(std::int64_t));
      out_.samples.resize(out_.samples.size() + static_cast<std::size_t>(row.sample_count));
      std::memcpy(out_.samples.data() + row.sample_begin, bytes.data(), static_cast<std::size_t>(row.sample_count) * sizeof(std::int64_t));
      row.value.blob.clear();
    }
    out_.measurements.push_back(std::move(row));
  }

  // One blob file serves thousands of records: it is read once.
  std::string read_samples(const fs::path& folder, const BlobRef& ref) {
    const fs::path path = folder / ref.file;
    if (path != blob_path_) {
      blob_ = fs::exists(path) ? read_file(path) : std::string();
      blob_path_ = path;
    }
    if (ref.offset > blob_.size() || ref.bytes > blob_.size() - ref.offset)
      throw Error(path.string() + ": ends before byte " + std::to_string(ref.offset + ref.bytes));
    std::string bytes = blob_.substr(ref.offset, ref.bytes);
    if (crc32(bytes) != ref.crc) throw Error(path.string() + ": wrong checksum at byte " + std::to_string(ref.offset));
    return bytes;
  }

  // Facts that differ only in the load of the moment are one device.
  std::int64_t device_index(const DeviceFacts& f) {
    std::string key;
    for (const std::string* part : {&f.kind, &f.name, &f.uuid, &f.driver, &f.host, &f.sandbox}) key += *part + '\n';
    key += std::to_string(f.threads) + ' ' + std::to_string(f.cores);
    for (const auto& [name, value] : f.extra) key += '\n' + name + '=' + value;
    const auto [it, is_new] = devices_seen_.emplace(std::move(key), static_cast<std::int64_t>(out_.devices.size()));
    if (is_new) out_.devices.push_back(f);
    return it->second;
  }

  const fs::path run_folder_;
  Results out_;
  std::unordered_set<std::string> tasks_seen_, candidates_seen_;
  std::unordered_map<std::string, std::int64_t> devices_seen_;
  fs::path blob_path_;
  std::string blob_;
};

}  // namespace

Results read_run(const fs::path& run_folder) {
  if (!fs::is_directory(run_folder)) throw Error("no run folder " + run_folder.string(), kExitUsage);
  try {
    return RunReader(run_folder).read();
  } catch (const Error& e) {
    throw e.with_context("while reading the records of " + run_folder.string());
  }
}

}  // namespace warpsmith::store

#include "record_rows.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/store/tables.h"

namespace warpsmith::store {

namespace {

class Rows {
 public:
  // `from`: the file or folder that the rows come from, for messages.
  Rows(const StageVersion& version, std::int64_t round, fs::path from)
      : version_(version), round_(round), from_(std::move(from)) {}

  // What `add` makes of one entry; an entry of another form is left out with a warning, and costs no other.
  template <typename Add>
  void add_if_sound(Add add) {
    try {
      add();
    } catch (const Json::exception& e) {
      log_warning(from_.string() + ": an entry is of another form and left out: " + in_words(e));
    } catch (const Error& e) {
      log_warning(from_.string() + ": an entry is of another form and left out: " + e.what());
    }
  }

  // A row of this stage version.
  template <typename Row>
  Row new_row() const {
    Row row;
    row.stage = version_.stage;
    row.hash8 = version_.hash8;
    if constexpr (requires { row.round; }) row.round = round_;
    return row;
  }

  void add_task(const Json& task) {
    auto row = new_row<TaskRow>();
    fields_from_json(task_table().fields, task, row);
    for (const Json& op : task.value("ops", Json::array()))
      row.ops += (row.ops.empty() ? "" : " ") + op.get<std::string>();
    out.tasks.push_back(std::move(row));
  }

  void add_candidates(const Json& entries) {
    for (const Json& entry : entries)
      if (const auto it = entry.find("candidate"); it != entry.end()) add_candidate(*it);
  }

  void add_candidate(const Json& json) {
    std::string id = json.value("id", "");
    if (!candidates_seen_.insert(id).second) return;
    Candidate candidate;
    try {
      candidate = candidate_from_json(json);
    } catch (const Error& e) {
      log_warning(from_.string() + ": " + e.what() + "; it is left out");
      return;
    }
    auto row = new_row<CandidateRow>();
    row.id = std::move(id);
    row.task = std::move(candidate.task);
    row.tier = to_string(candidate.tier);
    Origin& origin = candidate.origin;
    if (origin.kind != "generated") by_others_.insert(row.id);
    row.origin = std::move(origin.kind);
    if (!origin.stage.empty()) {
      row.round = origin.round;
      if (origin.stage != version_.stage) row.hash8.clear();  // which version made it is not said here
      row.stage = std::move(origin.stage);
    }
    row.detail = std::move(origin.detail);
    row.parent = std::move(origin.parent);
    if (candidate.files.size() == 1)
      row.source = std::move(candidate.files[0].content);
    else
      for (const SourceFile& file : candidate.files)
        row.source += "// ==== " + file.path + "\n" + file.content;
    out.candidates.push_back(std::move(row));
  }

  void add_sample(const Json& json) {
    auto row = new_row<SampleRow>();
    fields_from_json(sample_table().fields, json, row);
    // Older outputs do not say it. What was measured again is no item of a prompt.
    if (json.contains("item") && by_others_.contains(row.candidate)) row.repeated = true;
    out.generated.push_back(std::move(row));
  }

  void add_compile(const Json& record) {
    auto row = new_row<CompileRow>();
    fields_from_json(compile_table().fields, record, row);
    out.compiles.push_back(std::move(row));
  }

  void add_training(const Json& record) {
    auto row = new_row<TrainingRow>();
    fields_from_json(training_table().fields, record, row);
    out.training.push_back(std::move(row));
  }

  void add_measurement(const Json& record, const fs::path& folder) {
    auto row = new_row<MeasurementRow>();
    try {
      row.value = measurement_from_json(record);
    } catch (const Error& e) {
      log_warning(from_.string() + ": " + record.value("item", "") + ": " + e.what() + "; it is left out");
      return;
    }
    Measurement& m = row.value;
    if (m.candidate.empty()) m.candidate = record.value("item", "");
    if (m.device) {
      row.device = device_index(*m.device);
      m.device.reset();
    }
    if (!m.blob.empty()) {
      const std::string_view bytes = samples(folder, {m.blob, m.blob_offset, m.blob_bytes, m.blob_crc});
      row.sample_begin = static_cast<std::int64_t>(out.samples.size());
      row.sample_count = static_cast<std::int64_t>(bytes.size() / sizeof(std::int64_t));
      out.samples.resize(out.samples.size() + bytes.size() / sizeof(std::int64_t));
      std::memcpy(out.samples.data() + row.sample_begin, bytes.data(),
                  static_cast<std::size_t>(row.sample_count) * sizeof(std::int64_t));
      m.blob.clear();
    }
    out.measurements.push_back(std::move(row));
    if (const auto list = record.find("baselines"); list != record.end())
      for (const Json& entry : *list) {
        auto baseline = new_row<BaselineRow>();
        baseline.value = baseline_timing_from_json(entry);
        out.baselines.push_back(std::move(baseline));
      }
  }

  Results out;

 private:
  // One blob file serves thousands of records: it is read once.
  std::string_view samples(const fs::path& folder, const BlobRef& ref) {
    if (folder.native() != blob_folder_ || ref.file != blob_name_) {
      const fs::path path = folder / ref.file;
      blob_ = fs::exists(path) ? read_file(path) : std::string();
      out.samples.reserve(out.samples.size() + blob_.size() / sizeof(std::int64_t));
      blob_folder_ = folder.native();
      blob_name_ = ref.file;
    }
    if (ref.offset > blob_.size() || ref.bytes > blob_.size() - ref.offset)
      throw Error((folder / ref.file).string() + ": ends before byte " +
                  std::to_string(ref.offset + ref.bytes));
    const std::string_view bytes = std::string_view(blob_).substr(ref.offset, ref.bytes);
    if (crc32(bytes) != ref.crc)
      throw Error((folder / ref.file).string() + ": wrong checksum at byte " + std::to_string(ref.offset));
    return bytes;
  }

  std::int64_t device_index(const DeviceFacts& facts) {
    std::string key = device_key(facts);
    const auto it = std::find(devices_seen_.begin(), devices_seen_.end(), key);
    if (it != devices_seen_.end()) return it - devices_seen_.begin();
    devices_seen_.push_back(std::move(key));
    out.devices.push_back(facts);
    return static_cast<std::int64_t>(out.devices.size()) - 1;
  }

  const StageVersion& version_;
  const std::int64_t round_;
  const fs::path from_;
  std::unordered_set<std::string> candidates_seen_;
  std::unordered_set<std::string> by_others_;  // candidates that no model wrote
  std::vector<std::string> devices_seen_;
  std::string blob_folder_, blob_name_, blob_;
};

}  // namespace

// What is said of a stage beside its records: the row goes without where it is damaged.
static void read_inputs(const fs::path& file, StageRow& stage) {
  if (!fs::exists(file)) return;
  try {
    const Json json = read_json_file(file);
    const Json inputs = json.value("inputs", Json::object());
    stage.base = json.value("base", "");
    stage.device = inputs.value("device", "");
    stage.device_found = inputs.value("device_found", "");
  } catch (const BadContent& e) {
    log_warning(std::string(e.what()) + "; results.h5 goes without it");
  } catch (const Json::exception&) {
    log_warning(file.string() +
                ": its values are not of the types that they should be; results.h5 goes without it");
  }
}

// What a stage left that has finished.
static void read_finished(const fs::path& file, Rows& rows, StageRow& stage) {
  const std::string text = read_file(file);
  const Json output = parse_json(text, file.string());
  if (!output.is_object()) throw BadContent(file, file.string() + ": no JSON object");
  stage.finished = true;
  stage.output_digest = sha256_hex(text);
  rows.add_if_sound([&] { stage.kind = output.value("kind", ""); });
  stage.summary = output.value("summary", Json::object()).dump();
  const auto each = [&](const char* key, const auto& add) {
    if (const auto list = output.find(key); list != output.end())
      for (const Json& entry : *list) rows.add_if_sound([&] { add(entry); });
  };
  each("tasks", [&](const Json& task) { rows.add_task(task); });
  each("candidates", [&](const Json& entry) {
    if (const auto it = entry.find("candidate"); it != entry.end()) rows.add_candidate(*it);
  });
  each("samples", [&](const Json& sample) { rows.add_sample(sample); });
  // No job has a record of what was not measured for want of a device.
  if (output.contains("lacks"))
    each("candidates",
         [&](const Json& entry) { rows.add_measurement(entry.at("measurement"), file.parent_path()); });
}

Results read_output(const fs::path& folder, const StageVersion& version) {
  const fs::path file = folder / "output.json";
  Rows rows(version, 0, file);
  StageRow stage;
  stage.name = version.stage;
  stage.hash8 = version.hash8;
  stage.place = version.place;
  stage.current = version.current;
  read_inputs(folder / "inputs.json", stage);
  if (fs::exists(file)) try {
      read_finished(file, rows, stage);
    } catch (const BadContent& e) {
      if (version.current) throw;
      log_warning(std::string(e.what()) + "; results.h5 goes without what that older version left");
    }
  rows.out.stages.push_back(std::move(stage));
  return std::move(rows.out);
}

Results read_item_rows(const JobPlace& job) {
  const fs::path file = job.folder / "items.jsonl";
  Rows rows(job.version, job.round, file);
  scan_json_lines(file, 0, [&](Json&& item, std::uint64_t) {
    rows.add_if_sound([&] {
      if (const auto it = item.find("candidate"); it != item.end() && it->is_object())
        rows.add_candidate(*it);
    });
  });
  return std::move(rows.out);
}

static ShardRow shard_row(Rows& rows, const JobPlace& job, const fs::path& run_folder, const fs::path& folder,
                          std::int64_t number) {
  auto shard = rows.new_row<ShardRow>();
  shard.folder = folder.lexically_relative(run_folder).string();
  shard.job = job.job.job;
  shard.program = job.job.program;
  shard.resources = job.resources_json;
  shard.shard = number;
  return shard;
}

Results read_shard_rows(const JobPlace& job, const fs::path& run_folder, const fs::path& folder,
                        std::int64_t number) {
  Rows rows(job.version, job.round, folder);
  const std::string& kind = job.job.job;
  ShardRow shard = shard_row(rows, job, run_folder, folder, number);
  const auto take = [&](const Json& record, const fs::path& attempt) {
    if (kind == "measure")
      rows.add_measurement(record, attempt);
    else if (kind == "compile")
      rows.add_compile(record);
    else if (kind == "train")
      rows.add_training(record);
    else if (kind == "collect") {
      if (const auto list = record.find("candidates"); list != record.end()) rows.add_candidates(*list);
    }
  };
  try {
    const ShardScan scan = scan_shard_records(folder, [&](Json&& record, const fs::path& attempt) {
      ++shard.records;
      rows.add_if_sound([&] { take(record, attempt); });
    });
    shard.attempts = scan.attempts;
    shard.ended = scan.ended;
  } catch (const BadContent& e) {  // what stands before it counts
    log_warning(std::string(e.what()) + "; what comes after it is left out");
    shard.attempts = static_cast<std::int64_t>(numbered_folders(folder).size());
  }
  rows.out.shards.push_back(std::move(shard));
  return std::move(rows.out);
}

Results read_done_rows(const JobPlace& job, const fs::path& run_folder) {
  Rows rows(job.version, job.round, job.folder);
  for (const std::uint32_t number : job.done) {
    if (number >= job.job.shards.size()) continue;
    ShardRow shard = shard_row(rows, job, run_folder, job.folder / std::to_string(number), number);
    shard.records = static_cast<std::int64_t>(job.job.shards[number].second - job.job.shards[number].first);
    shard.attempts = 1;
    shard.ended = true;
    rows.out.shards.push_back(std::move(shard));
  }
  return std::move(rows.out);
}

std::string device_key(const DeviceFacts& f) {
  std::string key;
  for (const std::string* part : {&f.kind, &f.name, &f.uuid, &f.driver, &f.host, &f.sandbox})
    key += *part + '\n';
  key += std::to_string(f.threads) + ' ' + std::to_string(f.cores);
  for (const auto& [name, value] : f.extra) key += '\n' + name + '=' + value;
  return key;
}

std::vector<fs::path> folders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::pair<std::int64_t, fs::path>> numbered_folders(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc() && end == name.data() + name.size() && entry.is_directory())
      found.emplace_back(number, entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace warpsmith::store

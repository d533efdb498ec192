#include "record_rows.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "score_check.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
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

  // What `add` makes of one entry. One that is damaged is left out, and costs no other.
  template <typename Add>
  bool add_if_sound(Add add) {
    try {
      add();
      return true;
    } catch (const Json::exception& e) {
      leave_out("an entry is of another form: " + in_words(e));
    } catch (const Error& e) {
      leave_out(e.what());
    }
    return false;
  }

  void leave_out(const std::string& why) {
    if (left_out_++ == 0) first_why_ = why;
  }

  // One warning of all that was left out. `what`: "records".
  void warn(const char* what, const std::string& cure) const {
    if (left_out_ == 0) return;
    log_warning("stage " + version_.stage + ", " + from_.string() + ": " + std::to_string(left_out_) + " " +
                what + " left out: " + first_why_ + (left_out_ > 1 ? ", and others" : "") + "; " + cure +
                " makes the stage anew");
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
    row.known = row.known || row.repeated;
    out.generated.push_back(std::move(row));
  }

  void add_opinion(const Json& json) {
    auto row = new_row<OpinionRow>();
    fields_from_json(opinion_table().fields, json, row);
    row.cases = json.value("cases", Json::array()).dump();
    out.opinions.push_back(std::move(row));
  }

  void add_compile(const Json& record) {
    auto row = new_row<CompileRow>();
    fields_from_json(compile_table().fields, record, row);
    out.compiles.push_back(std::move(row));
  }

  void add_training(const Json& record) {
    if (!record.contains("loss")) return;  // nothing was trained
    auto row = new_row<TrainingRow>();
    fields_from_json(training_table().fields, record, row);
    out.training.push_back(std::move(row));
  }

  // `buckets`: of the job's protocol; 0: not known.
  void add_measurement(const Json& record, const fs::path& folder, int buckets) {
    auto row = new_row<MeasurementRow>();
    row.value = measurement_from_json(record);
    Measurement& m = row.value;
    if (m.candidate.empty()) m.candidate = record.value("item", "");
    if (!m.blob.empty()) {
      const std::string_view bytes = samples(folder, {m.blob, m.blob_offset, m.blob_bytes, m.blob_crc});
      std::vector<std::int64_t> times(bytes.size() / sizeof(std::int64_t));
      std::memcpy(times.data(), bytes.data(), times.size() * sizeof(std::int64_t));
      if (const std::string wrong = score_problem(m, times, buckets); !wrong.empty())
        throw Error("the record of " + m.candidate.substr(0, 12) + ": " + wrong);
      row.sample_begin = static_cast<std::int64_t>(out.samples.size());
      row.sample_count = static_cast<std::int64_t>(times.size());
      out.samples.insert(out.samples.end(), times.begin(), times.end());
      m.blob.clear();
    }
    if (m.device) {
      row.device = device_index(*m.device);
      m.device.reset();
    }
    out.measurements.push_back(std::move(row));
    // Older programs wrote all of a shard's with its last candidate.
    if (const auto list = record.find("baselines"); list != record.end())
      for (const Json& entry : *list) add_baseline(entry);
  }

  void add_baseline(const Json& timing) {
    auto row = new_row<BaselineRow>();
    row.value = baseline_timing_from_json(timing);
    out.baselines.push_back(std::move(row));
  }

  Results out;

 private:
  // One blob file serves thousands of records: it is read once, and again where it has grown since.
  std::string_view samples(const fs::path& folder, const BlobRef& ref) {
    const fs::path path = folder / ref.file;
    const auto ends_before = [&] {
      return ref.offset > blob_.size() || ref.bytes > blob_.size() - ref.offset;
    };
    if (path != blob_path_ || ends_before()) {
      blob_path_.clear();
      blob_ = read_file(path);
      blob_path_ = path;
    }
    if (ends_before())
      throw Error(path.string() + " ends before byte " + std::to_string(ref.offset + ref.bytes));
    const std::string_view bytes = std::string_view(blob_).substr(ref.offset, ref.bytes);
    if (crc32(bytes) != ref.crc)
      throw Error(path.string() + ": wrong checksum at byte " + std::to_string(ref.offset));
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
  fs::path blob_path_;
  std::string blob_;
  std::size_t left_out_ = 0;
  std::string first_why_;
};

}  // namespace

// What is said of a stage beside its records: the row goes without where it is damaged.
static void read_inputs(const fs::path& file, StageRow& stage) {
  try {
    if (!path_exists(file)) return;
    const Json json = read_json_file(file);
    const Json inputs = json.value("inputs", Json::object());
    stage.base = json.value("base", "");
    stage.device = inputs.value("device", "");
    stage.device_found = inputs.value("device_found", "");
  } catch (const Error& e) {
    log_warning(std::string(e.what()) + "; results.h5 goes without it");
  } catch (const Json::exception&) {
    log_warning(file.string() +
                ": its values are not of the types that they should be; results.h5 goes without it");
  }
}

// What a stage left that has finished. `digest`: of the file, where it is known.
static void read_finished(const fs::path& file, const std::string& digest, Rows& rows, StageRow& stage) {
  const std::string text = read_file(file);
  const std::string found = sha256_hex(text);
  if (!digest.empty() && digest != found)
    throw BadContent(file, file.string() + ": it is not what the stage wrote (its SHA-256 is another)");
  const Json output = parse_json(text, file.string());
  if (!output.is_object()) throw BadContent(file, file.string() + ": no JSON object");
  stage.finished = true;
  stage.output_digest = found;
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
  each("opinions", [&](const Json& opinion) { rows.add_opinion(opinion); });
  // No job has a record of what was not measured for want of a device.
  if (output.contains("lacks"))
    each("candidates",
         [&](const Json& entry) { rows.add_measurement(entry.at("measurement"), file.parent_path(), 0); });
}

Results read_output(const fs::path& folder, const StageVersion& version, const std::string& digest,
                    const std::string& cure) {
  const fs::path file = folder / "output.json";
  Rows rows(version, 0, file);
  StageRow stage;
  stage.name = version.stage;
  stage.hash8 = version.hash8;
  stage.place = version.place;
  stage.current = version.current;
  read_inputs(folder / "inputs.json", stage);
  try {
    // Somebody changed the output and declared it up to date (`run --accept`).
    const bool accepted = path_exists(folder / "accepted.json");
    if (path_exists(file)) read_finished(file, accepted ? "" : digest, rows, stage);
  } catch (const Error& e) {
    log_warning("stage " + version.stage + ": " + e.what() + "; results.h5 goes without what it holds" +
                (version.current ? ", " + cure + " makes the stage anew" : ""));
  }
  rows.warn("entries", cure);
  rows.out.stages.push_back(std::move(stage));
  return std::move(rows.out);
}

Results read_item_rows(const JobPlace& job) {
  const fs::path file = job.folder / "items.jsonl";
  Rows rows(job.version, job.round, file);
  const auto take = [&](Json&& item, std::uint64_t) {
    rows.add_if_sound([&] {
      if (const auto it = item.find("candidate"); it != item.end() && it->is_object())
        rows.add_candidate(*it);
    });
  };
  try {
    scan_json_lines(file, 0, take, [&](const BadContent& e) { rows.leave_out(e.what()); });
  } catch (const Error& e) {
    rows.leave_out(e.what());
  }
  rows.warn("items", job.cure);
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

// Tokens that a model wrote; nothing where the record does not say.
static std::optional<std::int64_t> written_tokens(const Json& record) try {
  const Json samples = record.value("samples", Json::array());
  if (const auto spent = record.find("spent"); spent != record.end())
    if (const auto counted = spent->value("completion", std::int64_t{0}); counted > 0 || samples.empty())
      return counted;
  std::int64_t sum = 0;
  for (const Json& sample : samples) {
    if (!sample.contains("tokens")) return std::nullopt;
    sum += sample.at("tokens").get<std::int64_t>();
  }
  return sum;
} catch (const Json::exception&) {
  return std::nullopt;
}

Results read_shard_rows(const JobPlace& job, const fs::path& run_folder, const fs::path& folder,
                        std::int64_t number) {
  Rows rows(job.version, job.round, folder);
  const std::string_view kind = kind_of_job(job.job.job);
  ShardRow shard = shard_row(rows, job, run_folder, folder, number);
  const auto said = job.job.params.find("buckets");
  const int buckets = said != job.job.params.end() && said->is_number_integer() ? said->get<int>() : 0;
  std::int64_t tokens = 0;
  bool counted = kind == "generate";
  const auto take = [&](const Json& record, const fs::path& attempt) {
    if (kind == "generate") {
      const auto written = written_tokens(record);
      counted = counted && written;
      tokens += written.value_or(0);
    } else if (kind == "measure")
      rows.add_measurement(record, attempt, buckets);
    else if (kind == "compile")
      rows.add_compile(record);
    else if (kind == "train")
      rows.add_training(record);
    else if (kind == "collect") {
      if (const auto list = record.find("candidates"); list != record.end()) rows.add_candidates(*list);
    }
  };
  const ShardScan scan = scan_shard_records(
      folder,
      [&](Json&& record, const fs::path& attempt) {
        shard.records += rows.add_if_sound([&] { take(record, attempt); });
      },
      [&](const Error& e) { rows.leave_out(e.what()); },
      [&](Json&& extra) {
        if (const auto timing = extra.find("baseline"); timing != extra.end())
          rows.add_if_sound([&] { rows.add_baseline(*timing); });
      });
  shard.attempts = scan.attempts;
  shard.ended = scan.ended;
  if (counted) shard.tokens = tokens;
  rows.warn("records", job.cure);
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
  try {
    std::vector<fs::path> found = folder_entries(folder);
    std::erase_if(found, [](const fs::path& path) {
      std::error_code unknown;
      return !fs::is_directory(path, unknown);
    });
    return found;
  } catch (const Error& e) {
    log_warning(std::string(e.what()) + "; what it holds is left out");
    return {};
  }
}

std::vector<std::pair<std::int64_t, fs::path>> numbered_folders(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::path& path : folders(folder)) {
    const std::string name = path.filename().string();
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc() && end == name.data() + name.size()) found.emplace_back(number, path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace warpsmith::store

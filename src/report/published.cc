#include "warpsmith/report/published.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include "warpsmith/base/json.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith::report {

namespace {

constexpr std::uint64_t kLargestFile = 1ULL << 30;

// Fields of the release and the baselines that we call so.
constexpr std::pair<const char*, const char*> kReleaseScores[] = {
    {"score_default", "eager"},
    {"score_torch_compile_default", "torch_compile"},
    {"score_torch_compile_reduce_overhead", "torch_compile_reduce_overhead"},
    {"score_cuda_graph", "cuda_graph"},
    {"score_cudnn", "cudnn"}};

// "1.37" as well as 1.37; nothing for null, "", "None" and what is no positive number.
std::optional<double> number_of(const Json& value) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  if (!std::isfinite(number) || number <= 0) return std::nullopt;
  return number;
}

int id_of(const Json& value, const std::string& name) {
  if (const auto number = number_of(value); number && *number == std::floor(*number) && *number < 1e6)
    return static_cast<int>(*number);
  throw Error("`" + name + "` is no number of a problem");
}

std::string text_of(const Json& record, const char* key) {
  const auto it = record.find(key);
  if (it == record.end() || !it->is_string() || *it == "None") return "";
  return it->get<std::string>();
}

// Fills in all but its place and level.
void read_release_record(const Json& record, ReleaseRecord& out) {
  out.number = id_of(record.at("task_id"), "task_id");
  for (const char* key : {"ref_code", "custom_code"})
    if (const auto it = record.find(key); it != record.end() && !it->is_null() && !it->is_string())
      throw Error(std::string("`") + key + "` is no text");
  out.reference = text_of(record, "ref_code");
  out.kernel = text_of(record, "custom_code");
  if (out.kernel.empty()) {
    const auto it = record.find("custom_code");
    out.missing = it == record.end() ? "custom_code is not there"
                  : it->is_null()    ? "custom_code is null"
                  : *it == "None"    ? "custom_code is the text None"
                                     : "custom_code is empty";
  }
  for (const auto& [key, baseline] : kReleaseScores)
    if (const auto it = record.find(key); it != record.end())
      if (const auto score = number_of(*it)) out.scores[baseline] = *score;
}

// A file that people wrote or fetched: a mistake in it is the user's.
[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Error(where + ": " + why, kExitUsage);
}

// Calls `read`, and tells what it throws as a mistake at the record's place.
void try_record(const std::filesystem::path& file, ReleaseRecord record, std::vector<ReleaseRecord>& out,
                Diagnostics& mistakes, const std::function<void(ReleaseRecord&)>& read) {
  std::string why;
  try {
    read(record);
    out.push_back(std::move(record));
    return;
  } catch (const Json::exception& e) {
    why = in_words(e);
  } catch (const Error& e) {
    why = e.what();
  }
  mistakes.push_back({file.string(), record.line, 0, record.line > 0 ? why : record.place + ": " + why, ""});
}

// Every line a record. A last line may lack its newline.
std::vector<ReleaseRecord> read_lines(const std::filesystem::path& file, const std::string& text,
                                      Diagnostics& mistakes) {
  std::vector<ReleaseRecord> out;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    ReleaseRecord record;
    record.line = number;
    record.place = "line " + std::to_string(number);
    try_record(file, std::move(record), out, mistakes, [&](ReleaseRecord& one) {
      const Json json = parse_json(line, "the record");
      one.level = id_of(json.at("level_id"), "level_id");
      read_release_record(json, one);
    });
  }
  return out;
}

// Lists of records by level.
std::vector<ReleaseRecord> read_lists(const std::filesystem::path& file, const Json& levels,
                                      Diagnostics& mistakes) {
  std::vector<ReleaseRecord> out;
  for (const auto& [level, list] : levels.items()) {
    int number = 0;
    for (const Json& json : list) {
      ReleaseRecord record;
      record.place = "level " + level + ", record " + std::to_string(++number);
      try_record(file, std::move(record), out, mistakes, [&](ReleaseRecord& one) {
        one.level = id_of(Json(level), level);
        read_release_record(json, one);
        if (const auto score = json.contains("score") ? number_of(json["score"]) : std::nullopt)
          one.scores["eager"] = *score;
      });
    }
  }
  return out;
}

bool has_lines(const Json& first_line) {
  return first_line.is_object() && first_line.contains("level_id") && first_line.contains("task_id");
}

bool has_lists(const Json& json) {
  const auto is_list = [](const Json& list) {
    return list.is_array() && (list.empty() || (list[0].is_object() && list[0].contains("custom_code")));
  };
  return json.is_object() && std::all_of(json.begin(), json.end(), is_list) &&
         std::any_of(json.begin(), json.end(), [](const Json& list) { return !list.empty(); });
}

Published scores_of(const std::filesystem::path& file, const std::vector<ReleaseRecord>& records) {
  Published out{"CUDA-L1's release", file.stem().string(), {}};
  for (const ReleaseRecord& record : records)
    for (const auto& [key, baseline] : kReleaseScores) {
      PublishedScore score{record.level, record.number, baseline, {}, "", record.kernel};
      const auto said = record.scores.find(baseline);
      if (record.kernel.empty())
        score.note = "no kernel";
      else if (said == record.scores.end())
        score.note = "no score";
      else
        score.speedup = said->second;
      out.scores.push_back(std::move(score));
    }
  return out;
}

// Mean times of the references, ms.
class BaselineTimes {
 public:
  explicit BaselineTimes(const std::filesystem::path& file) {
    if (file.empty()) return;
    try {
      levels_ = read_json_file(file);
    } catch (const BadContent& e) {
      throw Error(e.what(), kExitUsage);
    }
    const std::string name = file.stem().string();
    const auto holds = [&](const char* word) { return name.find(word) != std::string::npos; };
    if (holds("reduce-overhead"))
      baseline_ = "torch_compile_reduce_overhead";
    else if (holds("inductor_default"))
      baseline_ = "torch_compile";
    else if (holds("torch_compile"))
      baseline_ = name;  // one that we do not measure: it pairs with nothing
  }
  const std::string& baseline() const { return baseline_; }
  std::optional<double> mean_ms(int level, int number) const {
    const auto problems = levels_.find("level" + std::to_string(level));
    if (problems == levels_.end()) return std::nullopt;
    const std::string prefix = std::to_string(number) + "_";
    for (const auto& [name, stats] : problems->items())
      if (const auto mean = stats.find("mean"); name.starts_with(prefix) && mean != stats.end())
        return number_of(*mean);
    return std::nullopt;
  }

 private:
  Json levels_ = Json::object();
  std::string baseline_ = "eager";
};

void add_sample(const Json& sample, const BaselineTimes& times, PublishedScore& best) {
  if (!sample.value("compiled", false) || !sample.value("correctness", false)) return;
  if (best.note == "incorrect") best.note = "no time";
  const auto runtime = number_of(sample.at("runtime"));
  if (!runtime) return;
  auto reference = times.mean_ms(best.level, best.number);
  if (!reference) reference = number_of(sample.value("ref_runtime", Json()));
  if (!reference) {
    if (!best.speedup) best.note = "no time of a baseline";
  } else if (const double speedup = *reference / *runtime; speedup > best.speedup.value_or(0)) {
    best.speedup = speedup;
    best.note.clear();
  }
}

// The name of the GPU, where a sample tells it.
std::string hardware_of(const Json& sample) {
  for (const char* part : {"runtime_stats", "metadata"})
    if (const auto it = sample.find(part); it != sample.end() && it->is_object())
      if (const std::string name = text_of(*it, "hardware"); !name.empty()) return name;
  return "";
}

Published read_evaluation(const std::filesystem::path& file, const Json& problems,
                          const PublishedHints& hints) {
  if (!hints.level) refuse(file.string(), "it does not say of which level its problems are: give --level");
  Published out{"KernelBench's evaluator", "", {}};
  const BaselineTimes times(hints.baseline_times);
  for (const auto& [key, value] : problems.items()) {
    PublishedScore score;
    score.level = *hints.level;
    score.number = static_cast<int>(number_of(Json(key)).value_or(0));
    score.baseline = times.baseline();
    score.note = "incorrect";
    // Older versions of the evaluator keep one sample, and no list.
    const Json samples = value.is_array() ? value : Json::array({value});
    for (const Json& sample : samples) {
      add_sample(sample, times, score);
      if (out.device.empty()) out.device = hardware_of(sample);
    }
    out.scores.push_back(std::move(score));
  }
  return out;
}

bool is_evaluation(const Json& json) {
  if (!json.is_object() || json.empty()) return false;
  return std::all_of(json.items().begin(), json.items().end(), [](const auto& problem) {
    const Json& value = problem.value();
    const Json* sample = value.is_array() && !value.empty() ? &value.front() : &value;
    return number_of(Json(problem.key())) && (value == Json::array() || sample->contains("correctness"));
  });
}

// Nothing where it is no JSON.
Json parsed(const std::string& text) {
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::vector<ReleaseRecord> read_release(const std::filesystem::path& file, Diagnostics& mistakes) {
  const std::string text = read_file_within(file, kLargestFile);
  if (const Json whole = parsed(text); has_lists(whole)) return read_lists(file, whole, mistakes);
  std::vector<ReleaseRecord> records = read_lines(file, text, mistakes);
  if (!records.empty()) return records;
  refuse(file.string(),
         "nothing of CUDA-L1's release: neither JSON lines (level_id, task_id, ref_code, custom_code, …) nor "
         "lists of records by level" +
             (mistakes.empty() ? "" : "; " + to_string(mistakes.front())));
}

Published read_published(const std::filesystem::path& file, const PublishedHints& hints) {
  const std::string text = read_file_within(file, kLargestFile);
  const Json whole = parsed(text);
  if (has_lists(whole) || has_lines(parsed(text.substr(0, text.find('\n'))))) {
    Diagnostics mistakes;
    const Published out = scores_of(file, read_release(file, mistakes));
    if (!mistakes.empty())
      refuse(file.string() + (mistakes[0].line > 0 ? ", line " + std::to_string(mistakes[0].line) : ""),
             mistakes[0].message);
    return out;
  }
  try {
    if (is_evaluation(whole)) return read_evaluation(file, whole, hints);
  } catch (const Json::exception& e) {
    refuse(file.string(), in_words(e));
  }
  refuse(file.string(),
         "no published scores: neither JSON lines of CUDA-L1's release (level_id, task_id, custom_code, "
         "score_default, …) nor an eval_results.json of KernelBench");
}

}  // namespace warpsmith::report

#include "warpsmith/report/published.h"

#include <algorithm>
#include <charconv>
#include <cmath>
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

int id_of(const Json& record, const char* key) {
  if (const auto number = number_of(record.at(key));
      number && *number == std::floor(*number) && *number < 1e6)
    return static_cast<int>(*number);
  throw Error(std::string("`") + key + "` is no number of a problem");
}

std::string text_of(const Json& record, const char* key) {
  const auto it = record.find(key);
  if (it == record.end() || !it->is_string() || *it == "None") return "";
  return it->get<std::string>();
}

void add_release_record(const Json& record, Published& out) {
  PublishedScore score;
  score.level = id_of(record, "level_id");
  score.number = id_of(record, "task_id");
  score.source = text_of(record, "custom_code");
  for (const auto& [key, baseline] : kReleaseScores) {
    score.baseline = baseline;
    score.speedup.reset();
    score.note.clear();
    const auto said = record.find(key);
    if (score.source.empty())
      score.note = "no kernel";
    else if (said == record.end() || !(score.speedup = number_of(*said)))
      score.note = "no score";
    out.scores.push_back(score);
  }
}

// A file that people wrote or fetched: a mistake in it is the user's.
[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Error(where + ": " + why, kExitUsage);
}

// Every line a record. A last line may lack its newline.
Published read_release(const std::filesystem::path& file, const std::string& text) {
  Published out{"CUDA-L1's release", file.stem().string(), {}};
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = file.string() + ", line " + std::to_string(number);
    try {
      add_release_record(parse_json(line, "the record"), out);
    } catch (const Json::exception& e) {
      refuse(where, in_words(e));
    } catch (const Error& e) {
      refuse(where, e.what());
    }
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

Published read_published(const std::filesystem::path& file, const PublishedHints& hints) {
  const std::string text = read_file_within(file, kLargestFile);
  const Json record = parsed(text.substr(0, text.find('\n')));
  if (record.is_object() && record.contains("level_id") && record.contains("task_id"))
    return read_release(file, text);
  try {
    if (const Json whole = parsed(text); is_evaluation(whole)) return read_evaluation(file, whole, hints);
  } catch (const Json::exception& e) {
    refuse(file.string(), in_words(e));
  }
  refuse(file.string(),
         "no published scores: neither JSON lines of CUDA-L1's release (level_id, task_id, custom_code, "
         "score_default, …) nor an eval_results.json of KernelBench");
}

}  // namespace warpsmith::report

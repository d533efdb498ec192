// eval_results.json, pass_at_k_results.json and the files of baselines, as KernelBench 0.2 reads them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "authors.h"
#include "measured_samples.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/report/kernelbench.h"
#include "warpsmith/stats/fast_p.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::report {

namespace {

constexpr int kOwnLevels = 100;  // tasks that are no problem of KernelBench have level 100 + their own
constexpr double kNsPerMs = 1e6;
constexpr const char* kEagerFile = "baseline_time_torch.json";
// Our baselines that KernelBench has files for, beside eager.
constexpr std::pair<const char*, const char*> kCompileFiles[] = {
    {"torch_compile", "baseline_time_torch_compile_inductor_default.json"},
    {"torch_compile_reduce_overhead", "baseline_time_torch_compile_inductor_reduce-overhead.json"}};

// A problem, and what the stage's samples say of it.
struct Problem {
  KernelBenchProblem name;
  std::string task;
  std::vector<const store::SampleRow*> samples;  // that were judged, in the order of their sample ids
};

const store::StageRow& choose_stage(const store::Results& results, const std::string& wanted) {
  std::vector<std::string> names;
  const store::StageRow* chosen = nullptr;
  for (const store::StageRow& stage : results.stages) {
    const bool sampled = std::any_of(results.generated.begin(), results.generated.end(), [&](const auto& s) {
      return s.stage == stage.name && s.hash8 == stage.hash8;
    });
    if (!sampled) continue;
    names.push_back(stage.name);
    if (wanted.empty() || stage.name == wanted) chosen = &stage;
  }
  if (chosen != nullptr) return *chosen;
  if (names.empty())
    throw Error("run `" + results.run + "` has no stage with samples, so there is nothing to export",
                kExitUsage);
  const std::optional<std::string> nearest = nearest_word(wanted, names);
  throw Error("run `" + results.run + "` has no stage `" + wanted + "` with samples" +
                  (nearest ? " (did you mean `" + *nearest + "`?)" : ""),
              kExitUsage);
}

// Names for folders: letters, digits and ._-
std::string file_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return text;
}

class KernelBenchExport {
 public:
  KernelBenchExport(const store::Results& results, const store::StageRow& stage)
      : results_(results), stage_(stage), authors_(results), measured_(results) {
    out_.stage = stage.name;
    find_problems();
    find_device();
    out_.hardware = file_name(device_.kind.empty() ? "unknown" : device_.kind) + "_" + name();
  }

  KernelBenchFiles files() {
    std::map<int, std::vector<const Problem*>> levels;
    for (const auto& [key, problem] : problems_) levels[key.first].push_back(&problem);
    for (const auto& [level, problems] : levels) add_level(level, problems);
    for (const auto& [file, times] : baselines_)
      add("results/timing/" + out_.hardware + "/" + file, times.dump(2));
    return std::move(out_);
  }

 private:
  bool is_stage(const std::string& stage, const std::string& hash8) const {
    return stage == stage_.name && hash8 == stage_.hash8;
  }
  std::string name() const { return file_name(results_.run) + "-" + file_name(stage_.name); }
  bool drew() const { return authors_.drew(stage_.name, stage_.hash8); }

  void find_problems() {
    std::map<std::string, std::vector<const store::SampleRow*>> samples;
    std::set<std::string> groups;
    for (const store::SampleRow& sample : results_.generated) {
      if (!is_stage(sample.stage, sample.hash8)) continue;
      groups.insert(sample.group);
      by_model_ = by_model_ || authors_.is_models(sample.candidate);
      auto& of_task = samples[sample.task];
      if (is_draw(sample) && says_something(sample)) of_task.push_back(&sample);
    }
    if (!drew())
      for (auto& [task, list] : samples)
        std::stable_sort(list.begin(), list.end(), [this](const auto* a, const auto* b) {
          return counted_speedup(*a) > counted_speedup(*b);
        });
    std::map<std::string, const store::TaskRow*> tasks;  // the set, by id
    for (const store::TaskRow& task : results_.tasks)
      if (groups.contains(task.split) || samples.contains(task.id)) tasks.emplace(task.id, &task);
    for (const auto& [id, list] : samples) tasks.emplace(id, nullptr);
    std::map<int, int> numbers;
    for (const auto& [id, task] : tasks) {
      std::optional<KernelBenchProblem> name = kernelbench_problem(id);
      if (!name || problems_.contains({name->level, name->number})) {
        const int level = kOwnLevels + static_cast<int>(task == nullptr ? 0 : task->level);
        const int number = ++numbers[level];
        name = KernelBenchProblem{level, number, fmt::format("{}_{}.py", number, id)};
        add(fmt::format("KernelBench/level{}/{}", level, name->file),
            "# Task " + id + " of Warpsmith: it stands here so that KernelBench counts it.\n" +
                (task == nullptr ? "" : task->reference));
      }
      problems_[{name->level, name->number}] = {*name, id, samples[id]};
    }
  }

  void find_device() {
    for (const store::MeasurementRow& row : results_.measurements)
      if (row.device >= 0 && (device_.kind.empty() || is_stage(row.stage, row.hash8)))
        device_ = results_.devices.at(static_cast<std::size_t>(row.device));
  }

  // Whether a correct sample is one where the file is a claim about a model.
  bool credited(const store::SampleRow& sample) const {
    if (drew()) return !sample.known;
    return !by_model_ || authors_.is_models(sample.candidate);
  }
  bool correct(const store::SampleRow& sample) const {
    if (!credited(sample)) return false;
    if (sample.verdict == to_string(Verdict::kOk)) return sample.speedup > 0;
    const store::MeasurementRow* row = measured_.row_of(sample);
    return row != nullptr && is_one_shape(row->value);
  }
  double counted_speedup(const store::SampleRow& sample) const {
    if (!correct(sample)) return 0;
    return sample.verdict == to_string(Verdict::kOk) ? sample.speedup
                                                     : measured_.row_of(sample)->value.speedup;
  }

  // Times in ms. `begin`: 0 the baseline's, 1 the candidate's. Without samples the median alone.
  Json times(const store::MeasurementRow& row, int arm, double median_ns) const {
    Json out = {{"hardware", device_.name}, {"device", device_.kind}};
    const std::int64_t rounds = row.value.rounds;
    if (rounds > 0 && row.sample_count == 2 * rounds) {
      const auto first = results_.samples.begin() + row.sample_begin + arm * rounds;
      std::vector<double> ms;
      for (auto it = first; it != first + rounds; ++it) ms.push_back(static_cast<double>(*it) / kNsPerMs);
      out.update({{"mean", stats::mean(ms)},
                  {"std", stats::standard_deviation(ms)},
                  {"min", *std::min_element(ms.begin(), ms.end())},
                  {"max", *std::max_element(ms.begin(), ms.end())},
                  {"num_trials", rounds}});
    } else {
      out.update({{"mean", median_ns / kNsPerMs}, {"num_trials", rounds}, {"is", "median"}});
    }
    return out;
  }

  Json entry(const store::SampleRow& sample, std::size_t id) const {
    const auto verdict = *parse_verdict(sample.verdict);
    const bool compiled = verdict != Verdict::kCompileError && verdict != Verdict::kCompileTimeout;
    Json metadata = {{"task", sample.task},
                     {"candidate", sample.candidate},
                     {"verdict", sample.verdict},
                     {"hardware", device_.name},
                     {"device", device_.kind}};
    Json out = {{"sample_id", id},
                {"compiled", compiled},
                {"correctness", correct(sample)},
                {"runtime", -1.0},
                {"runtime_stats", Json::object()}};
    const store::MeasurementRow* row = measured_.row_of(sample);
    if (row != nullptr && !row->value.detail.empty()) metadata["detail"] = row->value.detail;
    if (verdict == Verdict::kOk && !credited(sample))
      metadata["not_credited"] = "it is, or repeats, a program that no model wrote";
    if (row != nullptr && correct(sample)) {
      const Measurement& m = row->value;
      out["runtime_stats"] = times(*row, 1, m.candidate_ns);
      out["runtime"] = out["runtime_stats"]["mean"];
      metadata["speedup"] = m.speedup;
      metadata["speedup_interval"] = {m.speedup_low, m.speedup_high};
      metadata["baseline"] = m.baseline;
      if (is_one_shape(m)) metadata["one_shape"] = "right at the task's own shape, and wrong at another";
    } else if (correct(sample)) {  // its measurement is damaged: no time, so nothing to be faster with
      out["correctness"] = false;
      metadata["no_time"] = "results.h5 lacks its measurement";
    }
    out["metadata"] = std::move(metadata);
    return out;
  }

  // The time of eager in the measurement; nothing where it was timed against another baseline.
  std::optional<Json> eager_times(const store::MeasurementRow& row) const {
    const Measurement& m = row.value;
    if (!(m.baseline_ns > 0) || (m.baseline != "eager" && !(m.baseline_ratio > 0))) return std::nullopt;
    return times(row, 0, m.baseline_ns * (m.baseline_ratio > 0 ? m.baseline_ratio : 1));
  }

  // Of the measurement of the first sample that has one, so that both times are of the same rounds; else of
  // any of the task on that kind of device.
  std::optional<Json> eager_of(const Problem& problem) const {
    for (const store::SampleRow* sample : problem.samples)
      if (const store::MeasurementRow* row = measured_.row_of(*sample))
        if (auto found = eager_times(*row)) return found;
    for (const store::MeasurementRow& row : results_.measurements)
      if (row.value.task == problem.task && row.device >= 0 &&
          results_.devices.at(static_cast<std::size_t>(row.device)).kind == device_.kind)
        if (auto found = eager_times(row)) return found;
    for (const store::BaselineRow& row : results_.baselines)
      if (row.value.task == problem.task && row.value.device_kind == device_.kind && row.value.eager_ns > 0)
        return Json{{"mean", row.value.eager_ns / kNsPerMs},
                    {"num_trials", row.value.rounds},
                    {"hardware", device_.name},
                    {"device", device_.kind},
                    {"is", "median"}};
    return std::nullopt;
  }

  void add_baselines(const std::string& level, const Problem& problem, const Json& eager) {
    baselines_[kEagerFile][level][problem.name.file] = eager;
    for (const store::BaselineRow& row : results_.baselines)
      for (const auto& [baseline, file] : kCompileFiles)
        if (row.value.task == problem.task && row.value.name == baseline &&
            row.value.device_kind == device_.kind && row.value.state == BaselineState::kCovered &&
            row.value.ratio > 0)
          baselines_[file][level][problem.name.file] = {
              {"mean", eager.at("mean").get<double>() / row.value.ratio},
              {"num_trials", row.value.rounds},
              {"hardware", device_.name},
              {"device", device_.kind},
              {"is", "eager's mean by the paired ratio"}};
  }

  void add_level(int level, const std::vector<const Problem*>& problems) {
    KernelBenchFiles::Run run{fmt::format("{}-level{}", name(), level), level, problems.size(), 0, 0, 0};
    Json evaluation = Json::object();
    for (const Problem* problem : problems) {
      if (const auto eager = eager_of(*problem))
        add_baselines("level" + std::to_string(level), *problem, *eager);
      else
        ++run.without_time;
      Json list = Json::array();
      for (const store::SampleRow* sample : problem->samples) list.push_back(entry(*sample, list.size()));
      for (const Json& one : list) run.correct += one.at("correctness") == true;
      run.samples += list.size();
      if (!list.empty()) evaluation[std::to_string(problem->name.number)] = std::move(list);
    }
    baselines_[kEagerFile];  // there is one, also where nothing was timed
    const std::string folder = "runs/" + run.name + "/";
    add(folder + "eval_results.json", evaluation.dump(2, ' ', false, Json::error_handler_t::replace));
    if (drew() && in_one_round()) add(folder + "pass_at_k_results.json", pass_at_k(evaluation).dump(2));
    out_.runs.push_back(std::move(run));
  }

  // Whether one model drew all samples: a stage that learns has rounds.
  bool in_one_round() const {
    std::set<std::int64_t> rounds;
    for (const auto& [key, problem] : problems_)
      for (const store::SampleRow* sample : problem.samples) rounds.insert(sample->round);
    return rounds.size() <= 1;
  }

  static Json pass_at_k(const Json& evaluation) {
    Json problems = Json::object(), averages = Json::object();
    std::int64_t all_samples = 0, all_correct = 0;
    std::map<std::int64_t, std::vector<double>> values;
    for (const auto& [id, list] : evaluation.items()) {
      const auto n = static_cast<std::int64_t>(list.size());
      const auto c =
          std::count_if(list.begin(), list.end(), [](const Json& e) { return e.at("correctness") == true; });
      Json& problem = problems[id] = {{"total_samples", n}, {"correct_samples", c}};
      all_samples += n;
      all_correct += c;
      for (const std::int64_t k : stats::kPassKs)
        if (k <= n) {
          values[k].push_back(stats::pass_at_k(n, c, k));
          problem[fmt::format("pass@{}", k)] = values[k].back();
        }
    }
    Json metadata = {{"total_problems", evaluation.size()},
                     {"problems_with_samples", evaluation.size()},
                     {"total_evaluated_samples", all_samples},
                     {"total_correct_samples", all_correct}};
    for (const auto& [k, list] : values) {
      averages[fmt::format("avg_pass@{}", k)] = stats::mean(list);
      metadata[fmt::format("pass@{}_count", k)] = list.size();
    }
    return {{"averages", averages}, {"metadata", metadata}, {"problems", problems}};
  }

  void add(std::string path, std::string content) {
    if (content.empty() || content.back() != '\n') content += '\n';
    out_.files.push_back({std::move(path), std::move(content)});
  }

  const store::Results& results_;
  const store::StageRow& stage_;
  const Authors authors_;
  const Measured measured_;
  bool by_model_ = false;  // the stage has programs that a model wrote
  DeviceFacts device_;
  std::map<std::pair<int, int>, Problem> problems_;  // by level and number
  std::map<std::string, Json> baselines_;            // by name of the file
  KernelBenchFiles out_;
};

}  // namespace

KernelBenchFiles kernelbench_files(const store::Results& results, const std::string& stage) {
  return KernelBenchExport(results, choose_stage(results, stage)).files();
}

}  // namespace warpsmith::report

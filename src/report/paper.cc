#include "warpsmith/report/paper.h"

#include <algorithm>
#include <map>
#include <set>

#include "authors.h"
#include "host_bound.h"
#include "measured_samples.h"
#include "measurement_row.h"
#include "stage_devices.h"
#include "version_order.h"
#include "warpsmith/report/baselines.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/wins.h"

namespace warpsmith::report {

namespace {

// What is known of a task in a set.
struct PaperTask {
  bool attempted = false;
  const store::MeasurementRow* best = nullptr;      // of the fastest correct program
  const store::MeasurementRow* as_paper = nullptr;  // of this or one that is right at one shape alone
};
using PaperTasks = std::map<std::string, PaperTask>;

bool pairs_alone(const std::string& baseline) { return baseline == "cuda_graph" || baseline == "cudnn"; }

void take(PaperTask& task, const store::MeasurementRow& row) {
  const Verdict verdict = row.value.verdict;
  task.attempted = task.attempted || (verdict != Verdict::kNotMeasured && verdict != Verdict::kUnsupported);
  const auto keep = [&](const store::MeasurementRow*& best) {
    if (best == nullptr || over_eager_of(row.value) > over_eager_of(best->value)) best = &row;
  };
  if (!(row.value.speedup > 0)) return;
  if (verdict == Verdict::kOk) keep(task.best);
  if (verdict == Verdict::kOk || is_one_shape(row.value)) keep(task.as_paper);
}

class PaperMaker {
 public:
  explicit PaperMaker(const store::Results& results)
      : results_(results),
        authors_(results),
        host_bound_(results),
        measured_(results),
        degenerate_(degenerate_tasks(results)),
        by_model_(authors_.any_models()) {
    for (const store::TaskRow& task : results.tasks) {
      level_of_.emplace(task.id, task.level);
      groups_[task.split].insert(task.id);
    }
  }

  // A set of tasks over a baseline; `level`: those of one level alone.
  PaperRow row_of(const PaperTasks& tasks, const std::string& baseline,
                  std::optional<std::int64_t> level = {}) const {
    PaperRow row;
    row.baseline = baseline;
    row.level = level;
    row.authors = by_model_ ? "model" : "all";
    std::vector<double> paper, ours;
    for (const auto& [id, task] : tasks) {
      if (level && !(level_of_.contains(id) && level_of_.at(id) == *level)) continue;
      ++row.total;
      row.attempted += task.attempted;
      row.valid += task.best != nullptr;
      row.one_shape += task.best == nullptr && task.as_paper != nullptr;
      const std::optional<stats::Ratio> published =
          task.as_paper ? over(*task.as_paper, baseline) : std::nullopt;
      if (published || !pairs_alone(baseline)) paper.push_back(published ? published->value : 1.0);
      row.above += published && stats::is_above_bar(published->value);
      const std::optional<stats::Ratio> speedup = task.best ? over(*task.best, baseline) : std::nullopt;
      if (!speedup) continue;
      if (degenerate_.contains(id) || host_bound_.holds(*task.best)) {
        ++row.left_out;
        continue;
      }
      ours.push_back(speedup->value);
      row.wins += stats::is_win(speedup->low);
    }
    if (!paper.empty()) row.paper = stats::spread_of(paper);
    if (!ours.empty()) row.ours = stats::spread_of(ours);
    return row;
  }

  // Tables 4 and 6.
  void add_devices(PaperTables& out) const {
    const std::map<std::string, PaperTasks> devices = by_device();
    std::set<std::int64_t> levels;
    for (const auto& [id, level] : level_of_) levels.insert(level);
    for (const auto& [device, tasks] : devices)
      for (const std::string& baseline : baselines_of(tasks)) {
        PaperRow all = row_of(tasks, baseline);
        all.device = device;
        if (devices.size() > 1) out.devices.push_back(all);
        out.levels.push_back(std::move(all));
        if (levels.size() < 2) continue;
        for (const std::int64_t level : levels) {
          out.levels.push_back(row_of(tasks, baseline, level));
          out.levels.back().device = device;
        }
      }
  }

  // Table 5.
  void add_stages(PaperTables& out) const {
    VersionOrder order(results_);
    std::map<std::size_t, std::vector<const store::SampleRow*>> stages;
    for (const store::SampleRow& sample : results_.generated)
      stages[order.place(sample.stage, sample.hash8)].push_back(&sample);
    for (const auto& [place, samples] : stages) {
      const auto& [stage, hash8] = order.at(place);
      const PaperTasks tasks = tasks_of_stage(samples);
      for (const std::string& baseline : own_baselines(tasks)) {
        PaperRow row = row_of(tasks, baseline);
        row.stage = stage;
        row.hash8 = hash8;
        if (row.attempted > 0) out.stages.push_back(std::move(row));
      }
    }
  }

 private:
  bool counts(const std::string& candidate) const { return !by_model_ || authors_.is_models(candidate); }

  std::optional<stats::Ratio> over(const store::MeasurementRow& row, const std::string& baseline) const {
    for (const OverBaseline& one : compare_with_baselines(results_, row).all)
      if (one.name == baseline) return one.speedup;
    return std::nullopt;
  }

  std::map<std::string, PaperTasks> by_device() const {
    std::map<std::string, PaperTasks> devices;
    const StageDevices stage_devices(results_);
    for (const store::MeasurementRow& row : results_.measurements)
      if (counts(row.value.candidate)) {
        const std::string kind = row.device >= 0 ? host_bound_.kind_of(row) : stage_devices.of(row);
        take(devices[kind][row.value.task], row);
      }
    std::map<std::string, std::string> task_of;
    for (const store::CandidateRow& row : results_.candidates) task_of.emplace(row.id, row.task);
    for (const store::CompileRow& row : results_.compiles)
      if (row.verdict != to_string(Verdict::kOk) && row.verdict != to_string(Verdict::kUnsupported) &&
          counts(row.candidate) && task_of.contains(row.candidate))
        devices[stage_devices.of(row)][task_of.at(row.candidate)].attempted = true;
    // A device on which nothing is correct has no speedups, so no rows.
    std::erase_if(devices, [](const auto& device) {
      return std::none_of(device.second.begin(), device.second.end(),
                          [](const auto& task) { return task.second.as_paper != nullptr; });
    });
    for (auto& [device, tasks] : devices)
      for (const auto& [id, level] : level_of_) tasks[id];
    return devices;
  }

  // Those that a speedup of these is known over, in the order of the paper.
  std::vector<std::string> baselines_of(const PaperTasks& tasks) const {
    std::vector<std::string> names;
    for (const auto& [id, task] : tasks)
      if (task.as_paper != nullptr)
        for (const OverBaseline& one : compare_with_baselines(results_, *task.as_paper).all)
          if (one.speedup && std::find(names.begin(), names.end(), one.name) == names.end())
            names.push_back(one.name);
    static const std::vector<std::string> kOrder = {"eager", "torch_compile", "torch_compile_reduce_overhead",
                                                    "cuda_graph", "cudnn"};
    const auto place = [](const std::string& name) { return std::find(kOrder.begin(), kOrder.end(), name); };
    std::stable_sort(names.begin(), names.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return names;
  }

  std::set<std::string> own_baselines(const PaperTasks& tasks) const {
    std::set<std::string> names;
    for (const auto& [id, task] : tasks)
      if (task.as_paper != nullptr) names.insert(task.as_paper->value.baseline);
    if (names.empty()) names.insert("eager");
    return names;
  }

  // The set: the tasks of the groups that the stage has samples of.
  PaperTasks tasks_of_stage(const std::vector<const store::SampleRow*>& samples) const {
    PaperTasks tasks;
    for (const store::SampleRow* sample : samples) {
      if (const auto group = groups_.find(sample->group); group != groups_.end())
        for (const std::string& id : group->second) tasks[id];
      PaperTask& task = tasks[sample->task];
      const bool drew = authors_.drew(sample->stage, sample->hash8);
      const bool own = drew ? !sample->known : counts(sample->candidate);
      task.attempted = task.attempted || ((drew || own) && says_something(*sample));
      if (!own) continue;
      if (const store::MeasurementRow* row = measured_.row_of(*sample)) take(task, *row);
    }
    return tasks;
  }

  const store::Results& results_;
  const Authors authors_;
  const HostBoundTasks host_bound_;
  const Measured measured_;
  const std::set<std::string> degenerate_;
  const bool by_model_;  // the run has programs that a model wrote: these alone count
  std::map<std::string, std::int64_t> level_of_;         // by task
  std::map<std::string, std::set<std::string>> groups_;  // tasks, by group
};

}  // namespace

PaperTables paper_tables(const store::Results& results) {
  PaperTables out;
  const PaperMaker maker(results);
  maker.add_devices(out);
  maker.add_stages(out);
  return out;
}

}  // namespace warpsmith::report

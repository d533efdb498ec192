#include "warpsmith/report/fast_p.h"

#include <algorithm>
#include <map>
#include <set>

#include "authors.h"
#include "measured_samples.h"
#include "version_order.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::report {

namespace {

// What the judged samples of a task are worth.
struct Judged {
  std::int64_t judged = 0;
  std::vector<double> speedups;  // of correct samples that count
  double best() const { return speedups.empty() ? 0 : *std::max_element(speedups.begin(), speedups.end()); }
};

using JudgedTasks = std::map<std::string, Judged>;

PassAtK pass_of(const JudgedTasks& tasks, std::int64_t k) {
  PassAtK out{k, 0};
  double sum = 0;
  for (const auto& [task, draws] : tasks) {
    if (draws.judged < k) continue;
    ++out.tasks;
    sum += stats::pass_at_k(draws.judged, static_cast<std::int64_t>(draws.speedups.size()), k);
  }
  if (out.tasks > 0) out.value = sum / static_cast<double>(out.tasks);
  return out;
}

// Mean over all tasks of the share of their samples that are correct and faster than p.
FastPs one_draw_of(const JudgedTasks& tasks) {
  FastPs out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const auto& [task, draws] : tasks)
      if (draws.judged > 0)
        out[i] += stats::fast_p(draws.speedups, static_cast<std::size_t>(draws.judged), stats::kFastPs[i]);
    out[i] /= static_cast<double>(tasks.size());
  }
  return out;
}

class FastPTable {
 public:
  explicit FastPTable(const store::Results& results)
      : authors_(results), measured_(results), degenerate_(degenerate_tasks(results)) {
    for (const store::TaskRow& task : results.tasks) sets_[task.split].insert(task.id);
  }

  std::vector<FastPRow> rows_of(const Draws& samples) const {
    const store::SampleRow& first = *samples.front();
    if (authors_.drew(first.stage, first.hash8))
      return {row_of(samples, "model", [](const store::SampleRow& s) { return !s.known; })};
    std::vector<FastPRow> rows;
    const auto by_model = [&](const store::SampleRow& s) { return authors_.is_models(s.candidate); };
    const auto some_are = [&](bool models) {
      return std::any_of(samples.begin(), samples.end(),
                         [&](const auto* s) { return by_model(*s) == models; });
    };
    if (some_are(true)) rows.push_back(row_of(samples, "model", by_model));
    if (some_are(false)) rows.push_back(row_of(samples, "all", [](const store::SampleRow&) { return true; }));
    return rows;
  }

 private:
  // `counts`: whether a correct sample counts as one.
  template <typename Counts>
  FastPRow row_of(const Draws& samples, const char* authors, const Counts& counts) const {
    const store::SampleRow& first = *samples.front();
    FastPRow row;
    row.stage = first.stage;
    row.hash8 = first.hash8;
    row.group = first.group;
    row.authors = authors;
    JudgedTasks tasks;
    if (const auto set = sets_.find(first.group); set != sets_.end())
      for (const std::string& task : set->second) tasks[task];
    for (const store::SampleRow* sample : samples) {
      Judged& draws = tasks[sample->task];
      if (!says_something(*sample)) continue;
      ++draws.judged;
      if (is_valid(*sample) && counts(*sample)) draws.speedups.push_back(sample->speedup);
    }
    fill(row, tasks, measured_.host_bound(samples));
    if (!authors_.drew(first.stage, first.hash8)) return row;
    row.one_draw = one_draw_of(tasks);
    if (std::all_of(samples.begin(), samples.end(), [&](const auto* s) { return s->round == first.round; }))
      for (const std::int64_t k : stats::kPassKs) row.pass.push_back(pass_of(tasks, k));
    return row;
  }

  void fill(FastPRow& row, const JudgedTasks& tasks, const std::set<std::string>& host_bound) const {
    row.tasks = static_cast<std::int64_t>(tasks.size());
    row.least = tasks.begin()->second.judged;
    for (const auto& [task, draws] : tasks) {
      row.degenerate += degenerate_.contains(task);
      row.host_bound += host_bound.contains(task);
      row.judged += draws.judged > 0;
      row.least = std::min(row.least, draws.judged);
      row.most = std::max(row.most, draws.judged);
      if (draws.best() > 0) row.speedups.push_back(draws.best());
    }
    row.correct = static_cast<std::int64_t>(row.speedups.size());
    for (std::size_t i = 0; i < row.best.size(); ++i)
      row.best[i] = stats::fast_p(row.speedups, tasks.size(), stats::kFastPs[i]);
    if (!row.speedups.empty()) row.geometric_mean = stats::geometric_mean(row.speedups);
  }

  const Authors authors_;
  const Measured measured_;
  const std::set<std::string> degenerate_;
  std::map<std::string, std::set<std::string>> sets_;  // ids of tasks, by group
};

}  // namespace

std::vector<FastPRow> fast_p_rows(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::tuple<std::size_t, int, std::string>, Draws> cells;
  for (const store::SampleRow& sample : results.generated)
    if (is_draw(sample))
      cells[{order.place(sample.stage, sample.hash8), group_rank(sample.group), sample.group}].push_back(
          &sample);
  const FastPTable table(results);
  std::vector<FastPRow> rows;
  for (const auto& [key, samples] : cells)
    for (FastPRow& row : table.rows_of(samples)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace warpsmith::report

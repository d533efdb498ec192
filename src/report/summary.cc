#include "warpsmith/report/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "authors.h"
#include "direction.h"
#include "host_bound.h"
#include "measured_samples.h"
#include "measurement_row.h"
#include "report_json.h"
#include "version_order.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/stats/wins.h"

namespace warpsmith::report {

namespace {

constexpr double kFailureSpeedup = 0.01;  // one-draw speedup without floor

// Of one task, figures of its samples.
using ByTask = std::map<std::string, std::vector<double>>;

// Of the mean over tasks, each by the mean of its own.
stats::Interval over_tasks(const ByTask& tasks) {
  std::vector<std::vector<double>> cells;
  for (const auto& [task, values] : tasks) cells.push_back({stats::mean(values)});
  const stats::BootstrapInterval interval = stats::bootstrap_mean(cells, {.resamples = 2000});
  return {interval.low, interval.high};
}

// `shares`: 1 for each sample that counts, 0 for the others.
stats::Interval share_interval(std::int64_t count, std::int64_t of, const ByTask& shares) {
  const stats::Interval draws = stats::wilson_interval(count, of), tasks = over_tasks(shares);
  return {std::min(draws.low, tasks.low), std::max(draws.high, tasks.high)};
}

// Over all samples; 1 where there is none.
double geometric_mean_of(const ByTask& logarithms) {
  std::vector<double> all;
  for (const auto& [task, values] : logarithms) all.insert(all.end(), values.begin(), values.end());
  return all.empty() ? 1 : std::exp(stats::mean(all));
}

std::optional<stats::Interval> geometric_interval(const ByTask& logarithms) {
  if (logarithms.size() < kFewestTasks) return std::nullopt;
  const stats::Interval interval = over_tasks(logarithms);
  return stats::Interval{std::exp(interval.low), std::exp(interval.high)};
}

void set_spread(EvaluationRow& row, const stats::Spread& spread) {
  row.mean = spread.mean;
  row.geometric_mean = spread.geometric_mean;
  row.quantile75 = spread.quantile75;
  row.median = spread.median;
  row.quantile25 = spread.quantile25;
  row.max = spread.max;
}

EvaluationRow summarise(const std::vector<const store::SampleRow*>& samples, const Measured& measured) {
  EvaluationRow row;
  row.stage = samples.front()->stage;
  row.hash8 = samples.front()->hash8;
  row.group = samples.front()->group;
  const std::set<std::string> host_bound = measured.host_bound(samples);
  std::set<std::string> tasks, distinct, novel;
  std::vector<double> own;
  ByTask valid, own_logs, floored_logs, unfloored_logs, novel_logs, novel_shares, beyond_shares;
  stats::WinCount count;
  for (const store::SampleRow* sample : samples) {
    tasks.insert(sample->task);
    distinct.insert(sample->candidate);
    const bool ok = is_valid(*sample), counts = is_novel(*sample);
    row.valid += ok;
    row.repeated += ok && sample->repeated;
    row.known += ok && sample->known;
    row.of_template += ok && sample->of_template;
    if (counts) novel.insert(sample->candidate);
    valid[sample->task].push_back(ok);
    novel_shares[sample->task].push_back(counts);
    beyond_shares[sample->task].push_back(counts && !sample->of_template);
    if (host_bound.contains(sample->task)) continue;
    floored_logs[sample->task].push_back(log_gain(*sample));
    novel_logs[sample->task].push_back(log_novel_gain(*sample));
    unfloored_logs[sample->task].push_back(std::log(ok ? sample->speedup : kFailureSpeedup));
    count.add(counts && measured.is_win(*sample), counts ? sample->speedup : 0);
    if (!counts) continue;
    own.push_back(sample->speedup);
    own_logs[sample->task].push_back(std::log(sample->speedup));
  }
  row.novel = row.valid - row.known;
  row.novel_programs = static_cast<std::int64_t>(novel.size());
  row.tasks = static_cast<std::int64_t>(tasks.size());
  row.host_bound = static_cast<std::int64_t>(host_bound.size());
  row.samples = static_cast<std::int64_t>(samples.size());
  row.counted = count.of;
  row.wins = count.win_share();
  row.above = count.above_share();
  row.distinct = static_cast<double>(distinct.size()) / static_cast<double>(samples.size());
  row.valid_interval = share_interval(row.valid, row.samples, valid);
  row.novel_interval = share_interval(row.novel, row.samples, novel_shares);
  row.beyond_interval = share_interval(row.novel - row.of_template, row.samples, beyond_shares);
  row.geometric_mean_interval = geometric_interval(own_logs);
  row.one_draw_interval = geometric_interval(floored_logs);
  row.one_draw_no_floor_interval = geometric_interval(unfloored_logs);
  row.novel_draw_interval = geometric_interval(novel_logs);
  row.one_draw = geometric_mean_of(floored_logs);
  row.novel_draw = geometric_mean_of(novel_logs);
  if (count.of > 0) row.one_draw_no_floor = geometric_mean_of(unfloored_logs);
  if (!own.empty()) set_spread(row, stats::spread_of(own));
  return row;
}

}  // namespace

VersionOrder::VersionOrder(const store::Results& results) {
  for (const store::StageRow& stage : results.stages) place(stage.name, stage.hash8);
}

std::size_t VersionOrder::place(const std::string& stage, const std::string& hash8) {
  const auto [it, is_new] = places_.emplace(std::pair(stage, hash8), versions_.size());
  if (is_new) versions_.push_back(it->first);
  return it->second;
}

std::set<std::string> degenerate_tasks(const store::Results& results) {
  std::set<std::string> tasks;
  for (const store::TaskRow& task : results.tasks)
    if (!task.degenerate.empty()) tasks.insert(task.id);
  return tasks;
}

std::vector<EvaluationRow> evaluation_rows(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::tuple<std::size_t, int, std::string>, std::vector<const store::SampleRow*>> cells;
  for (const store::SampleRow* sample : counted_draws(results))
    cells[{order.place(sample->stage, sample->hash8), group_rank(sample->group), sample->group}].push_back(
        sample);
  std::vector<EvaluationRow> rows;
  const Measured measured(results);
  for (const auto& [key, samples] : cells) rows.push_back(summarise(samples, measured));
  return rows;
}

std::vector<RoundRow> round_rows(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::size_t, std::map<std::int64_t, Draws>> stages;
  for (const store::SampleRow* sample : counted_draws(results))
    stages[order.place(sample->stage, sample->hash8)][sample->round].push_back(sample);
  std::vector<RoundRow> rows;
  const Measured measured(results);
  for (const auto& [place, rounds] : stages) {
    if (rounds.size() < 2) continue;
    const std::size_t at_once = (rounds.size() + kMostRoundRows - 1) / kMostRoundRows;
    for (auto it = rounds.begin(); it != rounds.end();) {
      RoundRow row{it->first, it->first, {}};
      Draws samples;
      for (std::size_t i = 0; i < at_once && it != rounds.end(); ++i, ++it) {
        row.last = it->first;
        samples.insert(samples.end(), it->second.begin(), it->second.end());
      }
      row.figures = summarise(samples, measured);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<VerdictCounts> verdict_counts(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::size_t, VerdictCounts> counts;
  const auto count = [&](std::size_t place, const std::string& verdict) {
    VerdictCounts& row = counts[place];
    std::tie(row.stage, row.hash8) = order.at(place);
    ++row.counts[verdict];
  };
  std::set<std::size_t> sampled;
  for (const store::SampleRow& sample : results.generated) {
    const std::size_t place = order.place(sample.stage, sample.hash8);
    sampled.insert(place);
    count(place, sample.verdict);
  }
  const auto count_unsampled = [&](const auto& row, const std::string& verdict) {
    const std::size_t place = order.place(row.stage, row.hash8);
    if (!sampled.contains(place)) count(place, verdict);
  };
  for (const store::CompileRow& compile : results.compiles)
    if (compile.verdict != to_string(Verdict::kOk)) count_unsampled(compile, compile.verdict);
  for (const store::MeasurementRow& m : results.measurements)
    count_unsampled(m, std::string(to_string(m.value.verdict)));
  std::vector<VerdictCounts> rows;
  for (auto& [place, row] : counts) rows.push_back(std::move(row));
  return rows;
}

namespace {

std::vector<std::int64_t> samples_of(const store::MeasurementRow& row, const std::vector<std::int64_t>& all) {
  const auto size = static_cast<std::int64_t>(all.size());
  if (row.sample_begin < 0 || row.sample_count < 0 || row.sample_count > size - row.sample_begin) return {};
  return {all.begin() + row.sample_begin, all.begin() + row.sample_begin + row.sample_count};
}

// The last correct measurement of the same program on the same kind of device by a later stage; `row` where
// no stage measured it again.
const store::MeasurementRow& last_of_program(const store::Results& results,
                                             const store::MeasurementRow& row) {
  const store::MeasurementRow* last = &row;
  for (const store::MeasurementRow* other = &row + 1;
       other < results.measurements.data() + results.measurements.size(); ++other)
    if (other->value.verdict == Verdict::kOk && other->value.task == row.value.task &&
        other->value.candidate == row.value.candidate && other->value.speedup > 0 &&
        std::tie(other->stage, other->hash8) != std::tie(row.stage, row.hash8) &&
        kind_of(results, *other) == kind_of(results, row))
      last = other;
  return *last;
}

void take_figures(const store::Results& results, const store::MeasurementRow& row,
                  const HostBoundTasks& host_bound, BestKernel& kernel) {
  const Measurement& m = row.value;
  kernel.candidate = m.candidate;
  kernel.stage = row.stage;
  kernel.hash8 = row.hash8;
  kernel.speedup = m.speedup;
  kernel.low = m.speedup_low;
  kernel.high = m.speedup_high;
  kernel.baseline_ns = m.baseline_ns;
  kernel.candidate_ns = m.candidate_ns;
  kernel.imprecise = m.imprecise;
  kernel.direction = direction_words(row, results.samples);
  kernel.samples = samples_of(row, results.samples);
  kernel.divided = m.baseline_ratio > 0;
  kernel.shape = shape_text(m.shape);
  kernel.roofline_share = roofline_share(m);
  kernel.roofline_bound = m.roofline_bound;
  static_cast<CodeFacts&>(kernel) = m;
  kernel.candidate_event_ns = m.candidate_event_ns;
  kernel.host_bound = host_bound.holds(row);
  kernel.baseline = m.baseline;
  kernel.over = compare_with_baselines(results, row);
}

}  // namespace

std::vector<BestKernel> best_kernels(const store::Results& results) {
  std::map<std::string, BestKernel> best;
  std::map<std::string, const store::MeasurementRow*> fastest;
  std::map<std::string, double> fastest_novel;
  const Authors authors(results);
  const HostBoundTasks host_bound(results);
  for (const store::TaskRow& task : results.tasks) best[task.id].task = task.id;
  for (const store::MeasurementRow& row : results.measurements) {
    const Measurement& m = row.value;
    BestKernel& kernel = best[m.task];
    kernel.task = m.task;
    ++kernel.tried;
    if (m.verdict != Verdict::kOk) continue;
    ++kernel.correct;
    kernel.win = kernel.win || stats::is_win(m.speedup_low);
    if (authors.is_models(m.candidate) && over_eager_of(m) > fastest_novel[m.task]) {
      fastest_novel[m.task] = over_eager_of(m);
      kernel.novel_candidate = m.candidate;
      kernel.novel_speedup = last_of_program(results, row).value.speedup;
    }
    const store::MeasurementRow*& first = fastest[m.task];
    if (m.speedup > 0 && (first == nullptr || over_eager_of(m) > over_eager_of(first->value))) first = &row;
  }
  for (const auto& [task, row] : fastest)
    if (row != nullptr) take_figures(results, last_of_program(results, *row), host_bound, best[task]);
  std::map<std::string, const store::CandidateRow*> candidates;
  for (const store::CandidateRow& candidate : results.candidates) candidates[candidate.id] = &candidate;
  for (const store::TaskRow& task : results.tasks) {
    best[task.id].reference = task.reference;
    best[task.id].degenerate = task.degenerate;
  }
  std::vector<BestKernel> rows;
  for (auto& [task, kernel] : best) {
    if (const auto it = candidates.find(kernel.candidate); it != candidates.end()) {
      kernel.source = it->second->source;
      kernel.origin = it->second->origin;
      kernel.author_stage = it->second->stage;
    }
    if (const auto it = candidates.find(kernel.novel_candidate); it != candidates.end())
      kernel.novel_stage = it->second->stage;
    kernel.novel = !kernel.candidate.empty() && kernel.candidate == kernel.novel_candidate;
    kernel.any_models = authors.any_models();
    rows.push_back(std::move(kernel));
  }
  return rows;
}

namespace {

Headline headline_of(const std::vector<BestKernel>& best, bool with_host_bound) {
  Headline h;
  std::vector<double> speedups, over_best;
  stats::WinCount count;
  for (const BestKernel& kernel : best) {
    if (!(kernel.speedup > 0)) continue;
    if (!kernel.degenerate.empty()) {
      ++h.degenerate;
      continue;
    }
    if (kernel.host_bound && !with_host_bound) {
      ++h.host_bound;
      continue;
    }
    speedups.push_back(kernel.speedup);
    count.add(kernel.win, kernel.speedup);
    h.by_model += kernel.novel;
    if (kernel.over.all.size() > 1 && kernel.over.over_best) {
      if (kernel.over.missing.empty())
        over_best.push_back(kernel.over.over_best->value);
      else
        ++h.lacking;
    }
    if (std::find(h.baselines.begin(), h.baselines.end(), kernel.baseline) == h.baselines.end())
      h.baselines.push_back(kernel.baseline);
  }
  if (!over_best.empty()) h.over_best_baseline = stats::geometric_mean(over_best);
  if (speedups.empty()) return h;
  h.tasks = count.of;
  h.geometric_mean = stats::geometric_mean(speedups);
  h.median = stats::median(speedups);
  h.mean = stats::mean(speedups);
  h.wins = count.win_share();
  h.above = count.above_share();
  return h;
}

}  // namespace

Headline headline(const std::vector<BestKernel>& best) { return headline_of(best, false); }

std::optional<Headline> headline_with_host_bound(const std::vector<BestKernel>& best) {
  if (headline(best).host_bound == 0) return std::nullopt;
  return headline_of(best, true);
}

}  // namespace warpsmith::report

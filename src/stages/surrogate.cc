#include "surrogate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <variant>

#include "warpsmith/base/random.h"
#include "warpsmith/method/program_features.h"
#include "warpsmith/stats/boosted_trees.h"
#include "warpsmith/stats/rank.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::stages {

namespace {

bool has_speed(const Known& known) {
  return known.measurement.verdict == Verdict::kOk && known.measurement.speedup > 0;
}

// What is known before a measurement, too: the compiler's record of other tiers has less than a measurement.
CodeFacts facts_before(const Known& known) {
  const CodeFacts& measured = known.measurement;
  if (known.candidate.tier == Tier::kPlan) return measured;
  CodeFacts facts;
  facts.tensor_cores = measured.tensor_cores;
  return facts;
}

Json correlation_of(const std::vector<double>& guessed, const std::vector<double>& measured) {
  const auto rho = stats::rank_correlation(guessed, measured);
  return rho ? Json(*rho) : Json();
}

}  // namespace

double skip_of(const workflow::StageSpec& spec) {
  if (const auto* s = std::get_if<workflow::ContrastiveSettings>(&spec.settings)) return s->skip;
  if (const auto* s = std::get_if<workflow::SelfSupervisedSettings>(&spec.settings)) return s->skip;
  return 0;
}

const std::vector<double>& Surrogate::features_of(const Candidate& candidate, const CodeFacts& code) {
  const auto [it, fresh] = features_.try_emplace(candidate.id);
  if (fresh) it->second = method::program_features(candidate, code);
  return it->second;
}

// The features, and how far each is from what is usual for the task.
std::vector<double> Surrogate::row_of(const std::vector<double>& features, const TaskFigures& task) const {
  std::vector<double> row = features;
  for (std::size_t i = 0; i < features.size(); ++i) row.push_back(features[i] - task.features[i]);
  return row;
}

std::map<std::string, Surrogate::TaskFigures> Surrogate::tasks_of(const std::vector<const Known*>& right) {
  std::map<std::string, std::vector<const Known*>> by_task;
  for (const Known* k : right) by_task[k->candidate.task].push_back(k);
  std::map<std::string, TaskFigures> out;
  for (const auto& [name, programs] : by_task) {
    TaskFigures& task = out[name];
    std::vector<double> speeds;
    for (const Known* k : programs) {
      speeds.push_back(std::log(k->measurement.speedup));
      const std::vector<double>& features = features_of(k->candidate, facts_before(*k));
      task.features.resize(features.size());
      for (std::size_t i = 0; i < features.size(); ++i)
        task.features[i] += features[i] / static_cast<double>(programs.size());
    }
    task.median = stats::median(speeds);
    task.best = *std::max_element(speeds.begin(), speeds.end());
  }
  return out;
}

std::vector<Surrogate::Guess> Surrogate::guess(const std::vector<Compiled>& compiled, const Verdicts& known) {
  std::vector<const Known*> right;
  for (const auto& [id, k] : known)
    if (has_speed(k)) right.push_back(&k);
  learned_from_ = right.size();
  if (right.size() < kFewestToLearnFrom) {
    note_ = fmt::format("{} right programs are measured, fewer than {}: nothing was skipped", right.size(),
                        kFewestToLearnFrom);
    return {};
  }
  note_.clear();
  const std::map<std::string, TaskFigures> tasks = tasks_of(right);
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
  for (const Known* k : right) {
    const TaskFigures& task = tasks.at(k->candidate.task);
    rows.push_back(row_of(features_of(k->candidate, facts_before(*k)), task));
    targets.push_back(std::log(k->measurement.speedup) - task.median);
  }
  const stats::BoostedTrees model(rows, targets);
  std::vector<Guess> guesses;
  for (const Compiled& c : compiled) {
    const auto task = tasks.find(c.candidate.task);
    if (task == tasks.end()) continue;
    Guess& g = guesses.emplace_back();
    g.id = c.candidate.id;
    g.task = c.candidate.task;
    g.guessed = model.predict(row_of(features_of(c.candidate, c.code), task->second));
    g.median = task->second.median;
    g.best = task->second.best;
  }
  return guesses;
}

std::set<std::string> Surrogate::choose(const JobResult& compilation, const std::vector<Compiled>& compiled,
                                        const Verdicts& known) {
  std::vector<Guess> guesses = guess(compiled, known);
  std::sort(guesses.begin(), guesses.end(), [](const Guess& a, const Guess& b) {
    return std::tie(a.guessed, a.id) < std::tie(b.guessed, b.id);
  });
  auto slow = static_cast<std::size_t>(share_ * static_cast<double>(guesses.size()) + 1e-9);
  if (slow > 0 && guesses.front().guessed == guesses.back().guessed) {
    slow = 0;
    note_ = "all programs are predicted to be equally fast: nothing was skipped";
  }
  std::vector<std::size_t> order(slow);
  for (std::size_t i = 0; i < slow; ++i) order[i] = i;
  Random random(random_key({spec_.seed, name_key(spec_.name), static_cast<std::uint64_t>(compilation.round),
                            name_key(compilation.job), name_key("blind")}));
  shuffle(order, random);
  const auto blind =
      static_cast<std::size_t>(std::max(1LL, std::llround(kBlindShare * static_cast<double>(slow))));
  std::set<std::string> skipped;
  for (std::size_t i = 0; i < slow; ++i) {
    Guess& g = guesses[order[i]];
    (i < blind ? g.blind : g.skipped) = true;
    if (g.skipped) skipped.insert(g.id);
  }
  skipped_.insert(skipped.begin(), skipped.end());
  round_.insert(round_.end(), guesses.begin(), guesses.end());
  return skipped;
}

Json Surrogate::figures(const std::vector<Guess>& guesses) const {
  std::uint64_t skipped = 0, blind = 0, judged = 0, lost = 0;
  std::vector<double> guessed, measured, blind_guessed, blind_measured;
  for (const Guess& g : guesses) {
    skipped += g.skipped ? 1 : 0;
    blind += g.blind ? 1 : 0;
    judged += g.blind && g.judged ? 1 : 0;
    lost += g.lost ? 1 : 0;
    if (!g.measured) continue;
    guessed.push_back(g.guessed);
    measured.push_back(*g.measured);
    if (!g.blind) continue;
    blind_guessed.push_back(g.guessed);
    blind_measured.push_back(*g.measured);
  }
  Json out = {{"learned_from", learned_from_},
              {"guessed", guesses.size()},
              {"skipped", skipped},
              {"blind", blind},
              {"right", measured.size()},
              {"blind_right", blind_measured.size()},
              {"lost", lost}};
  if (const Json rho = correlation_of(guessed, measured); !rho.is_null()) out["rank_correlation"] = rho;
  if (const Json rho = correlation_of(blind_guessed, blind_measured); !rho.is_null())
    out["blind_rank_correlation"] = rho;
  if (judged > 0) out["lost_share"] = static_cast<double>(lost) / static_cast<double>(judged);
  return out;
}

Json Surrogate::end_round(int round, const Verdicts& known) {
  std::vector<double> speeds;
  for (Guess& g : round_) {
    const Known& k = known.at(g.id);
    g.judged = k.measurement.verdict != Verdict::kNotMeasured;
    if (!has_speed(k)) continue;
    g.measured = std::log(k.measurement.speedup) - g.median;
    speeds.push_back(*g.measured);
  }
  const double middle = speeds.empty() ? 0 : stats::median(speeds);
  for (Guess& g : round_)
    g.lost = g.blind && g.measured && (*g.measured > g.best - g.median || *g.measured > middle);
  Json out = figures(round_);
  if (!note_.empty()) out["note"] = note_;
  rounds_.push_back(out);
  rounds_.back()["round"] = round;
  ended_.insert(ended_.end(), round_.begin(), round_.end());
  round_.clear();
  note_.clear();
  return out;
}

Json Surrogate::summary() const {
  Json out = figures(ended_);
  out["rounds"] = rounds_;
  return out;
}

}  // namespace warpsmith::stages

#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "warpsmith/base/random.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kRepeatability = 1.10;  // a score against its re-measurement
constexpr double kErrorsApart = 2;       // standard errors of the baseline's median that are laid on top

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ratio_apart(double a, double b) { return std::max(a, b) / std::min(a, b); }

std::vector<double> to_doubles(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

Measurement blank_measurement(const Settings& settings, const task::Task& task,
                              const std::string& candidate) {
  Measurement m;
  m.candidate = candidate;
  m.task = task.id;
  m.baseline = settings.baseline;
  m.math = task::math_of(task, settings.math);
  for (const std::string& name : task.dims) m.shape.emplace_back(name, task.timing.front().at(name));
  return m;
}

PairSettings pair_settings(const Settings& settings, const std::string& task, const std::string& candidate,
                           int attempt) {
  PairSettings pairs;
  pairs.protocol = settings.protocol;
  pairs.budget_s = settings.budget_s;
  pairs.key =
      random_key({settings.seed, name_key(task), name_key(candidate), static_cast<std::uint64_t>(attempt)});
  pairs.now = seconds_now;
  return pairs;
}

std::optional<task::LaunchPlan> plan_of(const Candidate& candidate, const task::Task& task, Measurement& m) {
  Diagnostics diagnostics;
  task::LaunchPlan plan =
      task::LaunchPlan::parse(candidate.source(), task, candidate.files.front().path, diagnostics);
  if (diagnostics.empty()) return plan;
  m.verdict = Verdict::kCompileError;
  m.detail = to_string(diagnostics.front());
  return std::nullopt;
}

bool write_checks(const CheckOutcome& outcome, const task::Task& task, Oracle& oracle,
                  const std::vector<CheckCase>& cases, Measurement& m) {
  m.verdict = outcome.verdict;
  m.detail = outcome.detail;
  m.only_hidden = outcome.only_hidden;
  m.max_error = outcome.max_error;
  m.error_bound = outcome.error_bound;
  m.without_float64 = oracle.without_float64();
  if (outcome.verdict == Verdict::kOk && outcome.decided == 0)
    throw Error(
        "task " + task.id + ": no check can be decided: " + oracle.asked(cases.front()).undecidable_because,
        kExitUsage);
  return outcome.verdict == Verdict::kOk;
}

Timing judge(const Settings& settings, PairResult pairs, int calls) {
  Timing timing;
  timing.calls = calls;
  timing.pairs = std::move(pairs);
  if (timing.pairs.verdict != Verdict::kOk) return timing;
  const std::vector<double> ratios = stats::log_ratios(timing.pairs.baseline_ns, timing.pairs.candidate_ns);
  timing.score = stats::score_of(ratios, settings.protocol);
  // More rounds would not make this narrower: there are only so many places.
  for (const std::vector<int>* places : {&timing.pairs.baseline_places, &timing.pairs.candidate_places})
    timing.score.half_width = std::max(timing.score.half_width, stats::grouped_half_width(ratios, *places));
  return timing;
}

void charge(const Settings& settings, double ns, Timing& timing) {
  const std::int64_t more = std::llround(ns);
  if (more <= 0) return;
  for (std::int64_t& each : timing.pairs.candidate_ns) each += more;
  Timing charged = judge(settings, std::move(timing.pairs), timing.calls);
  timing.pairs = std::move(charged.pairs);
  timing.score = charged.score;
}

void write_score(const Settings& settings, const Timing& timing, Measured& out) {
  Measurement& m = out.measurement;
  m.speedup = timing.score.speedup();
  m.speedup_rounded = stats::round_toward_one(m.speedup);
  m.speedup_low = timing.score.low();
  m.speedup_high = timing.score.high();
  m.imprecise = timing.pairs.gave_up || timing.score.half_width > settings.protocol.target;
  m.baseline_ns = stats::median(to_doubles(timing.pairs.baseline_ns));
  m.candidate_ns = stats::median(to_doubles(timing.pairs.candidate_ns));
  m.variance = timing.score.variance;
  m.rounds = timing.score.rounds;
  m.batch = timing.calls;
  out.samples = timing.pairs.baseline_ns;
  out.samples.insert(out.samples.end(), timing.pairs.candidate_ns.begin(), timing.pairs.candidate_ns.end());
}

void drop_score(Measured& out) {
  Measurement& m = out.measurement;
  m.speedup = m.speedup_rounded = m.speedup_low = m.speedup_high = 0;
  m.rounds = 0;
  m.imprecise = false;
  out.samples.clear();
}

bool baseline_agrees(const Timing& timing, double most) {
  const double error = stats::median_error(to_doubles(timing.pairs.baseline_ns)) / timing.pair_ns;
  return ratio_apart(timing.pair_ns, timing.alone_ns) <=
         most + kErrorsApart * std::hypot(error, timing.alone_error);
}

bool slow_all_the_same(const Timing& timing) {
  constexpr double kColdProcessor = 1.15;
  return timing.score.high() < 1 && timing.pair_ns > timing.alone_ns &&
         timing.pair_ns < kColdProcessor * timing.alone_ns;
}

bool turns_agree(const Turns& turns, double speedup, double most) {
  constexpr double kMostError = 0.02;  // that the scatter of turns may explain
  std::vector<double> ratios, scores;
  for (std::size_t i = 0; i < turns.alone_ns.size(); ++i) {
    ratios.push_back(std::log(turns.beside_ns[i] / turns.alone_ns[i]));
    scores.push_back(turns.beside_ns[i] / turns.others_ns[i]);
  }
  const double error = std::min(kMostError, kErrorsApart * stats::median_error(ratios));
  return std::abs(stats::median(ratios)) <= std::log(most) + error &&
         speedup <= kTurnsApart * stats::median(scores);
}

Timing failed_timing(const Ran& run) {
  Timing timing;
  timing.pairs.verdict = run.verdict;
  timing.pairs.detail = run.detail;
  return timing;
}

bool write_failure(const Timing& timing, Measurement& m) {
  if (timing.pairs.verdict == Verdict::kOk) return false;
  m.verdict = timing.pairs.verdict;
  m.detail = timing.pairs.detail;
  m.hack = timing.hack;
  return true;
}

void write_clock(const Timing& timing, Measurement& m) {
  if (timing.event_ns) m.candidate_event_ns = timing.event_ns;
  if (timing.own_share) m.own_share = timing.own_share;
  if (!timing.clock_facts.empty()) m.clock = timing.clock_facts;
}

bool steady(const Settings& settings, const Timing& timing) {
  return timing.pairs.gave_up || timing.score.variance <= stats::variance_gate(settings.protocol);
}

bool stable(const Settings& settings, const Timing& timing, Measurement& m) {
  if (!steady(settings, timing)) {
    m.verdict = Verdict::kUnstable;
    m.detail = fmt::format("the variance between buckets is {:.2g}, over {:.2g}", timing.score.variance,
                           stats::variance_gate(settings.protocol));
  }
  return m.verdict == Verdict::kOk;
}

bool looks_too_good(const Settings& settings, const Measurement& m) {
  const auto best = settings.best.find(m.task);
  return m.speedup > settings.remeasure_above * settings.ratio_of(m.task) ||
         (best != settings.best.end() && best->second > 0 &&
          m.speedup > settings.remeasure_over_best * best->second);
}

std::string baseline_words(const Timing& timing) {
  return fmt::format("the baseline takes {:.0f} ns beside the candidate and {:.0f} ns alone", timing.pair_ns,
                     timing.alone_ns);
}

std::string too_fast_words(double candidate_ns, double floor_ns, const std::string& must) {
  return fmt::format("{:.0f} ns a call; the bytes that it must {} take {:.0f} ns", candidate_ns, must,
                     floor_ns);
}

std::string clocks_disagree(double events_ns, double host_ns) {
  constexpr double kApart = 0.1, kGrainNs = 50e3;
  if (std::abs(events_ns - host_ns) <= kGrainNs + kApart * host_ns) return "";
  return fmt::format("the same calls took {:.0f} ns by CUDA's events and {:.0f} ns by the host's clock",
                     events_ns, host_ns);
}

void compare_scores(double before, double after, Measurement& m) {
  if (ratio_apart(before, after) <= kRepeatability) return;
  m.verdict = Verdict::kUnstable;
  m.detail =
      fmt::format("measured again: {:.2f}x, then {:.2f}x over eager, more than 10 % apart", before, after);
}

void add_costs(Measurement& m, const Measurement& other) {
  const auto add = [](std::optional<double>& to, const std::optional<double>& more) {
    if (more) to = to.value_or(0) + *more;
  };
  m.seconds += other.seconds;
  add(m.gpu_held_s, other.gpu_held_s);
  add(m.gpu_timed_s, other.gpu_timed_s);
}

Measured second_opinion(const Measured& first, Measured second) {
  const Measurement& before = first.measurement;
  const auto join = [&](Measurement& m, const Measurement& other) {
    m.remeasured = before.remeasured + 1;
    add_costs(m, other);
    m.rounds_thrown_away += other.rounds_thrown_away;
  };
  const std::string again = std::exchange(second.again, "");
  if (first.again == kAgainForBaseline) {
    Measurement& m = second.measurement;
    const auto slowed = [](const Measurement& one) {
      return one.baseline_ns > one.baseline_alone_ns.value_or(0);
    };
    join(m, before);
    if (again != kAgainForBaseline) {
      second.again = again;
    } else if (m.verdict == Verdict::kUnstable && slowed(before) && slowed(m)) {
      m.verdict = Verdict::kHack;
      m.hack = "slowed_baseline";
      m.detail = fmt::format("{}; before that, in another process, {:.0f} ns and {:.0f} ns", m.detail,
                             before.baseline_ns, before.baseline_alone_ns.value_or(0));
    }
    return second;
  }
  if (again == kAgainForBaseline && before.remeasured == 0) {
    // Its own first disagreement: the score is still to be repeated.
    Measured out = first;
    join(out.measurement, second.measurement);
    return out;
  }
  const double earlier = before.speedup;
  Measured out = std::move(second);
  if (out.measurement.verdict == Verdict::kOk) {
    const double later = out.measurement.speedup;
    if (earlier < later) {
      Measured lower = first;
      lower.again.clear();
      join(lower.measurement, out.measurement);
      compare_scores(earlier, later, lower.measurement);
      lower.measurement.speedup_before = earlier;
      return lower;
    }
    compare_scores(earlier, later, out.measurement);
  }
  join(out.measurement, before);
  out.measurement.speedup_before = earlier;
  return out;
}

}  // namespace warpsmith::measure

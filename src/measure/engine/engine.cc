#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "timing/roofline.h"

namespace warpsmith::measure {

Engine::Engine(Settings& settings, const Settings& by_clock, EngineDevice& device, EngineRules rules)
    : settings_(settings), by_clock_(by_clock), device_(device), rules_(std::move(rules)) {}

Timing Engine::time(Arm& baseline, Arm& candidate, PairSettings pairs, Measurement& m) {
  device_.watch_rounds(pairs);
  if (!m.gpu_before) m.gpu_before = device_.state_now();
  const int calls = pairs.candidate_calls > 0 ? pairs.candidate_calls : pairs.calls;
  device_.begin_to_watch_others();
  PairResult result = time_pairs(baseline, candidate, pairs);
  if (const std::string others = device_.others_seen(); !others.empty() && result.verdict == Verdict::kOk) {
    const int rounds = static_cast<int>(result.candidate_ns.size());
    result = {};
    result.verdict = Verdict::kNotMeasured;
    result.detail = others + ": " + std::to_string(rounds) + " rounds were thrown away";
    result.rounds_thrown_away = rounds;
  }
  Timing timing = judge(by_clock_, std::move(result), calls);
  if (pairs.candidate_calls > 0) timing.clock_facts["baseline_batch"] = std::to_string(pairs.calls);
  m.gpu_after = device_.state_now();
  m.rounds_thrown_away += timing.pairs.rounds_thrown_away;
  return timing;
}

bool Engine::agrees(const Timing& timing) const {
  return timing.baseline_agrees || (rules_.slow_baseline_may_pass && slow_all_the_same(timing));
}

bool Engine::accept(const Timing& timing, Measured& out) {
  Measurement& m = out.measurement;
  // Of a failed one only where its clock was read to the end: it may follow one that was accepted.
  if (timing.pairs.verdict == Verdict::kOk || timing.event_ns) write_clock(timing, m);
  if (write_failure(timing, m)) return false;
  write_score(settings_, timing, out);
  m.verdict = Verdict::kOk;
  if (timing.alone_ns > 0) m.baseline_alone_ns = timing.alone_ns;
  const auto refuse = [&](Verdict verdict, std::string why) {
    m.verdict = verdict;
    m.detail = std::move(why);
    return false;
  };
  const double floor_ns = device_.floor_ns(m.candidate_ns);
  device_.write_roofline(m);
  if (m.candidate_ns < floor_ns)
    return refuse(Verdict::kTooFast, too_fast_words(m.candidate_ns, floor_ns, rules_.compulsory));
  if (!agrees(timing)) return refuse(Verdict::kUnstable, baseline_words(timing));
  if (!timing.clocks.empty()) return refuse(Verdict::kUnstable, timing.clocks);
  m.imprecise = m.imprecise || !timing.baseline_agrees;
  return stable(by_clock_, timing, m);
}

Timing Engine::afresh(Contender& contender, Measurement& m) {
  ++m.remeasured;
  m.hack.clear();
  return contender.time_afresh(m);
}

Timing Engine::without_doubt(Contender& contender, Timing timing, Measurement& m) {
  int found = 0;
  for (int times = 1; rules_.most_timings > 1; ++times) {
    const bool beside_clock = timing.pairs.verdict == Verdict::kHack && timing.beside_clock;
    const bool doubtful = timing.pairs.verdict == Verdict::kOk &&
                          !(agrees(timing) && (!rules_.doubts_buckets || steady(by_clock_, timing)));
    if (!(beside_clock && ++found == 1) && !(doubtful && times < rules_.most_timings)) break;
    timing = afresh(contender, m);
  }
  return timing;
}

void Engine::measure(Contender& contender, Measured& out) {
  Measurement& m = out.measurement;
  const bool elsewhere = rules_.most_timings == 1;
  const Timing timing = without_doubt(contender, contender.time(m), m);
  if (elsewhere && timing.pairs.verdict == Verdict::kOk && !timing.baseline_agrees)
    out.again = kAgainForBaseline;
  if (!accept(timing, out)) return;
  const bool too_good = looks_too_good(settings_, m) || beats_its_flops(m);
  if (too_good && elsewhere) {
    out.again = kAgainForScore;
  } else if (too_good) {
    const double before = m.speedup;
    m.speedup_before = before;
    const Timing second = without_doubt(contender, afresh(contender, m), m);
    const bool lower = second.pairs.verdict != Verdict::kOk || second.score.speedup() < before;
    if (accept(lower ? second : timing, out) && second.pairs.verdict == Verdict::kOk)
      compare_scores(before, second.score.speedup(), m);
  }
  if (m.verdict == Verdict::kOk && !elsewhere) {
    double& best = settings_.best[m.task];
    best = std::max(best, m.speedup);
  }
}

}  // namespace warpsmith::measure

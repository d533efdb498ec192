#include "warpsmith/measure/pairs.h"

#include <algorithm>

#include "warpsmith/base/random.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kBudgetsAtMost = 3;

// Nanoseconds a call; at least 1, as its logarithm is taken.
std::int64_t per_call(std::int64_t elapsed_ns, int calls) {
  return std::max<std::int64_t>(1, (elapsed_ns + calls / 2) / calls);
}

class Pairing {
 public:
  Pairing(Arm& baseline, Arm& candidate, const PairSettings& settings)
      : baseline_(baseline),
        candidate_(candidate),
        settings_(settings),
        random_(random_key({settings.key, 1})),
        begin_(settings.now()) {}

  PairResult take() {
    baseline_.begin(random_key({settings_.key, 9}));
    candidate_.begin(random_key({settings_.key, 10}));
    if (!warm_up()) return std::move(result_);
    look();
    const stats::Protocol& protocol = settings_.protocol;
    for (;;) {
      const int taken = static_cast<int>(result_.candidate_ns.size());
      const int wanted = stats::next_look(taken, protocol);
      while (static_cast<int>(result_.candidate_ns.size()) < wanted) {
        if (out_of_time()) {
          look();
          finish_early();
          return std::move(result_);
        }
        if (!round()) return std::move(result_);
        if (settings_.now() - looked_ >= settings_.look_every_s) look();
        if (wanted == stats::next_look(0, protocol) &&
            static_cast<int>(result_.candidate_ns.size()) < wanted && gives_up())
          return std::move(result_);
      }
      if (stats::narrow_enough(ratios(), protocol) && look()) return std::move(result_);
      if (gives_up()) return std::move(result_);
    }
  }

 private:
  double elapsed() const { return settings_.now() - begin_; }
  int calls(bool of_candidate) const {
    return of_candidate && settings_.candidate_calls > 0 ? settings_.candidate_calls : settings_.calls;
  }
  std::vector<double> ratios() const { return stats::log_ratios(result_.baseline_ns, result_.candidate_ns); }
  // A short measurement may end before its first comparison in full: the last round's values are still there.
  bool gives_up() {
    result_.gave_up = stats::slow_enough(ratios(), settings_.protocol) && look();
    if (result_.gave_up) see_one();
    return result_.gave_up;
  }
  void see_one() {
    if (compared_ == 0 && settings_.inspections > 0 && inspect_one()) stop_short();
  }

  // False where the rounds since the last look had to be thrown away.
  bool look() {
    if (!settings_.disturbed) return true;
    const bool was_disturbed = disturbed_;
    disturbed_ = settings_.disturbed();
    looked_ = settings_.now();
    const std::size_t taken = result_.candidate_ns.size();
    if (disturbed_ || was_disturbed) {
      result_.rounds_thrown_away += static_cast<int>(taken - undisturbed_);
      result_.baseline_ns.resize(undisturbed_);
      result_.candidate_ns.resize(undisturbed_);
      result_.baseline_places.resize(undisturbed_);
      result_.candidate_places.resize(undisturbed_);
    }
    undisturbed_ = result_.candidate_ns.size();
    return undisturbed_ == taken;
  }

  // Each bucket gets one round whatever the budget says, short of three budgets.
  bool out_of_time() const {
    const bool some = static_cast<int>(result_.candidate_ns.size()) >= settings_.protocol.buckets;
    return elapsed() > settings_.budget_s * (some ? 1 : kBudgetsAtMost);
  }

  void finish_early() {
    const std::size_t buckets = static_cast<std::size_t>(settings_.protocol.buckets);
    const std::size_t whole = result_.candidate_ns.size() / buckets * buckets;
    result_.baseline_ns.resize(whole);
    result_.candidate_ns.resize(whole);
    result_.baseline_places.resize(whole);
    result_.candidate_places.resize(whole);
    result_.budget_ended = true;
    if (whole == 0 && result_.rounds_thrown_away > 0) {
      result_.verdict = Verdict::kNotMeasured;
      result_.detail = "the device was disturbed: " + std::to_string(result_.rounds_thrown_away) +
                       " rounds were thrown away, and too few were left";
    } else if (whole == 0) {
      result_.verdict = Verdict::kTimeout;
      result_.detail =
          "too slow to be timed: the time for a measurement ended before one round a bucket was taken";
    } else {
      result_.gave_up = stats::slow_enough(ratios(), settings_.protocol, true);
      see_one();
    }
  }

  bool failed(const Arm::Run& run) {
    if (run.verdict == Verdict::kOk) return false;
    result_.verdict = run.verdict;
    result_.detail = run.detail;
    return true;
  }

  // Maps and loads what a first call maps and loads.
  bool warm_up() {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t key = random_key({settings_.key, 2, static_cast<std::uint64_t>(i)});
      for (Arm* arm : {&baseline_, &candidate_}) {
        const int count = calls(arm == &candidate_);
        arm->renew(random_key({key, arm == &candidate_}), count);
        if (failed(arm->run(count))) return false;
      }
      if (failed(candidate_.inspect(i % calls(true)))) return false;
    }
    return true;
  }

  bool round() {
    // Values of a round that was thrown away do not come again.
    const std::uint64_t number =
        result_.candidate_ns.size() + static_cast<std::uint64_t>(result_.rounds_thrown_away);
    const std::uint64_t key = random_key({settings_.key, 3, number});
    const bool candidate_first = (random_() & 1) != 0;
    Arm::Run runs[2];  // baseline, candidate
    for (const bool is_candidate : {candidate_first, !candidate_first}) {
      Arm& arm = is_candidate ? candidate_ : baseline_;
      // Right before its run: of two arms that are renewed together, the second one's values lie warmer in
      // the shared cache, and its times come out up to 4 % shorter.
      arm.renew(random_key({key, is_candidate}), calls(is_candidate));
      runs[is_candidate] = arm.run(calls(is_candidate));
      if (failed(runs[is_candidate])) return false;
      // At once: a candidate that says it is done and goes on working is found with answers that are not
      // there.
      if (is_candidate && !inspect()) return false;
    }
    const int places[2] = {baseline_.place(), candidate_.place()};  // a look may take another
    if (full_now_ && !stop_short()) return false;
    result_.baseline_ns.push_back(per_call(runs[0].elapsed_ns, calls(false)));
    result_.candidate_ns.push_back(per_call(runs[1].elapsed_ns, calls(true)));
    result_.baseline_places.push_back(places[0]);
    result_.candidate_places.push_back(places[1]);
    return true;
  }

  // One round in each stretch is compared in full, drawn when the stretch begins; which of its calls, after
  // it. (Were each round drawn by itself, one measurement in 70 would get none.) Behind the round one more
  // row is stopped short. A call that looks unwritten is always looked at.
  bool inspect() {
    full_now_ = false;
    if (const std::optional<int> call = candidate_.unwritten(calls(true));
        call && failed(candidate_.inspect(*call)))
      return false;
    if (settings_.inspections <= 0) return true;
    const int first_look = stats::next_look(0, settings_.protocol);
    const bool later = rounds_ >= first_look;
    const int stretch =
        std::max(1, first_look / settings_.inspections) * (later ? std::max(1, settings_.fewer_later) : 1);
    const int place = (later ? rounds_ - first_look : rounds_) % stretch;
    ++rounds_;
    if (place == 0) full_at_ = static_cast<int>(random_.below(static_cast<std::uint64_t>(stretch)));
    full_now_ = place == full_at_;
    return !full_now_ || inspect_one();
  }
  int drawn(int below) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(below))); }
  bool inspect_one() {
    ++compared_;
    return !failed(candidate_.inspect(drawn(calls(true))));
  }
  bool stop_short() {
    const int count = calls(true);
    if (count < 2) return true;
    const std::uint64_t key = random_key({settings_.key, 8, static_cast<std::uint64_t>(compared_)});
    return !failed(candidate_.stop_short(key, count, 1 + drawn(count - 1)));
  }

  Arm& baseline_;
  Arm& candidate_;
  const PairSettings& settings_;
  Random random_;
  double begin_;
  double looked_ = 0;             // when settings_.disturbed was asked last …
  bool disturbed_ = false;        // … what it said …
  std::size_t undisturbed_ = 0;   // … and how many rounds had been kept then
  int rounds_ = 0, full_at_ = 0;  // full_at_: of this stretch, the round that is compared in full
  bool full_now_ = false;         // this one
  int compared_ = 0;              // rounds that were
  PairResult result_;
};

}  // namespace

PairResult time_pairs(Arm& baseline, Arm& candidate, const PairSettings& settings) {
  stats::check(settings.protocol);
  return Pairing(baseline, candidate, settings).take();
}

std::vector<double> time_alone(Arm& arm, int calls, int rounds, std::uint64_t key) {
  std::vector<double> times;
  arm.begin(random_key({key, 11}));
  for (int i = -1; i < rounds; ++i) {  // the first warms up
    arm.renew(random_key({key, 4, static_cast<std::uint64_t>(i + 1)}), calls);
    const Arm::Run run = arm.run(calls);
    if (i >= 0) times.push_back(static_cast<double>(per_call(run.elapsed_ns, calls)));
  }
  return times;
}

std::vector<double> time_beside(Arm& arm, Arm& other, RowCalls calls, int rounds, std::uint64_t key,
                                Arm::Run* failed, std::vector<double>* others) {
  std::vector<double> times;
  arm.begin(random_key({key, 12}));
  other.begin(random_key({key, 13}));
  Arm::Run last;                                                       // of the other
  for (int i = -1; i < rounds && last.verdict == Verdict::kOk; ++i) {  // the first warms up
    const std::uint64_t round = static_cast<std::uint64_t>(i + 1);
    const auto run_other = [&] {
      other.renew(random_key({key, 6, round}), calls.others);
      last = other.run(calls.others);
      if (i >= 0 && others != nullptr)
        others->push_back(static_cast<double>(per_call(last.elapsed_ns, calls.others)));
    };
    if (i % 2 == 0) run_other();
    arm.renew(random_key({key, 5, round}), calls.own);
    const Arm::Run run = arm.run(calls.own);
    if (i % 2 != 0) run_other();
    if (i >= 0) times.push_back(static_cast<double>(per_call(run.elapsed_ns, calls.own)));
  }
  if (failed != nullptr) *failed = last;
  return times;
}

Turns time_in_turns(Arm& arm, Arm& other, RowCalls calls, int turns, int rounds, std::uint64_t key) {
  Turns out;
  for (int turn = 0; turn < turns; ++turn) {
    const std::uint64_t here = random_key({key, 7, static_cast<std::uint64_t>(turn)});
    const double alone = stats::median(time_alone(arm, calls.own, rounds, here));
    std::vector<double> others;
    const std::vector<double> beside = time_beside(arm, other, calls, rounds, here, &out.failed, &others);
    if (out.failed.verdict != Verdict::kOk) return out;
    out.alone_ns.push_back(alone);
    out.beside_ns.push_back(stats::median(beside));
    out.others_ns.push_back(stats::median(others));
  }
  return out;
}

}  // namespace warpsmith::measure

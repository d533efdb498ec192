// The order of a measurement after its checks, the same on every device: time, compare with the baseline
// alone, judge, and time again what is doubtful or looks too good.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "timing/judge.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::measure {

// What an engine wants of the device that it measures on.
class EngineDevice {
 public:
  virtual ~EngineDevice() = default;
  // Asks that rounds around which the device was slowed down do not count.
  virtual void watch_rounds(PairSettings&) {}
  // From now on what other processes do there counts …
  virtual void begin_to_watch_others() {}
  // … and if some have worked there, this says so.
  virtual std::string others_seen() { return ""; }
  virtual std::optional<GpuState> state_now() { return std::nullopt; }
  // Lets others have the device while `work` runs, which does not touch it.
  virtual void without_device(const std::function<void()>& work) { work(); }
  // Nanoseconds that the task's compulsory bytes take at least. `candidate_ns`: a call that may be below
  // them.
  virtual double floor_ns(double candidate_ns) = 0;
  virtual void write_roofline(Measurement& m) = 0;
};

// A candidate that was found right, as the engine times it.
class Contender {
 public:
  virtual ~Contender() = default;
  // Times it against the baseline, and compares that with its time alone. `m` gets what else is found.
  virtual Timing time(Measurement& m) = 0;
  // The same in a process in which nothing of it has run yet.
  virtual Timing time_afresh(Measurement& m) = 0;
};

// What a kind of clock asks of a timing.
struct EngineRules {
  // The baseline in a pair and alone: not more times apart, beyond what their scatter explains.
  double agreement = 1.03;
  // What is doubtful is timed so often at most, each time in a fresh process. 1: who asked has it measured
  // again in another process (Measured::again).
  int most_timings = 1;
  // Where the buckets of a timing disagree, it is doubtful.
  bool doubts_buckets = false;
  // A baseline that is slower in the pair than alone is no doubt where the candidate is slower than both
  // (slow_all_the_same()).
  bool slow_baseline_may_pass = false;
  // "move", "read from memory": what a candidate must do with the compulsory bytes.
  std::string compulsory = "read from memory";
};

class Engine {
 public:
  // `settings.best` is written to. `by_clock`: the settings that times are judged by, where they are others.
  // All must outlive the engine.
  Engine(Settings& settings, const Settings& by_clock, EngineDevice& device, EngineRules rules);
  const EngineRules& rules() const { return rules_; }

  // One timing of a pair; the device's state around it goes to `m`.
  Timing time(Arm& baseline, Arm& candidate, PairSettings pairs, Measurement& m);
  // Writes the score, and a verdict where there is no good one; then false.
  bool accept(const Timing& timing, Measured& out);
  // A right candidate's score and verdict.
  void measure(Contender& contender, Measured& out);

 private:
  bool agrees(const Timing& timing) const;
  // Times again what is doubtful. What is found beside the clock twice is none of the machine's.
  Timing without_doubt(Contender& contender, Timing timing, Measurement& m);
  static Timing afresh(Contender& contender, Measurement& m);

  Settings& settings_;
  const Settings& by_clock_;
  EngineDevice& device_;
  EngineRules rules_;
};

}  // namespace warpsmith::measure

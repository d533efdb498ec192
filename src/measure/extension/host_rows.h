// The baseline by the host's clock, as candidates with host code are timed against it: what those of one task
// share beside their GpuBench.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "arms.h"
#include "engine/alone.h"
#include "gpu/bench.h"

namespace warpsmith::measure {

// How rows by the host's clock are taken. They are long against the clock's own scatter (some microseconds an
// interval) and what beside it is chance. They are so short that a host that is busy for a moment spoils few
// of many: launches take the host's time, and one side is half as fast for 10 to 100 ms now and then.
struct Pace {
  double row_ns;           // of either side
  int alone_rounds;        // of the baseline's time alone
  int turns, turn_rounds;  // where it is compared with the time in a pair (time_in_turns())
};
inline constexpr Pace kExtensionPace = {.row_ns = 2e6, .alone_rounds = 63, .turns = 9, .turn_rounds = 15};
// The first calls of a row in Python take some 0.3 ms longer, for the processor's caches are empty.
inline constexpr Pace kPythonPace = {.row_ns = 4e6, .alone_rounds = 21, .turns = 5, .turn_rounds = 9};

inline constexpr int kFewestCalls = 2;  // of a row, unless one call is long

class HostRows {
 public:
  // Makes the baseline with room for rows of so many calls.
  using Make = std::function<std::unique_ptr<HostBaseline>(int most_calls)>;
  HostRows(const GpuHarness& harness, const GpuBench& task, const Pace& pace, std::uint64_t seed,
           const Make& make);
  HostBaseline& baseline() { return *baseline_; }
  int calls() const { return calls_; }            // of the baseline in a row …
  int room() const { return room_; }              // … and the most of them
  int most_calls() const { return most_calls_; }  // that there is room for
  // Calls for which either side's arm is made where a row has so many. It decides how many places there are:
  // a side with fewer of them meets less memory, and would be 1 % faster.
  int room_for(int calls) const;
  Alone& alone() { return alone_; }
  double estimated_row_ns() const { return row_ns_; }
  // What a call took in rows of few calls (few_calls()): with its share of what a row's beginning takes.
  double few_call_ns() const { return few_call_ns_; }
  int few_calls() const { return few_calls_; }
  // What the time that it took to make this went to, in seconds: "estimate 0.08, more calls 0.06, …".
  const std::string& spent() const { return spent_; }
  // HostBaseline::take_off_call()
  double call_overhead_ns() const { return call_overhead_ns_; }
  // Calls of rows that are as equally long as whole calls make them, the baseline's and the candidate's
  // (`own` and `others`), where one call takes so long. The candidate's row has `least` to `most` calls; the
  // baseline's has more than calls(), up to room(), beside a candidate that is slower.
  RowCalls calls_beside(double candidate_ns, double baseline_ns, int least, int most) const;
  // other_calls() of these.
  std::optional<RowCalls> other_calls_beside(RowCalls now, double candidate_ns, double baseline_ns, int least,
                                             int most) const;
  // Calls of either side that make a row, 1 to `most`, where one takes `call_ns`.
  static int calls_a_row(const Pace& pace, double call_ns, int most);

 private:
  double call_overhead_ns_ = 0, row_ns_ = 0, few_call_ns_ = 0;
  int few_calls_ = 1, calls_ = 1, room_ = 1, most_calls_ = 1;
  std::unique_ptr<HostBaseline> baseline_;
  std::string spent_;
  Alone alone_;
};

}  // namespace warpsmith::measure

// Timings of an earlier run in place of measuring (`run --replay-timings RUN`): for tests of everything but
// timing.
//
// A candidate that RUN has measured gets that record, verdict and score, as if it were measured now: the
// record is put into the shard's first attempt before the shard starts, so that the program finds it done. It
// is taken from the same stage where that stage measured it, else from the first stage (by name) that did.
// One that RUN has not seen is measured for its verdict, but what depends on the clock is made equal: the
// score is 1.00 and the verdicts `unstable` and `too_fast` become `ok`. So two replays with the same seed,
// threads and RUN take the same course, whatever the machine is doing.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "warpsmith/base/json.h"

namespace warpsmith::controller {

class ReplayTimings {
 public:
  // Reads every measure record below `run`. Throws Error where there is none.
  explicit ReplayTimings(const std::filesystem::path& run);

  // The record of `candidate`, for use in `stage`; null where RUN has none.
  const Json* find(const std::string& stage, const std::string& candidate) const;
  std::size_t size() const { return any_.size(); }

  // `record` of a candidate that RUN does not know, without what the clock said.
  static Json without_clock(Json record);

 private:
  std::map<std::pair<std::string, std::string>, Json> by_stage_;
  std::map<std::string, Json> any_;
};

}  // namespace warpsmith::controller

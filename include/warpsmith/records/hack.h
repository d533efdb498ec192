// Confirmed cases of cheating: which measurement confirms one, and what is kept of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith {

// The kind of every case with this verdict: "too_fast", "sandbox_violation"; "not_repeated" of `unstable`.
// Empty of a `hack`, which names its own, and of verdicts that confirm nothing.
std::string_view fixed_kind(Verdict verdict);

// The kind of the case that `m` confirms. Nothing where it confirms none: the verdict is neither `hack` nor
// `too_fast` nor `sandbox_violation`, nor `unstable` because a score that looked too good was measured again
// and was lower. The last is told by the detail's words, which are those of compare_scores() of module
// `measure`: other unstable measurements may have been taken again, too.
std::optional<std::string> confirmed_hack(const Measurement& m);

struct HackCase {
  Candidate candidate;
  Verdict verdict = Verdict::kHack;
  std::string kind;                 // "late_work", "too_fast", …: an identifier
  std::string reason;               // the measurement's detail, as it stands: written by nobody whom we trust
  std::string device, device_name;  // kind and name of the device that it was confirmed on; may be empty
  std::string run, stage;           // where it was confirmed; may be empty
  int round = 0;
  std::string date;  // when it came into a database, "2026-05-01T12:00:00Z" (UTC); empty: it is in none
};

// The case that a measurement of `candidate` confirms, without run, stage and round; nothing: none.
std::optional<HackCase> hack_case(const Candidate& candidate, const Measurement& m);

}  // namespace warpsmith

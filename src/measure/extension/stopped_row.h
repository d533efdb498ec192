// What the results of a row that was stopped short tell: how many of its calls the candidate had enqueued,
// and whether these are the calls that had been begun.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "warpsmith/measure/program.h"

namespace warpsmith::measure {

struct StoppedRow {
  int calls = 0;  // at least 2
  // Of calls from `begin` on the first whose results look unwritten; nothing where none does. Bad: something
  // was written to that is no result.
  std::function<Ran(int begin, std::optional<int>* call)> look;
  std::function<Ran(int call)> compare;  // with the right answer: kWrongOutput, or ok
};

// How many calls, from the first on, have results; of those that were begun (`said`, 0 to `calls`, as the
// child says) a result may look unwritten and be right. Where too many look so to be compared, as many as
// were begun. Not ok: what look() or compare() found.
Ran count_written(const StoppedRow& row, int said, int* written);

// Once the GPU is done with all that was enqueued: of the calls that were begun those that have returned have
// their results, all but the last one surely; where that has not returned it may have all of its results,
// some or none; those behind it have none. Else it did the work of several calls at one time: ahead, or
// later.
enum class OutOfStep { kNo, kAhead, kBehind };
OutOfStep out_of_step(int written, int begun, int returned);
inline constexpr const char* kDeferredResults = "calls have returned, and their results do not come";

}  // namespace warpsmith::measure

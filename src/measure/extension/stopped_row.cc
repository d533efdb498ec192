#include "stopped_row.h"

#include <algorithm>

namespace warpsmith::measure {

Ran count_written(const StoppedRow& row, int said, int* written) {
  constexpr int kAtMost = 4;
  int begin = 0;
  for (int i = 0; i < kAtMost; ++i) {
    std::optional<int> found;
    if (Ran looked = row.look(begin, &found); looked.verdict != Verdict::kOk) return looked;
    *written = found.value_or(row.calls);
    // What was not begun and looks unwritten is, whatever its right answer looks like.
    if (*written >= said) return {};
    if (Ran compared = row.compare(*written); compared.verdict != Verdict::kOk)
      return compared.verdict == Verdict::kWrongOutput ? Ran{} : compared;
    begin = *written + 1;
    if (begin == row.calls) break;
  }
  *written = begin == row.calls ? begin : said;
  return {};
}

OutOfStep out_of_step(int written, int begun, int returned) {
  if (written > begun) return OutOfStep::kAhead;
  return written < returned ? OutOfStep::kBehind : OutOfStep::kNo;
}

}  // namespace warpsmith::measure

#include "direction.h"

#include <fmt/format.h>

namespace warpsmith::report {

namespace {

// In how many rounds the candidate was faster; -1: the samples are not there, or are not of this baseline.
int faster_rounds(const store::MeasurementRow& row, const std::vector<std::int64_t>& samples) {
  const Measurement& m = row.value;
  if (m.baseline_ratio > 0 || m.rounds <= 0 || row.sample_count != 2 * std::int64_t{m.rounds} ||
      row.sample_begin < 0 || row.sample_begin + row.sample_count > static_cast<std::int64_t>(samples.size()))
    return -1;
  const std::int64_t* baseline = samples.data() + row.sample_begin;
  int faster = 0;
  for (int i = 0; i < m.rounds; ++i) faster += baseline[m.rounds + i] < baseline[i];
  return faster;
}

}  // namespace

std::string direction_words(const store::MeasurementRow& row, const std::vector<std::int64_t>& samples) {
  const Measurement& m = row.value;
  if (!(m.speedup > 0) || !(m.baseline_ns > 0) || !(m.candidate_ns > 0)) return "";
  if ((m.speedup > 1) == (m.baseline_ns > m.candidate_ns)) return "";
  if (m.speedup == 1 || m.baseline_ns == m.candidate_ns) return "";
  std::string words = fmt::format(
      "The score says {}, the times say {}: the score is the median of bucket means of each round's ratio, "
      "the "
      "times are medians of each side alone. Rounds that were disturbed on one side, or a drift between "
      "rounds, move the two apart.",
      m.speedup > 1 ? "faster" : "slower", m.speedup > 1 ? "slower" : "faster");
  if (const int faster = faster_rounds(row, samples); faster >= 0)
    words += fmt::format(" The program was faster in {} of {} rounds.", faster, m.rounds);
  if (m.speedup_low <= 1 && m.speedup_high >= 1)
    words += fmt::format(" The interval [{:.2f}, {:.2f}] holds 1: no difference is shown.", m.speedup_low,
                         m.speedup_high);
  return words;
}

}  // namespace warpsmith::report

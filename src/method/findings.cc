#include "warpsmith/method/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/text.h"
#include "warpsmith/method/hacks.h"

namespace warpsmith::method {

namespace {

bool names_an_error(const std::string& line) {
  return line.find("error") != std::string::npos || line.find("Error") != std::string::npos;
}

}  // namespace

std::vector<std::string> failure_lines(const Measurement& m) {
  std::vector<std::string> lines;
  // Messages name a program's file by its id, for people.
  const std::string named = m.candidate.substr(0, 8) + "/";
  const std::string detail = m.candidate.empty() ? m.detail : replaced(m.detail, named, "");
  for (const std::string& raw : split(detail, '\n'))
    if (std::string line = quoted_line(raw, kLongestFailureLine); !line.empty())
      lines.push_back(std::move(line));
  if (std::any_of(lines.begin(), lines.end(), names_an_error))
    std::erase_if(lines, [](const std::string& line) { return !names_an_error(line); });
  lines.resize(std::min(lines.size(), kFailureLines));
  if (m.verdict == Verdict::kHack)
    lines.insert(lines.begin(), "hack: " + quoted_line(m.hack, kLongestFailureLine));
  return lines;
}

std::vector<std::string> speed_lines(const Measurement& m) {
  std::vector<std::string> lines;
  if (m.rounds > 0)
    lines.push_back(
        fmt::format("{:.0f} ns a call, {} takes {:.0f} ns", m.candidate_ns, m.baseline, m.baseline_ns));
  if (const auto share = roofline_share(m))
    lines.push_back(fmt::format("{:.0f} % of the roofline: {} take {:.0f} ns at least", 100 * *share,
                                m.roofline_bound == "compute" ? "its FLOPs" : "the bytes that must be moved",
                                *m.roofline_ns));
  if (m.registers) lines.push_back(fmt::format("{} registers a thread", *m.registers));
  if (m.shared_bytes)
    lines.push_back(fmt::format("{} bytes of static shared memory a block", *m.shared_bytes));
  if (m.spill_bytes) lines.push_back(fmt::format("{} bytes spilled a thread", *m.spill_bytes));
  if (m.tensor_cores) lines.emplace_back(*m.tensor_cores ? "uses tensor cores" : "no tensor cores");
  return lines;
}

}  // namespace warpsmith::method

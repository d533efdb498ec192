// Programs in files: what stands in their first lines, and the candidates that they are.
#pragma once

#include <string>

#include "warpsmith/base/text.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace warpsmith {

// "// key: value" among the first lines; in Python "# key: value".
inline std::string header(const std::string& source, const std::string& key) {
  const std::string mark = source.starts_with("# ") ? "# " : "// ";
  for (const std::string& line : split_lines(source)) {
    if (!line.starts_with(mark)) break;
    if (line.starts_with(mark + key + ": ")) return line.substr(mark.size() + key.size() + 2);
  }
  return "";
}

// Of a file with a program of this tier.
inline const char* ending_of(Tier tier) { return tier == Tier::kPython ? ".py" : ".cu"; }

inline Candidate make_candidate(Tier tier, const std::string& task, const std::string& source) {
  if (tier == Tier::kPython) return toolchain::make_python_candidate(task, source, {});
  Candidate candidate = make_plan_candidate(task, source, {});
  candidate.tier = tier;
  candidate.id = candidate_id(candidate);
  return candidate;
}

}  // namespace warpsmith

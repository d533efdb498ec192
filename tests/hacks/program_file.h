// Programs in files: what stands in their first lines, and the candidates that they are.
#pragma once

#include <string>

#include "warpsmith/base/text.h"
#include "warpsmith/records/candidate.h"

namespace warpsmith {

// "// key: value" among the first lines.
inline std::string header(const std::string& source, const std::string& key) {
  for (const std::string& line : split_lines(source)) {
    if (!line.starts_with("// ")) break;
    if (line.starts_with("// " + key + ": ")) return line.substr(key.size() + 5);
  }
  return "";
}

inline Candidate make_candidate(Tier tier, const std::string& task, const std::string& source) {
  Candidate candidate = make_plan_candidate(task, source, {});
  candidate.tier = tier;
  candidate.id = candidate_id(candidate);
  return candidate;
}

}  // namespace warpsmith

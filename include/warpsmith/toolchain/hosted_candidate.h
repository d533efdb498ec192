// Candidates with host code from a dataset, and made of one file. Apart from extension.h and python.h, and
// inline: the controller makes candidates and has no compiler in it.
#pragma once

#include <string>
#include <utility>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/hosted_files.h"

namespace warpsmith::toolchain {

inline Tier tier_of(task::HostedTier tier) {
  return tier == task::HostedTier::kPython ? Tier::kPython : Tier::kExtension;
}

inline Candidate make_hosted_candidate(std::string task, const task::HostedSource& source, Origin origin) {
  Candidate candidate;
  candidate.task = std::move(task);
  candidate.tier = tier_of(source.tier);
  for (const task::HostedFile& file : source.files) candidate.files.push_back({file.path, file.content});
  candidate.origin = std::move(origin);
  candidate.id = candidate_id(candidate);
  return candidate;
}

// The same of a file that somebody else wrote, which may also be one of tier `plan`.
inline Candidate make_candidate(std::string task, const task::HostedSource& source, Origin origin) {
  if (task::has_plan(source))
    return make_plan_candidate(std::move(task), source.files.front().content, std::move(origin));
  return make_hosted_candidate(std::move(task), source, std::move(origin));
}

// Its one file is model.py.
inline Candidate make_python_candidate(std::string task, std::string source, Origin origin) {
  return make_one_file_candidate(Tier::kPython, std::move(task), std::move(source), std::move(origin));
}

}  // namespace warpsmith::toolchain

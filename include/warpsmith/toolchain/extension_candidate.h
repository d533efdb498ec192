// A candidate of tier `extension` from a dataset. Apart from extension.h, and inline: the controller makes
// candidates and has no compiler in it.
#pragma once

#include <string>
#include <utility>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/extension_files.h"

namespace warpsmith::toolchain {

inline Candidate make_extension_candidate(std::string task, const task::ExtensionSource& source,
                                          Origin origin) {
  Candidate candidate;
  candidate.task = std::move(task);
  candidate.tier = Tier::kExtension;
  for (const task::ExtensionFile& file : source.files) candidate.files.push_back({file.path, file.content});
  candidate.origin = std::move(origin);
  candidate.id = candidate_id(candidate);
  return candidate;
}

}  // namespace warpsmith::toolchain

// Parts of results.h5, for those who need no more.
#pragma once

#include "warpsmith/store/results.h"

namespace warpsmith::store {

// What tells how much a file holds.
struct Progress {
  std::vector<StageRow> stages;
  std::vector<ShardRow> shards;
  std::size_t attempts = 0, baselines = 0;  // their numbers, which only grow
};
// Throws as read_results does, and where the file is of an older schema: it is to be written anew.
Progress read_progress(const std::filesystem::path& file);

}  // namespace warpsmith::store

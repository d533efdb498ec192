// Parts of results.h5, for those who need no more.
#pragma once

#include "warpsmith/store/results.h"

namespace warpsmith::store {

// `stages` and `shards` alone. Throws as read_results does.
Results read_progress(const std::filesystem::path& file);

}  // namespace warpsmith::store

// What lies at a path. std::filesystem throws exceptions of its own where a path cannot be looked at, or says
// "no" with an error code that callers forget; these throw Error, which names the path and the cause.
#pragma once

#include <filesystem>
#include <vector>

namespace warpsmith {

namespace fs = std::filesystem;

// Whether something lies at `path`, links followed; false also where a folder above it is missing or is a
// file. Throws Error where nobody can tell: no permission, a link to itself, a name that is too long, a stale
// mount.
bool path_exists(const fs::path& path);
bool is_folder(const fs::path& path);

// `path` from the root, without `.`, `..` and a slash at the end: its filename() is the folder's name.
fs::path absolute_folder(const fs::path& path);

// What lies in a folder, sorted; nothing where there is none. Throws Error where it cannot be read to its
// end.
std::vector<fs::path> folder_entries(const fs::path& folder);

}  // namespace warpsmith

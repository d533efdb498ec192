#include "warpsmith/base/paths.h"

#include <algorithm>

#include "warpsmith/base/error.h"

namespace warpsmith {

namespace {

fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none || status.type() == fs::file_type::unknown)
    throw system_error("cannot look at " + path.string(), error.value());
  return status;
}

}  // namespace

bool path_exists(const fs::path& path) { return fs::exists(status_of(path)); }
bool is_folder(const fs::path& path) { return fs::is_directory(status_of(path)); }

fs::path absolute_folder(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

std::vector<fs::path> folder_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return {};
  if (error) throw system_error("cannot read folder " + folder.string(), error.value());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace warpsmith

// A folder that is whole or is not there.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "warpsmith/base/files.h"

namespace warpsmith::model {

// `fill` writes into a folder beside `folder`, <name>.partial-<pid>, which then takes its place; what stood
// there is removed. `fill` sees to it that its files are on disk.
template <typename Fill>
void write_folder_whole(const std::filesystem::path& folder, const Fill& fill) {
  make_folders(folder.parent_path());
  const std::filesystem::path partial = folder.string() + ".partial-" + std::to_string(::getpid());
  std::filesystem::remove_all(partial);
  make_folders(partial);
  fill(partial);
  sync_folder(partial);
  std::filesystem::remove_all(folder);
  std::filesystem::rename(partial, folder);
  sync_folder(folder.parent_path());
}

}  // namespace warpsmith::model

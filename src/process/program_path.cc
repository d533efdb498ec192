#include "warpsmith/process/program_path.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "warpsmith/base/text.h"

namespace warpsmith::process {

namespace fs = std::filesystem;

bool runnable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

fs::path chosen_torch() {
  const char* root = std::getenv("TORCH_ROOT");
  if (root == nullptr || *root == '\0') return {};
  const fs::path path = fs::absolute(root).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path != nullptr && *path != '\0' ? path : kUsualFolders;
}

fs::path find_program(const std::string& name, const std::string& folders) {
  if (name.find('/') != std::string::npos) return runnable(name) ? fs::absolute(name) : fs::path();
  for (const std::string& folder : split(folders, ':'))
    if (const fs::path found = fs::path(folder) / name; !folder.empty() && runnable(found))
      return fs::absolute(found);
  return {};
}

fs::path past_alternatives(const fs::path& program) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  fs::path at = program;
  for (int i = 0; i < kMostLinks && fs::is_symlink(at, error); ++i) {
    const fs::path next = (at.parent_path() / fs::read_symlink(at, error)).lexically_normal();
    if (at.parent_path() != "/etc/alternatives" && next.parent_path() != "/etc/alternatives") break;
    at = next;
  }
  return at;
}

}  // namespace warpsmith::process

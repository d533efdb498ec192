#include "program_path.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace fs = std::filesystem;

fs::path find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::exists(name) ? fs::absolute(name) : fs::path();
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr && *path != '\0' ? path : "/usr/bin:/bin", ':'))
    if (!folder.empty() && ::access((fs::path(folder) / name).c_str(), X_OK) == 0)
      return fs::path(folder) / name;
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

}  // namespace warpsmith::toolchain

#include "evidence.h"

#include <sys/statvfs.h>

#include <fstream>
#include <string>

namespace warpsmith::executor {

namespace fs = std::filesystem;

std::uint64_t oom_kills() {
  std::ifstream in("/proc/vmstat");
  std::string name;
  std::uint64_t value = 0;
  while (in >> name >> value)
    if (name == "oom_kill") return value;
  return 0;
}

bool disk_is_full(const fs::path& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return false;
  const bool no_files = disk.f_files > 0 && disk.f_favail == 0;
  return no_files || static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < (1u << 20);
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || it->is_symlink(gone)) continue;
    const std::uint64_t size = it->file_size(gone);
    if (!gone) total += size;
  }
  return total;
}

}  // namespace warpsmith::executor

#include <fcntl.h>
#include <linux/types.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "../landlock_abi.h"
#include "options.h"

namespace warpsmith::guard {

namespace {

// From linux/landlock.h, which older systems lack.
struct RulesetAttributes {
  __u64 handled_access_fs, handled_access_net, scoped;
};
struct [[gnu::packed]] PathBeneath {
  __u64 allowed_access;
  __s32 parent_fd;
};
constexpr __u64 kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8;
constexpr __u64 kTruncate = 1 << 14, kIoctlDevice = 1 << 15;
constexpr __u64 kReading = kExecute | kReadFile | kReadFolder;
constexpr int kRulePathBeneath = 1;

// All rights that an ABI knows.
__u64 file_rights(int abi) {
  __u64 rights = (1u << 13) - 1;
  if (abi >= 2) rights |= 1u << 13;  // link and rename across folders
  if (abi >= 3) rights |= kTruncate;
  if (abi >= 5) rights |= kIoctlDevice;
  return rights;
}

// A path that is not there needs no rule.
bool allow(int ruleset, const char* path, __u64 rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR;
  struct stat info {};
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode))
    rights &= kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
  const PathBeneath rule{rights, fd};
  const bool done = syscall(process::kLandlockAddRule, ruleset, kRulePathBeneath, &rule, 0) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return done;
}

}  // namespace

std::string enter_landlock(const Options& options) {
  const int abi = process::landlock_abi();
  if (abi <= 0) return {};
  const __u64 rights = file_rights(abi);
  RulesetAttributes attributes{rights, 0, 0};
  std::size_t size = sizeof attributes.handled_access_fs;
  if (abi >= 4) {
    attributes.handled_access_net = 3;  // TCP bind and connect, for nobody
    size = 2 * sizeof(__u64);
  }
  if (abi >= 6) {
    attributes.scoped = 3;  // abstract sockets and signals end at the sandbox
    size = sizeof attributes;
  }
  const auto ruleset = static_cast<int>(syscall(process::kLandlockCreateRuleset, &attributes, size, 0));
  if (ruleset < 0) return std::string("landlock: ") + std::strerror(errno);
  std::string problem;
  const auto add = [&](const char* path, __u64 allowed) {
    if (problem.empty() && !allow(ruleset, path, allowed & rights))
      problem = std::string("landlock: ") + path + ": " + std::strerror(errno);
  };
  for (const std::string& path : options.read_only) add(path.c_str(), kReading);
  for (const std::string& path : options.read_write) add(path.c_str(), rights & ~kIoctlDevice);
  for (const std::string& path : options.devices) add(path.c_str(), kReadFile | kWriteFile | kIoctlDevice);
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full"})
    add(path, kReadFile | kWriteFile | kTruncate);
  for (const char* path : {"/dev/urandom", "/dev/random", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
                           "/proc/stat", "/sys/devices/system/cpu"})
    add(path, kReadFile | kReadFolder);
  if (problem.empty() && syscall(process::kLandlockRestrictSelf, ruleset, 0) != 0)
    problem = std::string("landlock: ") + std::strerror(errno);
  close(ruleset);
  return problem;
}

}  // namespace warpsmith::guard

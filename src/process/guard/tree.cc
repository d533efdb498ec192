#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace warpsmith::process {

namespace {

// A whole small file; false where it is gone.
bool slurp(const char* path, std::string& out) {
  out.clear();
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<std::size_t>(n));
  close(fd);
  return n == 0;
}

template <typename Take>
void for_each_number(const char* folder, Take take) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return;
  while (const dirent* entry = readdir(dir))
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
      take(static_cast<pid_t>(std::atoi(entry->d_name)));
  closedir(dir);
}

bool kernel_lists_children() {
  static const bool kYes = [] {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(getpid()));
    return access(path, R_OK) == 0;
  }();
  return kYes;
}

// `buffer`: its memory is used again.
ProcessStat stat_of(pid_t pid, std::string& buffer) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  if (!slurp(path, buffer)) return {};
  const auto name = buffer.find('('), behind_name = buffer.rfind(')');  // the name may hold anything
  ProcessStat stat;
  int parent = -1;
  if (behind_name == std::string::npos || name >= behind_name ||
      std::sscanf(buffer.c_str() + behind_name + 1, " %c %d", &stat.state, &parent) != 2)
    return {};
  stat.parent = parent;
  stat.name.assign(buffer, name + 1, behind_name - name - 1);
  return stat;
}

pid_t parent_of(pid_t pid, std::string& buffer) { return stat_of(pid, buffer).parent; }

void append_children(pid_t parent, std::vector<pid_t>& out) {
  char folder[64];
  std::snprintf(folder, sizeof folder, "/proc/%d/task", static_cast<int>(parent));
  std::string text;
  for_each_number(folder, [&](pid_t thread) {
    char path[96];
    std::snprintf(path, sizeof path, "%s/%d/children", folder, static_cast<int>(thread));
    if (!slurp(path, text)) return;
    const char* at = text.c_str();
    char* end = nullptr;
    for (long pid = std::strtol(at, &end, 10); end != at; pid = std::strtol(at, &end, 10)) {
      out.push_back(static_cast<pid_t>(pid));
      at = end;
    }
  });
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  if (kernel_lists_children()) {
    append_children(parent, out);
    return out;
  }
  std::string buffer;
  for_each_number("/proc", [&](pid_t pid) {
    if (parent_of(pid, buffer) == parent) out.push_back(pid);
  });
  return out;
}

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> out;
  if (kernel_lists_children()) {
    append_children(root, out);
    for (std::size_t i = 0; i < out.size(); ++i) append_children(out[i], out);
    return out;
  }
  std::multimap<pid_t, pid_t> children;
  std::string buffer;
  for_each_number("/proc", [&](pid_t pid) { children.emplace(parent_of(pid, buffer), pid); });
  const auto append = [&](pid_t parent) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto it = begin; it != end; ++it) out.push_back(it->second);
  };
  append(root);
  for (std::size_t i = 0; i < out.size(); ++i) append(out[i]);
  return out;
}

ProcessStat stat_of(pid_t pid) {
  std::string buffer;
  return stat_of(pid, buffer);
}

bool is_stopped(pid_t pid) { return stat_of(pid).state == 'T'; }

std::uint64_t resident_bytes(const std::vector<pid_t>& processes, std::uint64_t limit) {
  static const auto kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::string text;
  char path[64];
  std::uint64_t total = 0;
  for (const pid_t pid : processes) {
    std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid));
    unsigned long pages = 0;
    if (slurp(path, text) && std::sscanf(text.c_str(), "%*u %lu", &pages) == 1) total += pages * kPage;
  }
  if (limit == 0 || total <= limit) return total;
  std::uint64_t proportional = 0;
  for (const pid_t pid : processes) {
    std::snprintf(path, sizeof path, "/proc/%d/smaps_rollup", static_cast<int>(pid));
    unsigned long kib = 0;
    const char* line = slurp(path, text) ? std::strstr(text.c_str(), "\nPss:") : nullptr;
    if (line == nullptr || std::sscanf(line, "\nPss: %lu", &kib) != 1) {
      std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid));
      unsigned long pages = 0;
      if (slurp(path, text) && std::sscanf(text.c_str(), "%*u %lu", &pages) == 1)
        proportional += pages * kPage;
      continue;
    }
    proportional += static_cast<std::uint64_t>(kib) * 1024;
  }
  return proportional;
}

}  // namespace warpsmith::process

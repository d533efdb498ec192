#include <unistd.h>

#include <cstdlib>

#include "warpsmith/base/text.h"
#include "warpsmith/python/interpreter.h"

extern const char baselines_py[];

namespace warpsmith::python {

namespace fs = std::filesystem;

namespace {

bool can_run(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

std::optional<fs::path> in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/bin:/bin", ':'))
    if (!folder.empty() && can_run(fs::path(folder) / name)) return fs::path(folder) / name;
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_python() {
  if (const char* asked = std::getenv("WARPSMITH_PYTHON"); asked != nullptr) {
    const std::string name = asked;
    if (name.empty()) return std::nullopt;
    if (name.find('/') == std::string::npos) return in_path(name);
    return can_run(name) ? std::optional<fs::path>(name) : std::nullopt;
  }
#ifdef WARPSMITH_TORCH_PYTHON
  if (can_run(WARPSMITH_TORCH_PYTHON)) return fs::path(WARPSMITH_TORCH_PYTHON);
#endif
  return in_path("python3");
}

std::string baselines_script() { return baselines_py; }

}  // namespace warpsmith::python

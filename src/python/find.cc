#include <unistd.h>

#include <cstdlib>

#include "warpsmith/base/text.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/scripts.h"

extern const char baselines_py[];
extern const char candidate_py[];
extern const char extension_key_py[];
extern const char math_flags_py[];

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
  // Without the way back through the package: a sandbox shows where it leads, and not each folder of it.
  if (const fs::path built_with = fs::path(WARPSMITH_TORCH_PYTHON).lexically_normal(); can_run(built_with))
    return built_with;
#endif
  return in_path("python3");
}

std::string baselines_script() { return std::string(math_flags_py) + baselines_py; }
std::string extension_key_script() { return extension_key_py; }
std::string candidate_script() { return extension_key_script() + math_flags_py + candidate_py; }

}  // namespace warpsmith::python

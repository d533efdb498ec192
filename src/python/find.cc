#include <cstdlib>

#include "warpsmith/process/program_path.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/scripts.h"

extern const char baselines_py[];
extern const char candidate_py[];
extern const char extension_key_py[];
extern const char import_task_py[];
extern const char math_flags_py[];
extern const char chat_template_py[];
extern const char module_state_py[];
extern const char reference_py[];
extern const char task_module_py[];

namespace warpsmith::python {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> look_for(const std::string& name) {
  fs::path found = process::find_program(name);
  return found.empty() ? std::nullopt : std::optional<fs::path>(std::move(found));
}

// Torch of a wheel lies in <environment>/lib/pythonX/site-packages/torch, the python3 that can import it in
// <environment>/bin.
std::optional<fs::path> python_of_torch(const fs::path& root) {
  const fs::path packages = root.parent_path();
  if (packages.filename() != "site-packages" && packages.filename() != "dist-packages") return std::nullopt;
  fs::path python = packages.parent_path().parent_path().parent_path() / "bin/python3";
  return process::runnable(python) ? std::optional<fs::path>(std::move(python)) : std::nullopt;
}

}  // namespace

std::optional<fs::path> find_python() {
  if (const char* asked = std::getenv("WARPSMITH_PYTHON"); asked != nullptr) {
    if (*asked == '\0') return std::nullopt;
    return look_for(asked);
  }
  if (auto chosen = python_of_torch(process::chosen_torch())) return chosen;
#ifdef WARPSMITH_TORCH_ROOT
  if (auto built_with = python_of_torch(WARPSMITH_TORCH_ROOT)) return built_with;
#endif
  return look_for("python3");
}

std::string baselines_script() { return std::string(math_flags_py) + reference_py + baselines_py; }
std::string extension_key_script() { return extension_key_py; }
std::string task_module_script() { return task_module_py; }
std::string import_task_script() { return task_module_script() + import_task_py; }
std::string chat_template_script() { return chat_template_py; }
std::string module_state_script() { return task_module_script() + module_state_py; }
std::string candidate_script() {
  return extension_key_script() + task_module_script() + math_flags_py + reference_py + candidate_py;
}

}  // namespace warpsmith::python

#include "warpsmith/python/folders.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"

namespace warpsmith::python {

namespace fs = std::filesystem;

namespace {

constexpr const char* kQuestion =
    "import json, sys\n"
    "print('\\n' + json.dumps([sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix] + "
    "sys.path))\n";

bool is_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

// Nothing where it did not start.
std::optional<std::vector<fs::path>> look(const fs::path& python) {
  std::vector<fs::path> all;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    if (!path.is_absolute() || path == path.root_path() || is_in(path, "/usr") || !fs::exists(path, error))
      return;
    all.push_back(path.lexically_normal());
  };
  std::error_code error;
  const std::optional<Json> named = ask_python(python, kQuestion);
  if (!named || !named->is_array() || named->empty()) return std::nullopt;
  for (const Json& each : *named) {
    if (!each.is_string()) return std::nullopt;
    const std::string name = each.get<std::string>();
    if (name.empty()) continue;
    add(name);
    add(fs::canonical(name, error));
  }
  // The program of a virtual environment is a link into the installation, perhaps by way of others.
  add(fs::absolute(python).lexically_normal().parent_path());
  for (fs::path at = fs::absolute(python); fs::is_symlink(at, error);) {
    at = (at.parent_path() / fs::read_symlink(at, error)).lexically_normal();
    add(at.parent_path());
    if (all.size() > 1000) break;  // links in a circle
  }
  add(fs::canonical(python, error).parent_path());
  std::sort(all.begin(), all.end());  // what lies in a folder comes behind it
  std::vector<fs::path> folders;
  for (const fs::path& path : all)
    if (std::none_of(folders.begin(), folders.end(), [&](const fs::path& f) { return is_in(path, f); }))
      folders.push_back(path);
  return folders;
}

}  // namespace

std::optional<Json> ask_python(const fs::path& python, const std::string& program) {
  process::ChildSpec spec;
  spec.argv = {fs::absolute(python).string(), "-s", "-B", "-c", program};
  spec.folder = "/";  // an empty part of PYTHONPATH means the working folder: ours is none that it reads
  spec.limits.wall_s = 60;  // on a slow file system the first start takes long
  const process::ChildResult result = process::ask_program(spec);
  if (result.ending != process::Ending::kExited || result.exit_code != 0) return std::nullopt;
  const std::string said = trim(result.out);
  try {
    return parse_json(said.substr(said.rfind('\n') + 1), "python3");
  } catch (const Error&) {  // it printed something else
    return std::nullopt;
  }
}

const std::vector<fs::path>& python_folders(const fs::path& python) {
  static std::mutex mutex;
  static std::map<fs::path, std::vector<fs::path>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(python);
  if (found != known.end()) return found->second;
  static const std::vector<fs::path> kNone;
  std::optional<std::vector<fs::path>> folders = look(python);  // which may have been too slow this once
  return folders ? known.emplace(python, std::move(*folders)).first->second : kNone;
}

std::map<std::string, std::string> python_variables() {
  std::map<std::string, std::string> variables = {{"USER", "warpsmith"}};
  for (const char* name : {"PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') variables[name] = value;
  return variables;
}

std::vector<std::string> python_command(const fs::path& python) {
  std::error_code error;
  if (!fs::is_symlink(python, error) || !fs::exists("/usr/bin/env", error)) return {python.string()};
  return {"/usr/bin/env", python.string()};
}

}  // namespace warpsmith::python

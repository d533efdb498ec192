#include "here.h"

#include <map>
#include <mutex>
#include <optional>

#include "../nvcc/nvcc.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/program_path.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"

namespace warpsmith::toolchain {

namespace {

// Torch is not imported for its version: that takes seconds.
constexpr const char* kQuestion =
    "import importlib.util, json, os, platform, sysconfig\n"
    "found = importlib.util.find_spec('torch')\n"
    "said = {}\n"
    "if found and found.origin:\n"
    "  exec(open(os.path.join(os.path.dirname(found.origin), 'version.py')).read(), said)\n"
    "header = os.path.join(sysconfig.get_paths()['include'], 'Python.h')\n"
    "print('\\n' + json.dumps({'version': platform.python_version(), 'torch': str(said.get('__version__', "
    "'')), 'header': header if os.path.exists(header) else ''}))\n";

// In PATH, or as a package beside the python3.
fs::path find_ninja(const fs::path& python) {
  if (fs::path found = process::find_program("ninja"); !found.empty()) return found;
  fs::path beside = python.parent_path() / "ninja";
  return process::runnable(beside) ? beside : fs::path();
}

// Nothing where it did not start.
std::optional<PythonHere> look(const fs::path& python) {
  PythonHere here;
  // The path that was built in has ".." in it, which a sandbox need not be able to follow.
  std::error_code error;
  const fs::path plain = fs::absolute(python).lexically_normal();
  here.python = fs::equivalent(plain, python, error) ? plain : fs::absolute(python);
  const std::optional<Json> answer = python::ask_python(here.python, kQuestion);
  if (!answer || !answer->is_object()) return std::nullopt;
  const Json& said = *answer;
  here.version = json_at<std::string>(said, "version", "python3");
  here.torch = json_at<std::string>(said, "torch", "python3");
  if (here.torch.empty()) {
    here.problem =
        "candidates of tier `python` want a python3 with torch, and the one here has none (name "
        "another in WARPSMITH_PYTHON)";
    return here;
  }
  here.ninja = find_ninja(here.python);
  if (const std::string& lacks = nvcc_here().problem; !lacks.empty())
    here.extension = "the module builds an extension; " + lacks;
  else if (here.ninja.empty())
    here.extension =
        "the module builds an extension, for which torch wants ninja, which is not here: install "
        "it (Debian: ninja-build; pip: ninja)";
  else if (json_at<std::string>(said, "header", "python3").empty())
    here.extension =
        "the module builds an extension, for which torch wants Python.h, which is not here: install "
        "it (Debian: python3-dev)";
  return here;
}

}  // namespace

PythonHere python_here() {
  static std::mutex mutex;
  static std::map<fs::path, PythonHere> known;
  const auto python = python::find_python();
  if (!python) {
    PythonHere here;
    here.problem =
        "candidates of tier `python` want a python3 with torch, and there is no python3 here (name "
        "one in WARPSMITH_PYTHON)";
    return here;
  }
  const std::lock_guard lock(mutex);
  auto found = known.find(*python);
  if (found == known.end()) {
    const std::optional<PythonHere> seen = look(*python);
    if (!seen) {  // it may have been too slow this once
      PythonHere here;
      here.problem = "the python3 here does not start";
      return here;
    }
    found = known.emplace(*python, *seen).first;
  }
  PythonHere& here = found->second;
  if (here.visible.empty() && here.problem.empty()) here.visible = python::python_folders(here.python);
  return here;
}

std::string extension_compilers() {
  const NvccHere& nvcc = nvcc_here();
  return nvcc.problem.empty() ? "nvcc " + nvcc.version + " " + nvcc.host_version : "nvcc none";
}

}  // namespace warpsmith::toolchain

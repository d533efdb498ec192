#include "warpsmith/measure/module_state.h"

#include <unistd.h>

#include <optional>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/base/text.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/process/child.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/sandboxed.h"
#include "warpsmith/python/scripts.h"

namespace warpsmith::measure {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMemory = 48ull << 30;  // torch, and weights that are made one from the other
constexpr double kSeconds = 600;
constexpr std::uint64_t kScratchBytes = 1 << 30, kScratchFiles = 10'000;  // besides the tensors
constexpr const char* kEnding = ".state";

Json order_of(const task::Task& task, const fs::path& module, const fs::path& into) {
  Json state = Json::array();
  for (const task::TensorSpec& tensor : task.state)
    state.push_back({{"key", tensor.state_dict},
                     {"dtype", to_string(tensor.dtype)},
                     {"shape", task::shape_at(tensor, {})}});
  return {{"module", module.string()}, {"state", std::move(state)}, {"into", into.string()}};
}

// What is wrong with the module; empty: nothing.
std::string problem_of(const process::ChildResult& result) {
  const std::vector<std::string> lines = split_lines(trim(result.out));
  const Json answer = lines.empty() ? Json() : Json::parse(lines.back(), nullptr, false);
  if (answer.is_object() && answer.contains("problem") && answer.at("problem").is_string())
    return answer.at("problem").get<std::string>();
  const std::vector<std::string> words = split_lines(trim(result.err));
  if (result.ending == process::Ending::kTimedOut) return "it takes too long";
  if (result.ending == process::Ending::kMemoryLimit) return "it takes too much memory";
  return "its python3 ended" + (words.empty() ? std::string() : ": " + words.back());
}

void remove_others(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& path : folder_entries(folder))
    if (path.extension() == kEnding) fs::remove(path, error);
}

}  // namespace

fs::path module_state(const task::Task& task, const fs::path& folder, bool unsandboxed) {
  const fs::path path = folder / (task.id + "-" + task.digest.substr(0, 16) + kEnding);
  if (path_exists(path)) return path;
  const std::optional<fs::path> python = python::find_python();
  if (!python) throw Error("task " + task.id + " is a module of Python, and there is no python3 here");
  make_folders(folder);
  remove_others(folder);
  const TemporaryFolder ours("module");
  const fs::path script = ours.path() / "module_state.py", module = ours.path() / "reference.py",
                 scratch = ours.path() / "scratch", order = ours.path() / "order.json";
  make_folders(scratch);
  write_file_atomic(script, python::module_state_script());
  write_file_atomic(module, task.module);
  write_file_atomic(order, order_of(task, module, scratch / "state").dump());
  process::ChildSpec spec = python::sandboxed_python(*python, script, scratch, kMemory, unsandboxed);
  spec.argv.push_back(order.string());
  spec.sandbox.read_only.insert(spec.sandbox.read_only.end(), {module, order});
  spec.limits.wall_s = kSeconds;
  std::uint64_t bytes = 0;
  for (const task::TensorSpec& tensor : task.state) bytes += tensor_bytes(tensor, {});
  spec.limits.scratch_bytes = bytes + kScratchBytes;
  spec.limits.scratch_files = kScratchFiles;
  if (const std::string problem = problem_of(process::run_child(spec)); !problem.empty())
    throw InvalidInput({{(task.folder / "task.yaml").string(), 0, 0, "module: " + problem, ""}});
  // The module may have left anything there.
  std::error_code error;
  if (fs::symlink_status(scratch / "state", error).type() != fs::file_type::regular ||
      fs::file_size(scratch / "state", error) != bytes)
    throw InvalidInput({{(task.folder / "task.yaml").string(), 0, 0,
                         "module: what it wrote is not its parameters and buffers", ""}});
  // A copy first: the temporary folder may lie in another file system.
  const fs::path part = path.string() + "." + std::to_string(::getpid()) + ".part";
  fs::copy_file(scratch / "state", part, fs::copy_options::overwrite_existing);
  fs::rename(part, path);
  return path;
}

}  // namespace warpsmith::measure

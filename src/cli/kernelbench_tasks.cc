#include "kernelbench_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/python/scripts.h"

namespace warpsmith::cli {

namespace {

constexpr const char* kRefused = "refused.json";  // written last: who finds it finds all tasks

// Of what the tasks are made of, and what makes them.
std::string digest_of(const std::vector<KernelBenchTask>& tasks) {
  Sha256 digest;
  digest.field("tasks of modules/1").field(python::import_task_script());
  for (const KernelBenchTask& task : tasks) digest.field(task.id).field(read_file(task.file));
  return digest.hex().substr(0, 16);
}

// Makes those of `tasks` that are not in `folder`, or reads why they are none.
void fill(const std::filesystem::path& folder, std::vector<KernelBenchTask>& tasks, bool unsandboxed) {
  make_folders(folder);
  const FileLock lock(folder / ".lock");
  if (!path_exists(folder / kRefused)) {
    make_tasks(folder, tasks, unsandboxed);
    Json refused = Json::object();
    for (const KernelBenchTask& task : tasks)
      if (!task.refused.empty()) refused[task.id] = task.refused;
    write_file_atomic(folder / kRefused, refused.dump(1) + "\n");
    return;
  }
  const Json refused = read_json_file(folder / kRefused);
  for (KernelBenchTask& task : tasks) {
    task.refused = refused.value(task.id, "");
    task.there = task.refused.empty();
  }
}

}  // namespace

std::filesystem::path cache_folder() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? fs::path(value) : fs::path();
  };
  if (const fs::path ours = set("WARPSMITH_CACHE"); !ours.empty()) return fs::absolute(ours);
  if (const fs::path caches = set("XDG_CACHE_HOME"); !caches.empty()) return caches / "warpsmith";
  if (const fs::path home = set("HOME"); !home.empty()) return home / ".cache/warpsmith";
  throw Error("there is no folder for a cache: neither $WARPSMITH_CACHE, $XDG_CACHE_HOME nor $HOME is set");
}

CachedTasks kernelbench_tasks(const std::filesystem::path& checkout, const std::vector<int>& levels,
                              bool unsandboxed) {
  CachedTasks all;
  all.tasks = find_kernelbench(checkout, levels);
  all.folder = cache_folder() / "kernelbench" / digest_of(all.tasks);
  fill(all.folder, all.tasks, unsandboxed);
  return all;
}

std::filesystem::path task_of_module(const std::filesystem::path& module, bool unsandboxed) {
  std::string id = module.stem().string();
  for (char& c : id)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (id.empty() || std::isalpha(static_cast<unsigned char>(id.front())) == 0) id = "module_" + id;
  std::vector<KernelBenchTask> task(1);
  task.front().file = fs::absolute(module);
  task.front().id = id;
  task.front().title = module.stem().string();
  task.front().source = task.front().place = module.string();
  const std::filesystem::path folder = cache_folder() / "modules" / digest_of(task);
  fill(folder, task, unsandboxed);
  if (!task.front().refused.empty()) throw Error(module.string() + ": " + task.front().refused, kExitUsage);
  return folder / id;
}

}  // namespace warpsmith::cli

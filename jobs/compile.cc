// warpsmith-compile JOB.json SHARD: compiles `plan` candidates, one an item.
//
// params: device_kind ("cpu"), datasets, cache (relative to the run folder), timeout_s, memory_bytes,
// log_bytes, unsandboxed item:   {"id": candidate id, "candidate": {…}} record: {"verdict", "log", "binary"
// (relative to the run folder; empty unless ok), "seconds", "cached"}
#include <charconv>
#include <cstring>
#include <map>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/host.h"

namespace {

using namespace warpsmith;

std::map<std::string, task::Task> tasks_by_id(const fs::path& datasets) {
  Diagnostics diagnostics;
  std::map<std::string, task::Task> tasks;
  for (task::Task& t : task::load_tasks(datasets, diagnostics)) tasks.emplace(t.id, std::move(t));
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  return tasks;
}

toolchain::CompileOptions options_of(const ShardSession& shard) {
  const Json& params = shard.job().params;
  toolchain::CompileOptions options;
  options.cache = shard.run_folder() / params.value("cache", "cache");
  options.timeout_s = params.value("timeout_s", options.timeout_s);
  options.memory_bytes = params.value("memory_bytes", options.memory_bytes);
  options.log_bytes = params.value("log_bytes", options.log_bytes);
  options.unsandboxed = params.value("unsandboxed", false);
  return options;
}

Json record_of(const toolchain::CompileResult& r, const fs::path& run_folder) {
  return {{"verdict", std::string(to_string(r.verdict))},
          {"log", r.log},
          {"binary", r.binary.empty() ? "" : fs::relative(r.binary, run_folder).string()},
          {"seconds", r.seconds},
          {"cached", r.cached}};
}

void compile_shard(const fs::path& job_file, std::size_t index) {
  ShardSession shard(job_file, index);
  const std::string kind = shard.job().params.value("device_kind", "cpu");
  if (kind != "cpu")
    throw Error("candidates for device kind " + kind + " cannot be compiled by this build (cpu only)",
                kExitUsage);
  const std::map<std::string, task::Task> tasks =
      tasks_by_id(json_at<std::string>(shard.job().params, "datasets", "params"));
  const toolchain::CompileOptions options = options_of(shard);
  log_info("compiling with " + toolchain::host_toolchain_id().substr(0, 60));
  for (const Item& item : shard.open_items()) {
    const Candidate candidate = candidate_from_json(item.value.at("candidate"));
    const auto task = tasks.find(candidate.task);
    if (task == tasks.end())
      throw Error("item " + item.id + ": no task " + candidate.task + " in the datasets folder", kExitUsage);
    shard.write(item,
                record_of(toolchain::compile_for_host(candidate, task->second, options), shard.run_folder()));
  }
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("compile");
  std::size_t shard = 0;
  if (argc != 3 || std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), shard).ec != std::errc()) {
    log_error("usage: warpsmith-compile JOB.json SHARD");
    return kExitUsage;
  }
  try {
    process::become_subreaper();
    compile_shard(argv[1], shard);
    return kExitOk;
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    log_error(e.what());
    return kExitFailed;
  }
}

#include "job_here.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/process/stop_signals.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::cli {

namespace {

// That a GPU is of another type is a job program's own word (5): to us this machine lacks something.
int exit_code_of(const process::ChildResult& result) {
  if (result.ending != process::Ending::kExited) return kExitFailed;
  return result.exit_code == kExitWrongDevice ? static_cast<int>(kExitEnvironment) : result.exit_code;
}

}  // namespace

// Those that a signal has reached too are not waited for any longer than it takes to end them.
void wait_for_all(std::vector<process::Child>& children) {
  constexpr int kLookMs = 20;  // what they print is taken at each look
  for (;;) {
    std::vector<pollfd> ends;
    for (process::Child& child : children)
      if (child.running()) ends.push_back({child.event_fd(), POLLIN, 0});
    if (process::StopSignals::asked()) {
      for (process::Child& child : children) child.kill();
      for (process::Child& child : children) child.wait();
      throw Error("interrupted", kExitInterrupted);
    }
    if (ends.empty()) return;
    ::poll(ends.data(), ends.size(), kLookMs);
  }
}

std::map<fs::path, std::vector<task::Task>> by_dataset(const std::vector<task::Task>& tasks) {
  std::map<fs::path, std::vector<task::Task>> folders;
  for (const task::Task& task : tasks) folders[absolute_folder(task.folder).parent_path()].push_back(task);
  return folders;
}

ShardRecords run_job(const fs::path& run, const std::string& job_name, const std::vector<Json>& items,
                     const Json& params, int shards, const std::string& gpu) {
  if (items.empty()) return {};
  const fs::path folder = run / "stages" / "validate" / "00000000" / "0" / job_name;
  make_folders(folder);
  std::string lines;
  for (const Json& item : items) lines += item.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomic(folder / "items.jsonl", lines);
  JobFile job;
  job.program = job_name.starts_with("compile") ? "warpsmith-compile" : "warpsmith-measure";
  job.run = job.stage = "validate";
  job.job = job_name;
  job.seed = 1;
  job.params = params;
  const std::size_t count = std::min(items.size(), static_cast<std::size_t>(std::max(1, shards)));
  for (std::size_t i = 0; i < count; ++i)
    job.shards.emplace_back(items.size() * i / count, items.size() * (i + 1) / count);
  write_file_atomic(folder / "job.json", to_json(job).dump(2));

  const fs::path program = program_folder() / job.program;
  if (!path_exists(program))
    throw Error("there is no " + program.string() + "; was it built? (it needs LibTorch)");
  std::vector<process::Child> children;
  for (std::size_t i = 0; i < count; ++i) {
    process::ChildSpec spec;
    spec.argv = {program.string(), (folder / "job.json").string(), std::to_string(i)};
    spec.capture_output = count > 1;  // one alone shows its progress
    spec.sandbox.allow_processes = true;
    // NVML counts GPUs by their slots, CUDA the fastest first: a UUID is the same to both.
    if (!gpu.empty()) {
      spec.environment = process::our_environment();
      (*spec.environment)["CUDA_VISIBLE_DEVICES"] = gpu;
    }
    children.emplace_back(spec);
  }
  wait_for_all(children);
  ShardRecords all;
  for (std::size_t i = 0; i < count; ++i) {
    const process::ChildResult result = children[i].wait();
    if (result.ending != process::Ending::kExited || result.exit_code != kExitOk)
      throw Error(fmt::format("{} failed (exit code {}){}{}", job.program, result.exit_code,
                              result.err.empty() ? "" : ":\n", result.err),
                  exit_code_of(result));
    ShardRecords shard = read_shard_records(folder / std::to_string(i));
    all.records.merge(shard.records);
    all.folder.merge(shard.folder);
    std::move(shard.extras.begin(), shard.extras.end(), std::back_inserter(all.extras));
  }
  all.ended = true;
  return all;
}

std::optional<process::Gpu> find_gpu(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  for (const process::Gpu& gpu : process::usable_gpus())
    if (device == "auto" || device == process::gpu_type_of(gpu.name)) return gpu;
  return std::nullopt;
}

}  // namespace warpsmith::cli

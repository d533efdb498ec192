#include "validate_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::cli {

std::map<fs::path, std::vector<task::Task>> by_dataset(const std::vector<task::Task>& tasks) {
  std::map<fs::path, std::vector<task::Task>> folders;
  for (const task::Task& task : tasks)
    folders[fs::absolute(task.folder).lexically_normal().parent_path()].push_back(task);
  return folders;
}

Records run_job(const fs::path& run, const std::string& job_name, const std::vector<Json>& items,
                const Json& params, int shards) {
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
  if (!fs::exists(program))
    throw Error("there is no " + program.string() + "; was it built? (it needs LibTorch)");
  std::vector<process::Child> children;
  for (std::size_t i = 0; i < count; ++i) {
    process::ChildSpec spec;
    spec.argv = {program.string(), (folder / "job.json").string(), std::to_string(i)};
    spec.capture_output = count > 1;  // one alone shows its progress
    spec.sandbox.allow_processes = true;
    children.emplace_back(spec);
  }
  Records records;
  for (std::size_t i = 0; i < count; ++i) {
    const process::ChildResult result = children[i].wait();
    if (result.ending != process::Ending::kExited || result.exit_code != kExitOk)
      throw Error(fmt::format("{} failed (exit code {}){}{}", job.program, result.exit_code,
                              result.err.empty() ? "" : ":\n", result.err),
                  result.ending == process::Ending::kExited ? result.exit_code : kExitFailed);
    ShardRecords shard = read_shard_records(folder / std::to_string(i));
    records.merge(shard.records);
  }
  return records;
}

}  // namespace warpsmith::cli

#include "warpsmith/controller/job_files.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::controller {

fs::path service_file(const fs::path& stage_folder) {
  return job_folder(stage_folder, 0, "service") / kServiceFile;
}

std::string items_text(const stages::JobRequest& request) {
  std::string text;
  for (const Json& item : request.items)
    text += item.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return text;
}

void write_job(const fs::path& folder, const JobFile& job, const stages::JobRequest& request,
               const std::string& items) {
  make_folders(folder);
  write_file_atomic(folder / "items.jsonl", items);
  for (const auto& [name, content] : request.files) write_file_atomic(folder / name, content);
  write_file_atomic(folder / "job.json",
                    to_json(job).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void prefill_records(const fs::path& folder, const JobFile& job, const std::vector<std::string>& ids,
                     const ReplayTimings& replay) {
  for (std::size_t s = 0; s < job.shards.size(); ++s) {
    const fs::path attempt = folder / std::to_string(s) / "1";
    if (path_exists(attempt)) continue;
    std::string records;
    for (std::uint64_t i = job.shards[s].first; i < job.shards[s].second; ++i)
      if (const Json* known = replay.find(job.stage, ids[i])) {
        Json record = *known;
        record["item"] = ids[i];
        record["index"] = i;
        records += line_with_crc(record);
      }
    if (records.empty()) continue;
    // The folder appears with its records in it: a shard never sees half of them.
    const fs::path part = folder / std::to_string(s) / "1.part";
    make_folders(part);
    write_file_atomic(part / "records.jsonl", records);
    fs::rename(part, attempt);
    sync_folder(attempt.parent_path());
  }
}

stages::JobResult read_results(const fs::path& run, const fs::path& job_folder, const JobFile& job,
                               const std::vector<std::string>& ids) {
  stages::JobResult out{.round = job.round, .job = job.job, .items = {}};
  out.items.reserve(ids.size());
  const std::set<std::uint32_t> done =
      keeps_no_records(job) ? read_done_shards(job_folder) : std::set<std::uint32_t>{};
  for (std::size_t s = 0; s < job.shards.size(); ++s) {
    const bool plain = done.contains(static_cast<std::uint32_t>(s));
    ShardRecords found = plain ? ShardRecords{} : read_shard_records(job_folder / std::to_string(s));
    for (std::uint64_t i = job.shards[s].first; i < job.shards[s].second; ++i) {
      stages::ItemResult item{.id = ids[i], .record = nullptr, .folder = ""};
      if (plain) item.record = {{"item", ids[i]}, {"index", i}};
      if (const auto record = found.records.find(ids[i]); record != found.records.end()) {
        item.record = std::move(record->second);
        item.folder = found.folder.at(ids[i]).lexically_relative(run).string();
      }
      out.items.push_back(std::move(item));
    }
    std::move(found.extras.begin(), found.extras.end(), std::back_inserter(out.extras));
  }
  return out;
}

std::uint64_t count_records(const fs::path& shard_folder) {
  std::uint64_t records = 0;
  std::error_code error;
  for (int attempt = 1;; ++attempt) {
    const fs::path file = shard_folder / std::to_string(attempt) / "records.jsonl";
    if (!fs::exists(file.parent_path(), error)) return records;
    if (!fs::exists(file, error)) continue;
    // Within a string of a record, a quotation mark has a backslash before it.
    for (const std::string& line : split(read_file(file), '\n'))
      records += line.ends_with('}') && !line.starts_with("{\"end\":") &&
                 line.find("\"extra\":true") == std::string::npos;
  }
}

}  // namespace warpsmith::controller

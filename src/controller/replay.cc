#include "warpsmith/controller/replay.h"

#include <algorithm>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {

namespace {

// Folders in `folder`, by name; numbers by value.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->is_directory(error)) out.push_back(it->path());
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() && std::isdigit(static_cast<unsigned char>(x[0])) ? x.size() < y.size()
                                                                                  : x < y;
  });
  return out;
}

}  // namespace

ReplayTimings::ReplayTimings(const fs::path& run) {
  for (const fs::path& stage : folders_in(run / "stages"))
    for (const fs::path& hash : folders_in(stage))
      for (const fs::path& round : folders_in(hash))
        for (const fs::path& job : folders_in(round)) {
          if (!path_exists(job / "job.json") ||
              read_job_file(job / "job.json").program != "warpsmith-measure")
            continue;
          for (const fs::path& shard : folders_in(job))
            for (auto& [candidate, record] : read_shard_records(shard).records) {
              // Its samples stay where they are: the record alone moves.
              for (const char* key :
                   {"item", "index", "blob", "blob_offset", "blob_bytes", "blob_crc", "samples"})
                record.erase(key);
              record["replayed"] = true;
              any_.try_emplace(candidate, record);
              by_stage_.try_emplace({stage.filename().string(), candidate}, std::move(record));
            }
        }
  if (any_.empty()) throw Error(run.string() + " holds no measurements to replay", kExitUsage);
}

const Json* ReplayTimings::find(const std::string& stage, const std::string& candidate) const {
  if (const auto found = by_stage_.find({stage, candidate}); found != by_stage_.end()) return &found->second;
  if (const auto found = any_.find(candidate); found != any_.end()) return &found->second;
  return nullptr;
}

Json ReplayTimings::without_clock(Json record) {
  const std::string verdict = record.value("verdict", "");
  if (verdict != "ok" && verdict != "unstable" && verdict != "too_fast") return record;
  record["verdict"] = "ok";
  record["detail"] = "";
  for (const char* key : {"speedup", "speedup_rounded", "speedup_low", "speedup_high"}) record[key] = 1.0;
  record["imprecise"] = false;
  return record;
}

}  // namespace warpsmith::controller

// Rows from the files of one stage version, job or shard. Pure readers, so that several may work side by
// side.
//
// Each answers with Results that hold its rows alone: `device` and `sample_begin` count in these.
#pragma once

#include "warpsmith/records/done_shards.h"
#include "warpsmith/records/job.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

// A job of a stage version.
struct JobPlace {
  std::filesystem::path folder;
  StageVersion version;
  std::int64_t round = 0;
  JobFile job;
  std::set<std::uint32_t> done;  // shards, of a job whose program keeps no records
  std::string cure;              // the command that makes the stage anew
  std::string resources_json = to_json(job.resources).dump();
};

// The stage's row, and what its output.json holds where it has finished. `digest`: its SHA-256 by the
// journal; empty: not known. A damaged output.json is left out with a warning that names `cure`.
Results read_output(const std::filesystem::path& folder, const StageVersion& version,
                    const std::string& digest, const std::string& cure);
// Candidates among a job's items.
Results read_item_rows(const JobPlace& job);
// A row for each shard in `job.done`: there are no records of them.
Results read_done_rows(const JobPlace& job, const std::filesystem::path& run_folder);
// What the shard in `folder` has recorded. Damaged records, and those whose samples are damaged or give
// another score, are left out with a warning.
Results read_shard_rows(const JobPlace& job, const std::filesystem::path& run_folder,
                        const std::filesystem::path& folder, std::int64_t shard);

// What makes two devices one: all facts but the load of the moment.
std::string device_key(const DeviceFacts& facts);

// Subfolders in the order of their names. A folder that cannot be read has none, with a warning.
std::vector<std::filesystem::path> folders(const std::filesystem::path& folder);
// Subfolders whose names are numbers, in their order (rounds, shards).
std::vector<std::pair<std::int64_t, std::filesystem::path>> numbered_folders(
    const std::filesystem::path& folder);

}  // namespace warpsmith::store

// Job programs run for `warpsmith validate`, in a run folder of their own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::cli {

// A folder that is gone when this is, unless it is kept.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  void keep() { keep_ = true; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

using Records = std::map<std::string, Json>;  // by item id

// Runs a job program on `items` and returns its records. `shards` run beside each other. The program follows
// from the job's name: "compile…" or "measure…". Throws Error with the program's log, and its exit code,
// where it fails.
Records run_job(const std::filesystem::path& run, const std::string& job_name, const std::vector<Json>& items,
                const Json& params, int shards);

}  // namespace warpsmith::cli

#include <chrono>
#include <map>

#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

// What sha256sum -c reads: "<hex>  results.h5".
fs::path digest_file(const fs::path& file) { return file.string() + ".sha256"; }

// Empty where the file is as we left it; else what is wrong with it.
std::string damage(const fs::path& file) {
  if (!fs::exists(file)) return "new";
  if (!fs::exists(digest_file(file))) return "damaged: " + digest_file(file).filename().string() + " is missing";
  const std::string said = read_file(digest_file(file)).substr(0, 64);
  if (sha256_file_hex(file) != said) return "damaged: its SHA-256 is not that of " + digest_file(file).filename().string();
  return "";
}

std::map<std::string, std::pair<std::int64_t, bool>> progress(const Results& results) {
  std::map<std::string, std::pair<std::int64_t, bool>> out;
  for (const ShardRow& shard : results.shards) out[shard.folder] = {shard.records, shard.ended};
  for (const StageRow& stage : results.stages) out["stage " + stage.name + " " + stage.hash8] = {0, stage.finished};
  return out;
}

}  // namespace

Aggregated aggregate(const fs::path& run_folder, bool rebuild) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path file = run_folder / "results.h5";
  Aggregated done;
  const Results now = read_run(run_folder);
  done.reason = damage(file);
  if (done.reason.empty() && rebuild) done.reason = "asked for";
  if (done.reason.empty()) {
    const auto before = progress(read_results(file)), after = progress(now);
    std::size_t changed = 0;
    for (const auto& [folder, state] : after) {
      const auto it = before.find(folder);
      changed += it == before.end() || it->second != state;
    }
    for (const auto& [folder, state] : before) changed += !after.contains(folder);
    if (changed > 0) done.reason = std::to_string(changed) + (changed == 1 ? " shard or stage has" : " shards or stages have") + " changed";
  }
  done.measurements = now.measurements.size();
  done.candidates = now.candidates.size();
  if (!done.reason.empty()) {
    write_results(file, now);
    write_file_atomic(digest_file(file), sha256_file_hex(file) + "  results.h5\n");
    done.written = true;
  }
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return done;
}

}  // namespace warpsmith::store

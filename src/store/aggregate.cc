#include <chrono>
#include <iterator>
#include <map>
#include <tuple>

#include "results_file.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

// What sha256sum -c reads: "<hex>  results.h5".
fs::path digest_file(const fs::path& file) { return file.string() + ".sha256"; }

// Empty where the file is as we left it; else what is wrong with it.
std::string damage(const fs::path& file) try {
  std::error_code error;
  if (!fs::exists(file, error)) return "new";
  if (!fs::exists(digest_file(file), error))
    return "damaged: " + digest_file(file).filename().string() + " is missing";
  const std::string said = read_file(digest_file(file)).substr(0, 64);
  if (sha256_file_hex(file) != said)
    return "damaged: its SHA-256 is not that of " + digest_file(file).filename().string();
  return "";
} catch (const Error& e) {
  return std::string("damaged: ") + e.what();
}

// What tells whether something has changed, of each shard and of each version of a stage.
using Marks = std::map<std::string, std::string>;

Marks marks(const std::vector<ShardRow>& shards, const std::vector<StageRow>& stages) {
  Marks out;
  for (const ShardRow& shard : shards)
    out[shard.folder] = std::to_string(shard.records) + (shard.ended ? " ended" : "");
  // The digest tells a result from one that was made anew under the same hash (`run --force`).
  for (const StageRow& stage : stages)
    out["stage " + stage.name + " " + stage.hash8] =
        std::to_string(stage.place) + (stage.current ? " current " : " older ") + stage.output_digest;
  return out;
}

using ShardKey = std::tuple<std::string, std::string, std::int64_t, std::string, std::int64_t>;

// By shard, how many records the journal says that it has: its items but for those that its last attempt left
// open.
std::map<ShardKey, std::int64_t> records_by_journal(const std::vector<AttemptRow>& attempts) {
  std::map<ShardKey, std::int64_t> items, records;
  for (const AttemptRow& row : attempts) {
    if (row.set_aside) continue;
    const ShardKey key{row.stage, row.hash8, row.round, row.job, row.shard};
    const std::int64_t all = items.try_emplace(key, row.items + row.open).first->second;
    records[key] = all - row.open;
  }
  return records;
}

struct Lost {
  std::vector<std::string> lines;  // one for each shard
  bool file_has_more = false;      // than there is now, of one of them that is of a current version
};

// Shards of versions that are still there with fewer records than they had: by the journal or, where there is
// none, by the file.
Lost lost_records(const Results& now, const std::vector<ShardRow>& in_file) {
  const auto by_shard = [](const std::vector<ShardRow>& rows) {
    std::map<ShardKey, std::int64_t> records;
    for (const ShardRow& row : rows)
      records[{row.stage, row.hash8, row.round, row.job, row.shard}] = row.records;
    return records;
  };
  const std::map<ShardKey, std::int64_t> file = by_shard(in_file), have = by_shard(now.shards);
  std::map<std::pair<std::string, std::string>, bool> current;  // by version
  for (const StageRow& row : now.stages) current[{row.name, row.hash8}] = row.current;
  const auto records_of = [](const std::map<ShardKey, std::int64_t>& records, const ShardKey& key) {
    const auto found = records.find(key);
    return found == records.end() ? 0 : found->second;
  };
  Lost lost;
  for (const auto& [key, had] : now.attempts.empty() ? file : records_by_journal(now.attempts)) {
    const auto& [stage, hash8, round, job, shard] = key;
    const std::int64_t has = records_of(have, key);
    const auto version = current.find({stage, hash8});
    if (has >= had || version == current.end()) continue;
    // What nobody can make anew does not keep newer results out.
    lost.file_has_more |= version->second && records_of(file, key) > has;
    lost.lines.push_back("stages/" + stage + "/" + hash8 + "/" + std::to_string(round) + "/" + job + "/" +
                         std::to_string(shard) + " has " + std::to_string(has) + " of " +
                         std::to_string(had) + (had == 1 ? " record" : " records"));
  }
  return lost;
}

// Outputs of current versions that the file has and that are there, but damaged.
void add_lost_outputs(const fs::path& run_folder, const Results& now, const std::vector<StageRow>& in_file,
                      Lost& lost) {
  for (const StageRow& row : now.stages) {
    const std::string folder = "stages/" + row.name + "/" + row.hash8;
    std::error_code error;
    if (row.finished || !row.current || !fs::exists(run_folder / folder / "output.json", error)) continue;
    lost.lines.push_back(folder + "/output.json is damaged");
    for (const StageRow& old : in_file)
      lost.file_has_more |= old.name == row.name && old.hash8 == row.hash8 && old.finished;
  }
}

// The first line, and how many more.
std::string told(const std::vector<std::string>& lines) {
  return lines.front() +
         (lines.size() > 1 ? " (and " + std::to_string(lines.size() - 1) + " more like it)" : "");
}

// Empty where the file holds what `now` does; else why it is to be written.
std::string what_is_new(const fs::path& file, const Results& now) {
  Progress old;
  try {
    old = read_progress(file);
  } catch (const Error& e) {  // whole, but of an older layout
    return std::string("another layout: ") + e.what();
  }
  const Marks before = marks(old.shards, old.stages), after = marks(now.shards, now.stages);
  std::size_t changed = 0;
  for (const auto& [folder, state] : after) {
    const auto it = before.find(folder);
    changed += it == before.end() || it->second != state;
  }
  for (const auto& [folder, state] : before) changed += !after.contains(folder);
  if (changed == 0 && now.baselines.size() != old.baselines) return "baselines were timed";
  if (changed == 0 && now.attempts.size() == old.attempts) return "";
  if (changed == 0) return "attempts of shards have ended";
  return std::to_string(changed) + (changed == 1 ? " shard or stage has" : " shards or stages have") +
         " changed";
}

// In the order of the rows: current versions first, in the order of the workflow; within a version as they
// ended.
void sort_attempts(std::vector<AttemptRow>& attempts, const std::vector<StageRow>& stages) {
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const StageRow& stage : stages) places.emplace(std::pair(stage.name, stage.hash8), places.size());
  std::vector<std::vector<AttemptRow>> sorted(places.size() + 1);  // the last: of versions that are gone
  for (AttemptRow& row : attempts) {
    const auto found = row.set_aside ? places.end() : places.find({row.stage, row.hash8});
    sorted[found == places.end() ? places.size() : found->second].push_back(std::move(row));
  }
  attempts.clear();
  for (std::vector<AttemptRow>& rows : sorted)
    attempts.insert(attempts.end(), std::make_move_iterator(rows.begin()),
                    std::make_move_iterator(rows.end()));
}

// Nothing where the file is of an older layout.
Progress progress_in(const fs::path& file) {
  try {
    return read_progress(file);
  } catch (const Error&) {
    return {};
  }
}

Aggregated finished(Aggregated done, const Results& now, std::chrono::steady_clock::time_point start) {
  done.measurements = now.measurements.size();
  done.candidates = now.candidates.size();
  done.attempts = now.attempts.size();
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return done;
}

}  // namespace

Aggregated aggregate(const fs::path& run_folder, bool rebuild, std::vector<AttemptRow> attempts,
                     const OutputDigests& outputs) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path file = run_folder / "results.h5";
  Aggregated done;
  Results now = read_run(run_folder, outputs);
  sort_attempts(attempts, now.stages);
  now.attempts = std::move(attempts);
  done.reason = damage(file);
  const Progress in_file = done.reason.empty() ? progress_in(file) : Progress{};
  if (done.reason.empty() && rebuild) done.reason = "asked for";
  if (done.reason.empty()) done.reason = what_is_new(file, now);
  Lost lost;
  if (!done.reason.empty()) {
    lost = lost_records(now, in_file.shards);
    add_lost_outputs(run_folder, now, in_file.stages, lost);
  }
  if (lost.file_has_more && !rebuild) {
    done.reason = "records are lost: " + told(lost.lines);
    log_warning(run_folder.string() + ": " + done.reason +
                "; results.h5 stays as it was. `warpsmith run` with --force and the stage makes them anew, "
                "`warpsmith aggregate --rebuild` takes what is there");
    return finished(done, now, start);
  }
  if (!lost.lines.empty())
    log_warning(run_folder.string() + ": records are lost, results.h5 goes without: " + told(lost.lines));
  if (!done.reason.empty()) {
    replace_results(file, now);
    done.written = true;
  }
  return finished(done, now, start);
}

}  // namespace warpsmith::store

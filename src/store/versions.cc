// Which version of each stage counts, and the order of the stages.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "record_rows.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

// A stage as state.json has it.
struct Said {
  std::int64_t place = -1;
  std::string hash8;  // empty: none yet
};

std::map<std::string, Said> read_state(const fs::path& run) {
  std::map<std::string, Said> said;
  std::int64_t place = 0;
  const Json state = read_state_json(run);
  for (const Json& stage : state.value("stages", Json::array()))
    said[stage.value("stage", "")] = {place++, stage.value("hash8", stage.value("hash", "").substr(0, 8))};
  return said;
}

fs::file_time_type written(const fs::path& version) {
  for (const char* name : {"output.json", "inputs.json"}) {
    std::error_code error;
    const auto time = fs::last_write_time(version / name, error);
    if (!error) return time;
  }
  return fs::file_time_type::min();
}

}  // namespace

std::vector<StageVersion> stage_versions(const fs::path& run_folder) {
  bool has_state = false;
  std::map<std::string, Said> said;
  try {
    has_state = path_exists(run_folder / "state.json");
    if (has_state) said = read_state(run_folder);
  } catch (const Error& e) {
    log_warning(std::string(e.what()) + "; the versions written last count");
    has_state = false;
  }
  std::vector<StageVersion> versions;
  std::int64_t by_name = 0;
  for (const fs::path& stage : folders(run_folder / "stages")) {
    const std::string name = stage.filename().string();
    const std::vector<fs::path> found = folders(stage);
    if (found.empty()) continue;
    if (!has_state) {
      const auto newest =
          std::max_element(found.begin(), found.end(),
                           [](const fs::path& a, const fs::path& b) { return written(a) < written(b); });
      said[name] = {by_name++, newest->filename().string()};
    }
    for (const fs::path& version : found) {
      const std::string hash8 = version.filename().string();
      const Said& one = said[name];
      versions.push_back({name, hash8, one.place, one.hash8 == hash8});
    }
  }
  const auto key = [](const StageVersion& v) {
    return std::tuple(!v.current, v.place < 0, v.place, v.stage, v.hash8);
  };
  std::sort(versions.begin(), versions.end(),
            [&](const StageVersion& a, const StageVersion& b) { return key(a) < key(b); });
  return versions;
}

Results current_versions(Results r) {
  std::set<std::pair<std::string, std::string>> current;
  for (const StageRow& stage : r.stages)
    if (stage.current) current.emplace(stage.name, stage.hash8);
  const auto older = [&](const auto& row) { return !current.contains({row.stage, row.hash8}); };
  std::erase_if(r.tasks, older);
  std::erase_if(r.compiles, older);
  std::erase_if(r.measurements, older);
  std::erase_if(r.baselines, older);
  std::erase_if(r.generated, older);
  std::erase_if(r.training, older);
  std::erase_if(r.opinions, older);
  std::erase_if(r.shards, older);
  std::erase_if(r.attempts, [&](const AttemptRow& row) { return row.set_aside || older(row); });
  // A program that an older version wrote stays where a current one has met it.
  std::set<std::string> met;
  for (const CompileRow& row : r.compiles) met.insert(row.candidate);
  for (const MeasurementRow& row : r.measurements) met.insert(row.value.candidate);
  for (const SampleRow& row : r.generated) met.insert(row.candidate);
  std::erase_if(r.candidates, [&](const CandidateRow& row) { return older(row) && !met.contains(row.id); });
  // Devices that nothing refers to any more.
  std::vector<std::int64_t> moved(r.devices.size(), -1);
  std::vector<DeviceFacts> devices;
  for (MeasurementRow& row : r.measurements) {
    if (row.device < 0) continue;
    std::int64_t& to = moved.at(static_cast<std::size_t>(row.device));
    if (to < 0) {
      to = static_cast<std::int64_t>(devices.size());
      devices.push_back(r.devices[static_cast<std::size_t>(row.device)]);
    }
    row.device = to;
  }
  r.devices = std::move(devices);
  return r;
}

}  // namespace warpsmith::store

#include "warpsmith/records/run_files.h"

#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

Json read_run_json(const fs::path& run) {
  Json read;
  use_json(run / "run.json", [&](const Json& json) {
    for (const char* text :
         {"name", "id", "workflow", "site", "workflow_file", "working_folder", "replay_timings"})
      (void)json.value(text, "");
    for (const char* number : {"created", "seed", "controller_job"})
      if (json.contains(number) && !json.at(number).is_number_unsigned())
        throw BadContent(run / "run.json",
                         (run / "run.json").string() + ": `" + number + "` is no whole number from 0 on");
    (void)json.value("overrides", std::vector<std::string>{});
    for (const Json& build : json.value("builds", Json::array_t{}))
      for (const char* text : {"version", "commit", "torch", "cuda"}) (void)build.value(text, "");
    read = json;
  });
  return read;
}

void check_state_json(const Json& state) {
  (void)state.value("state", "");
  (void)state.value("updated", std::int64_t{0});
  (void)state.value("gpu_hours", 0.0);
  for (const Json& stage : state.value("stages", Json::array_t{}))
    for (const char* text : {"stage", "state", "hash", "hash8"}) (void)stage.value(text, "");
}

Json read_state_json(const fs::path& run) {
  Json read = Json::object();
  if (path_exists(run / "state.json"))
    use_json(run / "state.json", [&](const Json& state) {
      check_state_json(state);
      read = state;
    });
  return read;
}

}  // namespace warpsmith

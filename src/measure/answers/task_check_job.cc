#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "gpu_place.h"
#include "warpsmith/base/log.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/measure/task_check.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/task/task_source.h"

namespace warpsmith::measure {

namespace {

struct Where {
  Place place = Place::kHost;
  std::string name, uuid;
};

Where place_for(Settings& settings) {
  const Where host{Place::kHost, cpu_facts().name, ""};
  if (settings.device_kind == "cpu") return host;
  const bool any = settings.device_kind == "auto";
  const std::vector<process::Gpu> gpus = process::usable_gpus();
  if (gpus.empty() && any) return host;
  if (gpus.empty())
    throw Error("there is no GPU here, and device kind " + settings.device_kind + " is wanted",
                kExitWrongDevice);
  if (any) settings.device_names.clear();
  require_gpu(settings, gpus.front().name);
  load_torch_cuda();
  return {Place::kGpu, gpus.front().name, gpus.front().uuid};
}

// What there is to say of a reference that is not run: whether it compiles.
Json compile_reference(const task::Task& task) {
  (void)Reference(task);
  return {{"task", task.id}, {"cases", 0}};
}

}  // namespace

void run_task_checks(ShardSession& shard) {
  const Json& params = shard.job().params;
  Settings settings = settings_from_json(params, shard.job().seed);
  const Where where = place_for(settings);
  task::TaskSource tasks(json_at<std::string>(params, "datasets", "params"),
                         where.place == Place::kGpu ? "gpu" : "cpu");
  const bool compile_only = params.value("compile_only", false);
  configure_torch(settings.threads);
  for (const Item& item : shard.open_items()) {
    Json record;
    try {
      std::optional<FileLock> alone;  // somebody may be timing there
      if (where.place == Place::kGpu) alone.emplace(gpu_lock_path(where.uuid));
      record = compile_only
                   ? compile_reference(tasks.of(item.id))
                   : to_json(check_task(task::under_math(tasks.of(item.id), settings.math), where.place,
                                        settings.check_seeds, settings.seed));
    } catch (const Error& e) {
      record = {{"task", item.id}, {"error", e.what()}};
    }
    record["device"] = where.name;
    if (!compile_only)
      log_info(item.id + ": " +
             (record.contains("error") ? record["error"].get<std::string>()
                                       : fmt::format("{} checks", record["cases"].get<int>())));
    shard.write(item, std::move(record));
  }
  shard.finish();
}

}  // namespace warpsmith::measure

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "gpu_place.h"
#include "warpsmith/base/log.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/measure/task_check.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/task/task_source.h"
#ifdef WARPSMITH_HAS_GPU
#include "gpu/task_checker.h"
#endif

namespace warpsmith::measure {

namespace {

using Check = std::function<TaskFindings(const task::Task&)>;

struct Where {
  std::string kind, name;  // "gpu" or "cpu": whose timing shapes count
  Check check;
};

Where on_host(const Settings& settings) {
  return {"cpu", cpu_facts().name, [&settings](const task::Task& task) {
            return check_task(task, settings.check_seeds, settings.seed);
          }};
}

Where where_to_check(Settings& settings) {
  if (settings.device_kind == "cpu") return on_host(settings);
  const bool any = settings.device_kind == "auto";
  const std::vector<process::Gpu> gpus = process::usable_gpus();
  if (gpus.empty() && any) return on_host(settings);
  if (gpus.empty())
    throw Error("there is no GPU here, and device kind " + settings.device_kind + " is wanted",
                kExitWrongDevice);
  if (any) settings.device_names.clear();
  require_gpu(settings, gpus.front().name);
#ifdef WARPSMITH_HAS_GPU
  const auto checker = std::make_shared<GpuTaskChecker>(settings);
  return {"gpu", gpus.front().name, [checker](const task::Task& task) { return checker->check(task); }};
#else
  throw Error("device kind " + settings.device_kind + ": " + kBuiltWithoutGpu);
#endif
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
  const Where where = where_to_check(settings);
  task::TaskSource tasks(json_at<std::string>(params, "datasets", "params"), where.kind);
  const bool compile_only = params.value("compile_only", false);
  configure_torch(settings.threads);
  for (const Item& item : shard.open_items()) {
    Json record;
    try {
      record = compile_only ? compile_reference(tasks.of(item.id))
                            : to_json(where.check(task::under_math(tasks.of(item.id), settings.math)));
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

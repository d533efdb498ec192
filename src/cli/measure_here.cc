#include "measure_here.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "job_here.h"
#include "print.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/process/stop_signals.h"

namespace warpsmith::cli {

namespace fs = std::filesystem;

namespace {

constexpr double kTargetOnGpu = 0.005;  // half width of a score's interval

// Two files may hold the same program: each id is one item.
std::vector<Json> items_of(const std::vector<MeasuredHere>& all,
                           const std::function<bool(std::size_t)>& wanted,
                           const std::function<void(const MeasuredHere&, Json&)>& add) {
  std::vector<Json> items;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!wanted(i) || !seen.insert(all[i].candidate.id).second) continue;
    items.push_back({{"id", all[i].candidate.id}, {"candidate", to_json(all[i].candidate)}});
    add(all[i], items.back());
  }
  return items;
}

void compile(const fs::path& run, const fs::path& datasets, const DeviceHere& device,
             const MeasureOptions& options, std::vector<MeasuredHere>& all) {
  // nvcc and its compilers take more of both, with torch's headers most.
  Json params = {{"device_kind", device.kind},
                 {"datasets", datasets.string()},
                 {"cache", "cache"},
                 {"timeout_s", device.is_gpu() ? 300 : 20},
                 {"memory_bytes", (device.is_gpu() ? 8ull : 2ull) << 30},
                 {"log_bytes", 4096},
                 {"unsandboxed", options.unsandboxed}};
  if (!device.target.empty()) params["targets"] = {device.target};
  const std::vector<Json> items = items_of(
      all, [](std::size_t) { return true; }, [](const MeasuredHere&, Json&) {});
  const int cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const ShardRecords done = run_job(run, "compile", items, params, cores);
  for (MeasuredHere& one : all) one.compiled = done.records.at(one.candidate.id);
}

void measure(const fs::path& run, const std::string& name, const fs::path& datasets, const DeviceHere& device,
             const MeasureOptions& options, std::vector<MeasuredHere>& all,
             const std::function<bool(std::size_t)>& wanted) {
  Json params = {{"datasets", datasets.string()},
                 {"device_kind", device.kind},
                 {"threads", options.threads},
                 {"budget_s", options.budget_s},
                 {"unsandboxed", options.unsandboxed},
                 {"timing", options.timing},
                 {"variance_gate", options.variance_gate}};
  if (device.is_gpu()) {
    params["device_names"] = {device.name};
    params["target"] = kTargetOnGpu;
    params["baselines"] = options.baselines;
  }
  const std::vector<Json> items = items_of(
      all, wanted, [](const MeasuredHere& one, Json& item) { item["binary"] = one.compiled.at("binary"); });
  const ShardRecords done = run_job(run, name, items, params, 1, device.uuid);
  std::map<std::string, std::vector<BaselineTiming>> baselines;  // by task
  for (const Json& extra : done.extras) {
    BaselineTiming row = baseline_timing_from_json(extra.at("baseline"));
    baselines[row.task].push_back(std::move(row));
  }
  for (MeasuredHere& one : all) {
    if (const auto found = done.records.find(one.candidate.id); found != done.records.end())
      one.measured = found->second;
    if (auto rows = baselines.extract(one.candidate.task)) one.baselines = std::move(rows.mapped());
  }
}

}  // namespace

DeviceHere find_device(const std::string& wanted) {
  if (const std::optional<process::Gpu> gpu = find_gpu(wanted))
    return {process::gpu_type_of(gpu->name), process::compile_target(gpu->major, gpu->minor), gpu->name,
            gpu->uuid};
  if (wanted == "cpu" || wanted == "auto") return {};
  std::string names;
  for (const process::Gpu& gpu : process::usable_gpus()) names += (names.empty() ? "" : ", ") + gpu.name;
  throw Error("there is no " + wanted + " here" + (names.empty() ? ", and no other GPU" : ": " + names));
}

void check_device(const std::string& device) {
  if (!std::all_of(device.begin(), device.end(),
                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }))
    throw Error("`" + device + "` is no device: cpu, auto, or a GPU type such as H100", kExitUsage);
  std::string lower = device;  // `CPU` would be a GPU type
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower != device && (lower == "cpu" || lower == "auto"))
    throw Error("`" + device + "` is no device (did you mean `" + lower + "`?)", kExitUsage);
}

Measurement MeasuredHere::measurement() const {
  if (!measured.is_null()) return measurement_from_json(measured);
  Measurement m;
  m.candidate = candidate.id;
  m.task = candidate.task;
  m.verdict = parse_verdict(compiled.at("verdict").get<std::string>()).value_or(Verdict::kNotMeasured);
  m.detail = compiled.value("log", "");
  return m;
}

void measure_here(const fs::path& datasets, const DeviceHere& device, const MeasureOptions& options,
                  std::vector<MeasuredHere>& all, const std::function<bool(std::size_t)>& again) {
  const process::StopSignals signals;
  TemporaryFolder run("measure");
  if (options.keep) {
    run.keep();
    print_error("measuring in %s\n", run.path().string());
  }
  compile(run.path(), datasets, device, options, all);
  measure(run.path(), "measure", datasets, device, options, all,
          [&](std::size_t i) { return all[i].compiled.at("verdict") == "ok"; });
  measure(run.path(), "measure-again", datasets, device, options, all, [&](std::size_t i) {
    return again(i) && !all[i].measured.is_null() && all[i].measured.at("verdict") == "unstable";
  });
}

}  // namespace warpsmith::cli

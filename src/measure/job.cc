#include "warpsmith/measure/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "gpu_place.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/measure/baselines.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/records/shown_file.h"
#ifdef WARPSMITH_HAS_GPU
#include "warpsmith/measure/gpu_baselines.h"
#include "warpsmith/measure/gpu_workers.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/task/task_source.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/gpu.h"
#endif

namespace warpsmith::measure {

namespace {

constexpr int kFaultsInARow = 3;
constexpr int kTriesWhenKilled = 3;

struct Work {
  Item item;
  Candidate candidate;
};

// Open items with their candidates; those of one task together, otherwise in their order.
std::vector<Work> work_of(const ShardSession& shard) {
  std::vector<Work> work;
  for (Item& item : shard.open_items()) {
    try {
      Candidate candidate = candidate_from_json(item.value.at("candidate"));
      work.push_back({std::move(item), std::move(candidate)});
    } catch (const Json::exception& e) {
      throw Error("item " + item.id + ": " + e.what(), kExitUsage);
    }
  }
  // Of a task's those in Python together: to them it may look different (task::as_module()).
  std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
    const auto order = [](const Work& w) {
      return std::pair(std::string_view(w.candidate.task), w.candidate.tier == Tier::kPython);
    };
    return order(a) < order(b);
  });
  return work;
}

std::string summary(const Measurement& m) {
  if (m.rounds == 0)
    return fmt::format("{}{}", to_string(m.verdict), m.detail.empty() ? "" : ": " + m.detail);
  const std::optional<double> share = roofline_share(m);
  return fmt::format("{} {:.3f}x over {} [{:.3f}, {:.3f}] {:.0f} ns{}, {} rounds of {}{}{}",
                     to_string(m.verdict), m.speedup, m.baseline, m.speedup_low, m.speedup_high,
                     m.candidate_ns, share ? fmt::format(", {:.0f} % of the roofline", 100 * *share) : "",
                     m.rounds, m.batch, m.detail.empty() ? "" : ": ", m.detail);
}

// SIGKILL comes from outside (the kernel short of memory, a person, a batch system): it says nothing about
// the candidate unless it comes again and again. 137 is how a sandbox's own process says it of the one
// inside.
bool was_killed(const Measurement& m) {
  return (m.verdict == Verdict::kOutOfMemory && m.detail.find("ended by signal 9") != std::string::npos) ||
         (m.verdict == Verdict::kCrash && m.detail.find("exit code 137") != std::string::npos);
}

using Measure = std::function<Measured(const Candidate&, const std::filesystem::path& binary)>;

using Baselines = std::map<std::string, BaselineTiming>;  // one of each task

struct Means {
  Measure measure;
  Baselines baseline = {};  // those that scores are over
};

Means on_cpu(Settings settings, const ShardSession& shard) {
  if (settings.threads == 1) stay_on_one_cpu(shard.shard());
  const auto tasks = std::make_shared<task::TaskSource>(
      json_at<std::string>(shard.job().params, "datasets", "params"), settings.device_kind);
  const auto measurer = std::make_shared<Measurer>(std::move(settings));
  return {[measurer, tasks](const Candidate& candidate, const std::filesystem::path& binary) {
    return measurer->measure(tasks->of(candidate.task), candidate, binary);
  }};
}

#ifdef WARPSMITH_HAS_GPU
// Whose machine code the harness's own must fit.
std::string target_of(const std::vector<Item>& items, const std::filesystem::path& run_folder) {
  for (const Item& item : items) {
    const std::string binary = item.value.value("binary", "");
    if (binary.empty()) continue;
    const Json candidate = json_at<Json>(item.value, "candidate", "item " + item.id);
    return candidate.value("tier", "") == to_string(Tier::kPlan)
               ? toolchain::read_cubin_facts(run_folder / binary).target
               : toolchain::read_extension_facts(run_folder / binary).target;
  }
  throw Error("no item has a binary", kExitUsage);
}

// Of all items, those with a record of an earlier attempt as well.
std::vector<std::string> tasks_of(const ShardSession& shard) {
  std::set<std::string> tasks;
  for (const Item& item : shard.items())
    tasks.insert(json_at<std::string>(json_at<Json>(item.value, "candidate", "item " + item.id), "task",
                                      "item " + item.id));
  return {tasks.begin(), tasks.end()};
}

GpuBaselines::Options options_of(Settings settings, const ShardSession& shard) {
  const std::filesystem::path cache = shard.run_folder() / "cache";
  std::vector<std::byte> harness =
      harness_cubin(target_of(shard.items(), shard.run_folder()), cache, settings.unsandboxed);
  return {std::move(settings), json_at<std::string>(shard.job().params, "datasets", "params"),
          std::move(harness), cache};
}

// The best speedups known are over the score's baseline, the measurers' over eager.
void scale_bounds(Settings& settings, const Baselines& baselines) {
  for (const auto& [task, row] : baselines)
    if (row.state == BaselineState::kCovered) settings.baseline_ratio[task] = row.ratio;
  for (auto& [task, best] : settings.best) best *= settings.ratio_of(task);
}

Means on_gpu(Settings settings, const ShardSession& shard) {
  GpuBaselines::Options options = options_of(std::move(settings), shard);
  Baselines baselines;
  if (const std::string& name = options.settings.baseline; name != "eager" && options.settings.timing)
    for (BaselineTiming& row : GpuBaselines(options).measure(tasks_of(shard), {name}))
      baselines.emplace(row.task, std::move(row));
  scale_bounds(options.settings, baselines);
  const auto workers =
      std::make_shared<GpuWorkers>(std::move(options.settings), options.datasets, std::move(options.harness));
  return {[workers](const Candidate& candidate, const std::filesystem::path& binary) {
            return workers->measure(candidate, binary);
          },
          std::move(baselines)};
}

// Every baseline that is asked for, of all tasks of the shard: each in a process of its own that has the GPU
// to itself, and each written as soon as it is there. Nothing can be measured behind it.
void write_baselines(const Settings& settings, ShardSession& shard) {
  if (settings.baselines.empty() || !settings.timing) return;
  GpuBaselines::Options options = options_of(settings, shard);
  options.take = [&](const BaselineTiming& row) { shard.write_extra({{"baseline", to_json(row)}}); };
  GpuBaselines(std::move(options)).measure(tasks_of(shard), settings.baselines);
}
#else
Means on_gpu(const Settings& settings, const ShardSession&) {
  throw Error("device kind " + settings.device_kind + ": " + kBuiltWithoutGpu);
}

void write_baselines(const Settings&, ShardSession&) {}
#endif

void measure_candidates(const Settings& settings, ShardSession& shard, const std::vector<Work>& work) {
  const Means means = settings.device_kind == "cpu" ? on_cpu(settings, shard) : on_gpu(settings, shard);
  int faults = 0;                // since something was measured
  std::set<std::string> faulty;  // their tasks
  const bool one_task = work.front().candidate.task == work.back().candidate.task;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [item, candidate] = work[i];
    Measured measured;
    try {
      const std::filesystem::path binary =
          shard.run_folder() / json_at<std::string>(item.value, "binary", "item " + item.id);
      for (int tries = 1; tries <= kTriesWhenKilled; ++tries) {
        try {
          measured = means.measure(candidate, binary);
        } catch (const InvalidInput&) {
          throw;
        } catch (const Error& e) {  // its child may have been killed while it was being set up
          if (e.exit_code() != kExitEnvironment || tries == kTriesWhenKilled) throw;
          continue;
        }
        if (!was_killed(measured.measurement)) break;
      }
      faults = 0;
      faulty.clear();
    } catch (const InvalidInput&) {
      throw;
    } catch (const Error& e) {
      // Perhaps this one only (its binary is gone), or its task; when it goes on, nothing can be measured
      // here.
      ++faults;
      faulty.insert(candidate.task);
      if (e.exit_code() == kExitUsage || (faults >= kFaultsInARow && (one_task || faulty.size() > 1))) throw;
      measured.measurement.candidate = candidate.id;
      measured.measurement.task = candidate.task;
      measured.measurement.verdict = Verdict::kNotMeasured;
      measured.measurement.detail = e.what();
      log_warning(fmt::format("{}: {}", item.id.substr(0, 12), name_shown_file(e.what(), candidate)));
    }
    Measurement& m = measured.measurement;
    m.detail = name_shown_file(m.detail, candidate);
    if (const auto row = means.baseline.find(candidate.task); row != means.baseline.end())
      divide(m, row->second);
    if (!measured.samples.empty()) {
      const BlobRef blob = shard.write_blob(std::as_bytes(std::span(measured.samples)));
      m.blob = blob.file;
      m.blob_offset = blob.offset;
      m.blob_bytes = blob.bytes;
      m.blob_crc = blob.crc;
    }
    Json record = to_json(m);
    log_info(fmt::format("{}/{} {} {}: {} ({:.2f} s)", i + 1, work.size(), candidate.task,
                         candidate.id.substr(0, 8), summary(m), m.seconds));
    shard.write(item, std::move(record));
  }
}

}  // namespace

void run_shard(ShardSession& shard) {
  const std::vector<Work> work = work_of(shard);
  Settings settings = settings_from_json(shard.job().params, shard.job().seed);
  std::optional<TemporaryFolder> states;
  if (settings.device_kind != "cpu") {
    settings.module_states = states.emplace("states").path();
    settings.ceilings = shard.run_folder() / "cache/ceilings";
    settings.shares_gpu = shard.job().resources.shards_a_gpu > 1;
  }
  if (!work.empty()) measure_candidates(settings, shard, work);  // whose processes end here
  write_baselines(settings, shard);
  shard.finish();
}

}  // namespace warpsmith::measure

#include "warpsmith/controller/site_executor.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/controller/model_memory.h"
#include "warpsmith/executor/cluster.h"
#include "warpsmith/executor/local.h"
#include "warpsmith/executor/site_check.h"
#include "warpsmith/executor/slurm.h"
#include "warpsmith/plan/taken.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::controller {

namespace {

constexpr int kMostSlots = 64;  // a job is not cut into more shards than that for the sake of width alone

// CPUs of the nodes that shards without a GPU may use.
int cluster_slots(const std::vector<executor::SlurmNode>& nodes, const workflow::SiteSpec& site) {
  int cpus = 0;
  for (const executor::SlurmNode& node : nodes) {
    const bool ours = site.cpu.partition.empty() || std::find(node.partitions.begin(), node.partitions.end(),
                                                              site.cpu.partition) != node.partitions.end();
    if (ours && node.usable) cpus += static_cast<int>(node.cpus);
  }
  return std::clamp(cpus, 1, kMostSlots);
}

}  // namespace

workflow::GpuStocks stocks_of(const std::vector<process::Gpu>& gpus) {
  workflow::GpuStocks stocks;
  for (const process::Gpu& gpu : gpus) {
    workflow::GpuStock& stock = stocks[process::gpu_type_of(gpu.name)];
    ++stock.count;
    stock.target = process::compile_target(gpu.major, gpu.minor);
    if (std::find(stock.names.begin(), stock.names.end(), gpu.name) == stock.names.end())
      stock.names.push_back(gpu.name);
  }
  return stocks;
}

std::string token_prefix(const std::string& run_id) { return "ws-" + run_id + "-"; }

std::optional<workflow::SiteSpec> load_named_site(const std::string& name) {
  if (name.empty() || name == "local") return std::nullopt;
  Diagnostics mistakes;
  workflow::SiteSpec site = workflow::load_site(
      workflow::find_site(name, program_folder().parent_path().parent_path() / "share/warpsmith/sites"),
      mistakes);
  if (!mistakes.empty()) throw InvalidInput(std::move(mistakes));
  if (site.executor == "local") return std::nullopt;
  return site;
}

std::vector<process::Gpu> look_at_place(workflow::WorkflowSpec& spec,
                                        const std::optional<workflow::SiteSpec>& site) {
  std::vector<process::Gpu> gpus;
  if (!site && workflow::asks_for_gpus(spec)) gpus = process::usable_gpus();
  workflow::resolve_devices(spec, site ? &*site : nullptr, stocks_of(gpus));
  plan::take_candidates(spec);
  for (workflow::StageSpec& stage : spec.stages)
    if (stage.blocked.empty()) stage.blocked = does_not_fit(stage, gpus);
  return gpus;
}

std::string auto_device_text(const workflow::WorkflowSpec& spec) {
  for (const workflow::StageSpec& stage : spec.stages)  // at a place it is the same for all
    if (!stage.auto_device.empty())
      return "`device: auto` is " + (stage.wanted_device.empty() ? stage.device : stage.wanted_device) +
             ": " + stage.auto_device;
  return "";
}

SiteExecutor make_executor(std::optional<workflow::SiteSpec> site, const fs::path& run,
                           const std::string& run_id, const std::vector<process::Gpu>& gpus) {
  SiteExecutor out;
  if (!site) {
    executor::LocalOptions options;
    for (const process::Gpu& gpu : gpus) {
      options.gpus.push_back({gpu.uuid, process::gpu_type_of(gpu.name)});
      ++out.gpus[options.gpus.back().type];
    }
    out.slots = static_cast<int>(process::allowed_cpus().size());
    out.memory_bytes = options.memory_bytes = process::available_memory();
    out.executor = std::make_unique<executor::LocalExecutor>(std::move(options));
    return out;
  }
  auto cluster = executor::open_cluster(program_folder(), site->conf);
  const std::vector<executor::SlurmNode> nodes = cluster->nodes();
  out.slots = cluster_slots(nodes, *site);
  for (const auto& [type, place] : site->gpus) out.gpus[type] = executor::count_gpus(place, nodes);
  out.executor = std::make_unique<executor::SlurmExecutor>(
      std::move(cluster), executor::SlurmOptions{.site = *site,
                                                 .programs = program_folder(),
                                                 .run = fs::absolute(run).lexically_normal(),
                                                 .prefix = token_prefix(run_id)});
  out.site = std::move(site);
  return out;
}

}  // namespace warpsmith::controller

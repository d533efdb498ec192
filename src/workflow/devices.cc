#include "warpsmith/workflow/devices.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::workflow {

namespace {

// Of a measure job on a GPU, at least: right answers and operands at a GPU's shapes, in three processes.
constexpr std::uint64_t kGpuMeasureMemory = 12ull << 30;

constexpr const char* kNameASite = "; `--site` names a cluster that has one";

// "2 L40, 1 H100", the most first.
std::string listed(const GpuStocks& machine) {
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const auto& [type, stock] : machine) all.emplace_back(stock.count, type);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [count, type] : all) out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + type;
  return out.empty() ? "no GPU" : out;
}

void choose_here(StageSpec& stage, const GpuStocks& machine) {
  const auto most = std::max_element(machine.begin(), machine.end(), [](const auto& a, const auto& b) {
    return a.second.count < b.second.count;
  });
  stage.device = most == machine.end() ? "cpu" : most->first;
  stage.auto_device = "this machine has " + listed(machine);
  if (machine.size() > 1) stage.auto_device += ", and the type with most GPUs is taken";
}

void choose_at(StageSpec& stage, const SiteSpec& site) {
  std::vector<std::string> types;
  for (const auto& [type, place] : site.gpus)
    if (!place.twin) types.push_back(type);
  if (types.size() > 1) {
    stage.blocked = fmt::format("`device: auto`: site {} has {}; choose one, as in `device: {}`", site.name,
                                fmt::join(types, ", "), types.front());
    return;
  }
  stage.device = types.empty() ? "cpu" : types.front();
  stage.auto_device =
      types.empty() ? fmt::format("site {} has no GPU{}", site.name, site.gpus.empty() ? "" : " but twins")
                    : fmt::format("site {} has {} alone", site.name, types.front());
}

void find_real(StageSpec& stage, std::vector<std::string> names, const std::string& target) {
  stage.device_found = DeviceFound::kReal;
  stage.device_names = std::move(names);
  stage.compile_target = target;
  std::uint64_t& memory = stage.measure.memory_bytes;
  if (memory > 0) memory = std::max(memory, kGpuMeasureMemory);
}

// The jobs of a stage on a GPU: one to measure with, and the type for whoever asks for some of no type.
void ask_for_gpus(StageSpec& stage) {
  stage.measure.gpus = std::max(1, stage.measure.gpus);
  for (Resources* r : stage.all_resources())
    if (r->gpus > 0 && r->gpu_type.empty()) r->gpu_type = stage.device;
}

void find_here(StageSpec& stage, const GpuStocks& machine) {
  const auto stock = machine.find(stage.device);
  if (stock == machine.end()) {
    stage.device_found = DeviceFound::kNone;
    stage.lacks = fmt::format("no device: this machine has no {}", stage.device);
    if (!machine.empty()) stage.lacks += fmt::format(", it has {}", listed(machine));
    return;
  }
  find_real(stage, stock->second.names, stock->second.target);
}

void find_at(StageSpec& stage, const SiteSpec& site) {
  const SitePlace* place = place_for(site, {.gpus = 1, .gpu_type = stage.device});
  if (place == nullptr) {
    stage.device_found = DeviceFound::kNone;
    stage.lacks = fmt::format("no device: site {} has no {}", site.name, stage.device);
  } else if (place->twin) {
    stage.device_found = DeviceFound::kTwin;
    stage.device = "cpu";
    if (stage.protocol.baseline != "eager")
      stage.lacks = fmt::format("the CPU twin has no baseline `{}`", stage.protocol.baseline);
  } else {
    find_real(stage, place->names, place->target);
  }
}

void resolve(StageSpec& stage, const SiteSpec* site, const GpuStocks& machine) {
  if (stage.device == "auto") {
    if (site == nullptr)
      choose_here(stage, machine);
    else
      choose_at(stage, *site);
    if (!stage.blocked.empty()) return;
    if (stage.device == "cpu") {
      // Where the file names the cpu itself, that is a mistake in it.
      if (stage.protocol.baseline != "eager")
        stage.blocked =
            fmt::format("`baseline: {}` is not to be had on device `cpu`, which `device: auto` is: {}",
                        stage.protocol.baseline, stage.auto_device);
      return;
    }
  }
  ask_for_gpus(stage);
  stage.wanted_device = stage.device;
  if (site == nullptr)
    find_here(stage, machine);
  else
    find_at(stage, *site);
  if (stage.lacks.empty() || measures_again(stage) || runs_program(stage.kind)) return;
  stage.blocked = stage.lacks;
  if (site == nullptr) stage.blocked += kNameASite;
}

void price(StageSpec& stage, EndpointSettings& endpoint, const SiteSpec* site) {
  if (site != nullptr)
    if (const auto it = site->prices.tokens.find(endpoint.model); it != site->prices.tokens.end())
      endpoint.prices = it->second;
  if (endpoint.budget.money > 0 && endpoint.prices == TokenPrices{} && stage.blocked.empty())
    stage.blocked = fmt::format(
        "`budget` has {:g} of money, and {}", endpoint.budget.money,
        site == nullptr
            ? "no site file says what tokens cost; `--site` names one"
            : fmt::format("`prices` of site {} says nothing of model `{}`", site->name, endpoint.model));
}

std::string gpus_text(const Resources& r) {
  return fmt::format("{} GPU{}{}", r.gpus, r.gpus == 1 ? "" : "s",
                     r.gpu_type.empty() ? "" : " of type " + r.gpu_type);
}

std::string problem_of(const StageJob& job, const SiteSpec* site, const GpuStocks& machine) {
  const Resources& r = *job.resources;
  if (r.ranks > 1 || r.nodes > 1)
    return fmt::format("its {} jobs ask for {} ranks on {} nodes: shards of several ranks are not built yet",
                       job.name, r.ranks, r.nodes);
  if (r.gpus == 0) return "";
  if (site != nullptr && r.shards_a_gpu > 1)
    return fmt::format("{} of its {} jobs share a GPU (`shards_a_gpu`), and on a cluster each has its own",
                       r.shards_a_gpu, job.name);
  if (site == nullptr) {
    std::size_t has = 0;
    for (const auto& [type, stock] : machine)
      if (r.gpu_type.empty() || type == r.gpu_type) has += stock.count;
    if (has >= static_cast<std::size_t>(r.gpus)) return "";
    return fmt::format("its {} jobs ask for {}, and this machine has {}{}", job.name, gpus_text(r),
                       listed(machine), kNameASite);
  }
  if (site->gpus.empty() || (!r.gpu_type.empty() && place_for(*site, r) == nullptr))
    return fmt::format("its {} jobs ask for {}, and site {} has none", job.name, gpus_text(r), site->name);
  // On twins of whatever type the same is done.
  const bool all_twins =
      std::all_of(site->gpus.begin(), site->gpus.end(), [](const auto& type) { return type.second.twin; });
  if (place_for(*site, r) == nullptr && !all_twins)
    return fmt::format("its {} jobs ask for {} of any type, and site {} has several: give them a `gpu_type`",
                       job.name, gpus_text(r), site->name);
  return "";
}

}  // namespace

std::vector<StageJob> stage_jobs(const StageSpec& stage) {
  const StageJob generate{"generate", &stage.generate}, compile{"compile", &stage.compile},
      measure{"measure", &stage.measure}, train{"train", &stage.train};
  const auto* collect = std::get_if<CollectSettings>(&stage.settings);
  if (collect != nullptr && !collect->teachers.empty()) return {generate, compile, measure};
  if (stage.kind == "collect") return {compile, measure};
  if (stage.kind == "measure" && measures_again(stage)) return {compile, measure};
  if (stage.kind == "measure") return {generate, compile, measure};
  if (stage.kind == "service") return {{"service", &stage.service}};
  if (stage.kind == "sft" || runs_program(stage.kind)) return {train};
  if (!has_own_model(stage)) return {generate, compile, measure};
  return {generate, compile, measure, train};
}

const Resources* resources_of_job(const StageSpec& stage, std::string_view name) {
  for (const StageJob& job : stage_jobs(stage))
    if (job.name == name) return job.resources;
  return nullptr;
}

std::string_view to_string(DeviceFound found) {
  switch (found) {
    case DeviceFound::kUnasked:
      return "";
    case DeviceFound::kReal:
      return "real";
    case DeviceFound::kTwin:
      return "twin";
    case DeviceFound::kNone:
      return "none";
  }
  return "";
}

bool measures_again(const StageSpec& stage) {
  const auto* measure = std::get_if<MeasureSettings>(&stage.settings);
  return measure != nullptr && measure->checkpoint_of.empty() && !stage.policy;
}

bool runs_on_gpus_alone(const StageSpec& stage) {
  return stage.prompt.answer != "plan" && stage.kind != "sft" && !runs_program(stage.kind) &&
         !measures_again(stage);
}

bool asks_for_gpus(const WorkflowSpec& spec) {
  return std::any_of(spec.stages.begin(), spec.stages.end(), [](const StageSpec& stage) {
    const std::vector<StageJob> jobs = stage_jobs(stage);
    return stage.device != "cpu" ||
           std::any_of(jobs.begin(), jobs.end(), [](const StageJob& job) { return job.resources->gpus > 0; });
  });
}

void resolve_devices(WorkflowSpec& spec, const SiteSpec* site, const GpuStocks& machine) {
  spec.prices = site != nullptr ? site->prices : Prices{};
  for (StageSpec& stage : spec.stages) {
    if (stage.device_found == DeviceFound::kUnasked && stage.device != "cpu") resolve(stage, site, machine);
    for (EndpointSettings* endpoint : endpoints_of(stage)) price(stage, *endpoint, site);
    if (stage.device == "cpu" && runs_on_gpus_alone(stage) && stage.blocked.empty())
      stage.blocked =
          fmt::format("programs of tier `{}` run on GPUs alone, and this stage measures on the CPU{}",
                      stage.prompt.answer, stage.auto_device.empty() ? "" : ": " + stage.auto_device);
    if (!stage.lacks.empty()) continue;  // nothing of it is started
    for (const StageJob& job : stage_jobs(stage))
      if (stage.blocked.empty()) stage.blocked = problem_of(job, site, machine);
  }
}

}  // namespace warpsmith::workflow

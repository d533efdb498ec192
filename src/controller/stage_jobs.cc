// The jobs of stages: what one asks for is written, what its shards left is read back and fed to it.
#include <fmt/format.h>

#include <algorithm>

#include "stage_driver.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/process/program_path.h"
#include "warpsmith/run/packing.h"

namespace warpsmith::controller {

namespace {

constexpr std::size_t kMostGpuSlots = 64;  // as of CPUs: no job is cut into more for the sake of width alone

std::string begin_anew(const LiveStage& stage) {
  return "; `--force " + stage.spec->name + "` begins the stage anew";
}

// As a controller cut a job that died before it could journal it, by what it knew: replayed records may lie
// in them already. Empty: there is none, or not of these items.
std::vector<std::pair<std::uint64_t, std::uint64_t>> shards_on_disk(const fs::path& folder,
                                                                    const std::string& items) {
  if (!path_exists(folder / "job.json") || !path_exists(folder / "items.jsonl") ||
      read_file(folder / "items.jsonl") != items)
    return {};
  return read_job_file(folder / "job.json").shards;
}

}  // namespace

// Shards of that kind that may run side by side here: for those with GPUs these are what is scarce.
int StageDriver::slots_of(const Resources& resources) const {
  const auto type = core_.parts.gpus.find(resources.gpu_type);
  if (resources.gpus <= 0 || type == core_.parts.gpus.end())
    return std::max(1, core_.parts.slots / std::max(1, resources.cpus));
  const std::size_t shards = type->second / static_cast<std::size_t>(resources.gpus) *
                             static_cast<std::size_t>(std::max(1, resources.shards_a_gpu));
  return static_cast<int>(std::clamp<std::size_t>(shards, 1, kMostGpuSlots));
}

fs::path StageDriver::find_program(const stages::JobRequest& request) const {
  const fs::path wanted = request.program;
  if (request.program.starts_with("warpsmith-")) {
    const fs::path ours = core_.parts.programs / wanted;
    if (!process::runnable(ours))
      throw Error(request.program + " is not in " + core_.parts.programs.string() +
                      ", where the controller lies: it was not built (`warpsmith doctor`)",
                  kExitUsage);
    return ours;
  }
  if (wanted.is_absolute()) return wanted;
  if (request.program.find('/') != std::string::npos)
    return fs::absolute(core_.parts.spec->file).parent_path() / wanted;
  if (fs::path found = process::find_program(request.program); !found.empty()) return found;
  throw Error("there is no program `" + request.program + "` in PATH", kExitUsage);
}

void StageDriver::add_job(std::uint32_t stage, const stages::JobRequest& request) {
  LiveStage& one = live_[stage];
  LiveJob job{.stage = stage,
              .file = {},
              .folder = job_folder(one.folder, request.round, request.job),
              .program = find_program(request),
              .ids = {},
              .resources = request.resources,
              .memory_factor = one.spec->retry.memory_factor};
  job.ids.reserve(request.items.size());
  for (const Json& item : request.items)
    job.ids.push_back(json_at<std::string>(item, "id", "item of " + request.job));
  const std::string items = items_text(request);
  const std::string digest = sha256_hex(items);

  int number = -1;
  for (const std::uint32_t known : core_.reactor.jobs_of(one.execution))
    if (core_.reactor.job(known).round == request.round && core_.reactor.job(known).name == request.job)
      number = static_cast<int>(known);
  if (number >= 0 && one.open_jobs.contains(static_cast<std::uint32_t>(number)))
    throw Error(
        "stage asks for the job " + request.job + " of round " + std::to_string(request.round) + " twice",
        kExitFailed);

  JobFile& file = job.file;
  file = {.program = request.program,
          .arguments = request.arguments,
          .run = core_.parts.run.filename().string(),
          .stage = one.spec->name,
          .hash8 = plan::hash8(one.plan.hash),
          .round = request.round,
          .job = request.job,
          .token = "",
          .seed = one.spec->seed,
          .run_folder = "../../../../..",
          .shards = {},
          .resources = request.resources,
          .params = request.params};
  add_places(one, file);
  if (number >= 0) {
    const JobFile before = read_job_file(job.folder / "job.json");
    if (core_.reactor.job(static_cast<std::uint32_t>(number)).digest != digest)
      throw Error("it asks for other items in " + job.folder.string() + " than when it ran first; `--force " +
                      one.spec->name + "` begins it anew",
                  kExitFailed);
    file.shards = before.shards;
    file.token = before.token;
    if (keeps_no_records(file)) job.done = read_done_shards(job.folder);
    if (to_json(file) != to_json(before)) write_job(job.folder, file, request, items);
  } else {
    number = static_cast<int>(core_.reactor.jobs());
    add_new_job(one, static_cast<std::uint32_t>(number), request, job, items);
  }
  one.programs[request.job] = request.program;
  one.open_jobs.insert(static_cast<std::uint32_t>(number));
  shards_.add(static_cast<std::uint32_t>(number), std::move(job));
}

void StageDriver::add_places(const LiveStage& stage, JobFile& file) const {
  if (core_.parts.unsandboxed) file.params["unsandboxed"] = true;
  if (core_.parts.replay != nullptr) file.params.erase("baselines");  // they are timings, too
  if (file.params.contains("checkpoint_prefix"))
    file.params["checkpoint_prefix"] = checkpoint_prefix(stage.spec->name, stage.plan.hash);
  if (file.params.contains("stage_folder"))
    file.params["stage_folder"] =
        fs::relative(stage_folder(core_.parts.run, stage.spec->name, stage.plan.hash), core_.parts.run)
            .generic_string();
  if (const auto endpoint = file.params.find("endpoint");
      endpoint != file.params.end() && endpoint->contains("service")) {
    const std::string service = endpoint->at("service");
    const LiveStage& served = named(service);
    (*endpoint)["service_file"] = fs::relative(service_file(served.folder), core_.parts.run).generic_string();
    (*endpoint)["ready_s"] = std::get<workflow::ServiceSettings>(served.spec->settings).ready_s;
  }
  if (const auto model = file.params.find("model_of"); model != file.params.end()) {
    for (const Json& name : *model) {
      const fs::path folder = named(name).output_file.parent_path() / "model";
      if (!path_exists(folder / "config.json")) continue;
      file.params["model_folder"] = fs::relative(folder, core_.parts.run).generic_string();
      break;
    }
    file.params.erase("model_of");
  }
}

void StageDriver::add_new_job(const LiveStage& stage, std::uint32_t number, const stages::JobRequest& request,
                              LiveJob& job, const std::string& items) {
  job.file.shards = shards_on_disk(job.folder, items);
  if (job.file.shards.empty())
    job.file.shards = run::pack_items(
        {.items = request.items.size(),
         .expected_item_s = core_.usage.expected_item_s(stage.spec->name, stage.execution, request.job,
                                                        request.expected_item_s, core_.parts.start_s),
         .shard_s = core_.parts.shard_s > 0 ? core_.parts.shard_s : stage.spec->shard_s,
         .one_shard = request.one_shard,
         .least = request.least_shards,
         .slots = slots_of(request.resources),
         .start_s = core_.parts.start_s,
         .item_s = request.item_s});
  job.file.token = "ws-" + core_.parts.run_id + "-" + std::to_string(number);
  write_job(job.folder, job.file, request, items);
  if (core_.parts.replay != nullptr && request.program == "warpsmith-measure")
    prefill_records(job.folder, job.file, job.ids, *core_.parts.replay);
  core_.say({.kind = run::EventKind::kJobAdded,
             .execution = stage.execution,
             .job = number,
             .end = static_cast<std::uint32_t>(job.file.shards.size()),
             .round = request.round,
             .open = static_cast<std::uint32_t>(request.items.size()),
             .name = request.job,
             .hash = sha256_hex(items),
             .text = run::told_sizes(job.file.shards)});
}

void StageDriver::feed(std::uint32_t number) {
  if (const auto known = shards_.jobs().find(number);
      known != shards_.jobs().end() && core_.reactor.stage(known->second.stage) != run::StageState::kRunning)
    return;
  core_.log->write_done();
  const std::optional<LiveJob> taken = shards_.take(number);
  if (!taken) throw Error("a job is done that its stage has not asked for", kExitFailed);
  const LiveJob& job = *taken;
  LiveStage& one = live_[job.stage];
  one.open_jobs.erase(number);
  stages::JobResult result;
  try {
    result = read_results(core_.parts.run, job.folder, job.file, job.ids);
  } catch (const BadContent& e) {  // they were whole when the shards ended
    fail_stage(job.stage, std::string(e.what()) + begin_anew(one));
    return;
  }
  for (std::uint32_t s = 0; s < job.file.shards.size(); ++s) {
    if (!core_.reactor.shard_done({number, s})) continue;
    const auto [begin, end] = job.file.shards[s];
    const auto lost = std::count_if(result.items.begin() + static_cast<std::ptrdiff_t>(begin),
                                    result.items.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](const stages::ItemResult& item) { return item.record.is_null(); });
    if (lost == 0) continue;
    fail_stage(job.stage, (job.folder / std::to_string(s)).string() + ": " + std::to_string(lost) + " of " +
                              std::to_string(end - begin) + " records are gone" + begin_anew(one));
    return;
  }
  if (core_.parts.replay != nullptr && job.file.program == "warpsmith-measure")
    for (stages::ItemResult& item : result.items)
      if (item.record.is_object() && !item.record.value("replayed", false))
        item.record = ReplayTimings::without_clock(std::move(item.record));
  if (kind_of_job(job.file.job) == "train")
    for (const stages::ItemResult& item : result.items)
      note_figures(job.stage, kStepRow, job.file.round, item.record);
  note_device_times(result);
  ask(job.stage, [&] { return one.machine->on_job(result); });
  hears_.changed(false);
  hears_.result(false);
}

}  // namespace warpsmith::controller

// Stages and their jobs: what a stage asks for is written, what its shards left is read back and fed to it.

#include <fmt/format.h>

#include <algorithm>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/process/program_path.h"
#include "warpsmith/records/done_shards.h"
#include "warpsmith/run/packing.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/hosted_candidate.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::controller {

namespace {

constexpr std::chrono::steady_clock::duration kPublishPause = std::chrono::seconds(30);
constexpr std::size_t kMostGpuSlots = 64;  // as of CPUs: no job is cut into more for the sake of width alone

bool contains(const std::vector<std::string>& names, const workflow::StageSpec& stage) {
  return std::find(names.begin(), names.end(), stage.name) != names.end() ||
         std::find(names.begin(), names.end(), stage.base_name) != names.end();
}

// Tasks as command stages see them: their files are the program's to read.
std::vector<task::Task> named_tasks(const workflow::DatasetSettings& dataset) {
  std::vector<task::Task> tasks;
  for (const auto* ids : {&dataset.train, &dataset.heldout_combination, &dataset.heldout_operation})
    for (const std::string& id : *ids) {
      tasks.emplace_back();
      tasks.back().id = id;
      tasks.back().folder = dataset.folder / id;
    }
  return tasks;
}

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

void Controller::State::select() {
  const auto plans = plan::plan_stages(*parts.spec, digests, read_history(parts.run), parts.selection);
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    if (plans[i].action == plan::Action::kBlocked)
      throw Error("stage " + plans[i].stage + " cannot run: " + plans[i].reason, kExitUsage);
    if (plans[i].action != plan::Action::kNotSelected || live[i].spec->kind == "service") continue;
    live[i].plan = plans[i];
    if (plans[i].result.empty()) {  // not wanted, and nobody needs it
      reactor.skip(i);
      continue;
    }
    skip_stage(i, plans[i]);
  }
  refuse_without_room(plans);
}

std::map<std::string, std::string> Controller::State::upstream_digests(std::uint32_t stage) const {
  std::map<std::string, std::string> out;
  for (const std::string& need : live[stage].spec->needs)
    out.emplace(need, live[stage_number.at(need)].output_digest);
  return out;
}

const std::vector<task::Task>& Controller::State::tasks_of(const workflow::StageSpec& stage) {
  const std::pair key(stage.dataset.folder, stage.device != "cpu");
  if (const auto found = tasks.find(key); found != tasks.end()) return found->second;
  Diagnostics mistakes, elsewhere;
  std::vector<task::Task> loaded;
  if (!key.first.empty()) loaded = task::load_tasks(key.first, stage.dataset.ids(), mistakes, elsewhere);
  if (!mistakes.empty()) throw InvalidInput(std::move(mistakes));
  for (const Diagnostic& mistake : elsewhere)
    log_warning("a task that the workflow does not name is left out: " + to_string(mistake));
  for (task::Task& task : loaded) task = task::on_device(std::move(task), stage.device);
  return tasks.emplace(key, std::move(loaded)).first->second;
}

namespace {

// Of all candidates below the dataset's folder, also those of tasks that the workflow does not name.
std::shared_ptr<const std::set<std::string>> structures_below(const fs::path& dataset) {
  auto structures = std::make_shared<std::set<std::string>>();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dataset, error)) {
    if (!path_exists(entry.path() / "task.yaml")) continue;
    task::Task task;
    task.folder = entry.path();
    Diagnostics elsewhere;  // who begins with such a task is told
    if (path_exists(entry.path() / "candidates"))
      for (const task::CandidateFile& file : task::load_candidate_files(task, elsewhere))
        structures->insert(stages::structure_of(make_plan_candidate("", file.source, {})));
    std::vector<task::HostedSource> hosted = task::load_hosted_sources(task, elsewhere);
    for (task::HostedSource& source : task::load_imported_sources(task.folder, elsewhere))
      hosted.push_back(std::move(source));
    for (const task::HostedSource& source : hosted)
      structures->insert(stages::structure_of(toolchain::make_candidate("", source, {})));
  }
  return structures;
}

}  // namespace

// All that a stage needs, directly or not, in the order of the workflow.
stages::StageInputs Controller::State::stage_inputs(std::uint32_t stage) {
  std::set<std::string> needed(live[stage].spec->needs.begin(), live[stage].spec->needs.end());
  for (std::uint32_t i = stage; i-- > 0;)
    if (needed.contains(live[i].spec->name))
      needed.insert(live[i].spec->needs.begin(), live[i].spec->needs.end());
  stages::StageInputs inputs{.spec = *live[stage].spec,
                             .tasks = workflow::runs_program(live[stage].spec->kind)
                                          ? named_tasks(live[stage].spec->dataset)
                                          : tasks_of(*live[stage].spec),
                             .upstream = {},
                             .upstream_order = {}};
  // Only what a model writes is compared with what people wrote.
  if (const fs::path& dataset = live[stage].spec->dataset.folder;
      !dataset.empty() && workflow::resources_of_job(*live[stage].spec, "generate") != nullptr) {
    auto& structures = peoples_structures[dataset];
    if (structures == nullptr) structures = structures_below(dataset);
    inputs.peoples_structures = structures;
  }
  for (std::uint32_t i = 0; i < stage; ++i) {
    const std::string& name = live[i].spec->name;
    if (!needed.contains(name) || live[i].output_file.empty()) continue;
    inputs.upstream.emplace(name, read_json_file(live[i].output_file));
    inputs.upstream_order.push_back(name);
  }
  return inputs;
}

void Controller::State::skip_stage(std::uint32_t stage, const plan::StagePlan& plan) {
  live[stage].plan = plan;
  live[stage].folder = stage_folder(parts.run, plan.stage, plan.result);
  live[stage].output_file = live[stage].folder / "output.json";
  live[stage].output_digest = plan.output_digest;
  reactor.skip(stage);
}

void Controller::State::plan_services(std::uint32_t stage) {
  for (const std::string& need : live[stage].spec->needs) {
    LiveStage& service = live[stage_number.at(need)];
    if (service.spec->kind != "service" || !service.output_digest.empty()) continue;
    service.plan = plan::plan_stage(*service.spec, {}, upstream_digests(stage_number.at(need)), {});
    service.output_digest = service.plan.output_digest;
    service.folder = stage_folder(parts.run, need, service.plan.hash);
  }
}

namespace {

bool may_run(const plan::StagePlan& plan) {
  return plan.action != plan::Action::kUpToDate && plan.action != plan::Action::kAccept &&
         plan.action != plan::Action::kNotSelected;
}

// What several services hold together.
struct Held {
  int cpus = 0;
  std::map<std::string, std::size_t> gpus;  // by type
  std::string names;
};

// Empty: the job finds room beside them.
std::string no_room(const Held& held, const Resources& r, int cpus,
                    const std::map<std::string, std::size_t>& gpus) {
  if (held.cpus + std::max(1, r.cpus) > cpus)
    return fmt::format("service {} has {} of this machine's {} CPUs, and {} are asked for beside it",
                       held.names, held.cpus, cpus, std::max(1, r.cpus));
  const auto taken = held.gpus.find(r.gpu_type);
  const auto there = gpus.find(r.gpu_type);
  if (r.gpus > 0 && taken != held.gpus.end() && there != gpus.end() &&
      taken->second + static_cast<std::size_t>(r.gpus) > there->second)
    return fmt::format(
        "service {} has {} of this machine's {} GPUs of type {}, and {} are asked for beside it", held.names,
        taken->second, there->second, r.gpu_type, r.gpus);
  return "";
}

}  // namespace

// A service keeps what it has from the first who asks it to the last. What may run between them and finds no
// room beside it would wait for ever.
void Controller::State::refuse_without_room(const std::vector<plan::StagePlan>& plans) const {
  if (parts.executor->outlives()) return;
  std::vector<std::set<std::uint32_t>> needed(live.size()), askers(live.size());
  for (std::uint32_t i = 0; i < live.size(); ++i)
    for (const std::string& need : live[i].spec->needs) {
      const std::uint32_t number = stage_number.at(need);
      needed[i].insert(number);
      needed[i].insert(needed[number].begin(), needed[number].end());
      if (live[number].spec->kind == "service" && may_run(plans[i])) askers[number].insert(i);
    }
  const auto lives_beside = [&](std::uint32_t service, std::uint32_t stage) {
    const std::set<std::uint32_t>& all = askers[service];
    const bool is_before =
        std::all_of(all.begin(), all.end(), [&](auto one) { return needed[one].contains(stage); });
    const bool is_behind =
        std::all_of(all.begin(), all.end(), [&](auto one) { return needed[stage].contains(one); });
    return !is_before && !is_behind;
  };
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    if (live[i].spec->kind == "service" || !may_run(plans[i])) continue;
    Held held;
    for (std::uint32_t s = 0; s < live.size(); ++s) {
      const workflow::StageSpec& service = *live[s].spec;
      if (service.kind != "service" || !lives_beside(s, i)) continue;
      held.cpus += std::max(1, service.train.cpus);
      held.gpus[service.train.gpu_type] += static_cast<std::size_t>(service.train.gpus);
      held.names += (held.names.empty() ? "" : ", ") + service.name;
    }
    if (held.names.empty()) continue;
    for (const stages::PlannedJob& job : stages::planned_jobs(*live[i].spec, {}))
      if (const std::string why = no_room(held, job.resources, parts.slots, parts.gpus); !why.empty())
        throw Error(fmt::format("{} jobs of stage {} cannot run: {}", job.job, live[i].spec->name, why),
                    kExitUsage);
  }
}

void Controller::State::begin_stage(std::uint32_t stage) {
  LiveStage& one = live[stage];
  const workflow::StageSpec& spec = *one.spec;
  try {
    plan_services(stage);
    const auto found = digests.find(spec.dataset.folder);
    static const plan::DatasetDigests kNone;
    one.plan =
        plan::plan_stage(spec, found != digests.end() ? found->second : kNone, upstream_digests(stage),
                         read_former_results(parts.run, spec.name), contains(parts.selection.force, spec),
                         contains(parts.selection.accept, spec));
    if (one.plan.action == plan::Action::kAccept)
      accept_result(parts.run, spec.name, one.plan.result, one.plan.hash);
    if (one.plan.action == plan::Action::kAccept || one.plan.action == plan::Action::kUpToDate) {
      skip_stage(stage, one.plan);
      report(true);
      return;
    }
  } catch (const Error& e) {
    throw e.with_context("while planning stage " + spec.name);
  }
  one.ran = any_ran = true;
  one.began = std::chrono::steady_clock::now();
  one.folder = stage_folder(parts.run, spec.name, one.plan.hash);
  run_stage(stage);
  report(true);
}

void Controller::State::run_stage(std::uint32_t stage) {
  LiveStage& one = live[stage];
  const std::string& name = one.spec->name;
  // A result with this hash was forced to run again, or is not as it was written: it makes room first.
  if (path_exists(one.folder / "output.json") || contains(parts.selection.force, *one.spec))
    set_aside(parts.run, name, one.plan.hash);
  one.execution = reactor.execution_number(name, one.plan.hash);
  const bool known = reactor.has_execution(name, one.plan.hash);
  if (known && !path_exists(one.folder)) {
    say({.kind = run::EventKind::kStageDropped, .execution = one.execution});
    one.execution = reactor.execution_number(name, one.plan.hash);
  }
  if (!path_exists(one.folder / "inputs.json")) {
    make_folders(one.folder);
    write_file_atomic(one.folder / "inputs.json",
                      plan::inputs_file(*one.spec, one.plan.inputs).dump(2) + "\n");
  }
  const std::vector<std::uint32_t> told = reactor.has_execution(name, one.plan.hash)
                                              ? reactor.completed_of(one.execution)
                                              : std::vector<std::uint32_t>{};
  say({.kind = run::EventKind::kStageStarted, .name = name, .hash = one.plan.hash});
  stages::StageInputs inputs = stage_inputs(stage);
  ask(stage, [&] {
    one.machine = parts.make_stage(std::move(inputs));
    return one.machine->start();
  });
  // What it had been told before, in the same order: it answers as it did.
  for (const std::uint32_t job : told) {
    if (!one.machine) return;  // it has failed, and asks for no more jobs
    feed_job(job);
  }
}

// What a stage throws is its failure; what happens to our files is a fault of the run.
void Controller::State::ask(std::uint32_t stage, const std::function<stages::StageStep()>& question) {
  stages::StageStep step;
  try {
    step = question();
  } catch (const std::exception& e) {
    fail_stage(stage, e.what());
    return;
  }
  take_step(stage, std::move(step));
}

void Controller::State::take_step(std::uint32_t stage, stages::StageStep step) {
  if (step.progress.is_object() && !step.progress.empty()) live[stage].progress = std::move(step.progress);
  try {
    for (const stages::JobRequest& request : step.jobs) add_job(stage, request);
  } catch (const Error& e) {
    if (e.exit_code() == kExitEnvironment) throw;
    fail_stage(stage, e.what());
    return;
  }
  if (step.finished) {
    finish_stage(stage, step.output);
  } else if (live[stage].open_jobs.empty()) {
    fail_stage(stage, "it neither finished nor asked for more work");
  }
}

// Shards of that kind that may run side by side here: for those with GPUs these are what is scarce.
int Controller::State::slots_of(const Resources& resources) const {
  const auto type = parts.gpus.find(resources.gpu_type);
  if (resources.gpus <= 0 || type == parts.gpus.end())
    return std::max(1, parts.slots / std::max(1, resources.cpus));
  const std::size_t shards = type->second / static_cast<std::size_t>(resources.gpus) *
                             static_cast<std::size_t>(std::max(1, resources.shards_a_gpu));
  return static_cast<int>(std::clamp<std::size_t>(shards, 1, kMostGpuSlots));
}

fs::path Controller::State::find_program(const stages::JobRequest& request) const {
  const fs::path wanted = request.program;
  if (request.program.starts_with("warpsmith-")) {
    const fs::path ours = parts.programs / wanted;
    if (!process::runnable(ours))
      throw Error(request.program + " is not in " + parts.programs.string() +
                      ", where the controller lies: it was not built (`warpsmith doctor`)",
                  kExitUsage);
    return ours;
  }
  if (wanted.is_absolute()) return wanted;
  if (request.program.find('/') != std::string::npos)
    return fs::absolute(parts.spec->file).parent_path() / wanted;
  if (fs::path found = process::find_program(request.program); !found.empty()) return found;
  throw Error("there is no program `" + request.program + "` in PATH", kExitUsage);
}

void Controller::State::add_job(std::uint32_t stage, const stages::JobRequest& request) {
  LiveStage& one = live[stage];
  LiveJob job{.stage = stage,
              .file = {},
              .folder = job_folder(one.folder, request.round, request.job),
              .program = find_program(request),
              .ids = {},
              .resources = request.resources};
  job.ids.reserve(request.items.size());
  for (const Json& item : request.items)
    job.ids.push_back(json_at<std::string>(item, "id", "item of " + request.job));
  const std::string items = items_text(request);
  const std::string digest = sha256_hex(items);

  int number = -1;
  for (const std::uint32_t known : reactor.jobs_of(one.execution))
    if (reactor.job(known).round == request.round && reactor.job(known).name == request.job)
      number = static_cast<int>(known);
  if (number >= 0 && one.open_jobs.contains(static_cast<std::uint32_t>(number)))
    throw Error(
        "stage asks for the job " + request.job + " of round " + std::to_string(request.round) + " twice",
        kExitFailed);

  JobFile& file = job.file;
  file = {.program = request.program,
          .arguments = request.arguments,
          .run = parts.run.filename().string(),
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
  if (parts.unsandboxed) file.params["unsandboxed"] = true;
  if (parts.replay != nullptr) file.params.erase("baselines");  // they are timings, too
  if (file.params.contains("checkpoint_prefix"))
    file.params["checkpoint_prefix"] = checkpoint_prefix(one.spec->name, one.plan.hash);
  if (file.params.contains("stage_folder"))
    file.params["stage_folder"] =
        fs::relative(stage_folder(parts.run, one.spec->name, one.plan.hash), parts.run).generic_string();
  if (const auto endpoint = file.params.find("endpoint");
      endpoint != file.params.end() && endpoint->contains("service")) {
    const std::string service = endpoint->at("service");
    const LiveStage& served = live[stage_number.at(service)];
    (*endpoint)["service_file"] = fs::relative(service_file(served.folder), parts.run).generic_string();
    (*endpoint)["ready_s"] = std::get<workflow::ServiceSettings>(served.spec->settings).ready_s;
  }
  if (const auto model = file.params.find("model_of"); model != file.params.end()) {
    const LiveStage& of = live[stage_number.at(model->get<std::string>())];
    file.params["model_folder"] =
        fs::relative(of.output_file.parent_path() / "model", parts.run).generic_string();
    file.params.erase("model_of");
  }
  if (number >= 0) {
    const JobFile before = read_job_file(job.folder / "job.json");
    if (reactor.job(static_cast<std::uint32_t>(number)).digest != digest)
      throw Error("it asks for other items in " + job.folder.string() + " than when it ran first; `--force " +
                      one.spec->name + "` begins it anew",
                  kExitFailed);
    file.shards = before.shards;
    file.token = before.token;
    if (keeps_no_records(file)) job.done = read_done_shards(job.folder);
    if (to_json(file) != to_json(before)) write_job(job.folder, file, request, items);
  } else {
    number = static_cast<int>(reactor.jobs());
    file.shards = shards_on_disk(job.folder, items);
    if (file.shards.empty())
      file.shards = run::pack_items(
          {.items = request.items.size(),
           .expected_item_s = usage.expected_item_s(one.spec->name, one.execution, request.job,
                                                    request.expected_item_s, parts.start_s),
           .shard_s = parts.shard_s > 0 ? parts.shard_s : one.spec->shard_s,
           .one_shard = request.one_shard,
           .least = request.least_shards,
           .slots = slots_of(request.resources),
           .start_s = parts.start_s,
           .item_s = request.item_s});
    file.token = "ws-" + parts.run_id + "-" + std::to_string(number);
    write_job(job.folder, file, request, items);
    if (parts.replay != nullptr && request.program == "warpsmith-measure")
      prefill_records(job.folder, file, job.ids, *parts.replay);
    say({.kind = run::EventKind::kJobAdded,
         .execution = one.execution,
         .job = static_cast<std::uint32_t>(number),
         .end = static_cast<std::uint32_t>(file.shards.size()),
         .round = request.round,
         .open = static_cast<std::uint32_t>(request.items.size()),
         .name = request.job,
         .hash = digest,
         .text = run::told_sizes(file.shards)});
  }
  one.programs[request.job] = request.program;
  one.open_jobs.insert(static_cast<std::uint32_t>(number));
  jobs.insert_or_assign(static_cast<std::uint32_t>(number), std::move(job));
}

void Controller::State::feed_job(std::uint32_t number) {
  const auto found = jobs.find(number);
  if (found != jobs.end() && reactor.stage(found->second.stage) != run::StageState::kRunning) return;
  if (found == jobs.end()) throw Error("a job is done that its stage has not asked for", kExitFailed);
  journal->write_done();
  const LiveJob job = std::move(found->second);
  jobs.erase(found);
  LiveStage& one = live[job.stage];
  one.open_jobs.erase(number);
  stages::JobResult result{.round = job.file.round, .job = job.file.job, .items = {}};
  try {
    result.items = read_results(parts.run, job.folder, job.file, job.ids);
  } catch (const BadContent& e) {  // they were whole when the shards ended
    fail_stage(job.stage, std::string(e.what()) + begin_anew(one));
    return;
  }
  for (std::uint32_t s = 0; s < job.file.shards.size(); ++s) {
    if (!reactor.shard_done({number, s})) continue;
    const auto [begin, end] = job.file.shards[s];
    const auto lost = std::count_if(result.items.begin() + static_cast<std::ptrdiff_t>(begin),
                                    result.items.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](const stages::ItemResult& item) { return item.record.is_null(); });
    if (lost == 0) continue;
    fail_stage(job.stage, (job.folder / std::to_string(s)).string() + ": " + std::to_string(lost) + " of " +
                              std::to_string(end - begin) + " records are gone" + begin_anew(one));
    return;
  }
  if (parts.replay != nullptr && job.file.program == "warpsmith-measure")
    for (stages::ItemResult& item : result.items)
      if (item.record.is_object() && !item.record.value("replayed", false))
        item.record = ReplayTimings::without_clock(std::move(item.record));
  ask(job.stage, [&] { return one.machine->on_job(result); });
  report(false);
  publish_if_due();
}

void Controller::State::finish_stage(std::uint32_t stage, const stages::StageOutput& output) {
  LiveStage& one = live[stage];
  const std::string text = output.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  one.output_file = one.folder / "output.json";
  write_usage(stage);
  write_file_atomic(one.output_file, text);
  one.output_digest = sha256_hex(text);
  one.machine.reset();
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count();
  say({.kind = run::EventKind::kStageFinished, .execution = one.execution, .hash = one.output_digest});
  commit();
  report(true);
  publish_soon = true;
}

// Every two minutes, and after a stage as soon as the last time is a while ago; seldomer where it takes long.
// Whoever runs the controller does it once more at the end.
void Controller::State::publish_if_due() {
  const auto before = std::chrono::steady_clock::now();
  if (before - last_publish <= (publish_soon ? kPublishPause : publish_pause)) return;
  publish_soon = false;
  parts.publish();
  last_publish = std::chrono::steady_clock::now();
  publish_pause =
      std::max<std::chrono::steady_clock::duration>(std::chrono::minutes(2), 20 * (last_publish - before));
}

void Controller::State::fail_stage(std::uint32_t stage, const std::string& why) {
  LiveStage& one = live[stage];
  one.failure = why;
  one.machine.reset();
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count();
  say({.kind = run::EventKind::kStageFailed, .execution = one.execution, .text = why});
  parts.observer->on_message("stage " + one.spec->name + " failed: " + why);
  write_usage(stage);
  report(true);
}

}  // namespace warpsmith::controller

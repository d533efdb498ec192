#include "stage_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "services.h"
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

bool contains(const std::vector<std::string>& names, const workflow::StageSpec& stage) {
  return std::find(names.begin(), names.end(), stage.name) != names.end() ||
         std::find(names.begin(), names.end(), stage.base_name) != names.end();
}

// Tasks as command stages see them: their files are the program's to read.
std::vector<task::Task> named_tasks(const workflow::DatasetSettings& dataset) {
  std::vector<task::Task> tasks;
  for (const auto& [name, ids] : dataset.groups())
    for (const std::string& id : *ids) {
      tasks.emplace_back();
      tasks.back().id = id;
      tasks.back().folder = dataset.folder / id;
    }
  return tasks;
}

}  // namespace

StageDriver::StageDriver(RunCore& core, ShardTracker& shards, Hears hears)
    : core_(core),
      shards_(shards),
      hears_(std::move(hears)),
      digests_(plan::digest_datasets(*core.parts.spec)) {
  for (const workflow::StageSpec& stage : core.parts.spec->stages) {
    number_.emplace(stage.name, static_cast<std::uint32_t>(live_.size()));
    live_.emplace_back();
    live_.back().spec = &stage;
  }
}

void StageDriver::select() {
  const auto plans =
      plan::plan_stages(*core_.parts.spec, digests_, read_history(core_.parts.run), core_.parts.selection);
  for (std::uint32_t i = 0; i < live_.size(); ++i) {
    if (plans[i].action == plan::Action::kBlocked)
      throw Error("stage " + plans[i].stage + " cannot run: " + plans[i].reason, kExitUsage);
    if (plans[i].action != plan::Action::kNotSelected || live_[i].spec->kind == "service") continue;
    live_[i].plan = plans[i];
    if (plans[i].result.empty()) {  // not wanted, and nobody needs it
      core_.reactor.skip(i);
      continue;
    }
    skip_stage(i, plans[i]);
  }
  Room room{core_.parts.slots, core_.parts.memory_bytes, core_.parts.gpus, 0};
  if (core_.parts.executor->outlives())  // a cluster: its queue has room for what its machines have not
    room = {std::numeric_limits<int>::max(), 0, {}, core_.parts.executor->capacity()};
  refuse_without_room(*core_.parts.spec, plans, room);
}

std::map<std::string, std::string> StageDriver::upstream_digests(std::uint32_t stage) const {
  std::map<std::string, std::string> out;
  for (const std::string& need : live_[stage].spec->needs)
    out.emplace(need, live_[number_.at(need)].output_digest);
  return out;
}

const std::vector<task::Task>& StageDriver::tasks_of(const workflow::StageSpec& stage) {
  const std::pair key(stage.dataset.folder, stage.device != "cpu");
  if (const auto found = tasks_.find(key); found != tasks_.end()) return found->second;
  Diagnostics mistakes, elsewhere;
  std::vector<task::Task> loaded;
  if (!key.first.empty()) loaded = task::load_tasks(key.first, stage.dataset.ids(), mistakes, elsewhere);
  if (!mistakes.empty()) throw InvalidInput(std::move(mistakes));
  for (const Diagnostic& mistake : elsewhere)
    log_warning("a task that the workflow does not name is left out: " + to_string(mistake));
  for (task::Task& task : loaded) task = task::on_device(std::move(task), stage.device);
  return tasks_.emplace(key, std::move(loaded)).first->second;
}

// Of all candidates below the dataset's folder, also those of tasks that the workflow does not name.
StageDriver::Structures StageDriver::structures_below(const fs::path& dataset) {
  const Structures structures{std::make_shared<std::set<std::string>>(),
                              std::make_shared<std::set<std::string>>()};
  const auto add = [](std::set<std::string>& to, const std::vector<task::CandidateFile>& files) {
    for (const task::CandidateFile& file : files)
      to.insert(stages::structure_of(make_plan_candidate("", file.source, {})));
  };
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dataset, error)) {
    if (!path_exists(entry.path() / "task.yaml")) continue;
    task::Task task;
    task.folder = entry.path();
    Diagnostics elsewhere;  // who begins with such a task is told
    if (path_exists(entry.path() / "candidates"))
      add(*structures.people, task::load_candidate_files(task, elsewhere));
    add(*structures.templates, task::load_template_files(task, elsewhere));
    std::vector<task::HostedSource> hosted = task::load_hosted_sources(task, elsewhere);
    for (task::HostedSource& source : task::load_imported_sources(task.folder, elsewhere))
      hosted.push_back(std::move(source));
    for (const task::HostedSource& source : hosted)
      structures.people->insert(stages::structure_of(toolchain::make_candidate("", source, {})));
  }
  return structures;
}

// All that a stage needs, directly or not, in the order of the workflow.
stages::StageInputs StageDriver::stage_inputs(std::uint32_t stage) {
  std::set<std::string> needed(live_[stage].spec->needs.begin(), live_[stage].spec->needs.end());
  for (std::uint32_t i = stage; i-- > 0;)
    if (needed.contains(live_[i].spec->name))
      needed.insert(live_[i].spec->needs.begin(), live_[i].spec->needs.end());
  stages::StageInputs inputs{.spec = *live_[stage].spec,
                             .tasks = workflow::runs_program(live_[stage].spec->kind)
                                          ? named_tasks(live_[stage].spec->dataset)
                                          : tasks_of(*live_[stage].spec),
                             .upstream = {},
                             .upstream_order = {}};
  // Only what a model writes is compared with what people wrote.
  if (const fs::path& dataset = live_[stage].spec->dataset.folder;
      !dataset.empty() && workflow::resources_of_job(*live_[stage].spec, "generate") != nullptr) {
    Structures& structures = structures_[dataset];
    if (structures.people == nullptr) structures = structures_below(dataset);
    inputs.peoples_structures = structures.people;
    inputs.template_structures = structures.templates;
  }
  for (std::uint32_t i = 0; i < stage; ++i) {
    const std::string& name = live_[i].spec->name;
    if (!needed.contains(name) || live_[i].output_file.empty()) continue;
    inputs.upstream.emplace(name, read_json_file(live_[i].output_file));
    inputs.upstream_order.push_back(name);
  }
  return inputs;
}

void StageDriver::skip_stage(std::uint32_t stage, const plan::StagePlan& plan) {
  live_[stage].plan = plan;
  live_[stage].folder = stage_folder(core_.parts.run, plan.stage, plan.result);
  live_[stage].output_file = live_[stage].folder / "output.json";
  live_[stage].output_digest = plan.output_digest;
  note_earlier(stage);
  core_.reactor.skip(stage);
}

void StageDriver::plan_services(std::uint32_t stage) {
  for (const std::string& need : live_[stage].spec->needs) {
    LiveStage& service = live_[number_.at(need)];
    if (service.spec->kind != "service" || !service.output_digest.empty()) continue;
    service.plan = plan::plan_stage(*service.spec, {}, upstream_digests(number_.at(need)), {});
    service.output_digest = service.plan.output_digest;
    service.folder = stage_folder(core_.parts.run, need, service.plan.hash);
  }
}

void StageDriver::begin(std::uint32_t stage) {
  LiveStage& one = live_[stage];
  const workflow::StageSpec& spec = *one.spec;
  try {
    plan_services(stage);
    const auto found = digests_.find(spec.dataset.folder);
    static const plan::DatasetDigests kNone;
    one.plan = plan::plan_stage(spec, found != digests_.end() ? found->second : kNone,
                                upstream_digests(stage), read_former_results(core_.parts.run, spec.name),
                                contains(core_.parts.selection.force, spec),
                                contains(core_.parts.selection.accept, spec));
    if (one.plan.action == plan::Action::kAccept)
      accept_result(core_.parts.run, spec.name, one.plan.result, one.plan.hash);
    if (one.plan.action == plan::Action::kAccept || one.plan.action == plan::Action::kUpToDate) {
      skip_stage(stage, one.plan);
      hears_.changed(true);
      return;
    }
  } catch (const Error& e) {
    throw e.with_context("while planning stage " + spec.name);
  }
  one.ran = true;
  one.began = std::chrono::steady_clock::now();
  one.folder = stage_folder(core_.parts.run, spec.name, one.plan.hash);
  run_stage(stage);
  hears_.changed(true);
}

void StageDriver::run_stage(std::uint32_t stage) {
  LiveStage& one = live_[stage];
  const std::string& name = one.spec->name;
  // A result with this hash was forced to run again, or is not as it was written: it makes room first.
  if (path_exists(one.folder / "output.json") || contains(core_.parts.selection.force, *one.spec))
    set_aside(core_.parts.run, name, one.plan.hash);
  if (!path_exists(one.folder)) core_.metrics.forget(name, plan::hash8(one.plan.hash));
  one.execution = core_.reactor.execution_number(name, one.plan.hash);
  const bool known = core_.reactor.has_execution(name, one.plan.hash);
  if (known && !path_exists(one.folder)) {
    core_.say({.kind = run::EventKind::kStageDropped, .execution = one.execution});
    one.execution = core_.reactor.execution_number(name, one.plan.hash);
  }
  if (!path_exists(one.folder / "inputs.json")) {
    make_folders(one.folder);
    write_file_atomic(one.folder / "inputs.json",
                      plan::inputs_file(*one.spec, one.plan.inputs).dump(2) + "\n");
  }
  const std::vector<std::uint32_t> told = core_.reactor.has_execution(name, one.plan.hash)
                                              ? core_.reactor.completed_of(one.execution)
                                              : std::vector<std::uint32_t>{};
  core_.say({.kind = run::EventKind::kStageStarted, .name = name, .hash = one.plan.hash});
  stages::StageInputs inputs = stage_inputs(stage);
  ask(stage, [&] {
    one.machine = core_.parts.make_stage(std::move(inputs));
    return one.machine->start();
  });
  // What it had been told before, in the same order: it answers as it did.
  for (const std::uint32_t job : told) {
    if (!one.machine) return;  // it has failed, and asks for no more jobs
    feed(job);
  }
}

// What a stage throws is its failure; what happens to our files is a fault of the run.
void StageDriver::ask(std::uint32_t stage, const std::function<stages::StageStep()>& question) {
  stages::StageStep step;
  try {
    step = question();
  } catch (const std::exception& e) {
    fail_stage(stage, e.what());
    return;
  }
  take_step(stage, std::move(step));
}

void StageDriver::take_step(std::uint32_t stage, stages::StageStep step) {
  if (step.progress.is_object() && !step.progress.empty()) live_[stage].progress = std::move(step.progress);
  if (step.round.is_object()) note_figures(stage, kRoundRow, step.round.value("round", 0), step.round);
  try {
    for (const stages::JobRequest& request : step.jobs) add_job(stage, request);
  } catch (const Error& e) {
    if (e.exit_code() == kExitEnvironment) throw;
    fail_stage(stage, e.what());
    return;
  }
  if (step.finished) {
    finish_stage(stage, step.output);
  } else if (live_[stage].open_jobs.empty()) {
    fail_stage(stage, "it neither finished nor asked for more work");
  }
}

void StageDriver::finish_stage(std::uint32_t stage, const stages::StageOutput& output) {
  LiveStage& one = live_[stage];
  const std::string text = output.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  one.output_file = one.folder / "output.json";
  write_usage(stage);
  write_file_atomic(one.output_file, text);
  one.output_digest = sha256_hex(text);
  note_figures(stage, kStageRow, 0, output.value("summary", Json::object()));
  one.machine.reset();
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count();
  core_.say({.kind = run::EventKind::kStageFinished, .execution = one.execution, .hash = one.output_digest});
  core_.log->commit(*core_.parts.executor);
  hears_.changed(true);
  hears_.result(true);
}

void StageDriver::fail_stage(std::uint32_t stage, const std::string& why) {
  LiveStage& one = live_[stage];
  one.failure = why;
  one.machine.reset();
  one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count();
  core_.say({.kind = run::EventKind::kStageFailed, .execution = one.execution, .text = why});
  core_.tell("stage " + one.spec->name + " failed: " + why);
  write_usage(stage);
  hears_.changed(true);
}

void StageDriver::fail_by_shards(std::uint32_t stage) {
  std::string why = shards_.why_failed(live_[stage].execution);
  if (why.empty())
    for (const std::string& need : live_[stage].spec->needs)
      if (core_.reactor.stage(number_.at(need)) == run::StageState::kFailed)
        why = "its service " + need + " has failed";
  fail_stage(stage, why);
}

void StageDriver::write_usage(std::uint32_t stage) const {
  const LiveStage& one = live_[stage];
  Json by_name = Json::object();
  for (const auto& [name, job] : core_.usage.of(one.spec->name, one.execution)) {
    const auto program = one.programs.find(name);
    Json by_gpu = Json::object();
    for (const auto& [type, timed] : job.by_gpu)
      by_gpu[type] = {{"timed_items", timed.items}, {"wall_s", timed.wall_s}};
    by_name[name] = {{"program", program == one.programs.end() ? "" : program->second},
                     {"jobs", job.jobs},
                     {"shards", job.shards},
                     {"attempts", job.attempts},
                     {"items", job.items},
                     {"timed_items", job.timed.items},
                     {"wall_s", job.timed.wall_s},
                     {"cpu_s", job.cpu_s},
                     {"gpu_s", job.gpu_s},
                     {"by_gpu", std::move(by_gpu)},
                     {"peak_memory_bytes", job.peak_memory_bytes}};
  }
  const Json file = {{"schema", "warpsmith.usage/1"},
                     {"stage", one.spec->name},
                     {"kind", one.spec->kind},
                     {"written", std::time(nullptr)},
                     {"jobs", std::move(by_name)}};
  try {
    write_file_atomic(one.folder / "usage.json", file.dump(2) + "\n");
  } catch (const Error& e) {  // only estimates go without it
    core_.tell(e.what());
  }
}

}  // namespace warpsmith::controller

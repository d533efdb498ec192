// `warpsmith run`: carries a workflow through its stages, or goes on with a run.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "load_options.h"
#include "print.h"
#include "progress.h"
#include "run.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/controller/controller.h"
#include "warpsmith/controller/device_doubts.h"
#include "warpsmith/controller/in_job.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/run_queue.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/process/stop_signals.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

using Options = RunOptions;

// Slurm sends it to the controller's job before its time limit. A job that is told to end by anything else
// (scancel, `warpsmith cancel`, preemption) does not see to it that it goes on: that is up to whoever told
// it.
constexpr int kTimeIsUp = SIGUSR1;

std::string random_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", device(), device());
  return text;
}

// run.json: written when the run is made, and brought up to date when it goes on.
Json open_run(const fs::path& run, const workflow::WorkflowSpec& spec, const Options& options,
              const std::string& site) {
  const fs::path file = run / "run.json";
  Json json = Json::object();
  const bool old = path_exists(file);
  if (old) json = read_run_json(run);
  const std::string replay =
      options.replay.empty() ? "" : fs::absolute(options.replay).lexically_normal().string();
  if (old && !replay.empty() && json.value("replay_timings", "") != replay)
    throw Error("the run " + run.string() + " was not made with --replay-timings " + options.replay +
                    "; --new makes another",
                kExitUsage);
  if (!old) {
    json = {
        {"schema", "warpsmith.run/1"},   {"name", run.filename().string()}, {"id", random_id()},
        {"created", std::time(nullptr)}, {"host", process::host_name()},    {"version", WARPSMITH_VERSION},
        {"builds", Json::array()},       {"replay_timings", replay}};
  }
  if (!json.contains("builds"))  // of a version that did not note them
    json["builds"] = Json::array({{{"version", json.value("version", "")}}});
  json["workflow"] = spec.name;
  json["site"] = site;
  json["controller_job"] = options.in_job ? controller::own_job() : 0;
  json["working_folder"] = fs::current_path().string();
  json["workflow_file"] = fs::absolute(spec.file).lexically_normal().string();
  json["seed"] = spec.seed;
  json["params"] = spec.params;
  json["overrides"] = options.overrides;
  json["accepted"] = options.selection.accept;
  write_file_atomic(file, json.dump(2) + "\n");
  write_file_atomic(run / "workflow.yaml", spec.text);
  for (const char* folder : {"journal", "stages", "checkpoints", "cache"}) make_folders(run / folder);
  return json;
}

void notify(const std::string& command, const fs::path& run, const std::string& state) {
  if (command.empty()) return;
  process::ChildSpec spec;
  spec.argv = {"/bin/sh", "-c", command};
  std::map<std::string, std::string> environment = process::our_environment();
  environment["WARPSMITH_RUN"] = fs::absolute(run).string();
  environment["WARPSMITH_STATE"] = state;
  spec.environment = std::move(environment);
  spec.capture_output = false;
  spec.limits.wall_s = 60;
  const process::ChildResult result = process::run_child(spec);
  if (result.ending != process::Ending::kExited || result.exit_code != 0)
    log_warning("the notify command `" + command + "` did not end well" +
                (result.problem.empty() ? "" : ": " + result.problem));
}

// Shows the run's state, notes the build that runs its stages, and tells of each stage that has ended in this
// life, once and at once.
class StageNotifier : public controller::RunObserver {
 public:
  StageNotifier(ProgressPrinter& progress, const workflow::WorkflowSpec& spec, fs::path run, Build build)
      : progress_(progress), spec_(spec), run_(std::move(run)), build_(std::move(build)) {}

  void on_state(const Json& state) override {
    progress_.on_state(state);
    for (const Json& stage : state.at("stages")) {
      const std::string end = stage.value("state", "");
      if (stage.value("ran", false)) note();
      if (!stage.value("ran", false) || (end != "finished" && end != "failed")) continue;
      const std::string name = stage.value("stage", "");
      if (!told_.insert(name).second) continue;
      for (const workflow::StageSpec& one : spec_.stages) {
        if (one.name != name) continue;
        progress_.clear();
        notify(end == "finished" ? one.notify.on_end : one.notify.on_failure, run_, end);
      }
    }
  }
  void on_message(const std::string& message) override { progress_.on_message(message); }
  void on_news(const std::string& message) override { progress_.on_news(message); }
  // That this build has run a stage.
  void note() {
    if (!std::exchange(noted_, true)) note_build(run_, build_);
  }

 private:
  ProgressPrinter& progress_;
  const workflow::WorkflowSpec& spec_;
  const fs::path run_;
  const Build build_;
  bool noted_ = false;
  std::set<std::string> told_;
};

void publish(const fs::path& run, bool replayed) {
  const bool changed = controller::aggregate_run(run).written;  // also where it was short or damaged
  // A replayed run has nobody's timings: no report is made of it.
  if (replayed || (!changed && path_exists(run / "report.html"))) return;
  store::Results results = store::current_versions(controller::stored_results(run));
  controller::note_doubts(run, results);
  write_file_atomic(run / "report.html", report::html(results));
}

// results.h5, the report and doubts about GPUs, while the run goes on.
class Publisher {
 public:
  Publisher(fs::path run, bool replayed, ProgressPrinter& progress)
      : run_(std::move(run)), replayed_(replayed), progress_(progress) {}

  void publish() {
    try {
      tell_doubts();
      cli::publish(run_, replayed_);
    } catch (const Error& e) {  // the records are safe; it is tried again at the next stage
      progress_.on_message(std::string("results.h5 was not written: ") + e.what());
    }
  }

 private:
  // Of each GPU that is hardly what its kind says, once and at once.
  void tell_doubts() {
    for (const controller::DeviceDoubt& doubt : controller::device_doubts(run_))
      if (told_.insert(doubt.uuid).second) progress_.on_message(to_string(doubt));
  }

  const fs::path run_;
  const bool replayed_;
  ProgressPrinter& progress_;
  std::set<std::string> told_;
};

std::string command_again(const Options& options, const CommandContext& context) {
  std::string text = "warpsmith";
  if (context.results != "results") text += " --results " + context.results.string();
  text += " run " + options.file;
  for (const std::string& o : options.overrides) text += " --set '" + o + "'";
  if (!options.site.empty()) text += " --site " + options.site;
  if (options.seed) text += " --seed " + std::to_string(*options.seed);
  if (!options.run_dir.empty()) text += " --run-dir " + options.run_dir;
  return text;
}

// Before anything is written: a stage that cannot run as things stand, unless it is not to run.
void refuse_blocked(const workflow::WorkflowSpec& spec, const fs::path& run,
                    const plan::Selection& selection) {
  if (std::all_of(spec.stages.begin(), spec.stages.end(), [](const auto& s) { return s.blocked.empty(); }))
    return;
  for (const plan::StagePlan& one :
       plan::plan_stages(spec, plan::digest_datasets(spec), controller::read_history(run), selection))
    if (one.action == plan::Action::kBlocked)
      throw Error("stage " + one.stage + " cannot run: " + one.reason, kExitUsage);
}

// Throws InvalidInput.
workflow::WorkflowSpec load_selected(const Options& options) {
  workflow::LoadResult loaded = workflow::load_workflow(
      options.file, with_folders({.overrides = options.overrides, .seed = options.seed, .base_folder = {}}));
  if (!loaded.spec) throw InvalidInput(loaded.mistakes);
  if (Diagnostics mistakes = plan::check_selection(*loaded.spec, options.selection); !mistakes.empty())
    throw InvalidInput(std::move(mistakes));
  for (const Diagnostic& note : loaded.notes) log_info(to_string(note));
  return std::move(*loaded.spec);
}

struct NamedSite {
  std::string name;                        // or the file's path; empty: this machine
  std::optional<workflow::SiteSpec> site;  // nothing: this machine
};

// A run goes on where it was begun: its shards may be in that cluster's queue.
NamedSite site_of(const Options& options, const fs::path& run) {
  NamedSite where{options.site, std::nullopt};
  if (where.name.empty() && path_exists(run / "run.json")) where.name = read_run_json(run).value("site", "");
  if (where.name.empty() && options.in_job) where.name = controller::site_of_job();
  where.site = controller::load_named_site(where.name);
  if (!where.site) where.name.clear();
  if (where.name.find('/') != std::string::npos)
    where.name = fs::absolute(where.name).lexically_normal().string();
  // Which cluster that is shall not depend on the environment of whoever looks at the run later.
  if (const char* conf = std::getenv("SLURM_CONF"); where.site && where.site->conf.empty() && conf != nullptr)
    where.site->conf = conf;
  return where;
}

void write_site(const fs::path& run, const std::optional<workflow::SiteSpec>& site) {
  if (site)
    write_file_atomic(run / "site.yaml", site->conf.empty() ? site->text : workflow::site_yaml(*site));
  else
    fs::remove(run / "site.yaml");
}

void refuse_without_sandbox(const workflow::WorkflowSpec& spec, const Options& options) {
  const bool runs_candidates = std::any_of(
      spec.stages.begin(), spec.stages.end(),
      [](const workflow::StageSpec& s) { return !workflow::runs_program(s.kind) && s.kind != "sft"; });
  if (runs_candidates && !options.unsandboxed && process::available_sandbox() == process::SandboxLevel::kNone)
    throw Error(
        "no sandbox works here (`warpsmith doctor` says why): candidates would run unprotected; "
        "--unsandboxed allows it");
}

// What the controller needs of the workflow, the command line and the place; all must outlive it.
controller::ControllerParts parts_of(const workflow::WorkflowSpec& spec, const fs::path& run,
                                     const Options& options, const controller::SiteExecutor& place) {
  controller::ControllerParts parts;
  parts.spec = &spec;
  parts.run = run;
  parts.programs = program_folder();
  parts.executor = place.executor.get();
  parts.interrupted = [] { return process::StopSignals::asked(); };
  parts.selection = options.selection;
  parts.slots = place.slots;
  parts.memory_bytes = place.memory_bytes;
  parts.gpus = place.gpus;
  if (place.site) {
    parts.start_s = place.site->start_s;
    parts.shard_s = place.site->shard_s;
  }
  parts.detach = [&options] { return options.detach || options.in_job; };
  parts.unsandboxed = options.unsandboxed;
  return parts;
}

int finish(const controller::RunOutcome& outcome, const fs::path& run, const std::string& again,
           const workflow::WorkflowSpec& spec, bool replayed, CommandContext& context) {
  const std::string state = outcome.state.value("state", "");
  using Kind = controller::RunOutcome::Kind;
  bool published = true;
  try {
    publish(run, replayed);
  } catch (const Error& e) {
    published = false;
    log_error(std::string("results.h5 and the report could not be written (`warpsmith report ") +
              run.string() + "` tries again): " + e.what());
  }
  if (context.json) {
    Json answer = outcome.state;
    answer["folder"] = run.string();
    print_json(context, answer);
  } else if (outcome.kind == Kind::kNothingToDo) {
    print("%s: nothing to do, every stage is up to date (`--force STAGE` runs one again)\n",
          run.string().c_str());
  } else {
    print("%s: %s after %s\n%s", run.string().c_str(), state.c_str(),
          format_duration(std::chrono::milliseconds(
                              static_cast<std::int64_t>(outcome.state.value("seconds", 0.0) * 1000)))
              .c_str(),
          state_table(context, outcome.state).c_str());
    if (path_exists(run / "results.h5")) print("  results: %s\n", (run / "results.h5").string().c_str());
    if (path_exists(run / "report.html")) print("  report:  %s\n", (run / "report.html").string().c_str());
    for (const std::string& stage : outcome.failed)
      print("  why: warpsmith why %s --run %s\n", stage.c_str(), run.string().c_str());
  }
  if (outcome.kind == Kind::kDetached) {
    print_error("Detached; the cluster's jobs go on. To go on with them: %s\n", again.c_str());
    return kExitInterrupted;
  }
  if (outcome.kind == Kind::kInterrupted) {
    print_error("Interrupted; nothing finished is lost. To go on: %s\n", again.c_str());
    return kExitInterrupted;
  }
  if (outcome.kind == Kind::kOverBudget) {
    notify(spec.notify.on_failure, run, state);
    print_error("The budget is used up (%.3g GPU-hours used). To go on with a larger one: %s\n",
                outcome.gpu_hours, again.c_str());
    return kExitFailed;
  }
  if (outcome.kind == Kind::kNothingToDo) return published ? kExitOk : kExitEnvironment;
  notify(outcome.kind == Kind::kFailed ? spec.notify.on_failure : spec.notify.on_end, run, state);
  if (outcome.kind == Kind::kFailed) return outcome.environment ? kExitEnvironment : kExitFailed;
  return published ? kExitOk : kExitEnvironment;
}

}  // namespace

void note_build(const fs::path& run, const Build& build) {
  Json one = Json::object();
  for (const auto& [key, value] : {std::pair("version", build.version), std::pair("commit", build.commit),
                                   std::pair("torch", build.torch), std::pair("cuda", build.cuda)})
    if (!value.empty()) one[key] = value;
  Json json = read_run_json(run);
  Json& builds = json["builds"];
  if (std::any_of(builds.begin(), builds.end(), [&](Json known) {
        known.erase("since");
        return known == one;
      }))
    return;
  one["since"] = std::time(nullptr);
  builds.push_back(std::move(one));
  write_file_atomic(run / "run.json", json.dump(2) + "\n");
}

std::vector<std::string> command_line() {
  std::vector<std::string> words = split(read_file("/proc/self/cmdline"), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  if (!words.empty()) words.front() = (program_folder() / "warpsmith").string();
  return words;
}

fs::path choose_folder(const Options& options, const CommandContext& context, const std::string& name) {
  if (!options.run_dir.empty()) return options.run_dir;
  const fs::path plain = context.results / name;
  if (!options.fresh || !path_exists(plain)) return plain;
  for (int n = 2;; ++n) {
    const fs::path numbered = context.results / (name + "-" + std::to_string(n));
    if (!path_exists(numbered)) return numbered;
  }
}

void add_place_options(CLI::App& command, RunOptions& options, CommandContext& context) {
  command.add_option(
      "--site", options.site,
      "Site file, or its name: the cluster that jobs run on (default: the run's own, else this machine)");
  command.add_flag("--detach", options.detach,
                   "On Ctrl-C leave the cluster's jobs running; the same command goes on with them");
  command.add_flag("--in-job", options.in_job,
                   "This controller is a Slurm job: before its time limit it hands over to its next one");
  command.add_flag("--unsandboxed", options.unsandboxed, "Run candidates without a sandbox where none works");
  command.add_flag("--quiet", options.quiet, "No progress");
  add_json_flag(command, context);
}

int run_workflow(const Options& options, CommandContext& context) {
  if (options.in_job) (void)controller::own_job();  // throws where there is none
  workflow::WorkflowSpec spec = load_selected(options);
  const fs::path run = choose_folder(options, context, spec.name);
  NamedSite where = site_of(options, run);
  const std::vector<process::Gpu> gpus = controller::look_at_place(spec, where.site);
  refuse_blocked(spec, run, options.selection);
  make_folders(run);
  const controller::RunLock lock(run);
  controller::refuse_to_leave_queue(run, where.name, where.site);
  Options resolved = options;
  if (!options.replay.empty()) resolved.replay = find_run(context, options.replay).string();
  const Json json = open_run(run, spec, resolved, where.name);
  write_site(run, where.site);
  if (options.in_job && !where.site)
    throw Error("--in-job needs the site file of the cluster: --site, or WARPSMITH_SITE", kExitUsage);
  std::optional<controller::ReplayTimings> replay;
  if (const std::string from = json.value("replay_timings", ""); !from.empty()) replay.emplace(from);
  refuse_without_sandbox(spec, options);

  const process::StopSignals signals(options.in_job ? std::vector<int>{kTimeIsUp} : std::vector<int>{});
  const std::string again = command_again(options, context);
  ProgressPrinter progress(context, ::isatty(STDERR_FILENO) == 1, options.quiet);
  StageNotifier observer(progress, spec, run, context.build);
  Publisher publisher(run, replay.has_value(), progress);
  log_info("run " + run.string() +
           (replay ? ", timings replayed from " + json.value("replay_timings", "") : ""));
  if (const std::string text = controller::auto_device_text(spec); !text.empty()) log_info(text);
  controller::SiteExecutor place =
      controller::make_executor(std::move(where.site), run, json.value("id", ""), gpus);
  controller::ControllerParts parts = parts_of(spec, run, options, place);
  parts.run_id = json.value("id", "");
  parts.observer = &observer;
  parts.publish = [&observer, &publisher] {
    observer.note();  // results.h5 holds run.json
    publisher.publish();
  };
  parts.replay = replay ? &*replay : nullptr;
  try {
    controller::RunOutcome outcome = controller::Controller(std::move(parts)).run();
    outcome.state.update(options.answer);
    outcome.state["doubted_gpus"] = controller::to_json(controller::device_doubts(run));
    progress.clear();
    const int code = finish(outcome, run, again, spec, replay.has_value(), context);
    if (outcome.kind != controller::RunOutcome::Kind::kDetached || !options.in_job ||
        !process::StopSignals::asked(kTimeIsUp))
      return code;
    log_info(controller::hand_over(*place.site, json.value("id", ""), options.command));
    return kExitOk;
  } catch (const Error& e) {
    place.executor->shut_down();
    progress.clear();
    if (e.exit_code() != kExitBusy) publisher.publish();  // else it is another controller's by now
    if (e.exit_code() == kExitEnvironment)
      print_error("The run stops. What was finished is kept; when the cause is mended, go on with: %s\n",
                  again.c_str());
    notify(spec.notify.on_failure, run, "failed");
    throw;
  }
}

void add_run(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "run", "Runs a workflow, or goes on with its run",
                  "warpsmith run workflows/quickstart.yaml --set params.sft_steps=600", [options, &context] {
                    options->command = command_line();
                    return run_workflow(*options, context);
                  });
  expect(Word::kWorkflow, command->add_option("FILE", options->file, "Workflow file"))->required();
  add_override_options(*command, options->overrides);
  add_seed_option(*command, options->seed);
  command->add_flag("--new", options->fresh, "Make another run instead of going on with the last");
  command->add_option("--run-dir", options->run_dir,
                      "Folder of the run (default: results/<name of the workflow>)");
  auto& s = options->selection;
  command->add_option("--from", s.from, "These stages and those that need them")->allow_extra_args(false);
  command->add_option("--only", s.only, "These stages alone")->allow_extra_args(false);
  command->add_option("--until", s.until, "These stages and those that they need")->allow_extra_args(false);
  command->add_option("--force", s.force, "Run these although they are up to date")->allow_extra_args(false);
  command->add_option("--accept", s.accept, "Count the newest results of these as up to date")
      ->allow_extra_args(false);
  expect(Word::kRun,
         command->add_option(
             "--replay-timings", options->replay,
             "Take scores from that run instead of measuring: for tests of everything but timing"));
  add_place_options(*command, *options, context);
}

}  // namespace warpsmith::cli

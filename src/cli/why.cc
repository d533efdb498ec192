// `warpsmith why STAGE`: why it is waiting, stale or failed; its last lines; the command that repeats it by
// hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "load_options.h"
#include "print.h"
#include "progress.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/journal_view.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/executor/batch.h"
#include "warpsmith/records/job.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

constexpr int kLogLines = 15;

struct Options {
  std::string stage, run;
};

std::optional<workflow::SiteSpec> site_of(const fs::path& run, const Json& json) {
  Diagnostics none;
  if (json.value("site", "").empty() || !fs::exists(run / "site.yaml")) return std::nullopt;
  return workflow::load_site(run / "site.yaml", none);
}

// The stage's plan as things stand: the workflow file as it is now, against what the run holds.
std::optional<std::pair<workflow::WorkflowSpec, std::vector<plan::StagePlan>>> plan_now(const fs::path& run) {
  const Json json = read_run_json(run);
  fs::path file = json.value("workflow_file", "");
  if (!path_exists(file)) return std::nullopt;
  workflow::LoadOptions options;
  options.overrides = json.value("overrides", std::vector<std::string>{});
  options.seed = json.value("seed", std::uint64_t{1});
  workflow::LoadResult loaded = workflow::load_workflow(file, with_folders(options));
  if (!loaded.spec) throw InvalidInput(std::move(loaded.mistakes));
  controller::look_at_place(*loaded.spec, site_of(run, json));
  auto plans =
      plan::plan_stages(*loaded.spec, plan::digest_datasets(*loaded.spec), controller::read_history(run));
  return std::pair(std::move(*loaded.spec), std::move(plans));
}

std::vector<std::string> tail(const fs::path& file, int count) {
  if (!path_exists(file)) return {};
  std::vector<std::string> lines = split_lines(read_file(file));
  if (lines.size() > static_cast<std::size_t>(count)) lines.erase(lines.begin(), lines.end() - count);
  return lines;
}

// What Slurm's daemons wrote in the array's log about one of its tasks; without one, the log's end.
std::vector<std::string> lines_about(const fs::path& file, const std::string& task) {
  std::vector<std::string> lines = split_lines(read_file(file)), about;
  for (const std::string& line : lines)
    if (line.find(task) != std::string::npos) about.push_back(line);
  if (about.empty()) return tail(file, 3);
  if (about.size() > 5) about.erase(about.begin(), about.end() - 5);
  return about;
}

// How the run's shards are started: where its controller works, and at which site.
struct Surroundings {
  fs::path folder;
  std::optional<workflow::SiteSpec> site;
};

Surroundings surroundings_of(const fs::path& run) {
  const Json json = read_run_json(run);
  Surroundings around{.folder = json.value("working_folder", ""), .site = site_of(run, json)};
  if (around.site && around.site->executor == "local") around.site.reset();
  if (around.site) around.folder = fs::absolute(run);
  return around;
}

std::string command_of(const JobFile& job, const fs::path& job_file, std::uint32_t shard,
                       const Surroundings& around) {
  const bool ours = job.program.starts_with("warpsmith-");
  const run::ShardStart start{.key = {0, shard},
                              .job_file = fs::absolute(job_file),
                              .program = ours ? program_folder() / job.program : fs::path(job.program),
                              .arguments = job.arguments,
                              .log = {},
                              .resources = job.resources,
                              .token = {}};
  const workflow::SitePlace* place = around.site ? workflow::place_for(*around.site, job.resources) : nullptr;
  return executor::command_by_hand(start, around.folder, place);
}

// Shards whose last attempt ended badly, the worst first: what failed the stage stands last in the journal.
Json bad_shards(const controller::JournalView& view, const controller::ExecutionHistory& execution,
                const fs::path& run) {
  Json out = Json::array();
  const Surroundings around = surroundings_of(run);
  for (const std::uint32_t number : execution.jobs) {
    const controller::JobHistory& job = view.jobs[number];
    const fs::path folder = controller::job_folder(
        controller::stage_folder(run, execution.stage, execution.hash), job.round, job.name);
    for (const auto& [shard, end] : job.last_end) {
      if (end.event.open == 0 || end.event.cause == EndCause::kCancelled ||
          end.event.cause == EndCause::kUnknown)
        continue;
      Json one = {{"round", job.round},
                  {"job", job.name},
                  {"shard", shard},
                  {"cause", to_string(end.event.cause)},
                  {"exit_code", end.event.exit_code},
                  {"signal", end.event.signal},
                  {"attempts", end.attempts},
                  {"items_left", end.event.open},
                  {"seconds", end.event.wall_s},
                  {"peak_memory_bytes", end.event.memory},
                  {"log", (folder / std::to_string(shard) / "log.txt").string()},
                  {"last_lines", tail(folder / std::to_string(shard) / "log.txt", kLogLines)}};
      if (!end.event.text.empty()) one["detail"] = end.event.text;
      if (!end.event.name.empty()) one["slurm_job"] = end.event.name;
      if (const fs::path said = folder / "slurm.log"; !end.event.name.empty() && path_exists(said))
        one["slurm_says"] = lines_about(said, end.event.name.substr(0, end.event.name.find('@')));
      if (path_exists(folder / "job.json"))
        one["command"] = command_of(read_job_file(folder / "job.json"), folder / "job.json", shard, around);
      out.push_back(std::move(one));
    }
  }
  return out;
}

Error no_such_stage(const std::string& stage, const fs::path& run, const controller::JournalView& view,
                    const workflow::WorkflowSpec* spec) {
  std::vector<std::string> known = view.stages();
  if (spec != nullptr)
    for (const workflow::StageSpec& one : spec->stages) known.push_back(one.name);
  return Error("there is no stage `" + stage + "` in the workflow of " + run.string() +
                   did_you_mean(stage, known, {.before = " (", .after = ")"}),
               kExitUsage);
}

Json explain(const std::string& stage, const fs::path& run) {
  Json out = {{"stage", stage}, {"run", run.string()}};
  const controller::JournalView view = controller::view_journal(run);
  const controller::ExecutionHistory* execution = view.newest(stage);
  const auto now = plan_now(run);
  const plan::StagePlan* plan = nullptr;
  if (now)
    for (const plan::StagePlan& one : now->second)
      if (one.stage == stage) plan = &one;
  if (plan == nullptr && execution == nullptr)
    throw no_such_stage(stage, run, view, now ? &now->first : nullptr);
  if (plan != nullptr) {
    out["action"] = to_string(plan->action);
    out["reason"] = plan->reason;
    Json changes = Json::array();
    for (const plan::Change& change : plan->changes) changes.push_back(plan::to_string(change));
    out["changes"] = std::move(changes);
    Json waits = Json::array();
    for (const workflow::StageSpec& spec : now->first.stages) {
      if (spec.name != stage) continue;
      for (const std::string& need : spec.needs)
        for (const plan::StagePlan& other : now->second)
          if (other.stage == need && other.action != plan::Action::kUpToDate &&
              other.action != plan::Action::kAccept)
            waits.push_back(need);
    }
    out["waits_for"] = std::move(waits);
  }
  if (execution != nullptr) {
    // Of an execution with another hash one only wants to know that the stage is stale.
    out["folder"] = controller::stage_folder(run, stage, execution->hash).string();
    if (!execution->failure.empty()) out["failure"] = execution->failure;
    if (!execution->finished) out["shards"] = bad_shards(view, *execution, run);
  }
  out["running"] = controller::RunLock::holder(run).has_value();
  try {
    const Json queue = read_state_json(run).value("executor", Json::object());
    try {
      (void)queue_text(queue);
    } catch (const Json::exception& e) {
      throw BadContent(run / "state.json", (run / "state.json").string() + ": `executor`: " + in_words(e));
    }
    if (out["running"].get<bool>() && !queue.empty()) out["queue"] = queue;
  } catch (const Error& e) {
    out["problem"] = e.what();
  }
  return out;
}

void print_explanation(const Json& e, const CommandContext& context) {
  print("%s", paint(context, "bold", e.at("stage").get<std::string>()).c_str());
  if (e.contains("failure"))
    print(": %s: %s\n", paint(context, "red", "failed").c_str(), e.at("failure").get<std::string>().c_str());
  else
    print(": %s\n", e.value("action", "").c_str());
  if (e.contains("reason") && e.value("reason", "") != e.value("action", ""))
    print("  %s: %s\n", e.value("action", "").c_str(), e.value("reason", "").c_str());
  for (const Json& change : e.value("changes", Json::array()))
    print("    %s\n", change.get<std::string>().c_str());
  for (const Json& need : e.value("waits_for", Json::array()))
    print("  waits for %s (`warpsmith why %s`)\n", need.get<std::string>().c_str(),
          need.get<std::string>().c_str());
  if (e.contains("problem")) print("  how far it is cannot be read: %s\n", e.value("problem", ""));
  print("%s", queue_text(e.value("queue", Json::object()), e.value("stage", "")).c_str());
  for (const Json& shard : e.value("shards", Json::array())) {
    print("  round %d, job %s, shard %d: %s", shard.value("round", 0), shard.value("job", "").c_str(),
          shard.value("shard", 0), paint(context, "red", shard.value("cause", "")).c_str());
    if (const int s = shard.value("signal", 0); s != 0) print(" (signal %d)", s);
    if (const int c = shard.value("exit_code", 0); c != 0) print(" (exit code %d)", c);
    print(" after %d attempts, %d items left\n", shard.value("attempts", 0), shard.value("items_left", 0));
    if (shard.contains("slurm_job")) print("    Slurm job %s\n", shard.value("slurm_job", "").c_str());
    for (const Json& line : shard.value("slurm_says", Json::array()))
      print("      | %s\n", line.get<std::string>().c_str());
    if (shard.contains("detail")) print("    %s\n", shard.value("detail", "").c_str());
    print("    log: %s\n", shard.value("log", "").c_str());
    for (const Json& line : shard.value("last_lines", Json::array()))
      print("      | %s\n", line.get<std::string>().c_str());
    if (shard.contains("command")) print("    by hand: %s\n", shard.value("command", "").c_str());
  }
}

int why(const Options& options, CommandContext& context) {
  const Json explanation = explain(options.stage, find_run(context, options.run));
  if (context.json)
    print_json(context, explanation);
  else
    print_explanation(explanation, context);
  return kExitOk;
}

}  // namespace

void add_why(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, context, "why", "Says why a stage waits, is stale or failed, and how to repeat it by hand",
      "warpsmith why contrastive --run quickstart", [options, &context] { return why(*options, context); });
  command->add_option("STAGE", options->stage, "Name of the stage")->required();
  add_run_argument(*command, options->run, "--run");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

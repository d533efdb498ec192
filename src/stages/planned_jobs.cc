#include <algorithm>

#include "checker.h"
#include "jobs.h"
#include "teachers.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::stages {

namespace {

std::uint64_t count(int value) { return static_cast<std::uint64_t>(std::max(value, 0)); }

void add_verification(std::vector<PlannedJob>& jobs, int round, std::uint64_t samples, int turn = 1) {
  jobs.push_back({round, job_of_turn("compile", turn), samples, true});
  jobs.push_back({round, job_of_turn("measure", turn), samples, true});
}

std::uint64_t prompts_for(std::uint64_t samples, std::uint64_t at_most) {
  return (samples + at_most - 1) / at_most;
}

struct Planner {
  const workflow::StageSpec& spec;
  std::vector<PlannedJob> jobs;

  // A server reads the weights that it is to have.
  void add_weights(int round) {
    if (spec.policy && workflow::has_own_model(spec)) jobs.push_back({round, kWeights, 1, true});
  }
  // How many scores jump is known when they are measured.
  void add_checks(int round, std::uint64_t at_most) {
    if (spec.checker) jobs.push_back({round, Checker::kJob, at_most, at_most > 0});
  }
  // A round's samples: `prompts` of the first turn, and each sample asked again in the others.
  void add_turns(int round, int turns, std::uint64_t prompts, std::uint64_t samples) {
    for (int turn = 1; turn <= turns; ++turn) {
      jobs.push_back({round, job_of_turn("generate", turn), turn == 1 ? prompts : samples, turn > 1});
      add_verification(jobs, round, samples, turn);
    }
  }
  std::uint64_t train_tasks() const { return spec.dataset.train.size(); }
  std::uint64_t all_tasks() const {  // but those for stage 1 alone
    std::uint64_t all = 0;
    for (const auto& [name, ids] : spec.dataset.groups())
      if (ids != &spec.dataset.sft_only) all += ids->size();
    return all;
  }

  void add_export(int round) {
    if (!workflow::export_type(spec).empty()) jobs.push_back({round, "export", 1, false});
  }

  // How many candidates the dataset's files and their variants are is known when they have been read.
  void operator()(const workflow::CollectSettings& s) {
    jobs.push_back({0, "collect", all_tasks() + spec.dataset.sft_only.size(), false});
    jobs.push_back({0, "compile", 0, false});
    jobs.push_back({0, "measure", 0, false});
    // How many more rounds there are, depends on what succeeds.
    for (const workflow::TeacherSettings& teacher : s.teachers)
      jobs.push_back({1, Teachers::kJobPrefix + teacher.name, train_tasks(), false});
    if (!s.teachers.empty()) add_verification(jobs, 1, 0);
  }
  void operator()(const workflow::SftSettings& s) {
    jobs.push_back({0, "train", count(std::max(1, s.steps)), false});
    add_export(0);
  }
  void operator()(const workflow::SelfSupervisedSettings& s) {
    for (int round = 1; round <= s.rounds; ++round) {
      add_weights(round);
      add_turns(round, s.turns, train_tasks() * prompts_for(count(s.samples), kSamplesAnItem),
                train_tasks() * count(s.samples));
      add_checks(round, train_tasks() * count(s.samples) * count(s.turns));
      if (workflow::has_own_model(spec)) jobs.push_back({round, "train", count(s.steps), true});
    }
    if (workflow::has_own_model(spec)) add_export(s.rounds);
  }
  void operator()(const workflow::ContrastiveSettings& s) {
    const std::uint64_t samples = count(s.prompts) * count(s.group);
    // A step takes batch_tokens; a sample has at most max_tokens and its group's prompt, which fit in the
    // context.
    const std::uint64_t batch = std::max<std::uint64_t>(1, count(spec.optimizer.batch_tokens));
    const std::uint64_t tokens =
        samples * count(s.turns) * count(spec.sample.max_tokens) +
        (count(s.prompts) + samples * count(s.turns - 1)) * count(spec.model.context);
    for (int round = 1; round <= s.rounds; ++round) {
      add_weights(round);
      add_turns(round, s.turns, count(s.prompts), samples);
      add_checks(round, samples * count(s.turns));
      const std::uint64_t steps = std::min((tokens + batch - 1) / batch, count(s.prompts));  // whole groups
      if (s.update) jobs.push_back({round, "train", count(std::max(1, s.epochs)) * steps, true});
    }
    if (s.update) add_export(s.rounds);
  }
  void operator()(const workflow::MeasureSettings& s) {
    std::uint64_t tasks = 0;
    for (const auto& [name, ids] : spec.dataset.groups())
      if (s.wants_group(name)) tasks += ids->size();
    if (workflow::measures_again(spec)) {
      if (!spec.lacks.empty()) return;  // it says so of each candidate, and runs nothing
      if (spec.taken) {
        jobs.push_back({0, "compile", spec.taken->list.size(), false});
        jobs.push_back({0, "measure", spec.taken->list.size(), true});
        add_checks(0, spec.taken->list.size());
        return;
      }
      // `best`: one a task at most; `all` is known when the stages before have ended.
      const std::uint64_t items = s.select == "all" ? 0 : tasks;
      jobs.push_back({0, "compile", items, items > 0});
      jobs.push_back({0, "measure", items, items > 0});
      add_checks(0, items);
      return;
    }
    jobs.push_back(
        {0, "generate",
         tasks * prompts_for(count(s.samples), s.contrastive_prompt ? kSamplesADraw : kSamplesAnItem),
         false});
    add_verification(jobs, 0, tasks * count(s.samples));
    add_checks(0, tasks * count(s.samples));
  }
  void operator()(const workflow::CommandSettings& s) {
    const bool unknown = s.items == "candidates";
    jobs.push_back({0, "command", s.items == "none" ? 1 : unknown ? 0 : all_tasks(), false});
  }
  void operator()(const workflow::ServiceSettings&) { jobs.push_back({0, "service", 1, false}); }
};

void add_durations(PlannedJob& job, const workflow::StageSpec& spec) {
  const std::string_view kind = kind_of_job(job.job);
  if (kind == "generate") {
    job.least_shards = spec.generate_shards;
    job.expected_item_s =
        seconds_a_token(spec) * spec.sample.max_tokens * (kind == job.job ? kSamplesAnItem : 1);
  }
  static const std::vector<Candidate> kNone;
  const std::vector<Candidate>& known = spec.taken ? spec.taken->list : kNone;
  if (kind == "compile") job.expected_item_s = compile_seconds(known);
  if (kind == "measure") job.expected_item_s = measure_seconds(spec, known);
  if (job.job == "train") job.expected_item_s = kTrainStepSeconds;
  if (job.job == "export" || job.job == kWeights) job.expected_item_s = kExportSeconds;
  job.one_shard = job.job == "train" || job.job == "service" || job.job == "export" || job.job == kWeights ||
                  (kind == "generate" && spec.policy) || (kind == "measure" && measures_in_one_shard(spec));
}

void add_program(PlannedJob& job, const workflow::StageSpec& spec) {
  const auto* command = std::get_if<workflow::CommandSettings>(&spec.settings);
  const std::string_view kind = kind_of_job(job.job);
  const bool asks = Teachers::is_job(job.job) || job.job == Checker::kJob;
  job.one_shard = job.one_shard || asks;
  job.program = command == nullptr      ? "warpsmith-" + (job.job == "export" || job.job == kWeights ? "train"
                                                          : asks                                     ? "generate"
                                                                 : std::string(kind))
                : command->argv.empty() ? ""
                                        : command->argv.front();
  job.resources = kind == "generate" || asks                  ? spec.generate
                  : kind == "measure"                         ? spec.measure
                  : kind == "compile" || job.job == "collect" ? spec.compile
                  : kind == "service"                         ? spec.service
                                                              : spec.train;
  if (asks) job.resources.gpus = 0, job.resources.gpu_type.clear();  // the server has them
}

}  // namespace

std::vector<PlannedJob> planned_jobs(const workflow::StageSpec& spec, const std::vector<task::Task>&) {
  Planner planner{spec, {}};
  std::visit(planner, spec.settings);
  for (PlannedJob& job : planner.jobs) {
    add_durations(job, spec);
    add_program(job, spec);
  }
  return std::move(planner.jobs);
}

}  // namespace warpsmith::stages

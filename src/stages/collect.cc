// `collect`: candidates from the dataset's files and by augmentation, compiled and measured.
#include <fmt/format.h>

#include <algorithm>

#include "kinds.h"
#include "summary.h"
#include "teachers.h"
#include "verifier.h"

namespace warpsmith::stages {

namespace {

class CollectStage final : public Stage {
 public:
  explicit CollectStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::CollectSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        verifier_(inputs_, known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        teachers_(inputs_.spec, tasks_, verifier_) {
    if (tasks_.all().empty() && tasks_.sft_only().empty())
      throw Error(fmt::format("stage {}: the dataset has no tasks", inputs_.spec.name), kExitUsage);
  }

  StageStep start() override {
    const workflow::AugmentSettings& augment = settings_.augment;
    JobRequest job;
    job.round = 0;
    job.job = "collect";
    job.program = "warpsmith-collect";
    job.params = {{"datasets", inputs_.spec.dataset.folder.string()},
                  {"stage", inputs_.spec.name},
                  {"augment",
                   {{"variants", augment.variants},
                    {"rename_identifiers", augment.rename_identifiers},
                    {"block_sizes", augment.block_sizes}}}};
    if (inputs_.spec.prompt.answer != "plan") job.params["tier"] = inputs_.spec.prompt.answer;
    // Held-out tasks are for evaluation: nothing is learned from their variants.
    for (const std::string& task : tasks_.all())
      job.items.push_back({{"id", task}, {"augment", tasks_.group(task) == "train"}});
    for (const std::string& task : tasks_.sft_only()) job.items.push_back({{"id", task}, {"augment", false}});
    job.resources = inputs_.spec.compile;
    job.expected_item_s = 0.1;
    return ask(std::move(job), progress());
  }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || result.round != teachers_.round()) unexpected(inputs_.spec, result);
    std::optional<JobRequest> next;
    if (result.job == "collect") {
      next = verifier_.begin(0, read_collected(result));
    } else if (Teachers::is_job(result.job)) {
      if (!teachers_.on_job(result))
        return {.jobs = {}, .finished = false, .output = {}, .progress = progress()};
      next = verifier_.begin(teachers_.round(), teachers_.take());
    } else if (result.job == "compile" || result.job == "measure") {
      next = verifier_.on_job(result);
    } else {
      unexpected(inputs_.spec, result);
    }
    if (next) return ask(std::move(*next), progress());
    if (std::vector<JobRequest> jobs = teachers_.next_round(); !jobs.empty())
      return {.jobs = std::move(jobs), .finished = false, .output = {}, .progress = progress()};
    return finish();
  }

 private:
  std::vector<Candidate> read_collected(const JobResult& result) {
    std::vector<Candidate> candidates;
    for (const ItemResult& item : result.items) {
      if (item.record.is_null()) {
        ++lost_tasks_;
        continue;
      }
      for (const Json& entry : item.record.at("candidates")) {
        Candidate candidate = candidate_from_json(entry.at("candidate"));
        candidate.origin.stage = inputs_.spec.name;
        if (tasks_.group(candidate.task) == "sft_only") {
          if (entry.value("expected", "") == "ok") unmeasured_.push_back(to_json(candidate));
          continue;
        }
        if (const std::string expected = entry.value("expected", ""); !expected.empty())
          verifier_.expect(candidate.id, expected);
        candidates.push_back(std::move(candidate));
      }
    }
    return candidates;
  }

  // How many rounds the teachers need is known at the end.
  StageProgress progress() const {
    return {{"round", teachers_.round()}, {"rounds", std::max(1, teachers_.round())}};
  }

  // Dataset files whose verdict is not the one that their folder names. Verdicts that say nothing about them
  // don't count.
  std::uint64_t unexpected_verdicts() const {
    std::uint64_t count = 0;
    for (const std::string& id : verifier_.met()) {
      const Known& k = verifier_.at(id);
      if (k.expected.empty() || k.measurement.verdict == Verdict::kNotMeasured ||
          k.measurement.verdict == Verdict::kUnsupported)
        continue;
      if (k.expected == "unsupported" && is_success(k.measurement.verdict)) continue;  // by a GPU that has it
      const std::string wanted = k.expected == "wrong_hidden" ? "wrong_output" : k.expected;
      if (to_string(k.measurement.verdict) != wanted) ++count;
    }
    return count;
  }

  StageStep finish() {
    finished_ = true;
    StageStep step;
    step.finished = true;
    step.output = begin_output(inputs_.spec);
    step.output["candidates"] = candidates_json(verifier_);
    step.output["tasks"] = Json::array();
    for (const std::string& id : tasks_.all()) step.output["tasks"].push_back(task_json(tasks_, id));
    Json summary = figures_by_group(counted(verifier_), tasks_);
    summary["tasks"] = tasks_.all().size();
    if (!tasks_.sft_only().empty()) {
      summary["sft_only"] = {{"tasks", tasks_.sft_only().size()}, {"programs", unmeasured_.size()}};
      step.output["unmeasured"] = std::move(unmeasured_);
    }
    summary["lost_tasks"] = lost_tasks_;
    summary["unexpected_verdicts"] = unexpected_verdicts();
    if (!settings_.teachers.empty()) summary["teachers"] = teachers_.summary();
    step.progress = progress();
    step.progress.update(figures(counted(verifier_), tasks_));
    step.output["summary"] = std::move(summary);
    return step;
  }

  const StageInputs inputs_;
  const workflow::CollectSettings settings_;
  const TaskSet tasks_;
  Verifier verifier_;
  Teachers teachers_;
  std::uint64_t lost_tasks_ = 0;
  Json unmeasured_ = Json::array();  // candidates of tasks of group `sft_only`
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_collect(StageInputs inputs) {
  return std::make_unique<CollectStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

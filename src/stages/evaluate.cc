// `measure`: samples of a frozen checkpoint, or the candidates of earlier stages or of another run measured
// again, or imported ones.
#include <fmt/format.h>

#include <algorithm>

#include "checker.h"
#include "kinds.h"
#include "sampling_round.h"
#include "summary.h"
#include "warpsmith/base/random.h"
#include "warpsmith/method/exemplars.h"
#include "warpsmith/method/reward.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::stages {

namespace {

class EvaluateStage final : public Stage {
 public:
  explicit EvaluateStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::MeasureSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        verifier_(inputs_, again()
                               ? std::vector<Known>()
                               : known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        round_(inputs_.spec, verifier_),
        checker_(inputs_, tasks_, verifier_) {
    const workflow::StageSpec& spec = inputs_.spec;
    const bool sources[] = {!settings_.checkpoint_of.empty(), !settings_.candidates_of.empty(),
                            !settings_.candidates_of_run.empty(), !settings_.candidates.empty(),
                            spec.policy.has_value()};
    if (std::count(std::begin(sources), std::end(sources), true) != 1)
      throw Error(fmt::format("stage {}: needs one of `checkpoint_of`, `candidates_of`, `candidates_of_run`, "
                              "`candidates` and `policy`",
                              spec.name),
                  kExitUsage);
    if (!again() && !spec.lacks.empty())
      throw Error(fmt::format("stage {}: {}", spec.name, spec.lacks), kExitUsage);
    if (settings_.takes()) {
      if (!spec.taken || spec.taken->list.empty())
        throw Error(fmt::format("stage {}: the candidates of {} are not known", spec.name,
                                settings_.candidates_of_run + settings_.candidates),
                    kExitUsage);
      selected_ = spec.taken->list;
    } else if (again()) {
      select();
    } else {
      if (!spec.policy) checkpoint_ = checkpoint_of(inputs_, settings_.checkpoint_of);
      make_prompts();
    }
  }

  StageStep start() override {
    if (!again()) {
      round_.begin(0, checkpoint_, std::move(prompts_));
      return ask(round_.generate(), progress());
    }
    if (!inputs_.spec.lacks.empty()) {
      for (const Candidate& c : selected_)
        verifier_.add_verdict(c, Verdict::kNotMeasured, inputs_.spec.lacks);
      return finish();
    }
    if (auto job = verifier_.begin(0, selected_)) return ask(std::move(*job), progress());
    return check();
  }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || (again() && result.job == "generate")) unexpected(inputs_.spec, result);
    if (result.job == Checker::kJob) {
      checker_.on_job(result);
      return finish();
    }
    if (auto job = round_.on_job(result)) return ask(std::move(*job), progress());
    return check();
  }

 private:
  bool again() const { return workflow::measures_again(inputs_.spec); }
  std::vector<std::string> wanted() const {
    std::vector<std::string> tasks = tasks_.all();
    std::erase_if(tasks, [&](const std::string& task) { return !settings_.wants_group(tasks_.group(task)); });
    return tasks;
  }

  // The successes to be measured again: the fastest of each task, or all. There may be none: a model may have
  // written nothing that is right.
  void select() {
    std::vector<std::string> stages;
    for (const std::string& name : settings_.candidates_of) stages.push_back(instance_of(inputs_, name));
    std::map<std::string, std::vector<Known>> by_task;
    for (Known& k : known_of_any_device(stages))
      if (is_success(k.measurement.verdict)) by_task[k.candidate.task].push_back(std::move(k));
    for (const std::string& task : wanted()) {
      const auto it = by_task.find(task);
      if (it == by_task.end()) continue;
      if (settings_.select == "all") {
        for (const Known& k : it->second) selected_.push_back(k.candidate);
      } else {
        selected_.push_back(
            std::max_element(it->second.begin(), it->second.end(), [](const Known& a, const Known& b) {
              return a.measurement.speedup < b.measurement.speedup;
            })->candidate);
      }
    }
  }

  // What was the best elsewhere is measured here: kernels tuned on one device type are swept over others.
  std::vector<Known> known_of_any_device(const std::vector<std::string>& stages) const {
    std::vector<Known> out;
    std::set<std::string> seen;
    for (const std::string& stage : stages) {
      StageInputs one;
      one.spec.name = inputs_.spec.name;
      one.spec.device = inputs_.upstream.at(stage).value("device", inputs_.spec.device);
      one.upstream[stage] = inputs_.upstream.at(stage);
      for (Known& k : known_candidates(one, {stage}, Comparable::kDevice))
        if (seen.insert(k.candidate.id).second) out.push_back(std::move(k));
    }
    return out;
  }

  // With the contrastive prompt: exemplars from the dataset's own programs only, drawn without regard to the
  // stage's name, so that all checkpoints of a workflow are asked the same.
  void make_prompts() {
    const method::PromptForm form = form_of(inputs_.spec.prompt);
    method::ExemplarDatabase database({});
    if (settings_.contrastive_prompt)
      for (const Known& k : known_candidates(inputs_, inputs_.upstream_order, Comparable::kDevice))
        if (!is_by_model(k.candidate) && is_example(k.candidate, form.answer) &&
            method::outcome_of(k.measurement) == method::Outcome::kValid)
          database.add(k.candidate.task, 0,
                       {k.candidate.id, k.candidate.source(), k.measurement.speedup_rounded});
    const int an_item = settings_.contrastive_prompt ? kSamplesADraw : kSamplesAnItem;
    for (const std::string& task : wanted())
      for (Prompt& prompt : split_samples(task, settings_.samples, an_item)) {
        std::vector<method::Exemplar> exemplars;
        const std::uint64_t key =
            random_key({inputs_.spec.seed, name_key("evaluation"), name_key(prompt.id)});
        for (method::Program& p : database.draw(task, inputs_.spec.prompt.exemplars, key).exemplars)
          exemplars.push_back({std::move(p.source), p.score});
        set_texts(method::contrastive_prompts(tasks_.at(task), std::move(exemplars), form), &prompt);
        prompts_.push_back(std::move(prompt));
      }
    if (prompts_.empty())
      throw Error(fmt::format("stage {}: no task, or no samples", inputs_.spec.name), kExitUsage);
  }

  StageProgress progress() const { return {{"round", 0}, {"rounds", 1}}; }

  StageStep check() {
    if (auto job = checker_.ask(0, verifier_.met())) return ask(std::move(*job), progress());
    return finish();
  }

  StageStep finish() {
    finished_ = true;
    StageStep step;
    step.finished = true;
    step.output = begin_output(inputs_.spec);
    step.output["candidates"] = candidates_json(verifier_);
    const std::vector<Counted> list = again() ? counted(verifier_) : counted(round_.samples(), verifier_);
    step.output["samples"] = Json::array();
    if (again()) {
      if (!settings_.candidates_of.empty()) step.output["candidates_of"] = settings_.candidates_of;
      if (!settings_.candidates_of_run.empty())
        step.output["candidates_of_run"] =
            std::filesystem::path(settings_.candidates_of_run).filename().string();
      if (settings_.takes()) step.output["tasks"] = tasks_json(selected_);
      for (const Counted& c : list) step.output["samples"].push_back(remeasured_json(*c.known));
    } else {
      if (!inputs_.spec.policy) {
        step.output["checkpoint_of"] = settings_.checkpoint_of;
        step.output["evaluated"] = checkpoint_.path;
      }
      for (const Sample& s : round_.samples())
        step.output["samples"].push_back(sample_json(s, verifier_, tasks_));
    }
    step.output["summary"] = figures_by_group(list, tasks_);
    step.output["summary"]["lost_samples"] = round_.lost();
    step.output["summary"]["exemplars_left_out"] = round_.exemplars_left_out();
    if (inputs_.spec.policy)
      step.output["summary"]["server"] = server_json(*inputs_.spec.policy, round_.spent(), round_.refused());
    checker_.write(step.output);
    step.progress = progress();
    step.progress.update(figures(list, tasks_));
    if (!inputs_.spec.lacks.empty()) step.progress["note"] = inputs_.spec.lacks;
    if (again() && selected_.empty())
      step.progress["note"] = "the stages in `candidates_of` hold no right program: nothing was measured";
    return step;
  }

  // Those that candidates from elsewhere are for: no stage of this workflow has collected them.
  Json tasks_json(const std::vector<Candidate>& candidates) const {
    std::set<std::string> wanted;
    for (const Candidate& c : candidates) wanted.insert(c.task);
    Json out = Json::array();
    for (const std::string& id : tasks_.all())
      if (wanted.contains(id)) out.push_back(task_json(tasks_, id));
    return out;
  }

  Json remeasured_json(const Known& k) const {
    Json out = {{"round", 0},
                {"task", k.candidate.task},
                {"group", tasks_.group(k.candidate.task)},
                {"candidate", k.candidate.id},
                {"verdict", to_string(k.measurement.verdict)}};
    if (k.measurement.verdict == Verdict::kOk) out["speedup"] = k.measurement.speedup;
    return out;
  }

  const StageInputs inputs_;
  const workflow::MeasureSettings settings_;
  const TaskSet tasks_;
  Verifier verifier_;
  SamplingRound round_;
  Checker checker_;
  Checkpoint checkpoint_;
  std::vector<Prompt> prompts_;
  std::vector<Candidate> selected_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_evaluate(StageInputs inputs) {
  return std::make_unique<EvaluateStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

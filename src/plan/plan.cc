#include "warpsmith/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/text.h"

namespace warpsmith::plan {

namespace {

using workflow::StageSpec;
using workflow::WorkflowSpec;

using Names = std::set<std::string>;

Names expand(const WorkflowSpec& spec, const std::vector<std::string>& names) {
  Names all;
  for (const std::string& name : names)
    for (std::string& instance : instances(spec, name)) all.insert(std::move(instance));
  return all;
}

// `names` and every stage that they need, directly or not.
Names with_needed(const WorkflowSpec& spec, Names names) {
  for (auto stage = spec.stages.rbegin(); stage != spec.stages.rend(); ++stage)
    if (names.contains(stage->name)) names.insert(stage->needs.begin(), stage->needs.end());
  return names;
}

// `names` and every stage that needs one of them, directly or not.
Names with_dependents(const WorkflowSpec& spec, Names names) {
  for (const StageSpec& stage : spec.stages)
    if (std::any_of(stage.needs.begin(), stage.needs.end(),
                    [&](const std::string& n) { return names.contains(n); }))
      names.insert(stage.name);
  return names;
}

// The stages that a selection lets run: those that every part of it that is given allows.
Names selected_stages(const WorkflowSpec& spec, const Selection& selection) {
  Names selected;
  for (const StageSpec& stage : spec.stages) selected.insert(stage.name);
  const auto keep = [&](const Names& allowed) {
    std::erase_if(selected, [&](const std::string& n) { return !allowed.contains(n); });
  };
  if (!selection.from.empty()) keep(with_dependents(spec, expand(spec, selection.from)));
  if (!selection.until.empty()) keep(with_needed(spec, expand(spec, selection.until)));
  if (!selection.only.empty()) keep(expand(spec, selection.only));
  return selected;
}

const FormerResult* newest_finished(const std::vector<FormerResult>& former) {
  for (const FormerResult& result : former)
    if (result.finished) return &result;
  return nullptr;
}

void use_result(StagePlan& plan, const FormerResult& result) {
  plan.result = result.hash;
  plan.output_digest = result.output_digest;
}

// "a: 1 -> 2", and how many more.
std::string told(const std::vector<Change>& changes) {
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < 3; ++i)
    text += (i == 0 ? "" : "; ") + to_string(changes[i]);
  if (changes.size() > 3) text += fmt::format("; and {} more", changes.size() - 3);
  return text;
}

// It runs where somebody who asks it does, and where nobody does it need not be possible.
void plan_service(const WorkflowSpec& spec, std::size_t service, std::vector<StagePlan>& plans) {
  std::string askers;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Action action = plans[i].action;
    const auto& needs = spec.stages[i].needs;
    if (std::find(needs.begin(), needs.end(), spec.stages[service].name) != needs.end() &&
        action != Action::kNotSelected && action != Action::kUpToDate && action != Action::kAccept)
      askers += (askers.empty() ? "" : ", ") + plans[i].stage;
  }
  if (askers.empty()) {
    plans[service].action = Action::kUpToDate;
    plans[service].reason = "nobody who runs asks it";
  } else if (plans[service].action == Action::kRun) {
    plans[service].reason = "for " + askers;
  }
}

class Planner {
 public:
  Planner(const WorkflowSpec& spec, const Digests& digests, const History& history,
          const Selection& selection)
      : digests_(digests),
        history_(history),
        selected_(selected_stages(spec, selection)),
        forced_(expand(spec, selection.force)),
        accepted_(expand(spec, selection.accept)) {}

  StagePlan plan(const StageSpec& stage) {
    StagePlan plan = decide(stage);
    state_[stage.name] = {plan.action, plan.output_digest};
    return plan;
  }

 private:
  struct State {
    Action action;
    std::string output_digest;
  };

  StagePlan decide(const StageSpec& stage) {
    static const std::vector<FormerResult> kNone;
    const auto found = history_.find(stage.name);
    const std::vector<FormerResult>& former = found == history_.end() ? kNone : found->second;
    StagePlan plan;
    plan.stage = stage.name;
    if (!selected_.contains(stage.name) && stage.kind != "service") {
      plan.action = Action::kNotSelected;
      const FormerResult* newest = newest_finished(former);
      plan.reason = newest == nullptr ? "not selected, and never run"
                                      : "not selected: its newest result is used as it is";
      if (newest != nullptr) use_result(plan, *newest);
      return plan;
    }
    if (!stage.blocked.empty()) {
      plan.action = Action::kBlocked;
      plan.reason = stage.blocked;
      return plan;
    }
    const DatasetDigests& digests = digests_.at(stage.dataset.folder);
    std::map<std::string, std::string> upstream;
    for (const std::string& needed : stage.needs) {
      const State& state = state_.at(needed);
      if (state.action == Action::kBlocked ||
          (state.action == Action::kNotSelected && state.output_digest.empty())) {
        plan.action = Action::kBlocked;
        plan.reason = state.action == Action::kBlocked
                          ? fmt::format("needs {}, which cannot run", needed)
                          : fmt::format("needs {}, which is not selected and has no result", needed);
        return plan;
      }
      if (!state.output_digest.empty()) upstream[needed] = state.output_digest;
    }
    if (upstream.size() < stage.needs.size())
      return before_upstream(stage, former, digests, std::move(upstream), std::move(plan));
    return plan_stage(stage, digests, upstream, former, forced_.contains(stage.name),
                      accepted_.contains(stage.name));
  }

  // A stage that needs one that will run: the digest of that one's output is not known yet.
  StagePlan before_upstream(const StageSpec& stage, const std::vector<FormerResult>& former,
                            const DatasetDigests& digests, std::map<std::string, std::string> upstream,
                            StagePlan plan) const {
    if (accepted_.contains(stage.name)) {
      if (const FormerResult* newest = newest_finished(former)) {
        plan.action = Action::kAccept;
        plan.reason = "accepted as up to date";
        use_result(plan, *newest);
        return plan;
      }
    }
    std::string waits;
    for (const std::string& needed : stage.needs)
      if (!upstream.contains(needed)) waits += (waits.empty() ? "" : ", ") + needed;
    plan.action = Action::kRun;
    const FormerResult* newest = newest_finished(former);
    if (newest == nullptr) {
      plan.reason = former.empty() ? "never run" : "never finished";
      return plan;
    }
    if (forced_.contains(stage.name)) {
      plan.reason = "forced";
      return plan;
    }
    // Were the outputs to come out as before, would anything else differ?
    const Json* known = nullptr;
    if (const auto it = newest->inputs.find("upstream"); it != newest->inputs.end()) known = &*it;
    for (const std::string& needed : stage.needs)
      if (!upstream.contains(needed)) upstream[needed] = known == nullptr ? "?" : known->value(needed, "?");
    plan.changes = differences(newest->inputs, stage_inputs(stage, digests, upstream));
    if (!plan.changes.empty()) {
      plan.reason = told(plan.changes);
      return plan;
    }
    plan.action = Action::kDepends;
    plan.reason = fmt::format("needs {}, which will run; skipped if its output comes out as before", waits);
    return plan;
  }

  const Digests& digests_;
  const History& history_;
  Names selected_, forced_, accepted_;
  std::map<std::string, State> state_;
};

}  // namespace

std::string_view to_string(Action action) {
  switch (action) {
    case Action::kUpToDate:
      return "up to date";
    case Action::kAccept:
      return "accept";
    case Action::kRun:
      return "run";
    case Action::kResume:
      return "resume";
    case Action::kDepends:
      return "depends";
    case Action::kNotSelected:
      return "not selected";
    case Action::kBlocked:
      return "blocked";
  }
  return "";
}

std::vector<std::string> instances(const WorkflowSpec& spec, const std::string& name) {
  std::vector<std::string> found;
  for (const StageSpec& stage : spec.stages)
    if (stage.name == name) return {name};
  for (const StageSpec& stage : spec.stages)
    if (stage.base_name == name) found.push_back(stage.name);
  return found;
}

Diagnostics check_selection(const WorkflowSpec& spec, const Selection& selection) {
  Diagnostics mistakes;
  std::vector<std::string> known;
  for (const StageSpec& stage : spec.stages) {
    known.push_back(stage.name);
    if (stage.base_name != stage.name) known.push_back(stage.base_name);
  }
  const auto check = [&](const char* option, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (!instances(spec, name).empty()) continue;
      const auto near = nearest_word(name, known);
      mistakes.push_back(
          {option, 0, 0, "there is no stage `" + name + "`", near ? "did you mean `" + *near + "`?" : ""});
    }
  };
  check("--from", selection.from);
  check("--only", selection.only);
  check("--until", selection.until);
  check("--force", selection.force);
  check("--accept", selection.accept);
  return mistakes;
}

std::vector<StagePlan> plan_stages(const WorkflowSpec& spec, const Digests& digests, const History& history,
                                   const Selection& selection) {
  Planner planner(spec, digests, history, selection);
  std::vector<StagePlan> plans;
  plans.reserve(spec.stages.size());
  for (const StageSpec& stage : spec.stages) plans.push_back(planner.plan(stage));
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (spec.stages[i].kind == "service" && plans[i].action != Action::kUpToDate)
      plan_service(spec, i, plans);
  return plans;
}

StagePlan plan_stage(const StageSpec& stage, const DatasetDigests& digests,
                     const std::map<std::string, std::string>& upstream,
                     const std::vector<FormerResult>& former, bool force, bool accept) {
  StagePlan plan;
  plan.stage = stage.name;
  plan.inputs = stage_inputs(stage, digests, upstream);
  plan.hash = hash_inputs(plan.inputs);
  if (stage.kind == "service") {  // it leaves no result: what it is stands for that
    plan.output_digest = plan.hash;
    plan.reason = "is asked";
    return plan;
  }
  const FormerResult* newest = newest_finished(former);
  const FormerResult* begun = nullptr;
  for (const FormerResult& result : former) {
    if (force) break;
    if (result.finished && (result.hash == plan.hash || result.accepted_as.contains(plan.hash))) {
      plan.action = Action::kUpToDate;
      plan.reason = result.hash == plan.hash ? "up to date" : "up to date: an older result was accepted";
      use_result(plan, result);
      return plan;
    }
    if (!result.finished && result.hash == plan.hash) begun = &result;
  }
  if (accept && newest != nullptr) {
    plan.action = Action::kAccept;
    plan.reason = "accepted as up to date";
    plan.changes = differences(newest->inputs, plan.inputs);
    use_result(plan, *newest);
    return plan;
  }
  plan.action = begun == nullptr ? Action::kRun : Action::kResume;
  if (!former.empty())
    plan.changes = differences((newest != nullptr ? *newest : former.front()).inputs, plan.inputs);
  if (begun != nullptr)
    plan.reason = "begun and not finished: goes on";
  else if (force)
    plan.reason = "forced";
  else if (former.empty())
    plan.reason = accept ? "never run, so there is nothing to accept" : "never run";
  else
    plan.reason = plan.changes.empty() ? "its result is gone" : told(plan.changes);
  return plan;
}

}  // namespace warpsmith::plan

#include "checker.h"

#include <algorithm>

#include "samples.h"

namespace warpsmith::stages {

Checker::Checker(const StageInputs& inputs, const TaskSet& tasks, const Verifier& verifier)
    : spec_(inputs.spec), tasks_(tasks), verifier_(verifier) {
  if (settings() != nullptr) hacks_.emplace(inputs, settings()->known.get());
  begin_round();
}

void Checker::begin_round() {
  if (settings() != nullptr) before_ = verifier_.best();
}

// Of the reference, 1, where no right program was faster.
double Checker::best_before(const std::string& task) const {
  const auto it = before_.find(task);
  return it == before_.end() ? 1 : std::max(1.0, it->second);
}

std::optional<JobRequest> Checker::ask(int round, const std::vector<std::string>& ids) {
  if (settings() == nullptr) return std::nullopt;
  for (const std::string& id : verifier_.met()) hacks_->learn(verifier_.at(id));
  std::optional<method::HackIndex> index;  // made where somebody is asked
  std::vector<Prompt> prompts;
  open_.clear();
  for (const std::string& id : ids) {
    const Known& known = verifier_.at(id);
    const Candidate& candidate = known.candidate;
    const std::string& author = candidate.origin.kind;
    const method::Jump jump{&candidate, known.measurement.speedup, best_before(candidate.task)};
    if (known.measurement.verdict != Verdict::kOk || jump.score < settings()->jump * jump.before ||
        author == "dataset" || author == "augmented" || !asked_.insert(id).second)
      continue;
    if (!index) index.emplace(hacks_->cases());
    const auto cases = index->alike(candidate, settings()->cases);
    prompts.push_back(
        {id, candidate.task, method::checker_prompt(tasks_.at(candidate.task), jump, cases), 1, 0});
    open_.push_back({{"candidate", id},
                     {"task", candidate.task},
                     {"round", round},
                     {"score", jump.score},
                     {"before", jump.before},
                     {"model", settings()->endpoint.model},
                     {"cases", Json::array()}});
    for (const auto& one : cases)
      open_.back()["cases"].push_back(
          {{"candidate", one.hack->candidate.id}, {"kind", one.hack->kind}, {"likeness", one.likeness}});
  }
  if (prompts.empty()) return std::nullopt;
  round_ = round;
  return checker_request(spec_, round, kJob, prompts, spent_);
}

void Checker::on_job(const JobResult& result) {
  if (result.job != kJob || result.round != round_ || result.items.size() != open_.size())
    throw Error(spec_.name + ": a job of its checker has ended that was not asked for");
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const Json& record = result.items[i].record;
    const Json samples = record.is_null() ? Json::array() : record.at("samples");
    Json& opinion = open_[i];
    if (!record.is_null()) spent_ += spent_of(record);
    if (samples.empty()) {
      ++refused_;
      opinion.update({{"says", "no answer"},
                      {"reason", record.is_null() ? "its shard was lost" : record.value("error", "")}});
    } else {
      const method::Opinion read = method::read_opinion(samples[0].at("text").get<std::string>());
      opinion.update({{"says", read.says}, {"reason", read.reason}});
    }
    opinions_.push_back(std::move(opinion));
  }
  open_.clear();
}

void Checker::write(StageOutput& output) const {
  if (settings() == nullptr) return;
  output["opinions"] = opinions_;
  Json says = Json::object();
  for (const Json& opinion : opinions_) {
    Json& count = says[opinion.at("says").get<std::string>()];
    count = count.is_null() ? 1 : count.get<int>() + 1;
  }
  Json& summary = output["summary"]["checker"];
  summary = server_json(settings()->endpoint, spent_, refused_);
  summary.update({{"asked", opinions_.size()}, {"says", std::move(says)}});
}

}  // namespace warpsmith::stages

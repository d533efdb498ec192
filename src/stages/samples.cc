#include "samples.h"

#include <fmt/format.h>

namespace warpsmith::stages {

namespace {

// `place`: round and turn.
void read_item(const workflow::StageSpec& spec, const Prompt& prompt, const ItemResult& item,
               std::pair<int, int> place, Verifier& verifier, Generated& out) {
  const auto [round, turn] = place;
  const method::PromptForm form = form_of(spec.prompt);
  const Json& list = item.record.at("samples");
  const auto left_out = item.record.value("exemplars_left_out", std::size_t{0});
  if (left_out > prompt.shorter.size())
    throw Error(fmt::format("stage {}, round {}: {} has {} exemplars, and {} are said to be left out",
                            spec.name, round, prompt.id, prompt.shorter.size(), left_out));
  out.exemplars_left_out += left_out;
  if (item.record.contains("spent")) {
    out.spent += spent_of(item.record);
    out.refused += static_cast<std::uint64_t>(std::max(0, prompt.samples - static_cast<int>(list.size())));
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& record = list[i];
    Sample s;
    s.round = round;
    s.turn = turn;
    s.item = turn == 1 ? prompt.id : prompt.first;
    s.number = turn == 1 ? static_cast<int>(i) : prompt.number;
    s.task = prompt.task;
    s.prompt = left_out > 0 ? prompt.shorter[left_out - 1] : prompt.text;
    s.text = record.at("text").get<std::string>();
    s.folder = item.folder;
    s.tokens_blob = record.value("tokens_blob", Json());
    s.logprobs_blob = record.value("logprobs_blob", Json());
    s.prompt_tokens = item.record.value("prompt_tokens", std::int64_t{0});
    s.tokens = record.value("tokens", std::int64_t{0});
    s.finished = record.value("finished", true);
    s.island = prompt.island;
    s.candidate =
        add_answer(s.text, form, prompt.task, {"generated", spec.name, round, s.id(), prompt.parent},
                   verifier, out.candidates);
    out.samples.push_back(std::move(s));
  }
}

}  // namespace

std::string add_answer(const std::string& text, method::PromptForm form, const std::string& task,
                       Origin origin, Verifier& verifier, std::vector<Candidate>& candidates) {
  const auto source = method::extract_source(text, form);
  Candidate candidate = make_one_file_candidate(form.answer, task, source.value_or(text), std::move(origin));
  std::string id = candidate.id;
  if (source)
    candidates.push_back(std::move(candidate));
  else
    verifier.add_verdict(candidate, Verdict::kCompileError, "the answer holds no code");
  return id;
}

std::string Sample::id() const {
  return turn == 1 ? fmt::format("{}/{}", item, number) : fmt::format("{}/{}/{}", item, number, turn);
}

Generated read_generated(const workflow::StageSpec& spec, const std::vector<Prompt>& prompts, int turn,
                         const JobResult& result, Verifier& verifier) {
  if (result.items.size() != prompts.size())
    throw Error(fmt::format("stage {}, round {}: {} prompts, but {} results", spec.name, result.round,
                            prompts.size(), result.items.size()));
  Generated out;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (result.items[i].id != prompts[i].id)
      throw Error(fmt::format("stage {}, round {}: result of {} where {} was asked for", spec.name,
                              result.round, result.items[i].id, prompts[i].id));
    if (result.items[i].record.is_null()) {
      out.lost += static_cast<std::uint64_t>(prompts[i].samples);
      continue;
    }
    try {
      read_item(spec, prompts[i], result.items[i], {result.round, turn}, verifier, out);
    } catch (const Json::exception& e) {
      throw Error(fmt::format("stage {}, round {}: generate record of {}: {}", spec.name, result.round,
                              prompts[i].id, e.what()));
    }
  }
  return out;
}

Spent spent_of(const Json& record) {
  const auto spent = record.find("spent");
  if (spent == record.end()) return {};
  return {spent->at("prompt").get<std::int64_t>(), spent->at("completion").get<std::int64_t>(),
          spent->value("lost", std::int64_t{0})};
}

Json server_json(const workflow::EndpointSettings& endpoint, const Spent& spent, std::uint64_t refused) {
  Json json = {{"model", endpoint.model},
               {"prompt_tokens", spent.prompt},
               {"completion_tokens", spent.completion},
               {"lost_tokens", spent.lost},
               {"refused", refused}};
  if (endpoint.prices != workflow::TokenPrices{}) json["money"] = spent.money(endpoint.prices);
  return json;
}

Json sample_json(const Sample& s, const Verifier& verifier, const TaskSet& tasks) {
  const Measurement& m = verifier.at(s.candidate).measurement;
  Json out = {{"round", s.round},
              {"item", s.item},
              {"sample", s.number},
              {"task", s.task},
              {"group", tasks.group(s.task)},
              {"candidate", s.candidate},
              {"verdict", to_string(m.verdict)}};
  if (m.verdict == Verdict::kOk) out["speedup"] = m.speedup;
  if (verifier.is_by_others(s.candidate)) out["repeated"] = true;
  if (verifier.is_known(s.candidate)) out["known"] = true;
  if (verifier.is_of_template(s.candidate)) out["of_template"] = true;
  if (!s.finished) out["cut_off"] = true;
  if (s.turn > 1) out["turn"] = s.turn;
  if (s.behind > 0) out["behind"] = s.behind;
  if (s.reward) out["reward"] = *s.reward;
  if (s.discounted) out["discounted"] = *s.discounted;
  if (s.advantage) out["advantage"] = *s.advantage;
  return out;
}

}  // namespace warpsmith::stages

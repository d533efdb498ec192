// `warpsmith doctor --endpoint`: what a server of a language model offers.
#include <fmt/format.h>

#include "doctor.h"
#include "warpsmith/base/error.h"

namespace warpsmith::cli {

namespace {

using process::Fact;

Fact fact(std::string name, std::string value, std::string hint = "") {
  return {.name = std::move(name), .value = std::move(value), .ok = true, .hint = std::move(hint)};
}

std::vector<Fact> facts_of(const endpoint::Look& look) {
  std::vector<Fact> facts;
  facts.push_back(fact("server",
                       (look.kind.empty() ? "of a kind that it does not name" : look.kind) +
                           (look.version.empty() ? "" : " " + look.version),
                       look.kind.empty()
                           ? "tried were transformers serve, vLLM, SGLang and llama.cpp; others are "
                             "known by their documents"
                           : ""));
  for (const endpoint::ServedModel& model : look.models)
    facts.push_back(fact("model " + model.name, model.context > 0
                                                    ? fmt::format("context of {} tokens", model.context)
                                                    : "it does not say its context"));
  if (look.weights)
    facts.push_back(
        fact("new weights", "from a folder, version " + *look.weights, "policy: {weights: sglang}"));
  else if (look.kind == "vLLM")
    facts.push_back(fact("new weights", "adapters, where it was started with --enable-lora",
                         "policy: {weights: vllm_lora}"));
  if (look.tried_model.empty()) {
    facts.push_back(
        {.name = "chat", .value = "not tried", .ok = false, .hint = "it names no model: --model NAME"});
    return facts;
  }
  const std::string chat = "chat with " + look.tried_model;
  if (!look.problem.empty()) {
    facts.push_back({.name = chat, .value = "fails", .ok = false, .hint = look.problem});
    return facts;
  }
  facts.push_back(fact(chat, fmt::format("answers in {:.2f} s", look.seconds)));
  facts.push_back(fact("choices a request", look.choices > 1 ? "several" : "one",
                       look.choices > 1 ? "" : "it is asked once for each sample"));
  facts.push_back(fact("tokens", look.counts_tokens ? "it counts them" : "it does not count them",
                       look.counts_tokens ? "" : "each answer counts as the most that it may have been"));
  facts.push_back(fact("log-probabilities", look.log_probabilities ? "of what it draws" : "none"));
  return facts;
}

}  // namespace

int doctor_endpoint(const endpoint::Server& server, CommandContext& context) {
  FactPrinter printer(context);
  printer.add(facts_of(endpoint::look_at(server)));
  return printer.finish();
}

}  // namespace warpsmith::cli

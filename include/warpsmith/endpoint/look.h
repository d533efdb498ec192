// What a server offers: asked of itself, and tried with one short chat.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpsmith/endpoint/client.h"

namespace warpsmith::endpoint {

struct ServedModel {
  std::string name;
  std::uint64_t context = 0;  // tokens; 0: it does not say
};

struct Look {
  std::string kind;     // "vLLM", "SGLang", "llama.cpp"; empty: it does not say
  std::string version;  // of the server's program; empty: it does not say
  std::vector<ServedModel> models;
  std::optional<std::string> weights;  // version of its weights, where it can be given others (SGLang)
  // Of the trial. `problem`: why there is no answer; the rest counts where it is empty.
  std::string tried_model, problem;
  int choices = 0;                 // of the two that were asked for in one request
  bool log_probabilities = false;  // of what was drawn
  bool counts_tokens = false;
  double seconds = 0;
};

// Asks for the models and for what servers of known kinds have beside OpenAI's protocol; then, where `model`
// or the server names one, for two answers of 8 tokens. Throws Error where the server cannot be reached, or
// wants another key.
Look look_at(const Server& server);

}  // namespace warpsmith::endpoint

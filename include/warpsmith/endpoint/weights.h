// New weights for a server that runs, as servers of two kinds have it beside OpenAI's protocol. Both read a
// folder that server and caller see at one path. From their documents; nobody has tried it on such a server
// here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "warpsmith/endpoint/client.h"

namespace warpsmith::endpoint {

struct Weights {
  std::string way;               // "sglang", "vllm_lora"
  std::filesystem::path folder;  // absolute: a model as Hugging Face has it; its adapters in `adapter`
  std::string version;           // no other weights have it
  std::string owner;             // who unloads what it loaded, and nothing of others
};

// Gives the server these weights unless it says that it has them, and has it confirm them. Returns the name
// by which they are asked for: `model`, or that of the adapters. Throws Error: it has no such thing
// (kExitUsage), it refuses, or it says another version then.
//   sglang     pause, flush the cache, update_weights_from_disk, go on, model_info
//   vllm_lora  load_lora_adapter under a name of its own; the owner's earlier ones are unloaded. A folder
//              without adapters is the model that they will add to: the server has to serve that, and is
//              asked as it is
std::string give_weights(Client& client, const Weights& weights, const std::string& model);

// Nothing: the server does not say it.
std::optional<std::string> sglang_weight_version(Client& client);

// Throws Error (kExitFailed) where the server says that it has other weights than these by now.
void confirm_weights(Client& client, const Weights& weights);

}  // namespace warpsmith::endpoint

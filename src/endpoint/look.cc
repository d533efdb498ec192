#include "warpsmith/endpoint/look.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"
#include "warpsmith/endpoint/weights.h"

namespace warpsmith::endpoint {

namespace {

// The object that `path` gives; null: the server has none there, or something else.
Json object_at(Client& client, const std::string& path) {
  try {
    const std::optional<std::string> body = client.get(path);
    if (!body) return nullptr;
    Json json = parse_json(*body, path);
    return json.is_object() ? json : Json();
  } catch (const Error& e) {
    if (e.exit_code() == kExitUsage) throw;
    return nullptr;
  }
}

std::optional<std::string> weights_of(Client& client) {
  try {
    return sglang_weight_version(client);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string text_at(const Json& json, const char* key) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  return it != json.end() && it->is_string() ? printable(it->get<std::string>()) : "";
}

std::uint64_t number_at(const Json& json, const char* key) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  return it != json.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

// vLLM and SGLang say `max_model_len`, llama.cpp `meta`: `n_ctx` is what a request has of the server's
// context, `n_ctx_train` what the model could have.
ServedModel model_from(const Json& json) {
  ServedModel model{.name = text_at(json, "id"), .context = number_at(json, "max_model_len")};
  for (const char* key : {"n_ctx", "n_ctx_train"})
    if (model.context == 0 && json.contains("meta")) model.context = number_at(json["meta"], key);
  return model;
}

void read_models(Client& client, const std::string& url, Look& look) {
  const std::optional<std::string> body = client.get("/models");  // it throws where nobody is there
  if (!body)
    throw Error(url + "/models: there is no such thing; is this the address of the API, with its /v1?",
                kExitUsage);
  const Json json = parse_json(*body, url + "/models");
  const auto list = json.is_object() ? json.find("data") : json.end();
  if (list == json.end() || !list->is_array())
    throw Error(url + "/models: its answer is no list of models", kExitUsage);
  for (const Json& one : *list) {
    if (!one.is_object()) continue;
    look.models.push_back(model_from(one));
    const std::string owner = text_at(one, "owned_by");
    if (owner == "vllm") look.kind = "vLLM";
    if (owner == "sglang") look.kind = "SGLang";
    if (owner == "llamacpp") look.kind = "llama.cpp";
  }
}

void try_chat(Client& client, const std::string& model, Look& look) {
  look.tried_model = model;
  const Request request{.id = "trial",
                        .messages = {{"user", "Say hello."}},
                        .prompt = "",
                        .samples = 2,
                        .max_tokens = 8,
                        .seed = 1,
                        .stop = {},
                        .log_probabilities = true};
  const auto took = [&](const Answer& answer) {
    if (answer.first > 0) return;  // the rest of one that gave fewer
    look.choices = static_cast<int>(answer.choices.size());
    look.log_probabilities = !answer.choices.front().log_probabilities.empty();
    look.counts_tokens = answer.counted;
    look.seconds = answer.seconds;
  };
  const auto refuse = [&](const Refused& refused) {
    look.problem = refused.status > 0 ? "status " + std::to_string(refused.status) + ": " + refused.reason
                                      : refused.reason;
  };
  client.run({&request, 1}, {.taken = took, .refused = refuse});
}

}  // namespace

Look look_at(const Server& server) {
  Look look;
  Ledger free({}, {});
  Server asked = server;
  asked.tries = 2;
  {
    Client client(asked, {}, free);
    read_models(client, server.url, look);
    const Json version = object_at(client, "//version");
    look.version = text_at(version, "version");
    if (look.kind == "llama.cpp") look.version = text_at(object_at(client, "//props"), "build_info");
    if (look.kind == "SGLang") {
      look.version = text_at(object_at(client, "//get_server_info"), "version");
      if (const auto weights = weights_of(client)) look.weights = printable(*weights);
    }
  }
  if (asked.model.empty() && !look.models.empty()) asked.model = look.models.front().name;
  if (asked.model.empty()) return look;
  Client client(asked, {.in_flight = 1}, free);
  try {
    try_chat(client, asked.model, look);
  } catch (const Error& e) {
    look.problem = e.what();
  }
  return look;
}

}  // namespace warpsmith::endpoint

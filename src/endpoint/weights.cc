#include "warpsmith/endpoint/weights.h"

#include <algorithm>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"

namespace warpsmith::endpoint {

namespace {

// ---- SGLang ----

std::string version_of_sglang(Client& client) {
  if (const auto version = sglang_weight_version(client)) return *version;
  throw Error("the server does not say which weights it has: it is no SGLang that takes others", kExitUsage);
}

void update_sglang(Client& client, const Weights& weights) {
  // It goes on whatever comes of it: others may be asking.
  struct Pause {
    Client& client;
    explicit Pause(Client& c) : client(c) { (void)client.post("//pause_generation", Json::object()); }
    ~Pause() {
      try {
        (void)client.post("//continue_generation", Json::object());
      } catch (const Error& e) {
        log_warning(std::string("the server was paused, and does not go on: ") + e.what());
      }
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  } pause(client);
  (void)client.post("//flush_cache", Json::object());
  const char* const path = "//update_weights_from_disk";
  const auto body =
      client.post(path, {{"model_path", weights.folder.string()}, {"weight_version", weights.version}});
  if (!body) throw Error("the server has no /update_weights_from_disk", kExitUsage);
  const Json said = parse_json(*body, path);
  if (!said.is_object() || !said.value("success", false))
    throw Error("the server does not take the weights of " + weights.folder.string() + ": " +
                    error_text(said.is_object() ? said.value("message", *body) : *body),
                kExitFailed);
}

// ---- vLLM ----

std::string prefix_of(const Weights& weights) { return "warpsmith-" + weights.owner + "-"; }
std::string name_of(const Weights& weights) { return prefix_of(weights) + weights.version; }

// The caller's.
std::vector<std::string> adapters_of_vllm(Client& client, const Weights& weights) {
  std::vector<std::string> names;
  const auto body = client.get("/models");
  const Json json = body ? parse_json(*body, "/models") : Json();
  const Json list = json.is_object() ? json.value("data", Json::array()) : Json::array();
  for (const Json& model : list)
    if (const std::string name = model.is_object() ? model.value("id", "") : "";
        name.starts_with(prefix_of(weights)))
      names.push_back(name);
  return names;
}

bool has_adapters(const Weights& weights) {
  std::error_code error;
  return std::filesystem::is_directory(weights.folder / "adapter", error);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void load_vllm(Client& client, const Weights& weights, const std::vector<std::string>& earlier) {
  const auto body = client.post("/load_lora_adapter", {{"lora_name", name_of(weights)},
                                                       {"lora_path", (weights.folder / "adapter").string()}});
  if (!body)
    throw Error("the server does not load " + (weights.folder / "adapter").string() +
                    ": it does not see that folder, or it has no /load_lora_adapter, which vLLM has with "
                    "--enable-lora and "
                    "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True",
                kExitUsage);
  for (const std::string& name : earlier) (void)client.post("/unload_lora_adapter", {{"lora_name", name}});
}

}  // namespace

// Newer ones have it in /model_info, and answer 404 where older ones have it.
std::optional<std::string> sglang_weight_version(Client& client) {
  for (const char* path : {"//model_info", "//get_weight_version"}) {
    const auto body = client.get(path);
    const Json json = body ? parse_json(*body, path) : Json();
    if (const auto it = json.is_object() ? json.find("weight_version") : json.end();
        it != json.end() && it->is_string())
      return it->get<std::string>();
  }
  return std::nullopt;
}

std::string give_weights(Client& client, const Weights& weights, const std::string& model) {
  if (weights.way == "vllm_lora") {
    if (!has_adapters(weights)) {
      log_info("the stage begins without adapters: the server's own model is asked");
      return model;
    }
    const std::vector<std::string> there = adapters_of_vllm(client, weights);
    if (!holds(there, name_of(weights))) load_vllm(client, weights, there);
    confirm_weights(client, weights);
    return name_of(weights);
  }
  if (weights.way != "sglang") throw Error("weights: the way `" + weights.way + "` is not known", kExitUsage);
  if (version_of_sglang(client) != weights.version) update_sglang(client, weights);
  confirm_weights(client, weights);
  return model;
}

void confirm_weights(Client& client, const Weights& weights) {
  if (weights.way == "vllm_lora") {
    if (has_adapters(weights) && !holds(adapters_of_vllm(client, weights), name_of(weights)))
      throw Error("the server does not have the adapters " + name_of(weights), kExitFailed);
    return;
  }
  const std::string has = version_of_sglang(client);
  if (has != weights.version)
    throw Error("the server has the weights `" + has + "`, not `" + weights.version + "`", kExitFailed);
}

}  // namespace warpsmith::endpoint

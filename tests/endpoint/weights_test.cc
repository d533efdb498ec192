// New weights for a running server, against servers of ours that answer as the documents of SGLang and vLLM
// say.
#include "warpsmith/endpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "fault_server.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Given {
  std::string model, error;
  int exit_code = 0;
};

// A stage's folder with a model that has adapters.
const std::filesystem::path& model_folder() {
  static const Scratch scratch;
  static const std::filesystem::path folder = [] {
    make_folders(scratch.path() / "model/adapter");
    return scratch.path() / "model";
  }();
  return folder;
}

Given give(const FaultServer& server, const std::string& way, const std::string& version,
           const std::filesystem::path& folder = model_folder()) {
  Ledger free({}, {});
  Client client({.url = server.url(), .model = "coder"}, {}, free);
  try {
    return {give_weights(client, {way, folder, version, "0a1b2c"}, "coder"), "", 0};
  } catch (const Error& e) {
    return {"", e.what(), e.exit_code()};
  }
}

std::vector<std::string> paths(const FaultServer& server) {
  std::vector<std::string> out;
  for (const Got& got : server.got()) out.push_back(got.method + " " + got.path);
  return out;
}

struct SGLang {
  std::string version = "default";
  bool newer = true, takes = true, loses = false;
  Reply operator()(const Got& got) {
    const Json weights = {{"weight_version", version}};
    if (got.path == "/model_info" && newer) return {.body = weights.dump()};
    if (got.path == "/get_weight_version" && !newer) return {.body = weights.dump()};
    if (got.path == "/pause_generation" || got.path == "/continue_generation" || got.path == "/flush_cache")
      return {.body = "done\n"};
    if (got.path == "/update_weights_from_disk") {
      if (!takes)
        return {.status = 400, .body = R"({"success":false,"message":"Failed to get weights iterator"})"};
      if (!loses) version = got.body.at("weight_version");
      return {.body = R"({"success":true,"message":"Succeeded to update model weights."})"};
    }
    return {.status = 404, .body = R"({"detail":"Not Found"})"};
  }
};

TEST(Weights, SGLangReadsTheFolderAndIsPausedMeanwhile) {
  for (const bool newer : {true, false}) {
    SGLang state;
    state.newer = newer;
    const FaultServer server([&](const Got& got) { return state(got); });
    const Given given = give(server, "sglang", "rl-7-abc");
    EXPECT_EQ(given.error, "");
    EXPECT_EQ(given.model, "coder");
    std::vector<std::string> rest;
    for (const std::string& path : paths(server))
      if (path.starts_with("POST ")) rest.push_back(path);
    EXPECT_THAT(rest, ElementsAre("POST /pause_generation", "POST /flush_cache",
                                  "POST /update_weights_from_disk", "POST /continue_generation"));
    for (const Got& got : server.got()) {
      if (got.path != "/update_weights_from_disk") continue;
      EXPECT_EQ(got.body, (Json{{"model_path", model_folder().string()}, {"weight_version", "rl-7-abc"}}));
    }
    const std::size_t asked = server.got().size();
    EXPECT_EQ(give(server, "sglang", "rl-7-abc").error, "");
    for (std::size_t i = asked; i < server.got().size(); ++i)
      EXPECT_EQ(server.got()[i].method, "GET") << "it has them already";
  }
}

TEST(Weights, SGLangGoesOnWhateverComesOfIt) {
  SGLang state;
  state.takes = false;
  const FaultServer server([&](const Got& got) { return state(got); });
  EXPECT_THAT(give(server, "sglang", "rl-7").error, HasSubstr("Failed to get weights iterator"));
  EXPECT_EQ(server.got().back().path, "/continue_generation");
}

TEST(Weights, WhatIsNotConfirmedIsAnError) {
  SGLang state;
  state.loses = true;
  const FaultServer server([&](const Got& got) { return state(got); });
  const Given given = give(server, "sglang", "rl-7");
  EXPECT_THAT(given.error, HasSubstr("the server has the weights `default`, not `rl-7`"));
  EXPECT_EQ(given.exit_code, kExitFailed);
}

TEST(Weights, AServerThatHasNoSuchThing) {
  const FaultServer server([](const Got& got) -> Reply {
    if (got.path == "/v1/models") return {.body = R"({"data":[{"id":"coder"}]})"};
    return {.status = 404, .body = "{}"};
  });
  const Given sglang = give(server, "sglang", "rl-7"), vllm = give(server, "vllm_lora", "rl-7");
  EXPECT_THAT(sglang.error, HasSubstr("it is no SGLang that takes others"));
  EXPECT_EQ(sglang.exit_code, kExitUsage);
  EXPECT_THAT(vllm.error, HasSubstr("--enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"));
  EXPECT_EQ(vllm.exit_code, kExitUsage);
}

TEST(Weights, VllmLoadsAdaptersUnderNamesOfTheirOwn) {
  std::set<std::string> adapters = {"somebody-elses", "warpsmith-ffffff-rl-9"};
  std::mutex mutex;
  const FaultServer server([&](const Got& got) -> Reply {
    const std::lock_guard lock(mutex);
    if (got.path == "/v1/models") {
      Json list = {{{"id", "Qwen/base"}}};
      for (const std::string& name : adapters) list.push_back({{"id", name}, {"parent", "Qwen/base"}});
      return {.body = Json{{"data", list}}.dump()};
    }
    if (got.path == "/v1/load_lora_adapter") {
      EXPECT_EQ(got.body.at("lora_path"), (model_folder() / "adapter").string());
      adapters.insert(got.body.at("lora_name"));
      return {.body = "Success: LoRA adapter added successfully."};
    }
    if (got.path == "/v1/unload_lora_adapter") {
      adapters.erase(got.body.at("lora_name"));
      return {.body = "Success"};
    }
    return {.status = 404, .body = "{}"};
  });
  EXPECT_EQ(give(server, "vllm_lora", "rl-1").model, "warpsmith-0a1b2c-rl-1");
  EXPECT_EQ(give(server, "vllm_lora", "rl-2").model, "warpsmith-0a1b2c-rl-2");
  EXPECT_EQ(adapters,
            (std::set<std::string>{"somebody-elses", "warpsmith-0a1b2c-rl-2", "warpsmith-ffffff-rl-9"}));
  const Scratch plain;
  EXPECT_EQ(give(server, "vllm_lora", "sft-9", plain.path()).model, "coder")
      << "before the first round has trained there are no adapters";
  const std::size_t asked = server.got().size();
  EXPECT_EQ(give(server, "vllm_lora", "rl-2").model, "warpsmith-0a1b2c-rl-2");
  for (std::size_t i = asked; i < server.got().size(); ++i) EXPECT_EQ(server.got()[i].method, "GET");
}

}  // namespace
}  // namespace warpsmith::endpoint

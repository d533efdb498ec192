// The client against llama.cpp, vLLM and SGLang themselves, on the CPU; the last two get trained weights,
// too, of a tiny model of random weights. They want other versions of torch than this project, and some
// gigabytes: they are tried where variables of the environment say where they are (tests/endpoint/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "scratch.h"
#include "served.h"
#include "warpsmith/endpoint/client.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::HasSubstr;

struct Engine {
  const char* name;      // as it says it
  const char* variable;  // of the environment: its python3, or its program
  const char* weights;   // how it gets a stage's; empty: it does not
  const char* lora;      // keys of the workflow
  std::vector<std::string> (*argv)(const std::string& program, const std::string& model, int port);
};

const Engine kEngines[] = {{"vLLM", "WARPSMITH_VLLM", "vllm_lora", "lora: {rank: 8, alpha: 16}\n",
                            [](const std::string& python, const std::string& model, int port) {
                              return std::vector<std::string>{"env",
                                                              "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True",
                                                              "VLLM_CPU_KVCACHE_SPACE=1",
                                                              python,
                                                              "-m",
                                                              "vllm.entrypoints.openai.api_server",
                                                              "--host",
                                                              "127.0.0.1",
                                                              "--port",
                                                              std::to_string(port),
                                                              "--model",
                                                              model,
                                                              "--dtype",
                                                              "float32",
                                                              "--enforce-eager",
                                                              "--max-model-len",
                                                              "2048",
                                                              "--enable-lora"};
                            }},
                           {"SGLang", "WARPSMITH_SGLANG", "sglang", "",
                            [](const std::string& python, const std::string& model, int port) {
                              return std::vector<std::string>{"env",
                                                              "SGLANG_USE_CPU_ENGINE=1",
                                                              python,
                                                              "-m",
                                                              "sglang.launch_server",
                                                              "--host",
                                                              "127.0.0.1",
                                                              "--port",
                                                              std::to_string(port),
                                                              "--model-path",
                                                              model,
                                                              "--device",
                                                              "cpu",
                                                              "--dtype",
                                                              "float32",
                                                              "--attention-backend",
                                                              "torch_native",
                                                              "--sampling-backend",
                                                              "pytorch",
                                                              "--grammar-backend",
                                                              "none",
                                                              "--mem-fraction-static",
                                                              "0.1",
                                                              "--max-total-tokens",
                                                              "20000",
                                                              "--disable-overlap-schedule"};
                            }}};

// Of its 32,768 tokens of context each of 16 requests has 2,048.
const Engine kLlamaCpp = {"llama.cpp", "WARPSMITH_LLAMA_SERVER", "", "",
                          [](const std::string& program, const std::string& model, int port) {
                            return std::vector<std::string>{
                                program, "-m",    model, "--alias", model, "--port", std::to_string(port),
                                "-c",    "32768", "-np", "16"};
                          }};

class RealEngine : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    const char* const program = std::getenv(GetParam().variable);
    if (program == nullptr)
      GTEST_SKIP() << GetParam().variable << " does not say where " << GetParam().name << " is";
    if (GetParam().weights[0] == '\0')
      take_model();
    else
      make_model();
    if (HasFatalFailure() || IsSkipped()) return;
    server_ = {.url = "http://127.0.0.1:" + std::to_string(port_) + "/v1", .model = model_};
    served_.emplace(GetParam().argv(program, model_, port_), scratch_ / "server.txt");
    ASSERT_TRUE(served_->answers(server_)) << served_->log();
  }
  void take_model() {
    const char* const model = std::getenv("WARPSMITH_GGUF");
    if (model == nullptr) GTEST_SKIP() << "WARPSMITH_GGUF names no model";
    model_ = model;
  }
  void make_model() {
    const auto own = python::find_python();
    if (!own) GTEST_SKIP() << "there is no python3 that makes a model";
    int status = 0;
    const std::string said =
        output_of("'" + own->string() + "' " WARPSMITH_SOURCE_DIR "/tests/model/hugging_face_folder.py '" +
                      model_ + "'",
                  &status);
    ASSERT_EQ(status, 0) << said;
  }

  const Scratch scratch_;
  std::string model_ = scratch_ / "model";
  const int port_ = process::free_port();
  Server server_;
  std::optional<Served> served_;
};

TEST_P(RealEngine, SaysWhatItOffersAndAnswersManyAtOnce) {
  const Look look = look_at(server_);
  EXPECT_EQ(look.kind, GetParam().name);
  EXPECT_NE(look.version, "");
  EXPECT_EQ(look.choices, 2);
  EXPECT_TRUE(look.log_probabilities);
  EXPECT_TRUE(look.counts_tokens);
  ASSERT_EQ(look.models.size(), 1u);
  EXPECT_EQ(look.models[0].name, model_);
  EXPECT_EQ(look.models[0].context, 2048u);

  Ledger ledger({}, {});
  Client client(server_, {.in_flight = 100}, ledger);
  std::vector<Request> requests;
  for (int i = 0; i < 120; ++i)
    requests.push_back({.id = std::to_string(i),
                        .messages = {{"system", "You write CUDA."}, {"user", "Write a kernel."}},
                        .samples = 3,
                        .max_tokens = 8});
  std::size_t choices = 0;
  const Ended ended =
      client.run(requests, {.taken = [&](const Answer& answer) { choices += answer.choices.size(); },
                            .refused = [](const Refused& refused) { ADD_FAILURE() << refused.reason; }});
  EXPECT_EQ(ended, Ended::kDone);
  EXPECT_EQ(choices, 360u);
  EXPECT_LE(ledger.spent().completion, 360u * 8);
}

class TrainedEngine : public RealEngine {};

// Stages 2 and 3 train, each with a server that has its weights of each round. The controller is killed in
// between.
TEST_P(TrainedEngine, GetsTheWeightsOfEachRoundOverKills) {
  const std::string run = scratch_ / "run", file = scratch_ / "w.yaml";
  const std::string policy = "    policy: {endpoint: {url: \"" + server_.url + "\", model: \"" + model_ +
                             "\"}, weights: " + GetParam().weights + "}\n";
  const auto workflow = [&](const std::string& kind, const std::string& settings) {
    write_file_atomic(
        file, "schema: warpsmith.workflow/1\nname: served\ndataset: {folder: " WARPSMITH_SOURCE_DIR
              "/datasets, train: [square_bias_relu]}\nmeasure: {budget: 300ms, target: 3%}\n"
              "compile: {memory: 2GiB}\nsample: {max_tokens: 8}\nprompt: {style: full}\n"
              "optimizer: {learning_rate: 1e-3, batch_tokens: 600}\nmodel: {from: \"" +
                  model_ + "\", context: 2048}\n" + GetParam().lora +
                  "stages:\n  - {name: collect, kind: collect}\n"
                  "  - {name: sft, kind: sft, needs: collect, steps: 2}\n  - name: rounds\n    kind: " +
                  kind + "\n    needs: sft\n    rounds: 3\n" + settings + policy);
  };
  workflow("self_supervised", "    samples: 2\n    steps: 2\n");
  int kills = 0;
  for (; kills < 6; ++kills) {
    // With all that it started: its shards' processes end with it.
    const std::string killed =
        "timeout -s KILL " + std::to_string(4 + 2 * kills) + " " + run_command(file, run);
    int status = 0;
    output_of(killed, &status);
    if (status == 0) break;
  }
  int status = 0;
  const std::string said = output_of(run_command(file, run), &status);
  ASSERT_EQ(status, 0) << said << served_->log();
  std::printf("%d kills\n", kills);

  // Who answered in rounds 2 and 3.
  std::set<std::string> models;
  for (const char* round : {"2", "3"}) {
    const std::string asked =
        output_of("cat '" + run + "'/stages/rounds/*/" + round + "/generate/0/*/records.jsonl", &status);
    EXPECT_THAT(asked, HasSubstr("\"samples\":")) << round;
    const std::size_t at = asked.find("\"model\":\"");
    ASSERT_NE(at, std::string::npos) << asked;
    models.insert(asked.substr(at + 9, asked.find('"', at + 9) - at - 9));
  }
  const Look look = look_at(server_);
  if (look.weights) {
    EXPECT_THAT(*look.weights, HasSubstr("rounds")) << "the version that the stage gave it last";
    EXPECT_EQ(models, (std::set<std::string>{model_}));
  } else {
    EXPECT_EQ(models.size(), 2u) << "adapters of each round";
    ASSERT_EQ(look.models.size(), 2u) << "the base, and the adapters of the last round";
    EXPECT_TRUE(models.contains(look.models[1].name)) << look.models[1].name;
  }
  const Json found = exported(run);
  for (const Json& stage : found.at("stages"))
    if (stage.at("name") == "rounds") {
      EXPECT_EQ(stage.at("summary").at("server").at("refused"), 0);
    }

  workflow("contrastive", "    prompts: 1\n    group: 4\n");
  const std::string third = output_of(run_command(file, run), &status);
  ASSERT_EQ(status, 0) << third << served_->log();
}

constexpr auto kName = [](const auto& one) {
  return one.param.weights[0] == '\0' ? std::string("LlamaCpp") : std::string(one.param.name);
};
INSTANTIATE_TEST_SUITE_P(Engines, RealEngine, testing::ValuesIn(kEngines), kName);
INSTANTIATE_TEST_SUITE_P(LlamaCpp, RealEngine, testing::Values(kLlamaCpp), kName);
INSTANTIATE_TEST_SUITE_P(Engines, TrainedEngine, testing::ValuesIn(kEngines), kName);

}  // namespace
}  // namespace warpsmith::endpoint

// The client, the job and a whole workflow against a server that others wrote: `transformers serve`, with a
// tiny model of random weights. Its answers are nonsense; what is shown is the protocol, limits, kills and
// what is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include "scratch.h"
#include "served.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/endpoint/client.h"
#include "warpsmith/endpoint/look.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::endpoint {
namespace {

const std::string kSource = WARPSMITH_SOURCE_DIR;

class RealServer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    const auto python = python::find_python();
    if (!python) return;
    int status = 0;
    const std::string quoted = "'" + python->string() + "' ";
    output_of(quoted + "-c 'import uvicorn, fastapi, transformers'", &status);
    if (status != 0) return;
    output_of(quoted + kSource + "/tests/model/hugging_face_folder.py '" + model() + "'", &status);
    ASSERT_EQ(status, 0);
    port_ = process::free_port();
    server_.emplace(
        std::vector<std::string>{python->string(), "-c",
                                 "from transformers.cli.transformers import main; main()", "serve", "--port",
                                 std::to_string(port_), "--device", "cpu", "--dtype", "float32", model()},
        folder_->path() / "server.txt");
    there_ = server_->answers({.url = url(), .model = model()});
    ASSERT_TRUE(there_) << server_->log();
  }
  static void TearDownTestSuite() {
    server_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!there_) GTEST_SKIP() << "there is no python3 with `transformers serve` here (cmake/setup.sh test)";
  }

  static std::string url() { return "http://localhost:" + std::to_string(port_) + "/v1"; }
  static std::string model() { return (folder_->path() / "model").string(); }
  // As the server counts them.
  static std::size_t chats() {
    const std::string log = server_->log();
    std::size_t count = 0;
    for (std::size_t at = log.find("POST /v1/chat/completions"); at != std::string::npos;
         at = log.find("POST /v1/chat/completions", at + 1))
      ++count;
    return count;
  }

  static inline std::optional<Scratch> folder_;
  static inline std::optional<Served> server_;
  static inline int port_ = 0;
  static inline bool there_ = false;
};

TEST_F(RealServer, AnswersAHundredRequestsAtOnceAndCountsTheirTokens) {
  Ledger ledger({}, {});
  Client client({.url = url(), .model = model()}, {.in_flight = 100}, ledger);
  std::vector<Request> requests;
  for (int i = 0; i < 200; ++i)
    requests.push_back({.id = std::to_string(i), .messages = {{"user", "Write a kernel."}}, .max_tokens = 8});
  std::set<std::string> answered;
  const Ended ended = client.run(
      requests,
      {.taken =
           [&](const Answer& answer) {
             EXPECT_TRUE(answered.insert(answer.id).second);
             EXPECT_TRUE(answer.counted);
             EXPECT_GT(answer.used.prompt, 0u);
             EXPECT_LE(answer.used.completion, 8u);
           },
       .refused = [](const Refused& refused) { ADD_FAILURE() << refused.status << ": " << refused.reason; }});
  EXPECT_EQ(ended, Ended::kDone);
  EXPECT_EQ(answered.size(), 200u);
  EXPECT_EQ(ledger.held().all(), 0u);
}

TEST_F(RealServer, DoctorSaysWhatItOffers) {
  int status = 0;
  const std::string doctor = kWarpsmith + "doctor --endpoint " + url() + " --model '" + model() + "' 2>&1";
  const std::string said = output_of(doctor, &status);
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(
      said, testing::AllOf(testing::HasSubstr("chat with " + model()), testing::HasSubstr("it counts them")));
  const std::string nobody = output_of(kWarpsmith + "doctor --endpoint http://127.0.0.1:1/v1 2>&1", &status);
  EXPECT_NE(status, 0);
  EXPECT_THAT(nobody, testing::HasSubstr("http://127.0.0.1:1/v1"));
}

TEST_F(RealServer, StopsBeforeABudgetIsPassed) {
  Ledger ledger({.tokens = 300}, {});
  Client client({.url = url(), .model = model()}, {.in_flight = 4}, ledger);
  std::vector<Request> requests;
  for (int i = 0; i < 40; ++i)
    requests.push_back({.id = std::to_string(i), .messages = {{"user", "Go."}}, .max_tokens = 16});
  const Ended ended = client.run(requests, {.taken = [](const Answer&) {}, .refused = [](const Refused&) {}});
  EXPECT_EQ(ended, Ended::kOverBudget);
  EXPECT_LE(ledger.spent().all(), 300u);
  EXPECT_GT(ledger.spent().all(), 100u);
}

TEST_F(RealServer, OverKillsNothingThatWasReceivedIsAskedAgain) {
  constexpr int kItems = 110, kSamples = 2, kInFlight = 4, kKills = 50;
  const Scratch scratch;
  const std::filesystem::path folder = scratch.path() / "stages/s/00000000/0/generate";
  make_folders(folder);
  std::string lines;
  for (int i = 0; i < kItems; ++i)
    lines +=
        Json{
            {"id", "i" + std::to_string(i)}, {"n", kSamples}, {"prompt", "Write kernel " + std::to_string(i)}}
            .dump() +
        "\n";
  write_file_atomic(folder / "items.jsonl", lines);
  JobFile job;
  job.job = "generate";
  job.shards = {{0, kItems}};
  job.params = {{"endpoint", {{"url", url()}, {"model", model()}, {"in_flight", kInFlight}, {"chat", true}}},
                {"max_tokens", 16}};
  write_file_atomic(folder / "job.json", to_json(job).dump());
  const std::size_t before = chats();
  const std::filesystem::path log = scratch.path() / "log.txt";
  const auto start = [&] { return start_generate(folder, log); };
  int kills = 0, status = -1;
  while (kills < kKills && status != kExitOk) {
    const std::size_t until = chats() + 2;
    const pid_t pid = start();
    bool ended = false;
    while (!ended && chats() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      int how = 0;
      ended = ::waitpid(pid, &how, WNOHANG) == pid;
      if (ended) status = exit_code_of(how);
    }
    if (ended) continue;
    ::kill(pid, SIGKILL);
    wait_for(pid);
    ++kills;
  }
  if (status != kExitOk) status = wait_for(start());
  ASSERT_EQ(status, kExitOk) << read_file(log);
  const ShardRecords found = read_shard_records(folder / "0");
  ASSERT_EQ(found.records.size(), static_cast<std::size_t>(kItems));
  for (const auto& [id, record] : found.records) EXPECT_EQ(record["samples"].size(), 2u) << record;
  // The server writes a line when it has answered: also to those that were gone by then.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const std::size_t asked = chats() - before;
  std::printf("%d kills, %zu answers for %d samples\n", kills, asked, kItems * kSamples);
  EXPECT_GE(kills, 25) << "a slow machine may answer more between two looks";
  EXPECT_LE(asked, static_cast<std::size_t>(kItems * kSamples + kills * kInFlight));
}

// From start to report. A model of random weights writes no program.
TEST_F(RealServer, AWorkflowEvolvesByIt) {
  const Scratch scratch;
  const std::string run = (scratch.path() / "run").string();
  const std::string command =
      kWarpsmith + "run '" + kSource + "/workflows/evolve_endpoint.yaml' --run-dir '" + run +
      "' --quiet --set device=cpu --set params.url=" + url() + " --set 'params.model=" + model() +
      "' --set 'dataset.train=[square_bias_relu]' --set params.samples=2 --set params.rounds=2"
      " --set stages.evolve.prompts=1 --set stages.evolve.group=2 --set sample.max_tokens=24 2>&1";
  int status = 0;
  const std::string said = output_of(command, &status);
  ASSERT_EQ(status, 0) << said;
  const Json found = exported(run);
  std::set<std::string> stages;
  for (const Json& stage : found.at("stages")) {
    const Json summary = stage.value("summary", Json::object());
    if (summary.contains("server")) {
      stages.insert(stage.at("name").get<std::string>());
      EXPECT_EQ(summary["server"]["refused"], 0);
      EXPECT_GT(summary["server"]["prompt_tokens"].get<int>(), 500) << "the paper's five parts";
    }
  }
  EXPECT_EQ(stages, (std::set<std::string>{"vanilla", "evolve"})) << found.dump().substr(0, 2000);
  EXPECT_TRUE(std::filesystem::exists(run + "/report.html"));
}

// The run starts a server of its own, for two stages, and ends it.
TEST_F(RealServer, AServiceIsStartedForThoseWhoAskIt) {
  const Scratch scratch;
  const std::string run = (scratch.path() / "run").string(), file = (scratch.path() / "w.yaml").string();
  const std::string policy = "    policy: {endpoint: {service: server, model: \"" + model() + "\"}}\n";
  write_file_atomic(file, "schema: warpsmith.workflow/1\nname: served\ndataset: {folder: " + kSource +
                              "/datasets, train: [square_bias_relu]}\nmeasure: {budget: 300ms, target: 3%}\n"
                              "sample: {max_tokens: 16}\nstages:\n"
                              "  - name: server\n    kind: service\n    argv: [" +
                              python::find_python()->string() +
                              ", -c, 'from transformers.cli.transformers import main; main()', serve, "
                              "--host, \"{host}\", --port, "
                              "\"{port}\", --device, cpu, --dtype, float32, \"" +
                              model() +
                              "\"]\n    ready: 4m\n"
                              "  - name: a\n    kind: measure\n    samples: 2\n" +
                              policy + "  - name: b\n    kind: measure\n    needs: a\n    samples: 3\n" +
                              policy);
  int status = 0;
  const std::string command = run_command(file, run);
  const std::string said = output_of("HF_HUB_OFFLINE=1 " + command, &status);
  ASSERT_EQ(status, 0) << said;
  const Json found = exported(run);
  std::map<std::string, int> samples;
  for (const Json& stage : found.at("stages"))
    if (stage.at("summary").is_object())  // the server's has none
      samples[stage.at("name").get<std::string>()] = stage["summary"].value("samples", 0);
  EXPECT_EQ(samples["a"], 2);
  EXPECT_EQ(samples["b"], 3);
  const std::string attempts = output_of("find '" + run + "/stages/server' -name log.txt | wc -l", &status);
  EXPECT_EQ(attempts, "1\n") << "one server for both";
  EXPECT_EQ(output_of("find '" + run + "/stages/server' -name service.json", &status), "") << "it is gone";
  const std::string again = output_of(command, &status);
  EXPECT_EQ(status, 0) << again;
  EXPECT_EQ(output_of("ls '" + run + "'/stages/server/*/0/service/0 | grep -c '^[0-9]'", &status), "1\n")
      << "nobody asked it a second time";
}

// Stage 2 trains each round, and the server is started again with what it has learned. A program writes what
// the server then has: the weights of the stage's folder.
TEST_F(RealServer, AServiceGetsTheWeightsOfEachRound) {
  const Scratch scratch;
  const std::string run = (scratch.path() / "run").string(), file = (scratch.path() / "w.yaml").string();
  write_file_atomic(
      file,
      "schema: warpsmith.workflow/1\nname: served\ndataset: {folder: " + kSource +
          "/datasets, train: [square_bias_relu]}\nmeasure: {budget: 300ms, target: 3%}\n"
          "compile: {memory: 2GiB}\nsample: {max_tokens: 8}\nprompt: {style: full}\n"
          "optimizer: {learning_rate: 1e-3, batch_tokens: 600}\nmodel: {from: \"" +
          model() +
          "\", context: 2048}\nstages:\n  - {name: collect, kind: collect}\n"
          "  - {name: sft, kind: sft, needs: collect, steps: 2}\n"
          "  - name: server\n    kind: service\n    needs: sft\n    argv: [" +
          python::find_python()->string() +
          ", -c, 'from transformers.cli.transformers import main; main()', serve, --host, \"{host}\", "
          "--port, \"{port}\", --device, cpu, --dtype, float32, \"{model}\"]\n    ready: 4m\n"
          "  - name: rounds\n    kind: self_supervised\n    needs: sft\n    rounds: 2\n    samples: 2\n"
          "    steps: 2\n    policy: {endpoint: {service: server, model: \"{model}\"}, weights: restart}\n");
  int status = 0;
  const std::string said = output_of("HF_HUB_OFFLINE=1 " + run_command(file, run), &status);
  ASSERT_EQ(status, 0) << said
                       << output_of("cat '" + run + "'/stages/server/*/0/service/0/*/log.txt", &status);
  const std::string log = output_of("cat '" + run + "'/stages/server/*/0/service/0/log.txt", &status);
  std::vector<std::string> versions;
  const std::string word = "with the weights ";
  for (std::size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1))
    versions.push_back(log.substr(at + word.size(), log.find('\n', at) - at - word.size()));
  ASSERT_EQ(versions.size(), 2u) << log;
  EXPECT_TRUE(versions[0].starts_with("sft-")) << versions[0];
  EXPECT_TRUE(versions[1].starts_with("rounds-")) << versions[1];
  // Who answered: the server calls a model by the folder that it has read.
  const std::string asked =
      output_of("cat '" + run + "'/stages/rounds/*/[12]/generate/0/*/records.jsonl", &status);
  const std::string folder = output_of("ls -d '" + run + "'/stages/rounds/*/model", &status);
  std::size_t answers = 0;
  for (std::size_t at = asked.find("\"model\":\""); at != std::string::npos;
       at = asked.find("\"model\":\"", at + 1)) {
    const std::size_t begin = at + 9;
    EXPECT_THAT(asked.substr(begin, asked.find('"', begin) - begin),
                testing::StartsWith(folder.substr(0, folder.size() - 1)));
    ++answers;
  }
  EXPECT_GE(answers, 2u) << asked.substr(0, 500);
  const Json found = exported(run);
  for (const Json& stage : found.at("stages"))
    if (stage.at("name") == "rounds") {
      EXPECT_EQ(stage.at("summary").at("server").at("refused"), 0);
    }
}

// About a kernel that somebody brought: any score of 1 is a jump here.
TEST_F(RealServer, ACheckerIsAskedAboutAJump) {
  const Scratch scratch;
  const std::string run = (scratch.path() / "run").string(), file = (scratch.path() / "w.yaml").string();
  const std::string task = (scratch.path() / "tasks" / "gate_clamp_residual").string();
  int status = 0;
  output_of("mkdir -p '" + task + "/imported' && cd '" + std::string(kSource) +
                "/datasets/gate_clamp_residual' && cp task.yaml '" + task +
                "' && cp candidates/ok/thread_per_row.cu '" + task + "/imported/theirs.cu'",
            &status);
  ASSERT_EQ(status, 0);
  write_file_atomic(file,
                    "schema: warpsmith.workflow/1\nname: checked\ndataset: {folder: tasks, train: all}\n"
                    "measure: {budget: 300ms, target: 3%, variance_gate: 1000}\nstages:\n  - name: theirs\n  "
                    "  kind: measure\n"
                    "    candidates: imported\n    checker: {jump: 1, max_tokens: 16, endpoint: {url: \"" +
                        url() + "\", model: " + model() + "}}\n");
  const std::string said = output_of(run_command(file, run), &status);
  ASSERT_EQ(status, 0) << said;
  const Json found = exported(run);
  const Json measured = found.at("measurements").at(0);
  ASSERT_EQ(measured.at("verdict"), "ok") << measured;
  const std::string csv = output_of(kWarpsmith + "export '" + run + "' --table opinions 2>&1", &status);
  ASSERT_EQ(status, 0) << csv;
  ASSERT_GE(measured.at("speedup").get<double>(), 1) << "it has long been 1.8";
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
  EXPECT_NE(csv.find(",unclear,"), std::string::npos) << "random weights say nothing: " << csv;
  EXPECT_EQ(found.at("stages").at(0).at("summary").at("checker").at("asked"), 1);
}

// Stage 1's candidates, by a teacher that never succeeds: it is asked as often as it may.
TEST_F(RealServer, ATeacherIsAskedForEachTask) {
  const Scratch scratch;
  const std::string run = (scratch.path() / "run").string(), file = (scratch.path() / "w.yaml").string();
  write_file_atomic(file,
                    "schema: warpsmith.workflow/1\nname: taught\ndataset: {folder: " + kSource +
                        "/datasets, train: [square_bias_relu, rms_norm], heldout_operation: [transpose]}\n"
                        "measure: {budget: 300ms, target: 3%, variance_gate: 1000}\nstages:\n  - name: "
                        "collect\n    kind: collect\n"
                        "    teachers: [{name: tiny, url: \"" +
                        url() + "\", model: " + model() + ", trials: 3, successes: 2, max_tokens: 16}]\n");
  int status = 0;
  const std::string said = output_of(run_command(file, run), &status);
  ASSERT_EQ(status, 0) << said;
  const Json found = exported(run);
  const Json tiny = found.at("stages").at(0).at("summary").at("teachers").at("tiny");
  EXPECT_EQ(tiny["trials"], 6) << "two tasks; the held-out one is shown to nobody";
  EXPECT_EQ(tiny["successes"], 0);
  EXPECT_GT(tiny["prompt_tokens"].get<int>(), 500);
  EXPECT_EQ(tiny["lost_tokens"], 0);
}

}  // namespace
}  // namespace warpsmith::endpoint

// warpsmith-generate on a server: what it asks for, what it keeps, and what it asks for again when it was
// killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "fault_server.h"
#include "generate_process.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::HasSubstr;

class ServerJob : public testing::Test {
 protected:
  // `items` prompts, `n` samples of each.
  void write_job(const std::string& url, int items, int n, const Json& endpoint = Json::object(),
                 const Json& params = Json::object()) {
    make_folders(folder_);
    std::string lines;
    for (int i = 0; i < items; ++i)
      lines += Json{{"id", "i" + std::to_string(i)},
                    {"n", n},
                    {"messages", {{{"role", "user"}, {"content", "i" + std::to_string(i)}}}}}
                   .dump() +
               "\n";
    write_file_atomic(folder_ / "items.jsonl", lines);
    Json whole = {{"url", url}, {"model", "coder"}, {"in_flight", 4}, {"first_wait_s", 0.02}};
    whole.update(endpoint);
    JobFile job;
    job.job = "generate";
    job.shards = {{0, static_cast<std::uint64_t>(items)}};
    job.run_folder = "../../../../..";
    job.params = {{"endpoint", whole}, {"max_tokens", 100}};
    job.params.update(params);
    write_file_atomic(folder_ / "job.json", to_json(job).dump());
  }
  pid_t start() const { return start_generate(folder_, scratch_.path() / "log.txt"); }
  int run() const { return wait_for(start()); }
  ShardRecords records() const { return read_shard_records(folder_ / "0"); }
  std::string log() const { return read_file(scratch_.path() / "log.txt"); }

  Scratch scratch_;
  const std::filesystem::path folder_ = scratch_.path() / "stages/s/00000000/0/generate";
};

std::string prompt_of(const Got& got) { return got.body["messages"][0]["content"].get<std::string>(); }

TEST_F(ServerJob, ItsRecordsAreThoseOfASampler) {
  const FaultServer server([](const Got& got) { return chat_reply({"to " + prompt_of(got)}, 7, 3); });
  write_job(server.url(), 5, 3);
  ASSERT_EQ(run(), kExitOk) << log();
  const ShardRecords found = records();
  EXPECT_TRUE(found.ended);
  ASSERT_EQ(found.records.size(), 5u);
  const Json& record = found.records.at("i2");
  ASSERT_EQ(record["samples"].size(), 3u);
  EXPECT_EQ(record["samples"][2], (Json{{"text", "to i2"}, {"finished", true}, {"tokens", 3}}));
  EXPECT_EQ(record["prompt_tokens"], 7);
  EXPECT_EQ(record["model"], "coder");
  std::set<std::string> seeds;
  for (const Got& got : server.got())
    EXPECT_TRUE(seeds.insert(got.body["seed"].dump()).second) << "each its own";
  EXPECT_THAT(log(), HasSubstr("150 tokens of the server, 0 of them lost"));
}

TEST_F(ServerJob, WhatIsRefusedHasARecordThatSaysSo) {
  const FaultServer server([](const Got& got) {
    if (prompt_of(got) == "i1") return Reply{.status = 400, .body = R"({"error":"too long"})"};
    return chat_reply({"x"});
  });
  write_job(server.url(), 3, 1);
  ASSERT_EQ(run(), kExitOk) << log();
  EXPECT_EQ(records().records.at("i1")["error"], "status 400: too long");
  EXPECT_TRUE(records().records.at("i1")["samples"].empty());
  EXPECT_EQ(records().records.at("i2")["samples"].size(), 1u);
}

// The server alone knows how long a prompt may be.
TEST_F(ServerJob, APromptThatIsTooLongLosesExemplars) {
  const FaultServer server([](const Got& got) {
    if (prompt_of(got).size() > 4)
      return Reply{.status = 400, .body = R"({"error":"maximum context length"})"};
    return chat_reply({"to " + prompt_of(got)}, 7, 3);
  });
  write_job(server.url(), 0, 1, {{"chat", true}});
  std::string lines;
  for (const char* id : {"a", "b"})
    lines += Json{{"id", id},
                  {"n", 2},
                  {"prompt", "123456"},
                  {"shorter", {"12345", id[0] == 'a' ? "1234" : "12345"}}}
                 .dump() +
             "\n";
  write_file_atomic(folder_ / "items.jsonl", lines);
  JobFile job = read_job_file(folder_ / "job.json");
  job.shards = {{0, 2}};
  write_file_atomic(folder_ / "job.json", to_json(job).dump());
  ASSERT_EQ(run(), kExitOk) << log();
  const Json a = records().records.at("a"), b = records().records.at("b");
  EXPECT_EQ(a["exemplars_left_out"], 2);
  EXPECT_EQ(a["samples"][1]["text"], "to 1234");
  EXPECT_EQ(a["spent"], (Json{{"prompt", 14}, {"completion", 6}, {"lost", 0}}));
  EXPECT_EQ(b["error"], "status 400: maximum context length");
  EXPECT_EQ(b["exemplars_left_out"], 2);
}

TEST_F(ServerJob, APromptIsContinuedWhereThatIsAskedFor) {
  const FaultServer server([](const Got& got) {
    EXPECT_EQ(got.path, "/v1/completions");
    return Reply{.status = 200,
                 .body = R"({"choices":[{"text":"after )" + got.body["prompt"].get<std::string>() +
                         R"(","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}})"};
  });
  write_job(server.url(), 1, 1, {{"chat", false}});
  write_file_atomic(folder_ / "items.jsonl", Json{{"id", "a"}, {"n", 1}, {"prompt", "x"}}.dump() + "\n");
  ASSERT_EQ(run(), kExitOk) << log();
  EXPECT_EQ(records().records.at("a")["samples"][0]["text"], "after x");
}

// An answer of other weights than those that the stage wants is none, and no later life takes it for one.
TEST_F(ServerJob, AnswersOfOtherWeightsAreNotKept) {
  std::atomic<int> answers = 0;
  std::mutex mutex;
  std::string version = "base";
  const FaultServer server([&](const Got& got) -> Reply {
    const std::lock_guard lock(mutex);
    if (got.path == "/model_info") return {.body = Json{{"weight_version", version}}.dump()};
    if (got.path == "/update_weights_from_disk") {
      version = got.body.at("weight_version");
      return {.body = R"({"success":true,"message":""})"};
    }
    if (got.path != "/v1/chat/completions") return {.body = "{}"};
    if (++answers == 3) version = "somebody-elses";  // as behind a restart of the server
    return chat_reply({"by " + version}, 7, 3);
  });
  write_job(server.url(), 4, 1, {{"in_flight", 1}, {"weights", {{"way", "sglang"}, {"version", "rl-7"}}}},
            {{"stage_folder", "stages/s/00000000"}});
  EXPECT_EQ(run(), kExitFailed) << log();
  EXPECT_THAT(log(), HasSubstr("the server has the weights `somebody-elses`, not `rl-7`"));
  EXPECT_EQ(records().records.size(), 2u);
  EXPECT_EQ(run(), 0) << log();
  ASSERT_EQ(records().records.size(), 4u);
  for (const auto& [id, record] : records().records)
    EXPECT_EQ(record.at("samples").at(0).at("text"), "by rl-7") << id;
  EXPECT_EQ(answers, 5) << "one of them was of other weights";
}

// What an adviser does not say is no failure.
TEST_F(ServerJob, AdviceThatDoesNotComeIsNoFailure) {
  std::atomic<int> answers = 0;
  const FaultServer server([&](const Got&) -> Reply {
    return ++answers <= 2 ? chat_reply({"fine"}, 7, 3) : Reply{.status = 503, .body = "{}"};
  });
  write_job(server.url(), 4, 1, {{"tries", 2}, {"in_flight", 1}}, {{"advice", true}});
  EXPECT_EQ(run(), 0) << log();
  std::size_t said = 0;
  for (const auto& [id, record] : records().records) {
    said += record.at("samples").size();
    if (record.at("samples").empty()) {
      EXPECT_THAT(record.at("error").get<std::string>(), HasSubstr("no answer"));
    }
  }
  EXPECT_EQ(said, 2u);
  EXPECT_EQ(records().records.size(), 4u);
}

// A server that is down has refused nothing: the shard fails, and goes on when it is up.
TEST_F(ServerJob, AServerThatIsDownHasRefusedNothing) {
  std::atomic<bool> down = true;
  const FaultServer server([&](const Got& got) {
    if (down && prompt_of(got) != "i0") return Reply{.status = 503, .body = "{}"};
    return chat_reply({"x"});
  });
  write_job(server.url(), 3, 1, {{"tries", 2}});
  ASSERT_EQ(run(), kExitFailed) << log();
  EXPECT_THAT(log(), HasSubstr("2 requests have no answer, and none is counted as refused"));
  EXPECT_EQ(records().records.size(), 1u);
  down = false;
  ASSERT_EQ(run(), kExitOk) << log();
  EXPECT_EQ(records().records.size(), 3u);
  EXPECT_EQ(records().records.at("i1")["samples"].size(), 1u);
}

TEST_F(ServerJob, ABudgetEndsItAndWithALargerOneItGoesOn) {
  const FaultServer server([](const Got&) { return chat_reply({"x"}, 50, 100); });
  write_job(server.url(), 10, 1, {{"budget", {{"tokens", 700}}}});
  ASSERT_EQ(run(), kExitUsage);
  EXPECT_THAT(log(), HasSubstr("the budget of the server would be passed"));
  const std::size_t first = records().records.size();
  EXPECT_EQ(server.got().size(), first);
  EXPECT_GE(first, 3u);
  EXPECT_LE(first, 4u);
  EXPECT_EQ(run(), kExitUsage) << "it knows what it has spent";
  EXPECT_EQ(server.got().size(), first);
  write_job(server.url(), 10, 1, {{"budget", {{"tokens", 5000}}}});
  ASSERT_EQ(run(), kExitOk);
  EXPECT_EQ(records().records.size(), 10u);
  EXPECT_EQ(server.got().size(), 10u);
}

TEST_F(ServerJob, OverManyKillsNothingThatWasReceivedIsAskedAgain) {
  constexpr int kItems = 120, kSamples = 5, kInFlight = 4, kMostKills = 200;
  std::mutex mutex;
  std::set<std::string> received;  // as its records say: item and seed
  std::set<std::string> again;
  int asks = 0;
  const FaultServer server([&](const Got& got) {
    const std::string what = prompt_of(got) + " " + got.body["seed"].dump();
    const std::lock_guard lock(mutex);
    ++asks;
    if (received.contains(what)) again.insert(what);
    Reply reply = chat_reply({got.body["seed"].dump()}, 10, 5);
    reply.wait_s = 0.01;
    return reply;
  });
  write_job(server.url(), kItems, kSamples);
  Random random(random_key({3}));
  int kills = 0, status = -1;
  const auto asked = [&] {
    const std::lock_guard lock(mutex);
    return asks;
  };
  while (status != kExitOk && kills < kMostKills) {
    const int until = asked() + 1 + static_cast<int>(random.below(20));
    const pid_t pid = start();
    bool is_done = false;
    while (asked() < until && !(is_done = ::waitpid(pid, &status, WNOHANG) == pid)) ::usleep(500);
    if (is_done) {
      status = WEXITSTATUS(status);
      ASSERT_EQ(status, kExitOk) << log();
      break;
    }
    ::kill(pid, SIGKILL);
    wait_for(pid);
    ++kills;
    status = -1;
    const std::lock_guard lock(mutex);
    for (const Json& extra : records().extras)
      if (const auto answer = extra.find("answer"); answer != extra.end())
        for (const Json& choice : answer->at("choices"))
          received.insert(answer->at("item").get<std::string>() + " " + choice.at("text").get<std::string>());
  }
  if (status != kExitOk) {
    ASSERT_EQ(run(), kExitOk) << log();
  }
  EXPECT_TRUE(again.empty()) << *again.begin();
  EXPECT_GE(kills, 30) << "else this shows little";
  EXPECT_LE(asks, kItems * kSamples + kills * kInFlight);
  const ShardRecords found = records();
  ASSERT_EQ(found.records.size(), static_cast<std::size_t>(kItems));
  for (const auto& [item, record] : found.records) {
    std::set<std::string> texts;
    for (const Json& sample : record["samples"]) texts.insert(sample["text"].get<std::string>());
    EXPECT_EQ(texts.size(), static_cast<std::size_t>(kSamples)) << item;
  }
  std::printf("%d kills, %d requests for %d samples\n", kills, asks, kItems * kSamples);
}

}  // namespace
}  // namespace warpsmith::endpoint

// The client against a server that misbehaves as each test says.
#include "warpsmith/endpoint/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include "fault_server.h"
#include "warpsmith/base/error.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Request chat(const std::string& id, int samples = 1) {
  Request request{.id = id, .messages = {{"user", "write " + id}}, .prompt = ""};
  request.samples = samples;
  request.max_tokens = 100;
  return request;
}

std::string asked(const Got& got) { return got.body["messages"][0]["content"].get<std::string>().substr(6); }

struct Outcome {
  std::map<std::string, std::vector<std::string>> texts;  // by request
  std::map<std::string, Refused> refused;
  std::vector<int> tries;
  std::size_t sent = 0, failed = 0;
  Ended ended = Ended::kDone;
};

class ClientTest : public testing::Test {
 protected:
  Server server_for(const FaultServer& server) const {
    return {.url = server.url(),
            .model = "coder",
            .answer_s = 5,
            .tries = 4,
            .first_wait_s = 0.02,
            .longest_wait_s = 0.1};
  }
  Outcome run(const FaultServer& server, const std::vector<Request>& requests, Limits limits = {}) {
    return run(server_for(server), requests, limits);
  }
  Outcome run(const Server& server, const std::vector<Request>& requests, Limits limits = {}) {
    Client client(server, limits, ledger_);
    Outcome out;
    out.ended = client.run(
        requests, {.taken =
                       [&](const Answer& answer) {
                         for (const Choice& choice : answer.choices)
                           out.texts[answer.id].push_back(choice.text);
                         out.tries.push_back(answer.tries);
                       },
                   .refused = [&](const Refused& refused) { out.refused.emplace(refused.id, refused); },
                   .sent = [&](const Try&) { ++out.sent; },
                   .failed = [&](const Try&, const Tokens&) { ++out.failed; }});
    return out;
  }
  std::string error_of(const Server& server) {
    try {
      run(server, {chat("a")});
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      return e.what();
    }
    return "";
  }
  Ledger ledger_{{}, {}};
};

TEST_F(ClientTest, AHundredRequestsAtOnceGetTheirOwnAnswers) {
  const FaultServer server([](const Got& got) {
    Reply reply = chat_reply({"answer to " + asked(got)});
    reply.wait_s = 0.3;
    return reply;
  });
  std::vector<Request> requests;
  for (int i = 0; i < 200; ++i) requests.push_back(chat(std::to_string(i)));
  const Outcome out = run(server, requests, {.in_flight = 100});
  ASSERT_EQ(out.texts.size(), 200u);
  for (const auto& [id, texts] : out.texts) EXPECT_THAT(texts, ElementsAre("answer to " + id));
  EXPECT_EQ(server.got().size(), 200u);
  EXPECT_LE(server.most_at_once(), 100);
  EXPECT_GT(server.most_at_once(), 50);
  EXPECT_EQ(ledger_.spent(), (Tokens{2000, 1000}));
  EXPECT_EQ(ledger_.held(), (Tokens{}));
}

// Each in its own way, twice, and then well.
TEST_F(ClientTest, WhatMayPassIsTriedAgain) {
  std::mutex mutex;
  std::map<std::string, int> seen;
  const FaultServer server([&](const Got& got) {
    const std::string id = asked(got);
    const std::lock_guard lock(mutex);
    if (++seen[id] > 2) return chat_reply({id});
    Reply reply = chat_reply({id});
    if (id == "cut") reply.cut_after = 20;
    if (id == "gone") reply.hang_up = true;
    if (id == "html") reply.body = "<html>busy</html>";
    if (id == "empty") reply.body = R"({"choices":[]})";
    if (id.starts_with("status"))
      reply = {.status = std::stoi(id.substr(6)), .body = R"({"error":"not now"})"};
    return reply;
  });
  std::vector<Request> requests;
  for (const char* id : {"cut", "gone", "html", "empty", "status408", "status409", "status425", "status429",
                         "status500", "status502", "status503", "status504", "well"})
    requests.push_back(chat(id));
  const Outcome out = run(server, requests);
  EXPECT_EQ(out.ended, Ended::kDone);
  EXPECT_EQ(out.texts.size(), requests.size());
  EXPECT_TRUE(out.refused.empty());
  EXPECT_EQ(out.sent, 3 * (requests.size() - 1) + 1);
  EXPECT_EQ(out.failed, 2 * (requests.size() - 1));
  for (const auto& [id, times] : seen) EXPECT_EQ(times, id == "well" ? 1 : 3) << id;
  EXPECT_GT(ledger_.spent().all(), 15u * requests.size()) << "what was cut may have to be paid for";
  EXPECT_EQ(ledger_.held(), (Tokens{}));
}

TEST_F(ClientTest, WhatDoesNotPassIsRefusedWithTheServersWords) {
  const FaultServer server([](const Got& got) {
    if (asked(got) == "long")
      return Reply{.status = 400, .body = R"({"error":{"message":"the context has 4096 tokens"}})"};
    return Reply{.status = 500, .body = R"({"error":"the engine died"})"};
  });
  const Outcome out = run(server, {chat("long"), chat("dead")});
  EXPECT_EQ(out.refused.at("long").status, 400);
  EXPECT_EQ(out.refused.at("long").reason, "the context has 4096 tokens");
  EXPECT_EQ(out.refused.at("long").tries, 1);
  EXPECT_EQ(out.refused.at("dead").status, 500);
  EXPECT_EQ(out.refused.at("dead").reason, "the engine died");
  EXPECT_EQ(out.refused.at("dead").tries, 4);
  EXPECT_EQ(ledger_.spent(), (Tokens{})) << "nobody pays for these";
}

TEST_F(ClientTest, AnAnswerThatComesTooLateIsNotWaitedFor) {
  const FaultServer server([](const Got&) {
    Reply reply = chat_reply({"late"});
    reply.wait_s = 30;
    return reply;
  });
  Server impatient = server_for(server);
  impatient.answer_s = 0.2;
  impatient.tries = 2;
  const Outcome out = run(impatient, {chat("a")});
  EXPECT_EQ(out.refused.at("a").status, 0);
  EXPECT_THAT(out.refused.at("a").reason, HasSubstr("timed out"));
  EXPECT_GE(ledger_.spent().completion, 200u) << "two tries of at most 100";
}

TEST_F(ClientTest, NobodyThereIsTriedAgainAndCostsNothing) {
  Server nobody{.url = "http://127.0.0.1:9/v1", .model = "coder", .tries = 3, .first_wait_s = 0.01};
  const Outcome out = run(nobody, {chat("a")});
  EXPECT_EQ(out.refused.at("a").tries, 3);
  EXPECT_THAT(out.refused.at("a").reason, HasSubstr("connect"));
  EXPECT_EQ(ledger_.spent(), (Tokens{}));
}

TEST_F(ClientTest, AllWaitAsLongAsTheServerAsks) {
  using Clock = std::chrono::steady_clock;
  std::mutex mutex;
  std::optional<Clock::time_point> asked_at;
  double earliest = 100;
  const FaultServer server([&](const Got& got) {
    const std::lock_guard lock(mutex);
    if (!asked_at) {
      asked_at = Clock::now();
      return Reply{.status = 429, .body = R"({"error":"slow down"})", .headers = {"Retry-After: 1"}};
    }
    earliest = std::min(earliest, std::chrono::duration<double>(Clock::now() - *asked_at).count());
    return chat_reply({asked(got)});
  });
  const Outcome out = run(server, {chat("a"), chat("b"), chat("c")}, {.in_flight = 1});
  EXPECT_EQ(out.texts.size(), 3u);
  EXPECT_GE(earliest, 0.95);
}

TEST_F(ClientTest, AServerThatGivesFewerChoicesIsAskedForTheRest) {
  const FaultServer server([](const Got& got) {
    return chat_reply({"seed " + std::to_string(got.body["seed"].get<int>())});  // one, whatever `n` says
  });
  Request request = chat("a", 3);
  request.seed = 10;
  const Outcome out = run(server, {request});
  EXPECT_THAT(out.texts.at("a"), ElementsAre("seed 10", "seed 11", "seed 12"));
  EXPECT_EQ(server.got().size(), 3u);
}

TEST_F(ClientTest, ABudgetEndsItBeforeItIsPassed) {
  ledger_ = Ledger({.tokens = 1000}, {});
  const FaultServer server([](const Got&) { return chat_reply({"x"}, 60, 100); });
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(chat(std::to_string(i)));
  const Outcome out = run(server, requests, {.in_flight = 4});
  EXPECT_EQ(out.ended, Ended::kOverBudget);
  EXPECT_LE(ledger_.spent().all(), 1000u);
  EXPECT_GE(out.texts.size(), 5u) << "1000 are 6 of 160, and one may take 170 or so";
  EXPECT_EQ(server.got().size(), out.texts.size());
}

TEST_F(ClientTest, RequestsKeepTheirPace) {
  const FaultServer server([](const Got& got) { return chat_reply({asked(got)}); });
  std::vector<Request> requests;
  for (int i = 0; i < 75; ++i) requests.push_back(chat(std::to_string(i)));
  const auto begin = std::chrono::steady_clock::now();
  run(server, requests, {.requests_a_minute = 600});  // ten a second, behind a burst of 60
  EXPECT_GT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 1.3);
}

TEST_F(ClientTest, ItStopsWhenItIsAskedTo) {
  const FaultServer server([](const Got&) {
    Reply reply = chat_reply({"x"});
    reply.wait_s = 30;
    return reply;
  });
  Client client(server_for(server), {}, ledger_);
  const std::vector<Request> requests = {chat("a")};
  int looks = 0;
  std::vector<std::string> sent;
  const auto note = [&](const Try& one) {
    sent.push_back(one.request.id);
    EXPECT_GE(one.most.completion, 100u);
  };
  const Ended ended = client.run(requests, {.taken = [](const Answer&) {},
                                            .refused = [](const Refused&) {},
                                            .stop = [&] { return ++looks > 5; },
                                            .sent = note});
  EXPECT_EQ(ended, Ended::kStopped);
  EXPECT_THAT(sent, ElementsAre("a"));
  EXPECT_GE(ledger_.spent().completion, 100u) << "its answer may have to be paid for";
}

// A full disk, say: the answer was good, and is not asked for again.
TEST_F(ClientTest, WhatTheTakerOfAnAnswerThrowsComesOutOfIt) {
  const FaultServer server([](const Got&) { return chat_reply({"x"}); });
  Client client(server_for(server), {}, ledger_);
  const std::vector<Request> requests = {chat("a")};
  std::size_t failed = 0;
  EXPECT_THROW(client.run(requests, {.taken = [](const Answer&) { throw Error("the disk is full"); },
                                     .refused = [](const Refused&) {},
                                     .failed = [&](const Try&, const Tokens&) { ++failed; }}),
               Error);
  EXPECT_EQ(server.got().size(), 1u);
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(ledger_.spent(), (Tokens{10, 5})) << "as the server counted it, once";
}

TEST_F(ClientTest, WhatNoRequestCouldDoEndsAll) {
  for (const int status : {301, 401, 403, 404, 405}) {
    const FaultServer server([&](const Got&) {
      return Reply{
          .status = status, .body = R"({"error":"no"})", .headers = {"Location: http://127.0.0.1:9/"}};
    });
    EXPECT_THAT(error_of(server_for(server)),
                HasSubstr("answers with status " + std::to_string(status) + ": no"));
    EXPECT_LE(server.got().size(), 1u);
  }
  EXPECT_THAT(error_of({.url = "localhost:8000"}), HasSubstr("`localhost:8000` is no address of a server"));
  EXPECT_THAT(error_of({.url = "ftp://x/v1"}), HasSubstr("is no address"));
  EXPECT_THAT(error_of({.url = "file:///etc/passwd"}), HasSubstr("is no address"));
  EXPECT_THAT(error_of({.url = "http://me:secret@x/v1"}), HasSubstr("holds no user and password"));
}

TEST_F(ClientTest, TheKeyIsSentAndShownNowhere) {
  const FaultServer server([](const Got&) {
    return Reply{.status = 401, .body = R"({"error":{"message":"the key sk-very-secret is not known"}})"};
  });
  Server keyed = server_for(server);
  keyed.key_variable = "WARPSMITH_TEST_KEY";
  ::unsetenv("WARPSMITH_TEST_KEY");
  EXPECT_EQ(error_of(keyed),
            "the environment variable WARPSMITH_TEST_KEY, which holds the server's key, is not set");
  ::setenv("WARPSMITH_TEST_KEY", "sk-very-secret\n", 1);
  const std::string said = error_of(keyed);
  EXPECT_THAT(said, Not(HasSubstr("sk-very-secret")));
  EXPECT_THAT(said, HasSubstr("the key *** is not known"));
  EXPECT_THAT(server.got().at(0).head, HasSubstr("Authorization: Bearer sk-very-secret\r\n"));
  ::setenv("WARPSMITH_TEST_KEY", "two\nlines", 1);
  EXPECT_THAT(error_of(keyed), HasSubstr("more than one line"));
  ::unsetenv("WARPSMITH_TEST_KEY");
}

}  // namespace
}  // namespace warpsmith::endpoint

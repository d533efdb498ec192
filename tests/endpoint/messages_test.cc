#include "warpsmith/endpoint/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/error.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string problem_of(const std::string& body) {
  try {
    answer_from(body, {});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Messages, AChatAndWhatIsContinuedAreAskedForInTheirWays) {
  Request chat{.id = "1", .messages = {{"system", "You write CUDA."}, {"user", "A kernel"}}, .prompt = ""};
  chat.samples = 4;
  chat.seed = 7;
  chat.stop = {"```"};
  chat.log_probabilities = true;
  EXPECT_EQ(path_of(chat), "/chat/completions");
  const Json body = body_of(chat, "coder", 2, 2);
  EXPECT_EQ(body["messages"][1], (Json{{"role", "user"}, {"content", "A kernel"}}));
  EXPECT_EQ(body["n"], 2);
  EXPECT_EQ(body["seed"], 9) << "the third sample's";
  EXPECT_EQ(body["stream"], false);
  EXPECT_EQ(body["logprobs"], true);
  EXPECT_EQ(body["stop"], Json::array({"```"}));
  EXPECT_FALSE(body.contains("id"));
  const Request plain{.id = "2", .messages = {}, .prompt = "int main("};
  EXPECT_EQ(path_of(plain), "/completions");
  const Json continued = body_of(plain, "coder", 0, 1);
  EXPECT_EQ(continued["prompt"], "int main(");
  for (const char* key : {"messages", "n", "seed", "stop", "logprobs"})
    EXPECT_FALSE(continued.contains(key)) << key;
}

TEST(Messages, ARequestHoldsBackWhatItMayTake) {
  Request request{.id = "", .messages = {{"user", std::string(1000, 'x')}}, .prompt = ""};
  request.max_tokens = 50;
  EXPECT_GE(most_of(request, 3).prompt, 1000u);
  EXPECT_EQ(most_of(request, 3).completion, 150u);
}

TEST(Messages, AnswersAreRead) {
  const Answer chat = answer_from(
      R"({"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"length",
          "logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1}]}},
          {"message":{"content":null},"finish_reason":"stop"}],
          "usage":{"prompt_tokens":3,"completion_tokens":4}})",
      {});
  ASSERT_EQ(chat.choices.size(), 2u);
  EXPECT_EQ(chat.choices[0].text, "a");
  EXPECT_EQ(chat.choices[0].finish, "length");
  EXPECT_THAT(chat.choices[0].log_probabilities, ElementsAre(-0.5, -1));
  EXPECT_EQ(chat.choices[1].text, "");
  EXPECT_EQ(chat.used, (Tokens{3, 4}));
  EXPECT_TRUE(chat.counted);
  const Answer plain = answer_from(
      R"({"choices":[{"text":"b","logprobs":{"token_logprobs":[null,-2]}}],"usage":null})", {100, 20});
  EXPECT_EQ(plain.choices[0].text, "b");
  EXPECT_THAT(plain.choices[0].log_probabilities, ElementsAre(-2));
  EXPECT_EQ(plain.used, (Tokens{100, 20})) << "the server does not count";
  EXPECT_FALSE(plain.counted);
}

TEST(Messages, WhatIsNoAnswerSaysWhy) {
  EXPECT_THAT(problem_of("<html>busy</html>"), HasSubstr("the answer"));
  EXPECT_THAT(problem_of(R"({"choices":[]})"), HasSubstr("no choices"));
  EXPECT_THAT(problem_of(R"({"error":{"message":"the engine died"}})"),
              HasSubstr("no choices: the engine died"));
  EXPECT_THAT(problem_of(R"({"choices":[{"message":{"content":3}}]})"), HasSubstr("no text"));
  EXPECT_THAT(problem_of(R"({"choices":[{"finish_reason":"stop"}]})"), HasSubstr("no text"));
  EXPECT_THAT(problem_of("[1]"), HasSubstr("no choices"));
  EXPECT_NE(problem_of(std::string(100'000, '[')), "") << "nested too deep";
}

TEST(Messages, WhatAServerSaysOfAnErrorIsOneLine) {
  EXPECT_EQ(error_text(R"({"error":{"message":"no such\nmodel","code":404}})"), "no such model");
  EXPECT_EQ(error_text(R"({"error":"busy"})"), "busy");
  EXPECT_EQ(error_text(R"({"object":"error","message":"too long"})"), "too long");
  EXPECT_THAT(error_text(R"({"detail":[{"loc":["body"],"msg":"field required"}]})"),
              HasSubstr("field required"));
  EXPECT_EQ(error_text("<h1>502\r\nBad Gateway</h1>"), "<h1>502  Bad Gateway</h1>");
  EXPECT_EQ(error_text(""), "");
  EXPECT_LT(error_text(std::string(10'000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace warpsmith::endpoint

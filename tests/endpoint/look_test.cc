#include "warpsmith/endpoint/look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault_server.h"
#include "warpsmith/base/error.h"

namespace warpsmith::endpoint {
namespace {

using ::testing::HasSubstr;

TEST(Look, WhatAServerSaysOfItselfAndWhatATrialShows) {
  const FaultServer server([](const Got& got) -> Reply {
    if (got.path == "/v1/models")
      return {.body = R"({"data":[{"id":"coder","owned_by":"sglang","max_model_len":32768}]})"};
    if (got.path == "/get_server_info") return {.body = R"({"version":"0.5.1"})"};
    if (got.path == "/get_weight_version") return {.body = R"({"weight_version":"step-40"})"};
    if (got.path == "/v1/chat/completions") return chat_reply({"Hello", "Hi"});
    return {.status = 404, .body = "{}"};
  });
  const Look look = look_at({.url = server.url()});
  EXPECT_EQ(look.kind, "SGLang");
  EXPECT_EQ(look.version, "0.5.1");
  EXPECT_EQ(look.weights, "step-40");
  ASSERT_EQ(look.models.size(), 1u);
  EXPECT_EQ(look.models[0].name, "coder");
  EXPECT_EQ(look.models[0].context, 32768u);
  EXPECT_EQ(look.tried_model, "coder");
  EXPECT_EQ(look.problem, "");
  EXPECT_EQ(look.choices, 2);
  EXPECT_TRUE(look.counts_tokens);
  EXPECT_FALSE(look.log_probabilities);
}

TEST(Look, ASlotOfLlamaCppHasAPartOfItsContext) {
  const FaultServer server([](const Got& got) -> Reply {
    if (got.path == "/v1/models")
      return {.body =
                  R"({"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx":2048,"n_ctx_train":8192}}]})"};
    if (got.path == "/props") return {.body = R"({"build_info":"b1-0c1e570","total_slots":16})"};
    if (got.path == "/v1/chat/completions") return chat_reply({"Hello", "Hi"});
    return {.status = 404, .body = "{}"};
  });
  const Look look = look_at({.url = server.url()});
  EXPECT_EQ(look.kind, "llama.cpp");
  EXPECT_EQ(look.version, "b1-0c1e570");
  ASSERT_EQ(look.models.size(), 1u);
  EXPECT_EQ(look.models[0].context, 2048u);
}

TEST(Look, AServerOfAnUnknownKindThatCannotChat) {
  const FaultServer server([](const Got& got) -> Reply {
    if (got.path == "/v1/models") return {.body = R"({"data":[{"id":"base"}, 7]})"};
    if (got.path == "/v1/chat/completions")
      return {.status = 400, .body = R"({"error":"it has no chat template"})"};
    return {.body = "not JSON"};
  });
  const Look look = look_at({.url = server.url()});
  EXPECT_EQ(look.kind, "");
  EXPECT_EQ(look.models.size(), 1u);
  EXPECT_EQ(look.problem, "status 400: it has no chat template");
}

TEST(Look, AnAddressWithoutModelsIsAMistake) {
  const FaultServer server([](const Got&) -> Reply { return {.status = 404, .body = "{}"}; });
  try {
    look_at({.url = server.url()});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    EXPECT_THAT(e.what(), HasSubstr("/models: there is no such thing; is this the address of the API"));
  }
}

}  // namespace
}  // namespace warpsmith::endpoint

// Known hacks in the prompts of stage 3: those of a database, of the stages before and of the rounds before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/workflow/hack_database.h"
#include "world.h"

namespace warpsmith::stages {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using workflow::ContrastiveSettings;

HackCase known(const std::string& task, const std::string& source) {
  const Candidate candidate = program(task, source);
  return *hack_case(candidate, fate(candidate));
}

void add_database(StageInputs& inputs, std::vector<HackCase> cases) {
  inputs.spec.hacks = std::make_shared<const workflow::HackDatabase>(
      workflow::HackDatabase{.cases = std::move(cases), .digest = "d"});
}

std::vector<std::string> prompts_of(const World& world, int round) {
  std::vector<std::string> out;
  for (const Json& item : world.job(std::to_string(round) + "/generate").items) out.push_back(item["prompt"]);
  return out;
}

TEST(ContrastiveHacks, NoneIsQuotedUnlessAskedFor) {
  StageInputs inputs = with_model({.rounds = 2, .prompts = 1, .group = 2}, {"ok 1.00 p", "hack clocks two"});
  add_database(inputs, {known("a", "hack late busy")});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"hack x y", "bad z"};
  };
  world.drive(inputs);
  for (const int round : {1, 2})
    EXPECT_THAT(prompts_of(world, round)[0], HasSubstr("Rules: same results, no caching.\nCode:\n"));
}

TEST(ContrastiveHacks, TheDatabaseAndTheStagesBeforeAreQuotedFromTheFirstRound) {
  StageInputs inputs = with_model({.rounds = 1, .prompts = 1, .group = 2, .quote_hacks = 3},
                                  {"ok 1.00 p", "hack clocks two clocks", "once q", "unstable r", "wrong s"});
  // What was confirmed under another protocol was confirmed.
  inputs.upstream["collect"]["protocol"]["target"] = 0.5;
  add_database(inputs, {known("b", "hack late busy"), known("b", "hack other of another task")});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"ok 2.00 n", "bad z"};
  };
  world.drive(inputs);
  EXPECT_THAT(
      prompts_of(world, 1)[0],
      HasSubstr("Found out, scores 0: not_repeated: measured again: 9.00x, then 1.10x, more than 10 % apart\n"
                "Found out, scores 0: clocks: two clocks\n"
                "| hack clocks two clocks\n"
                "Found out, scores 0: other: of another task\n"
                "| hack other of another task\n"
                "Code:\n"));
}

TEST(ContrastiveHacks, ARoundQuotesWhatTheRoundsBeforeConfirmed) {
  StageInputs inputs =
      with_model({.rounds = 3, .prompts = 2, .group = 2, .quote_hacks = 2}, {"ok 1.00 p", "ok 2.00 q"});
  World world;
  world.answer = [](const JobRequest& job, const Json& item) -> std::vector<std::string> {
    if (job.round == 1) return {"hack clocks two clocks", "bad x"};
    return {"hack late busy " + item["id"].get<std::string>(), "bad x"};
  };
  world.drive(inputs);
  for (const std::string& prompt : prompts_of(world, 1)) EXPECT_THAT(prompt, Not(HasSubstr("Found out")));
  for (const std::string& prompt : prompts_of(world, 2))
    EXPECT_THAT(prompt, HasSubstr("caching.\nFound out, scores 0: clocks: two clocks\n"
                                  "| hack clocks two clocks\nCode:\n"));
  for (const std::string& prompt : prompts_of(world, 3))  // two of one kind go before one of another
    EXPECT_THAT(prompt, HasSubstr("caching.\nFound out, scores 0: late: busy a#1\n| hack late busy a#1\n"
                                  "Found out, scores 0: clocks: two clocks\n"));
}

TEST(ContrastiveHacks, AProgramCountsOnceAndFixedParametersLearnToo) {
  StageInputs inputs = with_model({.rounds = 2, .prompts = 2, .group = 2, .update = false, .quote_hacks = 1},
                                  {"ok 1.00 p", "hack often 1", "hack often 2"});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"hack again x", "hack again x"};
  };
  world.drive(inputs);
  EXPECT_THAT(prompts_of(world, 2)[0], HasSubstr("Found out, scores 0: often: 2\n")) << "two programs to one";
}

TEST(ContrastiveHacks, APromptHoldsWhatTheContextHasRoomFor) {
  StageInputs inputs = with_model({.rounds = 1, .prompts = 1, .group = 1, .quote_hacks = 1},
                                  {"ok 1.00 p", "hack clocks two clocks"});
  const auto prompt = [&](int context) {
    inputs.spec.model.context = context;
    World world;
    world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> { return {"bad z"}; };
    world.drive(inputs);
    return prompts_of(world, 1)[0];
  };
  const std::string whole = prompt(1024);
  const int tokens = static_cast<int>(whole.size() + 2) / 3 + inputs.spec.sample.max_tokens;
  EXPECT_EQ(prompt(tokens), whole);
  EXPECT_THAT(prompt(tokens - 1), HasSubstr("clocks: two clocks\nCode:\n"));
  EXPECT_THAT(prompt(inputs.spec.sample.max_tokens + 1), Not(HasSubstr("Found out")));
}

}  // namespace
}  // namespace warpsmith::stages

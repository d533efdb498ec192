#include <gtest/gtest.h>

#include "world.h"

namespace warpsmith::stages {
namespace {

StageInputs with_command(const std::string& items) {
  StageInputs inputs =
      make_inputs("mine", "command", workflow::CommandSettings{{"/opt/trainer", "--fast"}, items});
  StageOutput collect = output_with("collect", "a", {"ok 1.00 p", "bad q"});
  collect["checkpoint"] = "checkpoints/x-10";
  add_upstream(inputs, "collect", collect);
  return inputs;
}

TEST(Command, RunsTheUsersProgramOnce) {
  World world;
  world.command = [](const Json&) {
    return Json{{"checkpoint", "checkpoints/mine-20"}, {"step", 20}, {"note", "done"}};
  };
  const StageOutput out = world.drive(with_command("none"));
  ASSERT_EQ(world.jobs(), (std::vector<std::string>{"0/command"}));
  EXPECT_EQ(world.log[0].program, "/opt/trainer");
  EXPECT_EQ(world.log[0].arguments, (std::vector<std::string>{"--fast"}));
  EXPECT_EQ(world.log[0].params["checkpoint"], "checkpoints/x-10");
  EXPECT_EQ(out["checkpoint"], "checkpoints/mine-20");
  EXPECT_EQ(out["step"], 20);
  EXPECT_EQ(out["records"][0]["note"], "done");
}

TEST(Command, ItemsAreTasksOrCandidates) {
  World world;
  world.command = [](const Json&) { return Json::object(); };
  world.drive(with_command("tasks"));
  EXPECT_EQ(ids_of(world.log[0].items), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(world.log[0].items[0]["folder"], "/data/a");
  world.drive(with_command("candidates"));
  EXPECT_EQ(ids_of(world.log[1].items),
            (std::vector<std::string>{program("a", "ok 1.00 p").id, program("a", "bad q").id}));
  EXPECT_EQ(world.log[1].items[1]["measurement"]["verdict"], "compile_error");
  EXPECT_THROW(World().drive(with_command("everything")), Error);
}

TEST(Command, CandidatesOfItsRecordsAreChecked) {
  const Candidate good = program("a", "ok 2.00 mine");
  World world;
  world.command = [&](const Json&) {
    const Json entry = {{"candidate", to_json(good)}, {"measurement", to_json(fate(good))}};
    return Json{{"candidates", {entry, entry}}};
  };
  const StageOutput out = world.drive(with_command("none"));
  ASSERT_EQ(out["candidates"].size(), 1u);
  EXPECT_EQ(out["candidates"][0]["measurement"]["verdict"], "ok");
  world.command = [&](const Json&) {
    Json forged = to_json(good);
    forged["task"] = "b";
    return Json{{"candidates", {{{"candidate", forged}}}}};
  };
  try {
    world.drive(with_command("none"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("in the record of command"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace warpsmith::stages

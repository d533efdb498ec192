// What `clean` and `export` make of a run in which a stage has two versions.
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "../store/run_fixture.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"

namespace warpsmith::cli {
namespace {

class VersionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() / ("warpsmith-versions-" + std::to_string(::getpid()));
    make_folders(run_);
    for (const auto& [hash8, speedup] : {std::pair("11111111", 2.0), std::pair("22222222", 4.0)}) {
      store_fixture::make_run(run_, {.shards = 1, .hash8 = hash8, .speedup = speedup});
      const fs::path stage = run_ / "stages/contrastive" / hash8;
      const std::string hash = std::string(hash8) + std::string(56, '0');
      write_file_atomic(stage / "inputs.json", Json{{"hash", hash}, {"inputs", Json::object()}}.dump());
      write_file_atomic(stage / "output.json", R"({"kind":"contrastive"})");
      for (const char* step : {"-10", "-20"})
        make_folders(run_ / ("checkpoints/contrastive-" + std::string(hash8) + step));
    }
    make_folders(run_ / "checkpoints/contrastive-11111111b-10");
    make_folders(run_ / "checkpoints/sft-11111111-10");
    // The first version was taken up again after the second.
    current("11111111");
  }
  void TearDown() override { fs::remove_all(run_); }

  void current(const std::string& hash8) {
    const Json stages = {{{"stage", "contrastive"}, {"hash8", hash8}}};
    write_file_atomic(run_ / "state.json", Json{{"stages", stages}}.dump());
  }

  // Runs a command, and returns what it said.
  std::string command(const std::string& name, std::vector<std::string> arguments) {
    CommandContext context;
    CLI::App app;
    add_clean(app, context);
    add_export(app, context);
    arguments.insert(arguments.begin(), {name, run_.string()});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(context.action(), kExitOk);
    std::fflush(stdout);
    return ::testing::internal::GetCapturedStdout();
  }

  fs::path run_;
};

TEST_F(VersionsTest, CleanRemovesTheOthersWithTheirCheckpoints) {
  const Json said = Json::parse(command("clean", {"--json", "--yes"}));
  EXPECT_EQ(said.at("parts").size(), 3u) << said;
  EXPECT_FALSE(fs::exists(run_ / "stages/contrastive/22222222"));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints/contrastive-22222222-10"));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints/contrastive-22222222-20"));
  for (const char* kept : {"stages/contrastive/11111111/output.json", "checkpoints/contrastive-11111111-10",
                           "checkpoints/contrastive-11111111-20", "checkpoints/contrastive-11111111b-10",
                           "checkpoints/sft-11111111-10"})
    EXPECT_TRUE(fs::exists(run_ / kept)) << kept;
}

TEST_F(VersionsTest, CleanKeepsTheNewestWhereNoneIsCurrent) {
  current("");
  fs::last_write_time(run_ / "stages/contrastive/11111111/output.json",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  command("clean", {"--json", "--yes"});
  EXPECT_TRUE(fs::exists(run_ / "stages/contrastive/22222222"));
  EXPECT_FALSE(fs::exists(run_ / "stages/contrastive/11111111"));
}

TEST_F(VersionsTest, ExportHasTheCurrentOneOrAll) {
  const std::string one = command("export", {}), all = command("export", {"--all-versions"});
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 1 + 3);
  EXPECT_EQ(one.find("22222222"), std::string::npos);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1 + 6);
  EXPECT_NE(all.find("\ncontrastive,22222222,"), std::string::npos);
  const Json figures = Json::parse(command("export", {"--format", "json"}));
  EXPECT_EQ(figures.at("best").at(0).at("speedup"), 2.0) << "the faster one is of another version";
}

}  // namespace
}  // namespace warpsmith::cli

// `warpsmith export`: which options go together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "scratch.h"
#include "store/run_fixture.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExportCommand, FilesForKernelBenchNeedAFolderAndSamples) {
  const Scratch scratch;
  store_fixture::make_run(scratch / "one", {});
  const std::string into = (scratch / "into").string();
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"--format", "kernelbench"}, "give their folder as --into"},
      {{"--format", "kernelbench", "--into", into, "--table", "tasks"}, "--table goes with --format csv"},
      {{"--format", "kernelbench", "--into", into, "--output", "x"}, "do not go with --format kernelbench"},
      {{"--format", "csv", "--into", into}, "go with --format kernelbench"},
      {{"--format", "kernelbench", "--into", into}, "has no stage with samples"},
  };
  for (const auto& [options, said] : rows) {
    CLI::App app("", "warpsmith");
    CommandContext context;
    context.results = scratch.path();
    add_export(app, context);
    std::vector<std::string> words = {"export", "one"};
    words.insert(words.end(), options.begin(), options.end());
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(words);
    try {
      context.action();
      ADD_FAILURE() << said;
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      EXPECT_THAT(e.what(), HasSubstr(said));
    }
  }
  EXPECT_FALSE(fs::exists(into)) << "nothing was written";
}

std::string output_of_command(const fs::path& results, std::vector<std::string> words,
                              int exit_code = kExitOk) {
  CLI::App app("", "warpsmith");
  CommandContext context;
  context.results = results;
  add_export(app, context);
  add_report(app, context);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  testing::internal::CaptureStdout();
  EXPECT_EQ(context.action(), exit_code);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(ExportCommand, ResultsMayBeAFileAlone) {
  const Scratch scratch;
  store_fixture::make_run(scratch / "one", {});
  const std::string of_run = output_of_command(scratch.path(), {"export", "one"});
  EXPECT_THAT(of_run, HasSubstr("row_softmax"));
  make_folders(scratch / "sent");
  fs::copy_file(scratch / "one/results.h5", scratch / "sent/results.h5");
  fs::copy_file(scratch / "one/results.h5", scratch / "other.h5");
  for (const std::string& name : {(scratch / "sent").string(), (scratch / "sent/results.h5").string(),
                                  (scratch / "other.h5").string(), std::string("sent")})
    EXPECT_EQ(output_of_command(scratch.path(), {"export", name}), of_run) << name;
  EXPECT_EQ(output_of_command(scratch.path(), {"report", (scratch / "sent/results.h5").string()}),
            (scratch / "sent/report.html").string() + "\n");
  EXPECT_THAT(read_file(scratch / "sent/report.html"), HasSubstr("Made from results.h5 alone"));
  output_of_command(scratch.path(), {"report", "one"});
  EXPECT_THAT(read_file(scratch / "one/report.html"), Not(HasSubstr("Made from results.h5 alone")));
  write_file_atomic(scratch / "text.h5", "no HDF5");
  EXPECT_THROW(output_of_command(scratch.path(), {"export", (scratch / "text.h5").string()}), Error);
  testing::internal::GetCapturedStdout();
}

TEST(ExportCommand, SumsHaveTheCurrencyOfTheRunsSite) {
  const Scratch scratch;
  store_fixture::make_run(scratch / "one", {});
  const auto exported = [&] {
    CLI::App app("", "warpsmith");
    CommandContext context;
    context.results = scratch.path();
    add_export(app, context);
    std::vector<std::string> words = {(scratch / "out.json").string(),
                                      "--output",
                                      "json",
                                      "--format",
                                      "one",
                                      "export"};  // in the order in which CLI11 takes them
    app.parse(words);
    context.action();
    return read_json_file(scratch / "out.json");
  };
  EXPECT_TRUE(exported().at("currency").is_null());
  write_file_atomic(scratch / "one/site.yaml",
                    "schema: warpsmith.site/1\nname: lab\nprices: {currency: EUR, cpu_hours: 1}\n");
  EXPECT_EQ(exported().at("currency"), "EUR");
}

}  // namespace
}  // namespace warpsmith::cli

// `warpsmith open`: the report is made where it is missing or old, and a browser gets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "scratch.h"
#include "store/run_fixture.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "with_variable.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class OpenCommand : public testing::Test {
 protected:
  OpenCommand() {
    store_fixture::make_run(scratch_ / "one", {});
    write_file_atomic(scratch_ / "browser", "#!/bin/sh\necho \"$@\" > \"$0.got\"\n");
    fs::permissions(scratch_ / "browser", fs::perms::owner_all);
  }
  int open() {
    CLI::App app("", "warpsmith");
    CommandContext context;
    context.results = scratch_.path();
    add_open(app, context);
    app.parse(std::vector<std::string>{"one", "open"});
    return context.action();
  }
  const Scratch scratch_;
  const WithVariable no_screen_{"DISPLAY", ""}, no_wayland_{"WAYLAND_DISPLAY", ""};
};

TEST_F(OpenCommand, SaysWhereTheReportIsAndMakesItWhereItIsOld) {
  const WithVariable none("BROWSER", "/nowhere/browser");
  const fs::path page = scratch_ / "one/report.html";
  for (const bool is_old : {false, true}) {
    if (is_old) {
      write_file_atomic(page, "old");
      fs::last_write_time(page, fs::last_write_time(scratch_ / "one/results.h5") - 1s);
    }
    testing::internal::CaptureStdout();
    EXPECT_EQ(open(), kExitOk);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), page.string() + "\n");
    EXPECT_THAT(read_file(page), HasSubstr("<!doctype html>"));
  }
  write_file_atomic(page, "new");
  testing::internal::CaptureStdout();
  open();
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(read_file(page), "new");
}

TEST_F(OpenCommand, GivesItToTheBrowser) {
  const std::string browser = (scratch_ / "browser").string(), page = (scratch_ / "one/report.html").string();
  const std::pair<std::string, std::string> rows[] = {
      {browser, page + "\n"}, {"/nowhere/b:" + browser + " --url=%s -n", "--url=" + page + " -n\n"}};
  for (const auto& [wanted, got] : rows) {
    const WithVariable set("BROWSER", wanted.c_str());
    EXPECT_EXIT(open(), testing::ExitedWithCode(0), "");
    EXPECT_EQ(read_file(browser + ".got"), got);
  }
}

}  // namespace
}  // namespace warpsmith::cli

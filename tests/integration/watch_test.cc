// `status --watch` on a terminal: the program itself, on a pseudo-terminal, beside a run that goes on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "with_variable.h"

namespace warpsmith {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct OnTerminal {
  int exit_code = -1;
  std::string said;
};

// /bin/sh's `command` on a terminal of so many columns, until it ends. `look` sees what it has said so far.
OnTerminal on_terminal(
    const std::string& command, unsigned short columns,
    const std::function<void(const std::string&)>& look = [](const std::string&) {}) {
  OnTerminal result;
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64] = {};
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0 ||
      ::ptsname_r(terminal, name, sizeof name) != 0)
    throw Error("no pseudo-terminal");
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(terminal, TIOCSWINSZ, &size);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const int end = ::open(name, O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(end, fd);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  char buffer[4096];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    result.said.append(buffer, static_cast<std::size_t>(n));
    look(result.said);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(scratch_ / "w.yaml",
                      "schema: warpsmith.workflow/1\nname: w\n"
                      "dataset: {folder: " WARPSMITH_SOURCE_DIR
                      "/datasets, train: [gelu, rms_norm, transpose]}\n"
                      "resources: {cpus: 1, memory: 64MiB, time: 1m}\nshard_time: 1s\nstages:\n"
                      "  - {name: first, kind: command, records: none, argv: [\"true\"]}\n"
                      "  - {name: second, kind: command, needs: first, items: tasks, records: none, argv: "
                      "[/bin/sh, -c, 'while [ ! -e go ]; do sleep 0.05; done']}\n"
                      "  - {name: third, kind: command, needs: second, records: none, argv: [\"true\"]}\n");
  }
  std::string warpsmith(const std::string& arguments) const {
    return "cd '" + scratch_.path().string() + "' && '" WARPSMITH_BINARY_DIR "/warpsmith' " + arguments;
  }

  const Scratch scratch_;
  const WithVariable locale_{"LC_ALL", "C.UTF-8"};
};

TEST_F(Watch, RedrawsInPlaceUntilTheRunEnds) {
  const WithVariable plain("NO_COLOR", "1");
  std::thread run([&] {
    EXPECT_EQ(std::system(warpsmith("run w.yaml --quiet >out.txt 2>&1 </dev/null").c_str()), 0)
        << read_file(scratch_ / "out.txt");
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!path_exists(scratch_ / "results/w/stages/second") && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The second stage ends when it has been drawn twice.
  const OnTerminal watched =
      on_terminal(warpsmith("status w --watch --every 0.2"), 60, [&](const std::string& said) {
        const std::size_t drawn = said.find("command 0/3");
        if (drawn != std::string::npos && said.find("command 0/3", drawn + 1) != std::string::npos)
          write_file_atomic(scratch_ / "go", "");
      });
  if (!path_exists(scratch_ / "go")) write_file_atomic(scratch_ / "go", "");  // so that the run ends
  run.join();
  EXPECT_EQ(watched.exit_code, kExitOk);
  EXPECT_THAT(watched.said, ContainsRegex("first   finished")) << watched.said;
  EXPECT_THAT(watched.said, ContainsRegex("second  (·|█|▏|▎|▍|▌|▋|▊|▉)+  command [0-3]/3")) << watched.said;
  EXPECT_THAT(watched.said, HasSubstr("1 waiting: third"));
  EXPECT_THAT(watched.said, ContainsRegex("\x1b\\[[0-9]+A\x1b\\[J")) << "it is drawn again in its place";
  EXPECT_THAT(watched.said, Not(ContainsRegex("\x1b\\[[0-9;]*m"))) << "NO_COLOR";
  // What stays is the table of all stages.
  EXPECT_THAT(watched.said.substr(watched.said.rfind("\x1b[J")),
              ContainsRegex("w: finished(.|\r\n)*  third +finished"));

  // A finished run is shown once; the same as lines where there is no terminal.
  const OnTerminal again = on_terminal(warpsmith("status w --watch"), 60);
  EXPECT_EQ(again.exit_code, kExitOk);
  EXPECT_THAT(again.said, ContainsRegex("  third +finished"));
  EXPECT_THAT(again.said, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::system(warpsmith("status w --watch >lines.txt").c_str()), 0);
  EXPECT_THAT(read_file(scratch_ / "lines.txt"), ContainsRegex("  third +finished"));
}

TEST_F(Watch, ARunOnATerminalHasTheSameLines) {
  write_file_atomic(scratch_ / "go", "");
  const OnTerminal run = on_terminal(warpsmith("run w.yaml"), 80);
  EXPECT_EQ(run.exit_code, kExitOk) << run.said;
  EXPECT_THAT(run.said, ContainsRegex("second  [^ ]+  command [0-3]/3"));
  EXPECT_THAT(run.said, HasSubstr("\x1b[32m")) << "in colour";
}

}  // namespace
}  // namespace warpsmith

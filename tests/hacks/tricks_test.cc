// The tricks and their honest twins compile, or fail to as their headers say; no GPU is needed. Of tier
// `python` all are read, and a few compiled: importing torch takes seconds, its headers most of a minute.
#include "tricks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "program_file.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/python.h"

namespace warpsmith {
namespace {

const fs::path kRoot = WARPSMITH_SOURCE_DIR;

const std::vector<task::Task>& all_tasks() {
  static const std::vector<task::Task> tasks = [] {
    Diagnostics diagnostics;
    return task::load_tasks(kRoot / "datasets", diagnostics);
  }();
  return tasks;
}

// Without the twins that are the dataset's.
std::vector<Program> tricks_and_twins(Tier tier) {
  const fs::path folder = kRoot / "tests/hacks" / to_string(tier);
  std::vector<Program> programs = load_tricks(folder, tier, all_tasks());
  for (Program& twin : load_twins(folder, kRoot / "datasets", programs))
    if (twin.name.starts_with("honest/")) programs.push_back(std::move(twin));
  return programs;
}

// What has been compiled once comes from a cache: all of tier `extension` takes nvcc a minute on two cores.
void expect_as_headers_say(std::vector<Program> programs, const std::vector<toolchain::GpuTarget>& targets) {
  compile(programs, targets, fs::path(WARPSMITH_BINARY_DIR) / "tests/hacks/cache");
  for (const Program& program : programs)
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const toolchain::CompileResult& result = program.compiled[i];
      if (lacks_library(program, result))
        std::cout << program.name << " is not compiled: " << result.log;
      else
        EXPECT_EQ(compile_problem(program, result), "") << to_string(targets[i]);
    }
  std::cout << programs.size() << " programs x " << targets.size() << " targets\n";
}

// The dataset's candidates of this tier: toolchain_gpu_datasets_test.
TEST(Tricks, OfTierPlanCompileForEveryArchitecture) {
  const std::vector<Program> programs = tricks_and_twins(Tier::kPlan);
  ASSERT_GT(programs.size(), 50u);
  expect_as_headers_say(programs, {{8, 0, 0}, {8, 6, 0}, {8, 9, 0}, {9, 0, 0}, {9, 0, 'a'}});
}

// For one architecture alone: nvcc takes 2 s a program.
TEST(Tricks, OfTierExtensionCompileWithTheDatasetsCandidates) {
  if (const std::string lacks = toolchain::extension_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
  std::vector<Program> programs = honest_programs(all_tasks(), {Tier::kExtension});
  ASSERT_GE(programs.size(), 6u);
  for (Program& p : tricks_and_twins(Tier::kExtension)) programs.push_back(std::move(p));
  expect_as_headers_say(programs, {{9, 0, 'a'}});
}

// With the honest ones, and the dataset's.
std::vector<Program> python_programs() {
  const fs::path folder = kRoot / "tests/hacks/python";
  std::vector<Program> programs = load_tricks(folder, Tier::kPython, all_tasks());
  load_twins(folder, kRoot / "datasets", programs);  // that each is there
  for (Program& p : load_honest(folder, Tier::kPython, all_tasks())) programs.push_back(std::move(p));
  for (Program& p : honest_programs(all_tasks(), {Tier::kPython})) programs.push_back(std::move(p));
  return programs;
}

// What python3 says of files that it cannot parse, or that define nothing to be called.
std::string python_says(const std::vector<fs::path>& files) {
  std::string command =
      "python3 -c 'import ast, sys\n"
      "for path in sys.argv[1:]:\n"
      "    try:\n"
      "        found = {getattr(node, \"name\", \"\") for node in ast.parse(open(path).read(), path).body}\n"
      "        if not found & {\"ModelNew\", \"forward\"}: print(path, \"defines nothing to be called\")\n"
      "    except SyntaxError as error: print(path, error)\n' 2>&1";
  for (const fs::path& file : files) command += " '" + file.string() + "'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string said;
  char part[256];
  while (pipe != nullptr && std::fgets(part, sizeof part, pipe.get()) != nullptr) said += part;
  return said;
}

TEST(Tricks, OfTierPythonAreModules) {
  const std::vector<Program> programs = python_programs();
  ASSERT_GT(programs.size(), 70u);
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3 here";
  const Scratch scratch;
  std::vector<fs::path> files;
  for (const Program& program : programs) {
    EXPECT_EQ(program.candidate.files.front().path, "model.py") << program.name;
    std::string name = program.name + ".py";
    std::replace(name.begin(), name.end(), '/', '.');
    files.push_back(scratch / name);
    write_file_atomic(files.back(), program.candidate.source());
  }
  EXPECT_EQ(python_says(files), "");
}

// Such a trick does nothing once the block of memory is another one.
TEST(Tricks, KnowTheProtocolOfToday) {
  const std::string protocol = read_file(kRoot / "src/device/extension/protocol.h");
  const std::string before = "kExtensionProtocol = ";
  const std::size_t at = protocol.find(before);
  ASSERT_NE(at, protocol.npos);
  const std::string number = protocol.substr(at + before.size(), protocol.find(';', at) - at - before.size());
  EXPECT_THAT(read_file(kRoot / "tests/hacks/python/works_before_clock.py"),
              testing::HasSubstr("WORDS[PROTOCOL] == " + number + "  #"));
}

TEST(Tricks, OfTierPythonCompile) {
  if (const std::string lacks = toolchain::python_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
  const std::set<std::string> some = {
      "includes_a_file", "patched_events", "raises_at_import",       "reads_files",
      "wild_pointer",    "writes_files",   "honest/constant_buffer", "rms_norm/python/triton_row"};
  std::vector<Program> programs = python_programs();
  std::erase_if(programs, [&](const Program& p) { return !some.contains(p.name); });
  ASSERT_EQ(programs.size(), some.size());
  expect_as_headers_say(std::move(programs), {{9, 0, 'a'}});
}

TEST(Tricks, HeadersThatMakeNoSense) {
  const auto problem = [](const std::string& lines) -> std::string {
    const Scratch scratch;
    write_file_atomic(scratch / "trick.cu", "// task: gelu\n" + lines);
    try {
      load_twins(scratch.path(), kRoot / "datasets", load_tricks(scratch.path(), Tier::kPlan, all_tasks()));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem("// verdict: wrong_output hack:threads\n"), "");
  EXPECT_EQ(problem("// verdict: ok hack\n// honest: gelu/candidates/ok/flat\n"), "");
  for (const char* verdict : {"", "fine", "hack:", "hack:luck", "ok:threads"})
    EXPECT_THAT(problem(std::string("// verdict: ") + verdict + "\n"), testing::HasSubstr("is no verdict"));
  EXPECT_THAT(problem("// verdict: ok\n"), testing::HasSubstr("honest twin"));
  EXPECT_THAT(problem("// verdict: crash\n// honest: gelu/candidates/ok/flat\n"),
              testing::HasSubstr("honest twin"));
  EXPECT_THAT(problem("// verdict: ok\n// honest: honest/none\n"), testing::HasSubstr("is not here"));
}

TEST(Tricks, HeadersOfPython) {
  EXPECT_EQ(header("# hack: h\n# task: gelu\nimport torch\n# verdict: ok\n", "task"), "gelu");
  EXPECT_EQ(header("# hack: h\n# task: gelu\nimport torch\n# verdict: ok\n", "verdict"), "");
  EXPECT_EQ(header("// task: gelu\n", "task"), "gelu");
  const Scratch scratch;
  write_file_atomic(scratch / "trick.cu", "# task: gelu\n# verdict: crash\n");
  EXPECT_THROW(load_tricks(scratch.path(), Tier::kPython, all_tasks()), Error);
}

}  // namespace
}  // namespace warpsmith

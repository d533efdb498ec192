// `warpsmith validate FOLDER --device D`, the whole command with its job program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "with_variable.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTask = R"(schema: warpsmith.task/1
title: of a test
level: 1
split: extra
ops: [part]
dims: [N]
inputs: {x: {shape: [N]}}
outputs: {out: {shape: [N]}}
timing: [{N: 32}]
hidden: [{N: 3}]
)";

class ValidateTasks : public testing::Test {
 protected:
  void add(const std::string& id, const std::string& reference, const std::string& more = "") {
    make_folders(scratch_.path() / id);
    write_file_atomic(
        scratch_.path() / id / "task.yaml",
        kTask + more + "reference: |\n  def forward(x: Tensor) -> Tensor:\n    " + reference + "\n");
  }
  process::ChildResult validate(std::vector<std::string> more) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string(), "validate",
                 scratch_path_.empty() ? scratch_.path().string() : scratch_path_};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.sandbox.allow_processes = true;
    spec.limits.wall_s = 300;
    return process::run_child(spec);
  }
  Scratch scratch_;
  std::string scratch_path_;  // what is validated; empty: all
};

process::ChildResult synthesize(const std::filesystem::path& into, std::vector<std::string> more = {},
                                const std::string& count = "20") {
  process::ChildSpec spec;
  spec.argv = {(program_folder().parent_path() / "warpsmith").string(),
               "tasks",
               "synthesize",
               "--seed",
               "4",
               "--count",
               count,
               "--heldout",
               "3",
               "--into",
               into.string()};
  spec.argv.insert(spec.argv.end(), more.begin(), more.end());
  return process::run_child(spec);
}

// Read, given values and an oracle, none of them degenerate.
TEST_F(ValidateTasks, SynthesisedTasksAreSound) {
  const std::filesystem::path folder = scratch_.path() / "made";
  const process::ChildResult made = synthesize(folder);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("train                  20 tasks\n"));
  EXPECT_THAT(made.out, HasSubstr("heldout_length         3 tasks\n"));
  scratch_path_ = folder.string();
  const process::ChildResult result = validate({"--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("degenerate")));
  EXPECT_EQ(read_json_file(folder / "synthesis.json").at("tasks").size(), 29u);
  const process::ChildResult again = synthesize(folder);
  EXPECT_EQ(again.exit_code, kExitUsage);
  EXPECT_THAT(again.err, HasSubstr("is there already, and not empty"));
  const process::ChildResult modules = synthesize(scratch_.path() / "modules", {"--form", "kernelbench"});
  EXPECT_EQ(modules.exit_code, 0) << modules.err;
  EXPECT_TRUE(std::filesystem::is_directory(scratch_.path() / "modules/KernelBench/level2"));
}

// How the factors of a product lie, as the task's text has it.
std::string product_form_of(const std::string& task) {
  const auto has = [&](const char* text) { return task.find(text) != std::string::npos; };
  const bool right = has("torch.numpy_T(B)");
  const bool left = task.find("numpy_T(") != task.rfind("numpy_T(") || (has("numpy_T(") && !right);
  if (left || right) return std::string(left ? "left" : "") + (right ? "right" : "") + " transposed";
  if (has("A: {shape: [BATCH, BATCH]")) return "square";
  const std::size_t shape = task.find("A: {shape: [");
  const std::string dims = task.substr(shape, task.find(']', shape) - shape);
  return std::count(dims.begin(), dims.end(), ',') == 2 ? "batch of rows" : "rows";
}

// What the sizes of both factors come to, multiplied.
std::int64_t sums_of(const std::string& task) {
  std::int64_t product = 1;
  for (const char* factor : {"A: {shape: [", "B: {shape: ["}) {
    const std::size_t begin = task.find(factor) + std::string_view(factor).size();
    std::istringstream sizes(task.substr(begin, task.find(']', begin) - begin));
    for (std::string size; std::getline(sizes >> std::ws, size, ',');)
      if (size != "BATCH") product *= std::stoll(size);
  }
  return product;
}

// What a task with windows begins with, by its text, and whether it ends with a sum or mean of all.
std::string windows_of(const std::string& task) {
  const std::size_t begin = task.find("ops: [") + 6;
  std::istringstream ops(task.substr(begin, task.find(']', begin) - begin));
  for (std::string op; std::getline(ops >> std::ws, op, ',');)
    if (op.find("pool") != std::string::npos || op.find("conv") != std::string::npos)
      return op + (task.find("out: {shape: []}") == std::string::npos ? "" : " of all");
  return "";
}

std::int64_t flops_of(const std::string& task) { return std::stoll(task.substr(task.find("flops: ") + 7)); }

// Copies of each kind the smallest task: kinds and sizes are told by the tasks' texts; none: "".
std::set<std::string> copy_smallest(const fs::path& from, const fs::path& into,
                                    std::string (*kind_of)(const std::string&),
                                    std::int64_t (*size_of)(const std::string&)) {
  make_folders(into);
  std::map<std::string, std::pair<std::int64_t, fs::path>> smallest;
  for (const fs::path& task : folder_entries(from)) {
    if (!is_folder(task) || !path_exists(task / "candidates")) continue;
    const std::string text = read_file(task / "task.yaml"), kind = kind_of(text);
    if (kind.empty()) continue;
    const std::pair one(size_of(text), task);
    const auto [it, fresh] = smallest.emplace(kind, one);
    if (!fresh) it->second = std::min(it->second, one);
  }
  std::set<std::string> kinds;
  for (const auto& [kind, one] : smallest) {
    kinds.insert(kind);
    fs::copy(one.second, into / one.second.filename(), fs::copy_options::recursive);
  }
  return kinds;
}

// Templates of products, whatever the factors' layout, with a changed left factor and without: on the twin.
TEST_F(ValidateTasks, ProgramsOfProductsAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {"--traced-share", "1"}, "600").exit_code, 0);
  EXPECT_EQ(copy_smallest(
                made, some,
                [](const std::string& task) {
                  return task.find("torch.matmul(") == std::string::npos ? "" : product_form_of(task);
                },
                sums_of)
                .size(),
            6u);
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Templates of pooling and convolution. All 24 kinds of tasks are made; of some the programs run.
TEST_F(ValidateTasks, ProgramsOfWindowsAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {"--families", "pooling,convolution"}, "400").exit_code, 0);
  EXPECT_EQ(copy_smallest(made, scratch_.path() / "all", windows_of, flops_of).size(), 24u);
  EXPECT_EQ(copy_smallest(
                made, some,
                [](const std::string& task) {
                  const std::string kind = windows_of(task);
                  const std::set<std::string> kSome = {
                      "max_pool2d",       "avg_pool3d",    "conv2d",           "depthwise_conv1d",
                      "pointwise_conv2d", "conv1d of all", "max_pool3d of all"};
                  return kSome.contains(kind) ? kind : "";
                },
                flops_of)
                .size(),
            7u);
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// The operator where a task's branches meet, by its text; "traced …": as KernelBench's tasks are written.
std::string meeting_of(const std::string& task) {
  const std::string traced = task.find("dims: [BATCH]") == std::string::npos ? "" : "traced ";
  for (const char* name :
       {"skip", "self_gate", "self_sigmoid_gate", "sigmoid_gate", "silu_gate", "gelu_gate", "relu_residual"})
    for (const char* before : {" ", "["})
      for (const char* behind : {",", "]"})
        if (task.find(std::string(before) + name + behind) != std::string::npos) return traced + name;
  return "";
}

// Templates of tasks whose branches meet: each operator that does so, in both forms.
TEST_F(ValidateTasks, ProgramsOfBranchesAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {"--branches", "1", "--traced-share", "0.5"}, "200").exit_code, 0);
  EXPECT_EQ(copy_smallest(made, some, meeting_of,
                          [](const std::string& task) { return static_cast<std::int64_t>(task.size()); })
                .size(),
            14u);
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// "row", "column", "all", "transpose", "logsumexp" or "elements", of the line `ops`.
std::string end_of(const std::string& names) {
  const std::string last = names.substr(names.rfind(' ') + 1);
  const bool is_end = last.starts_with("row_") || last.starts_with("column_") || last.starts_with("all_") ||
                      last == "transpose" || last == "logsumexp";
  return is_end ? last.substr(0, last.find('_')) : "elements";
}

// What a task in 16 bits ends with, by its text; empty: it has 32.
std::string half_end_of(const std::string& task) {
  const std::size_t dtype = task.find("float16, shape"), ops = task.find("ops: [");
  if (dtype == std::string::npos) return "";
  return (task[dtype - 1] == 'b' ? "bfloat16 " : "float16 ") +
         end_of(task.substr(ops, task.find(']', ops) - ops));
}

// What a task ends with whose matrix is not contiguous, by its text; empty: it is.
std::string strided_end_of(const std::string& task) {
  const std::size_t strides = task.find("strides: ["), ops = task.find("ops: [");
  if (strides == std::string::npos) return "";
  return task.substr(strides, 12) + end_of(task.substr(ops, task.find(']', ops) - ops));
}

// Templates of tasks whose matrix is part of a wider one or lies by columns: each way to end.
TEST_F(ValidateTasks, ProgramsOfStridedMatricesAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {"--strided", "1"}, "200").exit_code, 0);
  const auto kinds = copy_smallest(made, some, strided_end_of, [](const std::string& task) {
    return static_cast<std::int64_t>(task.size());
  });
  EXPECT_GE(kinds.size(), 9u);
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// "column_sum" or "column_mean": what a task of long columns ends with, by its text. Products' are shorter.
std::string long_columns_of(const std::string& task) {
  if (task.find("ops: [matmul") != std::string::npos) return "";
  for (const char* name : {"column_sum", "column_mean"})
    if (task.find(std::string(", ") + name + "]") != std::string::npos) return name;
  return "";
}

// Equal elements are rounded alike, so that their sum is off most: columns as long as those that a GPU times.
TEST_F(ValidateTasks, ProgramsOfLongColumnsAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {}, "200").exit_code, 0);
  const auto kinds = copy_smallest(made, some, long_columns_of, [](const std::string& task) {
    return static_cast<std::int64_t>(task.find("dims: [") - task.find("ops: ["));
  });
  EXPECT_EQ(kinds, (std::set<std::string>{"column_mean", "column_sum"}));
  for (const fs::path& task : folder_entries(some)) {
    std::string text = read_file(task / "task.yaml");
    const std::string before = "gpu: [{M: ";
    const int rows = std::stoi(text.substr(text.find(before) + before.size()));
    EXPECT_GT(rows, 32000) << text;
    const std::string hidden = "hidden:\n";
    text.insert(text.find(hidden) + hidden.size(), "  - {M: " + std::to_string(rows) + ", N: 4}\n");
    write_file_atomic(task / "task.yaml", text);
  }
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Templates of tasks in 16 bits: each way to end in each type that it comes with.
TEST_F(ValidateTasks, ProgramsInHalfPrecisionAreRight) {
  const fs::path made = scratch_.path() / "made", some = scratch_.path() / "some";
  ASSERT_EQ(synthesize(made, {"--half-precision", "1"}, "200").exit_code, 0);
  const auto kinds = copy_smallest(made, some, half_end_of, [](const std::string& task) {
    return static_cast<std::int64_t>(task.size());
  });
  EXPECT_GE(kinds.size(), 9u);
  scratch_path_ = some.string();
  const process::ChildResult result = validate({"--measure", "--verdicts-only", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// `dataset: {synthesize: {…}}`: made once, kept by what makes them, beside links to the tasks of people.
TEST_F(ValidateTasks, SynthesisedDatasetsLieInTheCache) {
  add("mine", "return torch.relu(x)");
  const fs::path cache = scratch_.path() / "cache", file = scratch_.path() / "w.yaml";
  const WithVariable variable("WARPSMITH_CACHE", cache.string());
  write_file_atomic(file, "schema: warpsmith.workflow/1\nname: w\ndevice: cpu\ndataset:\n  folder: " +
                              scratch_.path().string() +
                              "\n  synthesize: {count: 2, unsolved: 1, sft_only: 4, heldout: 1}\n"
                              "  heldout_people: all\nstages: [{name: c, kind: collect}]\n");
  const auto plan = [&](std::vector<std::string> more) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string(), "plan", file.string()};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    const process::ChildResult result = process::run_child(spec);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(" 11+\n")) << "4 + 2 + 1 + 3 and one of a person";
    std::vector<fs::path> folders;
    for (const fs::path& entry : folder_entries(cache / "synthesised"))
      if (is_folder(entry)) folders.push_back(entry);
    return folders;
  };
  const std::vector<fs::path> made = plan({});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_TRUE(fs::is_symlink(made[0] / "mine"));
  std::map<std::string, int> solved, unsolved;
  const Json summary = read_json_file(made[0] / "synthesis.json");
  for (const Json& task : summary.at("tasks")) {
    const fs::path folder = made[0] / task.at("task").get<std::string>();
    EXPECT_NE(path_exists(folder / "candidates"), path_exists(folder / "templates"));
    ++(path_exists(folder / "candidates") ? solved : unsolved)[task.at("split").get<std::string>()];
  }
  EXPECT_EQ(solved, (std::map<std::string, int>{{"train", 2}, {"sft_only", 4}}));
  EXPECT_EQ(unsolved,
            (std::map<std::string, int>{
                {"train", 1}, {"heldout_combination", 1}, {"heldout_length", 1}, {"heldout_operation", 1}}));
  EXPECT_EQ(plan({}), made) << "they are there";
  EXPECT_EQ(plan({"--split-seed", "9"}).size(), 2u);
}

TEST_F(ValidateTasks, OneThatAConstantPassesIsRefusedAtItsPlace) {
  add("fine", "return torch.relu(x)");
  add("empty", "return torch.clamp(x - 100.0, min=0.0)");
  const process::ChildResult result = validate({"--device", "cpu"});
  EXPECT_EQ(result.exit_code, kExitUsage) << result.err;
  EXPECT_THAT(result.out, HasSubstr("fine: 6 checks\n"));
  EXPECT_THAT(result.out, HasSubstr("empty: 6 checks, degenerate\n"));
  EXPECT_THAT(result.err, HasSubstr((scratch_.path() / "empty/task.yaml").string() +
                                    ": the answer does not depend on input `x`"));
  EXPECT_THAT(result.err, HasSubstr("degenerate: <why>"));
  EXPECT_THAT(result.err, Not(HasSubstr("fine/task.yaml")));
}

TEST_F(ValidateTasks, OneThatIsMarkedIsKnown) {
  add("empty", "return torch.clamp(x - 100.0, min=0.0)", "degenerate: zeros pass\n");
  const process::ChildResult result = validate({"--device", "cpu", "--json"});
  EXPECT_EQ(result.exit_code, kExitOk) << result.err;
  const Json answer = Json::parse(result.out);
  EXPECT_EQ(answer.at("tasks").at(0).at("marked"), "zeros pass");
  EXPECT_EQ(answer.at("tasks").at(0).at("degenerate"), "the answer does not depend on input `x`");
  EXPECT_TRUE(answer.at("mistakes").empty());
}

TEST_F(ValidateTasks, AReferenceThatFailsHasItsWords) {
  add("broken", "return torch.matmul(x, torch.ones([7, 7]))");
  const process::ChildResult result = validate({"--device", "cpu"});
  EXPECT_EQ(result.exit_code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("broken/task.yaml: "));
  EXPECT_THAT(result.err, HasSubstr("cannot be multiplied"));
}

// Without --device nothing is run; a reference that does not compile is a mistake all the same.
TEST_F(ValidateTasks, PlainValidateCompilesReferences) {
  add("fine", "return torch.relu(x)");
  add("no_such_operator", "return torch.frobnicate(x)");
  add("no_such_name", "return torch.relu(y)");
  add("wrong_type", "return torch.relu('x')");
  const std::string folder = scratch_.path().string();
  scratch_path_ = folder + "/fine";
  const process::ChildResult good = validate({});
  EXPECT_EQ(good.exit_code, kExitOk) << good.err;
  EXPECT_THAT(good.out, HasSubstr(": good"));
  EXPECT_EQ(good.err, "");
  for (const std::string id : {"no_such_operator", "no_such_name", "wrong_type"}) {
    scratch_path_ = folder + "/" + id;
    const process::ChildResult result = validate({});
    EXPECT_EQ(result.exit_code, kExitUsage) << id;
    EXPECT_THAT(result.err, HasSubstr(folder + "/" + id + "/task.yaml")) << id;
    EXPECT_THAT(result.err, HasSubstr("1 mistake\n")) << id;
  }
}

TEST_F(ValidateTasks, ATaskMayBeNamedInAnyWay) {
  add("fine", "return torch.relu(x)");
  const std::string task = (scratch_.path() / "fine").string();
  for (const std::string& path : {task, task + "/", task + "//", task + "/.", task + "/../fine/"}) {
    scratch_path_ = path;
    for (const std::vector<std::string>& how :
         {std::vector<std::string>{}, {"--device", "cpu"}, {"--measure", "--verdicts-only"}}) {
      const process::ChildResult result = validate(how);
      EXPECT_EQ(result.exit_code, kExitOk) << path << (how.empty() ? "" : how[0]) << result.err;
    }
  }
}

TEST_F(ValidateTasks, MessagesNameTheFileAndCannotCommandTheTerminal) {
  add("fine", "return torch.relu(x)");
  make_folders(scratch_.path() / "fine/candidates/ok");
  write_file_atomic(scratch_.path() / "fine/candidates/ok/host.cu",
                    "// plan: launch k<<<1, 32>>>(x, out)\n"
                    "#error \x1b]0;title\x07\x1b[2J \xe2\x80\xae\n"
                    "__global__ void k(const float* x, float* out) {}\n");
  make_folders(scratch_.path() / "fine/candidates/launch_error");
  write_file_atomic(scratch_.path() / "fine/candidates/launch_error/wide.cu",
                    "// plan: launch k<<<1, 2048>>>(x, out)\n"
                    "__global__ void k(const float* x, float* out) {}\n");
  const process::ChildResult result = validate({"--measure", "--verdicts-only"});
  EXPECT_EQ(result.exit_code, kExitFailed) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ok/host.cu:2:"));
  EXPECT_THAT(result.out, HasSubstr("launch_error/wide.cu:1:"));
  EXPECT_THAT(result.out, Not(HasSubstr("kernel.cu")));
  for (const char* control : {"\x1b", "\x07", "\xe2\x80\xae"}) {
    EXPECT_THAT(result.out, Not(HasSubstr(control)));
    EXPECT_THAT(result.err, Not(HasSubstr(control)));
  }
}

TEST_F(ValidateTasks, ASignalEndsItInOrder) {
  for (int i = 0; i < 40; ++i) add("slow" + std::to_string(i), "return torch.relu(x)");
  const fs::path folder = scratch_.path() / "tmp";
  make_folders(folder);
  for (const int signal : {SIGINT, SIGTERM}) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string(), "validate",
                 scratch_.path().string(), "--device", "cpu"};
    spec.environment = process::our_environment();
    (*spec.environment)["TMPDIR"] = folder.string();
    spec.sandbox.allow_processes = true;
    spec.limits.wall_s = 300;
    process::Child child(spec);
    for (int i = 0; i < 500 && fs::is_empty(folder) && child.running(); ++i) ::usleep(10'000);
    ::kill(child.pid(), signal);
    const process::ChildResult result = child.wait();
    EXPECT_EQ(result.ending, process::Ending::kExited) << signal;
    EXPECT_EQ(result.exit_code, kExitInterrupted) << result.err;
    EXPECT_TRUE(fs::is_empty(folder));
  }
}

// These GPUs are no real ones: the job gets as far as opening the right one.
TEST_F(ValidateTasks, OfSeveralTypesTheRightOneIsTaken) {
  const WithVariable library("WARPSMITH_NVML", WARPSMITH_BINARY_DIR "/tests/libfake_nvml.so");
  const WithVariable gpus("FAKE_GPUS", "NVIDIA L40 8.9;NVIDIA H200 9.0");
  add("fine", "return torch.relu(x)");
  const process::ChildResult result = validate({"--device", "H200"});
  EXPECT_NE(result.exit_code, kExitOk);
  EXPECT_THAT(result.err, Not(HasSubstr("wrong GPU")));
  EXPECT_THAT(validate({"--device", "H100"}).err, HasSubstr("wrong GPU: this is a NVIDIA L40"));
}

TEST_F(ValidateTasks, NoSuchGpu) {
  add("fine", "return torch.relu(x)");
  ::setenv("WARPSMITH_NVML", "", 1);
  const process::ChildResult result = validate({"--device", "H200"});
  EXPECT_EQ(result.exit_code, kExitEnvironment) << result.err;
  EXPECT_THAT(result.err, HasSubstr("there is no GPU here, and device kind H200 is wanted"));
  EXPECT_EQ(validate({"--device", "auto"}).exit_code, kExitOk);
  ::unsetenv("WARPSMITH_NVML");
  EXPECT_EQ(validate({"--device", "H 2"}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace warpsmith

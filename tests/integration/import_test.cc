// `warpsmith import`, the whole command: modules of KernelBench's form become tasks that can be measured, and
// kernels of others come to lie beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/task/task.h"
#include "with_variable.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A module whose forward(x) does `body`; `made` in its constructor.
std::string module_of(const std::string& body, const std::string& made = "pass",
                      const std::string& inputs = "[torch.rand(batch, width)]") {
  return "import torch\nimport torch.nn as nn\n\nbatch = 64\nwidth = 48\n\n"
         "class Model(nn.Module):\n    def __init__(self, features):\n        super().__init__()\n        " +
         made + "\n\n    def forward(self, x):\n        " + body + "\n\ndef get_inputs():\n    return " +
         inputs + "\n\ndef get_init_inputs():\n    return [width]\n";
}

class Import : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<fs::path> python = python::find_python();
    if (!python || !python::ask_python(*python, "import torch\nprint(1)"))
      GTEST_SKIP() << "there is no python3 with torch here";
    make_folders(scratch_.path() / "checkout/KernelBench/level1");
    make_folders(scratch_.path() / "checkout/KernelBench/level2");
  }
  void add(const std::string& path, const std::string& text) {
    write_file_atomic(scratch_.path() / "checkout/KernelBench" / path, text);
  }
  process::ChildResult warpsmith(std::vector<std::string> arguments) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string()};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.folder = scratch_.path();
    spec.sandbox.allow_processes = true;
    spec.limits.wall_s = 280;
    return process::run_child(spec);
  }
  Json imported(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"import", "kernelbench", "checkout", "--into", "tasks", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const process::ChildResult result = warpsmith(arguments);
    err_ = result.err;
    exit_code_ = result.exit_code;
    return Json::parse(result.out, nullptr, false);
  }
  task::Task loaded(const std::string& id) {
    Diagnostics mistakes;
    std::optional<task::Task> task = task::load_task(scratch_.path() / "tasks" / id, mistakes);
    if (!task) throw InvalidInput(mistakes);
    return std::move(*task);
  }
  Scratch scratch_;
  std::string err_;
  int exit_code_ = 0;
};

constexpr const char* kDoubled =
    R"(// plan: launch doubled<<<cdiv(BATCH * 48, 128), 128>>>(x, out, BATCH * 48)
extern "C" __global__ void doubled(const float* x, float* out, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
)";

TEST_F(Import, AModuleBecomesATaskThatAKernelIsMeasuredOn) {
  add("level1/3_Doubled_.py", module_of("return x * 2"));
  add("level1/notes.txt", "no task");
  const Json answer = imported({"--level", "1"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"level1_3_Doubled"}));
  const task::Task task = loaded("level1_3_Doubled");
  EXPECT_EQ(task.title, "Doubled");
  EXPECT_EQ(task.math, "torch_default");
  EXPECT_EQ(task.timing.front().at("BATCH"), 64);
  EXPECT_EQ(task::to_string(task.inputs.at(0).values), "uniform(0, 1)");
  ASSERT_EQ(task.distributions.size(), 1u);
  EXPECT_EQ(task::to_string(task.distributions.at(0).at("x")), "normal(0, 1)");
  EXPECT_TRUE(path_exists(scratch_.path() / "tasks/level1_3_Doubled/reference.py"));
  write_file_atomic(scratch_.path() / "mine.cu", kDoubled);
  const process::ChildResult bench =
      warpsmith({"bench", "tasks/level1_3_Doubled", "mine.cu", "--device", "cpu", "--verdicts-only"});
  EXPECT_EQ(bench.exit_code, kExitOk) << bench.out << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("mine.cu  ok"));
  // The rules for folders of our own tasks do not hold for it: it has one candidate, in no folder.
  const process::ChildResult folder = warpsmith({"validate", "tasks"});
  EXPECT_EQ(folder.exit_code, kExitOk) << folder.out << folder.err;
  // What is there already stays.
  const Json again = imported({"--level", "1"});
  EXPECT_EQ(again.at("there_already"), Json({"level1_3_Doubled"}));
  EXPECT_TRUE(again.at("imported").empty());
}

TEST_F(Import, ParametersFollowTheInputsAndABatchNormTrains) {
  add("level2/1_Chain.py",
      module_of("return torch.relu_(self.norm(self.linear(x)))",
                "self.linear = nn.Linear(features, 24, bias=False); self.norm = nn.BatchNorm1d(24)"));
  const Json answer = imported({"--level", "2"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  const task::Task task = loaded("level2_1_Chain");
  std::vector<std::string> names;
  for (const task::TensorSpec& input : task.inputs) names.push_back(input.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "linear_weight", "norm_weight", "norm_bias"}));
  EXPECT_EQ(task.inputs.at(1).role, task::Role::kParameter);
  EXPECT_EQ(task.inputs.at(2).values.kind, "ones");
  EXPECT_EQ(task.inputs.at(3).values.kind, "zeros");
  EXPECT_THAT(task.reference, HasSubstr("torch.batch_norm("));
  // The module refuses a batch of one there.
  EXPECT_EQ(task.hidden, (std::vector<task::Dims>{{{"BATCH", 3}}, {{"BATCH", 2}}}));
  const process::ChildResult valid = warpsmith({"validate", "tasks/level2_1_Chain", "--device", "cpu"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
}

// What modules of KernelBench have beside tensors of one draw.
TEST_F(Import, NumbersConstantsPlainTensorsAndWhatIsComputed) {
  const auto module = [&](const std::string& name, const std::string& init, const std::string& forward,
                          const std::string& inputs) {
    add("level1/" + name + ".py",
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        " +
            init + "\n    def forward(self, " + forward + "\n\ndef get_inputs():\n    " + inputs +
            "\n\ndef get_init_inputs():\n    return []\n");
  };
  module("1_Number", "pass", "x, s: float):\n        return x * s", "return [torch.rand(8, 6), 2.5]");
  module("2_BatchOfOne", "self.linear = nn.Linear(6, 4)", "x):\n        return self.linear(x)",
         "return [torch.rand(1, 6)]");
  module("3_Plain", "self.h = torch.randn(6)", "x):\n        return x + self.h.to(x.device)",
         "return [torch.rand(8, 6)]");
  module("4_Constant", "pass", "x):\n        return torch.min(x, torch.tensor(0.25))",
         "return [torch.randn(8, 6)]");
  module("5_Computed", "pass", "x, y, mask, z):\n        return torch.where(mask, x * y, -z)",
         "scale = torch.rand(())\n    return [torch.rand(8, 6) * scale, torch.randint(0, 2, (8, 6)).float() "
         "- 1, "
         "torch.randint(0, 2, (8, 6)).bool(), 3 * torch.randn(8, 6) + 1]");
  module("6_OneMore", "pass", "x):\n        return torch.cat([x, x[:1]])", "return [torch.rand(8, 6)]");
  const Json answer = imported({"--level", "1"});
  ASSERT_EQ(exit_code_, kExitOk) << err_ << answer;
  const task::Task number = loaded("level1_1_Number");
  ASSERT_EQ(number.scalars.size(), 1u);
  EXPECT_EQ(number.scalars[0].name, "s");
  EXPECT_EQ(number.scalars[0].value, 2.5);
  EXPECT_EQ(loaded("level1_2_BatchOfOne").timing.front().at("BATCH"), 1);
  const task::Task plain = loaded("level1_3_Plain");
  ASSERT_EQ(plain.inputs.size(), 2u);
  EXPECT_EQ(plain.inputs[1].state_dict, "h");
  // A move to the device where it is names no type: the reference runs in float64.
  EXPECT_THAT(plain.reference, Not(HasSubstr("torch.to(")));
  EXPECT_THAT(loaded("level1_4_Constant").reference, HasSubstr("0.25"));
  const task::Task computed = loaded("level1_5_Computed");
  std::vector<std::string> values;
  for (const task::TensorSpec& input : computed.inputs) values.push_back(task::to_string(input.values));
  EXPECT_EQ(values,
            (std::vector<std::string>{"uniform(0, 1)", "integers(-1, 1)", "integers(0, 2)", "normal(1, 3)"}));
  EXPECT_EQ(task::shape_at(loaded("level1_6_OneMore").outputs.at(0), {{"BATCH", 4}}),
            (std::vector<std::int64_t>{5, 6}));
  const process::ChildResult valid = warpsmith({"validate", "tasks", "--device", "cpu"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
}

// What get_inputs() does with a tensor that it has drawn is followed, or refused.
TEST_F(Import, DrawnTensorsThatAreWorkedWith) {
  const std::string draw = "x = torch.rand(batch, width)\n    ",
                    normal = "x = torch.empty(batch, width)\n    ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {draw + "x *= 4", "uniform(0, 4)"},
      {draw + "x.sub_(1)", "uniform(-1, 0)"},
      {draw + "x = torch.randn_like(x)", "normal(0, 1)"},
      {normal + "x.normal_(std=2)", "normal(0, 2)"},
      {normal + "x.uniform_(-1, 1)", "uniform(-1, 1)"},
      {draw + "x = x.view(width, batch).T.reshape(batch, width)", "uniform(0, 1)"},
      {draw + "x = (x * 4).long().float()", "integers(0, 4)"},
      {draw + "x = (x > 0.25).float()", "bernoulli(0.75)"},
      {draw + "x = (x < 0.25).float() * 2 - 1", "bernoulli(0.25) prepared"},
      {"x = torch.randint(0, 5, (batch, width)).float() / 4", "choice(0, 0.25, 0.5, 0.75, 1)"},
      {"x = torch.randint(0, 2, (batch, width)).float() * 2 - 1", "choice(-1, 1)"},
      {draw + "x[:, 0] = 5", "uniform(0, 1) prepared"},
      {draw + "x[0].zero_()", "uniform(0, 1) prepared"},
      {draw + "x = torch.add(x, 1, alpha=2)", "uniform(0, 1) prepared"},
      {draw + "torch.exp(x, out=x)", "uniform(0, 1) prepared"},
      {draw + "x = (x * 9).to(torch.int16).float()", "integers(0, 9)"},
      {normal + "x.normal_()\n    x = x.abs()", "normal(0, 1) prepared"},
      {"x = torch.randint(0, 5, (batch, width)).to(torch.bool).float()", "integers(0, 5) prepared"},
      {draw + "x = x * torch.rand(width)", ""},
      {draw + "x = x + torch.rand(batch, width)", ""},
      {draw + "x = nn.functional.dropout(x)", ""},
  };
  for (std::size_t i = 0; i < cases.size(); ++i)
    add(fmt::format("level1/{}_Case.py", i + 1), module_of("return x + 1", "pass", "[drawn()]") +
                                                     "\ndef drawn():\n    " + cases[i].first +
                                                     "\n    return x\n");
  const Json answer = imported({"--level", "1"});
  ASSERT_TRUE(answer.is_object()) << err_;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string id = fmt::format("level1_{}_Case", i + 1);
    const bool refused = cases[i].second.empty();
    EXPECT_EQ(answer.at("imported").dump().find('"' + id + '"') == std::string::npos, refused) << answer;
    if (refused) continue;
    const task::Task task = loaded(id);
    EXPECT_EQ(task::to_string(task.inputs.at(0).values) + (task.prepare.empty() ? "" : " prepared"),
              cases[i].second)
        << cases[i].first;
  }
  const process::ChildResult valid = warpsmith({"validate", "tasks", "--device", "cpu"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
}

// What get_inputs() computes of its draws becomes the task's `prepare`.
TEST_F(Import, InputsThatAreComputed) {
  struct Case {
    std::string arguments, forward, inputs, prepare;  // a part of it
  };
  const std::vector<Case> cases = {
      {"A, B", "A @ B",
       "A = torch.rand(N, N)\n    A = (A + A.T) / 2\n    return [A, torch.triu(torch.rand(N, N))]",
       "torch.triu(B)"},
      {"A", "torch.linalg.cholesky(A)", "A = torch.rand(N, N)\n    return [A @ A.T + N * torch.eye(N)]",
       "torch.eye("},
      {"p, q", "nn.functional.kl_div(torch.log(p), q)",
       "s = torch.rand(())\n    return [(torch.rand(M, 6) * s).softmax(dim=-1), torch.rand(M, 6).softmax(0)]",
       "torch.softmax(p, -1)"},
      {"x", "x * 2", "return [nn.functional.normalize(torch.randn(M, 6))]", "torch.linalg_vector_norm(x"},
      {"x, m", "x.masked_fill(m, 0.0)", "return [torch.rand(M, 6, 6), torch.ones(6, 6).tril().bool()]",
       "torch.ones([6, 6]"},
      {"x, i", "x[i]", "return [torch.rand(M, 6), torch.arange(M).flip(0)]", "torch.flip(v_arange, [0])"},
      {"x, i", "torch.gather(x, 1, i)", "x = torch.rand(M, 6)\n    return [x, x.argsort(1)]",
       "return x, v_argsort"},
      {"x, y", "x * y", "x = torch.rand(M, 6)\n    return [x, x + 0.1 * torch.randn(M, 6)]",
       "torch.add(x, y)"},
      {"x, y", "x * y", "x = torch.rand(M, 6)\n    return [x, x]", "return x, x"},
      {"x", "x + 1", "return [torch.randint(0, 100, (M, 6)) / 100]", "torch.div(v_to, 100)"},
  };
  for (std::size_t i = 0; i < cases.size(); ++i)
    add(fmt::format("level1/{}_Case.py", i + 1),
        fmt::format("import torch\nimport torch.nn as nn\n\nN = 24\nM = 40\n\nclass Model(nn.Module):\n"
                    "    def forward(self, {}):\n        return {}\n\ndef get_inputs():\n    {}\n\n"
                    "def get_init_inputs():\n    return []\n",
                    cases[i].arguments, cases[i].forward, cases[i].inputs));
  const Json answer = imported({"--level", "1"});
  ASSERT_EQ(exit_code_, kExitOk) << err_ << answer;
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_THAT(loaded(fmt::format("level1_{}_Case", i + 1)).prepare, HasSubstr(cases[i].prepare));
  const process::ChildResult valid = warpsmith({"validate", "tasks", "--device", "cpu"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
  // Of square matrices all sizes are the batch.
  const task::Task square = loaded("level1_1_Case");
  EXPECT_EQ(task::shape_at(square.inputs.at(1), {{"BATCH", 3}}), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(square.flops->evaluate(task::dims_scope({{"BATCH", 10}})), 2000);
  EXPECT_EQ(square.bytes->evaluate(task::dims_scope({{"BATCH", 10}})), 400)
      << "the output: zeros need no reading";
  EXPECT_EQ(square.hidden.size(), 3u);
}

// Sizes that are equal by chance are no square.
// Modules with windows have the references that the grammar's have (tests/synthesis has the same texts), and
// what it writes as modules becomes its tasks.
TEST_F(Import, PoolingAndConvolutionAreAsTheGrammarHasThem) {
  const std::string begin =
      "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n"
      "        super().__init__()\n        ";
  const std::string end = "\n\ndef get_init_inputs():\n    return []\n";
  add("level2/1001_Pool.py",
      begin +
          "self.pool = nn.MaxPool2d(3, stride=2, padding=1)\n\n    def forward(self, x, other):\n"
          "        return torch.tanh(self.pool(x) + other)\n\ndef get_inputs():\n"
          "    return [torch.rand(16, 8, 13, 20), torch.rand(16, 8, 7, 10)]" +
          end);
  add("level2/1002_Convolution.py",
      begin +
          "self.conv = nn.Conv2d(3, 16, 3, stride=2, padding=1)\n"
          "        self.bias = nn.Parameter(torch.randn(16, 1, 1))\n\n    def forward(self, x):\n"
          "        return (torch.relu(self.conv(x)) + self.bias).mean()\n\ndef get_inputs():\n"
          "    return [torch.rand(16, 3, 13, 20)]" +
          end);
  const std::vector<std::string> made = {
      "tasks", "synthesize", "--families", "pooling,convolution", "--count", "8", "--heldout", "2", "--into"};
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"made"}, {"modules", "--form", "kernelbench"}}) {
    std::vector<std::string> arguments = made;
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSERT_EQ(warpsmith(arguments).exit_code, kExitOk);
  }
  fs::copy(scratch_.path() / "modules/KernelBench", scratch_.path() / "checkout/KernelBench",
           fs::copy_options::recursive);
  const Json answer = imported({"--level", "2"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  EXPECT_EQ(loaded("level2_1001_Pool").reference,
            "def forward(x: Tensor, other: Tensor) -> Tensor:\n"
            "  v_max_pool2d = torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])\n"
            "  v_add = torch.add(v_max_pool2d, other)\n"
            "  v_tanh = torch.tanh(v_add)\n"
            "  return v_tanh\n");
  EXPECT_EQ(loaded("level2_1002_Convolution").reference,
            "def forward(x: Tensor, bias: Tensor, conv_weight: Tensor, conv_bias: Tensor) -> Tensor:\n"
            "  v_conv2d = torch.conv2d(x, conv_weight, conv_bias, [2, 2], [1, 1])\n"
            "  v_relu = torch.relu(v_conv2d)\n"
            "  v_add = torch.add(v_relu, bias)\n"
            "  v_mean = torch.mean(v_add)\n"
            "  return v_mean\n");
  const Json tasks = read_json_file(scratch_.path() / "made/synthesis.json").at("tasks");
  EXPECT_EQ(answer.at("imported").size(), tasks.size() + 2);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string id = tasks.at(i).at("task").get<std::string>();
    Diagnostics mistakes;
    const std::optional<task::Task> wanted = task::load_task(scratch_.path() / "made" / id, mistakes);
    ASSERT_TRUE(wanted) << id;
    const task::Task got = loaded(fmt::format("level2_{}_{}", i + 1, id));
    EXPECT_EQ(got.reference, wanted->reference) << id;
    for (std::size_t k = 0; k < got.inputs.size(); ++k) {
      EXPECT_EQ(got.inputs[k].name, wanted->inputs.at(k).name) << id;
      EXPECT_EQ(got.inputs[k].role, wanted->inputs.at(k).role) << id;
    }
  }
}

TEST_F(Import, SquaresAreToldByTheModulesConstants) {
  add("level1/1_Square.py", module_of("return x + 1", "pass", "[torch.rand(batch, batch)]"));
  std::string chance = module_of("return x + 1");
  chance.replace(chance.find("width = 48"), 10, "width = 64");
  add("level1/2_Chance.py", chance);
  imported({"--level", "1"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  const task::Dims dims = {{"BATCH", 3}};
  EXPECT_EQ(task::shape_at(loaded("level1_1_Square").inputs.at(0), dims), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(task::shape_at(loaded("level1_2_Chance").inputs.at(0), dims), (std::vector<std::int64_t>{3, 64}));
}

// One bad module costs no other its place.
TEST_F(Import, WhatCannotBeImportedIsRefusedWithTheReason) {
  add("level1/1_Random.py", module_of("return nn.functional.dropout(x, 0.5, self.training)"));
  add("level1/2_Ends.py", "import os\nos._exit(3)\n");
  add("level1/3_Broken.py", "def get_inputs(:\n");
  add("level1/4_NoModel.py", "def get_inputs():\n    return []\n");
  add("level1/5_Values.py",
      module_of("return x + 1", "pass", "[torch.rand(batch, width) * torch.rand(width)]"));
  add("level1/6_Unneeded.py", module_of("return torch.ones(3)"));
  add("level1/7_OneSize.py", module_of("return x.view(64, 6, 8)"));
  add("level1/8_Prints.py", "print('{\"task\": 1}')\n" + module_of("return x - 1"));
  // Beside Python's own stdout: it is no answer, neither its own nor the next one's.
  add("level1/9_Writes.py",
      "import os\nos.write(1, b'{\"task\": {\"inputs\": 1}}\\n')\n" + module_of("return x - 2"));
  const Json answer = imported({"--level", "1"});
  EXPECT_EQ(exit_code_, kExitFailed) << err_;
  ASSERT_TRUE(answer.is_object()) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"level1_8_Prints", "level1_9_Writes"})) << answer;
  std::map<std::string, std::string> why;
  for (const Json& one : answer.at("refused")) why[one.at("task")] = one.at("why");
  EXPECT_THAT(why["level1_1_Random"], HasSubstr("draws random numbers"));
  EXPECT_THAT(why["level1_2_Ends"], HasSubstr("its python3 ended"));
  EXPECT_THAT(why["level1_3_Broken"], HasSubstr("SyntaxError"));
  EXPECT_THAT(why["level1_4_NoModel"], HasSubstr("it does not define `Model`"));
  EXPECT_THAT(why["level1_5_Values"], HasSubstr("get_inputs() computes `x` of a draw of float32 [48]"));
  EXPECT_NE(why["level1_6_Unneeded"], "");
  EXPECT_NE(why["level1_7_OneSize"], "");
}

// A record of CUDA-L1's release, as a line.
std::string record_of(int task, const Json& reference, const Json& kernel, const Json& score) {
  return Json{{"level_id", 1},
              {"task_id", task},
              {"ref_code", reference},
              {"custom_code", kernel},
              {"cuda_graph_code", nullptr},
              {"cudnn_code", "x"},
              {"score_default", score},
              {"score_cudnn", nullptr}}
             .dump() +
         "\n";
}

constexpr const char* kKernelText = "import torch\nclass ModelNew(torch.nn.Module):\n  pass  # caf\u00e9\n";

class ImportRelease : public Import {
 protected:
  void put(const std::string& name, const std::string& text) {
    make_folders((scratch_.path() / name).parent_path());
    write_file_atomic(scratch_.path() / name, text);
  }
  std::string read(const std::string& name) { return read_file(scratch_.path() / "tasks" / name); }
  Json origins(const std::string& task) { return Json::parse(read(task + "/imported/origin.json")); }
  Json import(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "import");
    arguments.emplace_back("--json");
    const process::ChildResult result = warpsmith(arguments);
    err_ = result.err;
    exit_code_ = result.exit_code;
    return Json::parse(result.out, nullptr, false);
  }
};

TEST_F(ImportRelease, EachReferenceBecomesATaskWithItsKernels) {
  const std::string doubled = module_of("return x * 2"), random = module_of("return torch.rand_like(x)");
  put("h100.json", record_of(3, doubled, kKernelText, 1.394) +
                       record_of(4, module_of("return x + 2"), "None", 2.5) +
                       record_of(5, random, kKernelText, "1.2"));
  const Json answer = import({"cuda-l1", "h100.json", "--into", "tasks"});
  EXPECT_EQ(exit_code_, kExitFailed) << err_;  // one is refused
  ASSERT_TRUE(answer.is_object()) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"cuda_l1_level1_3", "cuda_l1_level1_4"})) << answer;
  ASSERT_EQ(answer.at("refused").size(), 1u);
  EXPECT_EQ(answer.at("refused")[0].at("file"), "h100.json, line 3");
  EXPECT_THAT(answer.at("refused")[0].at("why").get<std::string>(), HasSubstr("random"));
  EXPECT_EQ(answer.at("kernels"),
            (Json{{"imported", 1}, {"there_already", 0}, {"missing", 1}, {"of_refused_tasks", 1}}));
  const task::Task task = loaded("cuda_l1_level1_3");
  EXPECT_EQ(task.module, doubled);
  EXPECT_THAT(task.imported, HasSubstr("CUDA-L1's release, level 1, task 3"));
  EXPECT_EQ(read("cuda_l1_level1_3/imported/h100.py"), kKernelText);
  const Json entry = origins("cuda_l1_level1_3").at("h100");
  EXPECT_EQ(entry.at("from"), "h100.json");
  EXPECT_EQ(entry.at("at"), "line 1");
  EXPECT_EQ(entry.at("published"), (Json{{"eager", 1.394}}));
  EXPECT_EQ(entry.at("sha256").get<std::string>().size(), 64u);
  // No kernel, and no gap: what is known of it stands there.
  EXPECT_FALSE(path_exists(scratch_.path() / "tasks/cuda_l1_level1_4/imported/h100.py"));
  EXPECT_EQ(origins("cuda_l1_level1_4"), (Json{{"h100",
                                                {{"from", "h100.json"},
                                                 {"at", "line 2"},
                                                 {"published", {{"eager", 2.5}}},
                                                 {"missing", "custom_code is the text None"}}}}));

  // Again: nothing changes. Another file adds to it, in its other form; another reference is a task of its
  // own.
  const Json again = import({"cuda-l1", "h100.json", "--into", "tasks"});
  EXPECT_EQ(again.at("there_already"), answer.at("imported"));
  EXPECT_EQ(again.at("kernels"),
            (Json{{"imported", 0}, {"there_already", 1}, {"missing", 1}, {"of_refused_tasks", 1}}));
  EXPECT_EQ(origins("cuda_l1_level1_3"), (Json{{"h100", entry}}));
  const Json lists = {
      {"1",
       {{{"task_id", 3}, {"ref_code", doubled}, {"custom_code", "ours = 1\n"}, {"score", "2"}},
        {{"task_id", 3}, {"ref_code", module_of("return x * 3")}, {"custom_code", nullptr}}}}};
  put("a100.json", lists.dump());
  const Json more = import({"cuda-l1", "a100.json", "--into", "tasks"});
  EXPECT_EQ(exit_code_, kExitOk) << err_ << more;
  EXPECT_EQ(more.at("imported"), Json({"cuda_l1_level1_3_2"}));
  EXPECT_EQ(origins("cuda_l1_level1_3").at("h100"), entry);
  EXPECT_EQ(origins("cuda_l1_level1_3").at("a100").at("at"), "level 1, record 1");
  EXPECT_EQ(read("cuda_l1_level1_3/imported/a100.py"), "ours = 1\n");
  const process::ChildResult valid = warpsmith({"validate", "tasks"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("3 tasks, 2 candidates"));

  // A workflow takes them.
  put("w.yaml",
      "schema: warpsmith.workflow/1\nname: w\ndevice: cpu\ndataset: {folder: tasks, train: all}\n"
      "stages:\n  - {name: release, kind: measure, candidates: imported}\n");
  const process::ChildResult plan = warpsmith({"plan", "w.yaml"});
  EXPECT_EQ(plan.exit_code, kExitOk) << plan.out << plan.err;
}

// A bad record is told with its line; the others are imported all the same.
TEST_F(ImportRelease, BadRecordsCostNoOtherItsPlace) {
  const std::string doubled = module_of("return x * 2");
  put("h100.json", "{\"level_id\": 1,\n" + record_of(1, nullptr, kKernelText, 1) +
                       record_of(2, 7, kKernelText, 1) + record_of(3, doubled, kKernelText, 1));
  const Json answer = import({"cuda-l1", "h100.json", "--into", "tasks"});
  EXPECT_EQ(exit_code_, kExitFailed);
  ASSERT_TRUE(answer.is_object()) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"cuda_l1_level1_3"}));
  std::map<int, std::string> why;
  for (const Json& one : answer.at("mistakes")) why[one.at("line")] = one.at("message");
  EXPECT_EQ(why.size(), 3u);
  EXPECT_EQ(why[2], "it has no `ref_code`");
  EXPECT_EQ(why[3], "`ref_code` is no text");
  // Another kernel under the name of one that is there stays out.
  put("h100.json", record_of(3, doubled, "other = 1\n", 1));
  const Json other = import({"cuda-l1", "h100.json", "--into", "tasks"});
  EXPECT_EQ(exit_code_, kExitFailed);
  EXPECT_THAT(other.at("mistakes")[0].at("message").get<std::string>(), HasSubstr("of another text"));
  EXPECT_EQ(read("cuda_l1_level1_3/imported/h100.py"), kKernelText);
  put("bad.json", "hello\n");
  import({"cuda-l1", "bad.json", "--into", "tasks"});
  EXPECT_EQ(exit_code_, kExitUsage);
  EXPECT_THAT(err_, HasSubstr("bad.json"));
}

TEST_F(ImportRelease, ARunOfKernelBench) {
  add("level1/3_Doubled_.py", module_of("return x * 2"));
  add("level1/4_Other.py", module_of("return x * 4"));
  put("runs/mine.v1/level_1_problem_3_sample_0_kernel.py", kKernelText);
  put("runs/mine.v1/level_1_problem_3_sample_1_kernel.py", "def broken(:\n");
  put("runs/mine.v1/level_1_problem_9_sample_0_kernel.py", kKernelText);
  put("runs/mine.v1/eval_results.json",
      R"({"3": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 0.25},
                {"sample_id": 1, "compiled": false, "correctness": false, "runtime": -1.0}]})");
  const std::vector<std::string> arguments = {"kernelbench-run", "runs/mine.v1", "--kernelbench",
                                              "checkout",        "--into",       "tasks"};
  const Json answer = import(arguments);
  EXPECT_EQ(exit_code_, kExitFailed);
  ASSERT_TRUE(answer.is_object()) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"level1_3_Doubled"})) << "only what the run needs";
  ASSERT_EQ(answer.at("mistakes").size(), 1u);
  EXPECT_THAT(answer.at("mistakes")[0].at("message").get<std::string>(),
              HasSubstr("has no problem 9 of level 1"));
  EXPECT_EQ(read("level1_3_Doubled/imported/mine_v1_sample_0.py"), kKernelText);
  const Json all = origins("level1_3_Doubled");
  EXPECT_EQ(all.at("mine_v1_sample_0").at("published"),
            (Json{{"compiled", true}, {"correctness", true}, {"runtime_ms", 0.25}}));
  EXPECT_EQ(all.at("mine_v1_sample_1").at("published"), (Json{{"compiled", false}, {"correctness", false}}));
  EXPECT_EQ(import(arguments).at("kernels").at("there_already"), 2);
  // The task of another module is left as it is, and takes no kernel that was written for this one.
  add("level1/3_Doubled_.py", module_of("return x * 2 + 0"));
  const Json changed = import(arguments);
  EXPECT_THAT(changed.at("refused")[0].at("why").get<std::string>(), HasSubstr("was made of another module"));
  EXPECT_EQ(changed.at("kernels").at("of_refused_tasks"), 2);
}

TEST_F(ImportRelease, KernelsOfATask) {
  add("level1/3_Doubled_.py", module_of("return x * 2"));
  imported({"--level", "1"});
  put("mine.cu", kDoubled);
  put("more/a b.py", kKernelText);
  put("more/notes.txt", "x");
  const std::vector<std::string> arguments = {"kernels", "mine.cu", "more", "--task",
                                              "tasks/level1_3_Doubled"};
  const Json answer = import(arguments);
  EXPECT_EQ(exit_code_, kExitFailed);
  EXPECT_EQ(answer.at("kernels").at("imported"), 2) << answer << err_;
  EXPECT_THAT(answer.at("mistakes")[0].at("file").get<std::string>(), HasSubstr("notes.txt"));
  EXPECT_EQ(read("level1_3_Doubled/imported/mine.cu"), kDoubled);
  EXPECT_EQ(origins("level1_3_Doubled").at("a_b").at("from"), "a b.py");
  put("more/mine.py", kKernelText);
  EXPECT_THAT(import({"kernels", "more/mine.py", "--task", "tasks/level1_3_Doubled"})
                  .at("mistakes")[0]
                  .at("message")
                  .get<std::string>(),
              HasSubstr("of another text"));
}

TEST_F(Import, MistakesOfTheCommandLine) {
  EXPECT_EQ(warpsmith({"import", "kernelbench", "nowhere", "--into", "tasks"}).exit_code, kExitUsage);
  EXPECT_EQ(warpsmith({"import", "something", "checkout", "--into", "tasks"}).exit_code, kExitUsage);
  EXPECT_EQ(warpsmith({"import", "kernelbench", "checkout", "--into", "tasks", "--level", "9"}).exit_code,
            kExitUsage);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"kernelbench", "checkout"},
                                                    {"cuda-l1", "x.json", "--task", "t"},
                                                    {"kernels", "x.py", "--into", "tasks"},
                                                    {"kernelbench-run", "runs/x", "--into", "tasks"},
                                                    {"cuda-l1", "nowhere.json", "--into", "tasks"}}) {
    std::vector<std::string> all = {"import"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const int code = warpsmith(all).exit_code;
    EXPECT_TRUE(code == kExitUsage || code == kExitEnvironment) << arguments[0] << " " << code;
  }
}

// Modules are tasks where no folder was made for them.
class Modules : public Import {
 protected:
  void SetUp() override {
    Import::SetUp();
    if (IsSkipped()) return;
    add("level1/1_Double.py", module_of("return x * 2"));
    add("level1/2_Random.py", module_of("return torch.rand_like(x)"));
    add("level2/1_Weighed.py", module_of("return self.linear(x)", "self.linear = nn.Linear(features, 8)"));
  }
  process::ChildResult cached(std::vector<std::string> arguments) {
    const WithVariable cache("WARPSMITH_CACHE", (scratch_.path() / "cache").string());
    return warpsmith(std::move(arguments));
  }
  Json listed(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"tasks", "checkout", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const process::ChildResult result = cached(arguments);
    EXPECT_EQ(result.exit_code, kExitOk) << result.err;
    err_ = result.err;
    return Json::parse(result.out, nullptr, false);
  }
};

TEST_F(Modules, ACheckoutIsListed) {
  const Json all = listed();
  ASSERT_TRUE(all.is_object()) << err_;
  ASSERT_EQ(all.at("tasks").size(), 2u) << all;
  EXPECT_EQ(all.at("tasks")[0].at("task"), "level1_1_Double");
  EXPECT_EQ(all.at("tasks")[1].at("parameters"), 2);
  EXPECT_EQ(all.at("tasks")[1].at("module"), true);
  ASSERT_EQ(all.at("refused").size(), 1u);
  EXPECT_THAT(all.at("refused")[0].at("why").get<std::string>(), HasSubstr("random"));
  EXPECT_THAT(err_, HasSubstr("described"));
  // From then on it is known, what is refused as well.
  EXPECT_EQ(listed(), all);
  EXPECT_EQ(err_, "");
  EXPECT_EQ(listed({"--level", "2"}).at("tasks").size(), 1u);
  add("level1/1_Double.py", module_of("return x * 3"));
  EXPECT_NE(listed().at("folder"), all.at("folder"));
  const process::ChildResult plain = cached({"tasks", "checkout"});
  EXPECT_THAT(plain.out, HasSubstr("2 tasks in"));
  EXPECT_THAT(plain.out, HasSubstr("2_Random.py: no task: "));
}

TEST_F(Modules, AWorkflowTakesACheckout) {
  const auto plan = [&](const std::string& dataset) {
    write_file_atomic(scratch_.path() / "w.yaml",
                      "schema: warpsmith.workflow/1\nname: w\ndevice: cpu\ndataset: " + dataset +
                          "\nstages:\n  - {name: c, kind: collect}\n");
    return cached({"plan", "w.yaml"});
  };
  const process::ChildResult good = plan("{kernelbench: checkout, levels: [1, 2], train: all}");
  EXPECT_EQ(good.exit_code, kExitOk) << good.out << good.err;
  EXPECT_THAT(good.err, HasSubstr("1 of 3 modules in"));
  const process::ChildResult valid = cached({"validate", "w.yaml"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
  const process::ChildResult named = plan("{kernelbench: checkout, train: [level1_1_Dubble]}");
  EXPECT_THAT(named.err, HasSubstr("there is no task `level1_1_Dubble` (did you mean `level1_1_Double`?)"));
  EXPECT_THAT(plan("{kernelbench: nowhere, train: all}").err, HasSubstr("w.yaml:4:24: `kernelbench`: "));
  EXPECT_THAT(plan("{kernelbench: checkout, folder: tasks, train: all}").err,
              HasSubstr("`kernelbench` and `folder` stand together"));
  EXPECT_THAT(plan("{kernelbench: checkout, levels: [4], train: all}").err, HasSubstr("`levels`: 1, 2 or 3"));
  EXPECT_THAT(plan("{folder: tasks, levels: [1], train: all}").err, HasSubstr("levels"));
}

// A person's own module and kernel, outside of any dataset.
TEST_F(Modules, BenchTakesAModule) {
  write_file_atomic(scratch_.path() / "doubled.cu", kDoubled);
  const process::ChildResult good = cached({"bench", "checkout/KernelBench/level1/1_Double.py", "doubled.cu",
                                            "--device", "cpu", "--verdicts-only", "--json"});
  EXPECT_EQ(good.exit_code, kExitOk) << good.out << good.err;
  EXPECT_EQ(Json::parse(good.out).at("kernels")[0].at("measurement").at("verdict"), "ok");
  const process::ChildResult none =
      cached({"bench", "checkout/KernelBench/level1/2_Random.py", "doubled.cu"});
  EXPECT_EQ(none.exit_code, kExitUsage);
  EXPECT_THAT(none.err, HasSubstr("2_Random.py: forward() draws random numbers"));
  const process::ChildResult missing = cached({"bench", "nowhere.py", "doubled.cu"});
  EXPECT_EQ(missing.exit_code, kExitUsage);
  EXPECT_THAT(missing.err, HasSubstr("nowhere.py: there is no such file"));
}

}  // namespace
}  // namespace warpsmith

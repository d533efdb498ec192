// Synthesised tasks and programs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "warpsmith/base/error.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/synthesis/programs.h"
#include "warpsmith/synthesis/synthesize.h"
#include "warpsmith/synthesis/task_text.h"

namespace warpsmith::synthesis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// "relu matmul bias row_sum"; a plain start is left out.
Chain chain_of(const std::vector<std::string>& names) {
  Chain chain;
  chain.end = operators().size();
  for (const std::string& name : names) {
    const Operator& one = operator_named(name);
    const auto number = static_cast<std::size_t>(&one - operators().data());
    if (one.place == Place::kStart) {
      chain.start = number;
      chain.before = std::exchange(chain.steps, {});
    } else if (is_end(one)) {
      chain.end = number;
    } else {
      chain.steps.push_back(number);
    }
  }
  return chain;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Chain, IsEvaluatedStepByStep) {
  const std::vector<double> x = evaluate(chain_of({}), 1), y = evaluate(chain_of({"square", "scale"}), 1);
  ASSERT_EQ(x.size(), 15u);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_DOUBLE_EQ(y[i], x[i] * x[i] * 0.5);
  const std::vector<double> sums = evaluate(chain_of({"row_sum"}), 1),
                            softmax = evaluate(chain_of({"row_softmax", "row_sum"}), 1);
  EXPECT_NEAR(sums[1], x[5] + x[6] + x[7] + x[8] + x[9], 1e-12);
  for (const double one : softmax) EXPECT_NEAR(one, 1, 1e-12);
  EXPECT_EQ(evaluate(chain_of({"column_max"}), 1).size(), 5u);
}

TEST(Chain, NamesItsInputsInTheOrderOfItsSteps) {
  std::vector<std::string> names;
  for (const Input& input : inputs_of(chain_of({"matmul", "weight", "bias", "bias"})))
    names.push_back(input.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "w2", "b", "b2"}));
  EXPECT_EQ(scalars_of(chain_of({"scale", "rms_norm", "scale"})).size(), 2u);
}

TEST(Flaws, AreFoundByValues) {
  EXPECT_THAT(flaw_of(chain_of({"row_softmax", "row_sum"})), HasSubstr("degenerate"));
  EXPECT_THAT(flaw_of(chain_of({"square", "abs"})), HasSubstr("redundant: abs"));
  EXPECT_THAT(flaw_of(chain_of({"relu", "relu"})), HasSubstr("redundant"));
  EXPECT_THAT(flaw_of(chain_of({"bias", "row_softmax", "relu"})), HasSubstr("redundant: relu"));
  EXPECT_THAT(flaw_of(chain_of({"negate", "softsign", "negate"})), HasSubstr("negate and negate"));
  EXPECT_THAT(flaw_of(chain_of({"negate", "matmul", "negate"})), HasSubstr("negate and negate"));
  EXPECT_THAT(flaw_of(chain_of({"relu", "relu", "matmul"})), HasSubstr("redundant"));
  EXPECT_EQ(flaw_of(chain_of({"negate", "matmul", "bias"})), "");
  EXPECT_EQ(flaw_of(chain_of({"bias", "relu"})), "");
  EXPECT_EQ(fingerprint(chain_of({"bias", "residual"})), fingerprint(chain_of({"residual", "bias"})));
  EXPECT_NE(fingerprint(chain_of({"bias", "relu"})), fingerprint(chain_of({"relu", "bias"})));
}

TEST(Text, OfATaskIsWhatAPersonWouldWrite) {
  EXPECT_EQ(reference_of(chain_of({"bias", "relu"})),
            "def forward(x: Tensor, b: Tensor) -> Tensor:\n  return torch.relu(x + b)\n");
  EXPECT_EQ(reference_of(chain_of({"bias", "square", "row_sum"})),
            "def forward(x: Tensor, b: Tensor) -> Tensor:\n  y = x + b\n  y = y * y\n  return y.sum(1)\n");
  EXPECT_EQ(reference_of(chain_of({"gate", "scale"})),
            "def forward(x: Tensor, g: Tensor, s: float) -> Tensor:\n  return (x * g) * s\n");
  EXPECT_EQ(bytes_of(chain_of({"bias", "residual", "row_sum"})), "8 * M * N + 4 * N + 4 * M");
  EXPECT_EQ(flops_of(chain_of({"matmul", "relu"})), "2 * M * N * K + 1 * M * N");
  EXPECT_LT(gain_of(chain_of({"relu"})), 1.1) << "one operator that moves what it must";
  EXPECT_GT(gain_of(chain_of({"bias", "relu"})), 1.5);
  EXPECT_THAT(kernelbench_module(chain_of({"bias", "gelu"})),
              HasSubstr("torch.nn.functional.gelu(x + self.b)"))
      << "a tensor's gelu() is TorchScript's alone";
  EXPECT_THAT(kernelbench_module(chain_of({"matmul", "bias"})), HasSubstr("torch.mm(x, self.w) + self.b"));
}

TEST(Programs, HaveAStepALine) {
  const std::vector<Program> programs = programs_of(chain_of({"bias", "relu"}));
  ASSERT_EQ(programs.size(), 6u);
  EXPECT_EQ(programs[0].source,
            "// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, out, M, N)\n"
            "extern \"C\" __global__ void k(const float* x, const float* b, float* out, int M, int N) {\n"
            "  int i = blockIdx.x * 256 + threadIdx.x;\n"
            "  if (i >= M * N) return;\n"
            "  int c = i % N;\n"
            "  float v = x[i];\n"
            "  v = v + b[c];\n"
            "  v = fmaxf(v, 0.f);\n"
            "  out[i] = v;\n"
            "}\n");
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"row_softmax", "bias"},
                                             {"square", "row_sum"},
                                             {"matmul", "bias", "row_max"},
                                             {"gelu", "column_mean"},
                                             {"rms_norm", "transpose"},
                                             {"gather_rows", "weight"},
                                             {"bias", "row_cumsum"}})
    EXPECT_GE(programs_of(chain_of(names)).size(), 2u);
}

// A float32 sum of 1,024 pieces misses the bound. Products have fewer rows, and 16 bits a wider bound.
TEST(Programs, ALongColumnsPiecesAreSummedInDouble) {
  const auto doubles = [](const Chain& chain) {
    std::set<std::string> names;
    for (const Program& program : programs_of(chain))
      if (program.source.find("double") != std::string::npos) names.insert(program.name);
    return names;
  };
  const Chain chain = chain_of({"gelu", "column_mean"});
  EXPECT_EQ(gpu_rows(chain), 65536);
  EXPECT_EQ(doubles(chain), (std::set<std::string>{"pieces_per_column", "thread_per_column"}));
  EXPECT_EQ(programs_of(chain).front().source,
            "// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, M, N)\n"
            "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
            "  int c = blockIdx.x * 64 + threadIdx.x;\n"
            "  if (c >= N) return;\n"
            "  double h = 0.;\n"
            "  for (int m0 = 0; m0 < M; m0 += 64) {\n"
            "    float a = 0.f;\n"
            "    for (int m = m0; m < min(m0 + 64, M); m++) {\n"
            "      int i = m * N + c;\n"
            "      float v = x[i];\n"
            "      v = 0.5f * v * (1.f + erff(v * 0.70710678f));\n"
            "      a += v;\n"
            "    }\n"
            "    h += a;\n"
            "  }\n"
            "  out[c] = h / M;\n"
            "}\n");
  Chain half = chain;
  half.precision = Precision::kBFloat16;
  for (const Chain& other : {half, chain_of({"matmul", "gelu", "column_mean"}),
                             chain_of({"gelu", "column_max"}), chain_of({"gelu", "row_mean"})})
    EXPECT_THAT(doubles(other), testing::IsEmpty());
}

// Of every way in which the grammar composes: what a kernel takes and declares has names of its own, and what
// one writes for the next is read there.
TEST(Programs, NoNameStandsForTwoThings) {
  std::vector<std::string> starts = {"", "gather_rows", "matmul"}, ends = {""}, rows = {""};
  for (const Operator& one : operators()) {
    if (one.place == Place::kRow) rows.emplace_back(one.name);
    if (is_end(one)) ends.emplace_back(one.name);
  }
  const std::regex kernel("__global__ void (\\w+)\\(([^)]*)\\)"), parameter("(\\w+)(,|$)"),
      local("^ +(float|int) (\\w+) ="), temporary("plan: temp (\\w+) ");
  std::size_t seen = 0;
  for (const std::string& start : starts)
    for (const std::string& row : rows)
      for (const std::string& end : ends) {
        std::vector<std::string> names = {start, "bias", "relu", row, "gate", "scale", end};
        std::erase(names, "");
        for (const Program& program : programs_of(chain_of(names))) {
          ++seen;
          std::set<std::string> taken;
          std::istringstream lines(program.source);
          for (std::string line; std::getline(lines, line);) {
            std::smatch found;
            if (std::regex_search(line, found, kernel)) {
              taken.clear();
              const std::string list = found[2];
              for (std::sregex_iterator it(list.begin(), list.end(), parameter), none; it != none; ++it)
                EXPECT_TRUE(taken.insert((*it)[1]).second) << program.source;
            } else if (std::regex_search(line, found, local)) {
              EXPECT_FALSE(taken.contains(found[2])) << line << "\n" << program.source;
            } else if (std::regex_search(line, found, temporary)) {
              const std::regex reads("const float\\* " + found[1].str() + "[,)]"),
                  writes("[(, ]float\\* " + found[1].str() + "[,)]");
              EXPECT_TRUE(std::regex_search(program.source, reads)) << program.source;
              EXPECT_TRUE(std::regex_search(program.source, writes)) << program.source;
            }
          }
        }
      }
  EXPECT_GT(seen, 700u);
}

// What a kernel takes and the plan declares: each name once.
void expect_names_of_their_own(const std::string& source) {
  const std::regex kernel("__global__ void (\\w+)\\(([^)]*)\\)"), parameter("(\\w+)(,|$)"),
      declared("plan: (temp|let) (\\w+)");
  std::set<std::string> parameters, in_plan;
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), none; it != none; ++it) {
    const std::string list = (*it)[2];
    std::set<std::string> of_kernel;
    for (std::sregex_iterator one(list.begin(), list.end(), parameter); one != none; ++one) {
      EXPECT_TRUE(of_kernel.insert((*one)[1]).second) << source;
      parameters.insert((*one)[1]);
    }
  }
  for (std::sregex_iterator it(source.begin(), source.end(), declared), none; it != none; ++it)
    in_plan.insert((*it)[2]);
  for (const char* input : {"x", "A", "B", "predictions", "targets", "other", "bias", "weight", "alpha"})
    EXPECT_FALSE(in_plan.contains(input)) << source;
}

// As KernelBench's modules become tasks: sizes are numbers, an operator of torch a line.
TEST(Traced, ReferenceIsAsTorchsTracerWritesIt) {
  const Chain chain = chain_of({"silu", "difference", "rms_norm", "row_max"});
  const Traced traced = {.sizes = {16, 20, 30}, .axis = 1, .first = "predictions", .second = "targets"};
  EXPECT_EQ(reference_of(chain, traced),
            "def forward(predictions: Tensor, targets: Tensor) -> Tensor:\n"
            "  v_sigmoid = torch.sigmoid(predictions)\n"
            "  v_mul = torch.mul(predictions, v_sigmoid)\n"
            "  v_sub = torch.sub(v_mul, targets)\n"
            "  v_pow_1 = torch.pow(v_sub, 2)\n"
            "  v_mean = torch.mean(v_pow_1, [1], True)\n"
            "  v_add = torch.add(v_mean, 1e-05)\n"
            "  v_sqrt = torch.sqrt(v_add)\n"
            "  v_div = torch.div(v_sub, v_sqrt)\n"
            "  v_max_1 = torch.max(v_div, 1)\n"
            "  v_getitem = v_max_1[0]\n"
            "  return v_getitem\n");
  EXPECT_THAT(task_file(chain, traced, {}), HasSubstr("targets: {shape: [BATCH, 16, 20, 30]"));
  EXPECT_THAT(task_file(chain, traced, {}), HasSubstr("out: {shape: [BATCH, 20, 30]}"));
  EXPECT_THAT(task_file(chain, {.sizes = {16, 20}, .axis = 2, .keep = true}, {}),
              HasSubstr("out: {shape: [BATCH, 16, 1]}"));
  EXPECT_FALSE(can_be_traced(chain_of({"relu"}))) << "one operator alone is a task of KernelBench";
  EXPECT_FALSE(can_be_traced(chain_of({"gather_rows", "relu"})));
  EXPECT_EQ(torch_operators_of(chain_of({"square", "all_mean"})),
            (std::vector<std::set<std::string>>{{"mean", "pow"}}));
  EXPECT_TRUE(torch_operators_of(chain_of({"relu", "transpose"})).empty());
}

TEST(Traced, ProgramsHaveTheTasksSizesAndNames) {
  const std::vector<Program> rows =
      programs_of(chain_of({"scale", "row_sum"}), {.sizes = {16, 20, 30}, .axis = 1, .scale = 2});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].source,
            "// plan: launch k<<<cdiv(BATCH * 20 * 30, 256), 256>>>(x, out, BATCH)\n"
            "extern \"C\" __global__ void k(const float* x, float* out, int BATCH) {\n"
            "  int m = blockIdx.x * 256 + threadIdx.x;\n"
            "  if (m >= BATCH * 20 * 30) return;\n"
            "  float h0 = 0.f;\n"
            "  for (int c0 = 0; c0 < 16; c0 += 32) {\n"
            "    float p = 0.f;\n"
            "    for (int c = c0; c < min(c0 + 32, 16); c++) {\n"
            "      int i = m / (20 * 30) * 16 * (20 * 30) + m % (20 * 30) + c * (20 * 30);\n"
            "      float v = x[i];\n"
            "      v = v * 2.0f;\n"
            "      p += v;\n"
            "    }\n"
            "    h0 += p;\n"
            "  }\n"
            "  out[m] = h0;\n"
            "}\n");
  const std::regex open("(^|[^.\\w])(M|N|K|s|eps)([^\\w]|$)");
  std::size_t seen = 0;
  for (const Operator& one : operators()) {
    if (one.place == Place::kStart) continue;
    for (const char* start : {"", "matmul"}) {
      std::vector<std::string> names = {start, "scale", "residual", one.name};
      std::erase(names, "");
      if (is_end(one)) names.insert(names.end() - 1, "rms_norm");
      const Chain chain = chain_of(names);
      if (!can_be_traced(chain)) continue;
      for (std::uint64_t key = 0; key < 6; ++key) {
        const std::vector<Program> programs = programs_of(chain, draw_traced(chain, key, key % 2 == 0));
        EXPECT_FALSE(programs.empty()) << one.name;
        for (const Program& program : programs) {
          ++seen;
          EXPECT_FALSE(std::regex_search(program.source, open)) << program.source;
          expect_names_of_their_own(program.source);
        }
      }
    }
  }
  EXPECT_GT(seen, 500u);
}

TEST(Synthesis, SmallModelsGetShortPrograms) {
  const Synthesis made = synthesize({{.count = 60, .heldout = 10, .program_bytes = 700}, {}, {}});
  EXPECT_GT(made.dropped.long_programs, 0);
  for (const Synthesised& one : made.tasks) {
    std::size_t shortest = 10000;
    for (const Program& program : programs_of(one)) shortest = std::min(shortest, program.source.size());
    EXPECT_LE(shortest, 700u) << one.id << ": held-out ones as well";
  }
}

TEST(Synthesis, TracedTasksAreLikeNoneOfKernelBench) {
  Settings settings{{.count = 200, .traced_share = 1}, {}, {}};
  settings.without = {{"mean", "pow", "sub"}, {"add", "relu"}};
  int traced = 0;
  std::set<std::string> files;
  for (const Synthesised& one : synthesize(settings).tasks) {
    EXPECT_EQ(one.traced.has_value(), can_be_traced(one.chain)) << one.id;
    for (const std::set<std::string>& parts : torch_operators_of(one.chain))
      EXPECT_FALSE(settings.without.contains({parts.begin(), parts.end()})) << one.id;
    if (!one.traced) continue;
    ++traced;
    EXPECT_TRUE(files.insert(task_file(one.chain, *one.traced, {})).second) << one.id;
  }
  EXPECT_GT(traced, 50);
}

// What a task computes is on one side of the split alone, however it is written; and no two have one name.
TEST(Synthesis, NoFunctionIsTrainedAndHeldOut) {
  std::map<std::string, bool> held_out;
  std::set<std::string> ids;
  for (const Synthesised& one :
       synthesize({{.count = 100, .sft_only = 3000, .heldout = 60, .traced_share = 0.5}, {}, {}}).tasks) {
    const bool is_out = one.split.starts_with("heldout");
    const auto [it, fresh] = held_out.emplace(fingerprint(one.chain), is_out);
    EXPECT_EQ(it->second, is_out) << one.id;
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
  }
  EXPECT_THAT(flaw_of(chain_of({"relu", "l1_norm"})), HasSubstr("degenerate")) << "0 / 0";
  EXPECT_THAT(flaw_of(chain_of({"relu", "matmul", "l1_norm"})), HasSubstr("degenerate"))
      << "a row of the left factor may be 0";
  EXPECT_EQ(torch_operators_of(chain_of({"l2_norm"})), torch_operators_of(chain_of({"unit_norm"})))
      << "KernelBench's L2 norm is not trained with an eps";
}

TEST(Synthesis, RepeatsAndKeepsItsPromises) {
  const Settings settings{{.seed = 7, .count = 300, .heldout = 30}, {}, {}};
  const Synthesis a = synthesize(settings), b = synthesize(settings);
  ASSERT_EQ(a.tasks.size(), 390u);
  std::set<std::string> ids, prints, trained_pairs, trained_operators;
  for (std::size_t i = 0; i < a.tasks.size(); ++i) {
    const Synthesised& one = a.tasks[i];
    EXPECT_EQ(one.id, b.tasks[i].id);
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
    EXPECT_TRUE(prints.insert(fingerprint(one.chain)).second) << one.id;
    EXPECT_EQ(flaw_of(one.chain), "") << one.id;
    const auto names = one.chain.names(), pairs = one.chain.pairs();
    if (one.split == "train") {
      EXPECT_LE(names.size(), 4u);
      trained_operators.insert(names.begin(), names.end());
      trained_pairs.insert(pairs.begin(), pairs.end());
    }
    if (one.split == "heldout_length") {
      EXPECT_GT(names.size(), 4u);
    }
  }
  for (const Synthesised& one : a.tasks) {
    const auto names = one.chain.names(), pairs = one.chain.pairs();
    const auto met = [](const std::set<std::string>& trained, const std::vector<std::string>& list) {
      return std::all_of(list.begin(), list.end(),
                         [&](const std::string& name) { return trained.contains(name); });
    };
    if (one.split == "heldout_operation") {
      EXPECT_FALSE(met(trained_operators, names)) << one.id;
    }
    if (one.split == "heldout_combination") {
      EXPECT_FALSE(met(trained_pairs, pairs)) << one.id;
      EXPECT_TRUE(met(trained_operators, names)) << one.id;
    }
  }
  Settings other = settings;
  other.operators_out = 0;
  EXPECT_EQ(synthesize(other).tasks.size(), 360u) << "nothing to hold out, no such tasks";
  other = settings;
  other.split_seed = 2;
  EXPECT_NE(synthesize(other).operators_out, a.operators_out);
}

TEST(Synthesis, MakesNothingThatIsToBeLeftOut) {
  const Settings all{{.seed = 3, .count = 60}, {}, {}};
  Settings fewer = all;
  for (const Synthesised& one : synthesize(all).tasks) {
    if (fewer.without.size() < 20)
      fewer.without.insert(sorted(one.chain.names()));
    else
      fewer.without_references.insert(normal_form_of_reference(reference_of(one.chain)));
  }
  const Synthesis made = synthesize(fewer);
  EXPECT_GT(made.dropped.known, 0);
  for (const Synthesised& one : made.tasks) {
    EXPECT_FALSE(fewer.without.contains(sorted(one.chain.names())));
    EXPECT_FALSE(fewer.without_references.contains(normal_form_of_reference(reference_of(one.chain))));
  }
  EXPECT_EQ(
      normal_form_of_reference("def forward(x: Tensor, b: Tensor) -> Tensor:\n  return torch.relu(x + b)\n"),
      normal_form_of_reference(
          "def forward(a: Tensor, c: Tensor) -> Tensor:\n    return torch.relu(a + c)\n"));
}

// -(matmul) of -x is the product; the mean of (r - x)^2 is that of (x - d)^2.
TEST(Synthesis, MakesNothingThatComputesWhatIsToBeLeftOut) {
  Settings settings{{.count = 1500, .longest = 5, .traced_share = 0.5}, {}, {}};
  settings.without = {{"matmul"}, {"mean", "pow", "sub"}, {"sigmoid"}, {"abs", "mean"}};
  std::set<std::string> out;
  for (const char* chain :
       {"matmul", "difference square all_mean", "sigmoid", "abs row_mean", "abs all_mean"})
    out.insert(fingerprint(chain_of(split(chain, ' ')), true));
  const auto is_out = [&](const char* chain) {
    return out.contains(fingerprint(chain_of(split(chain, ' ')), true));
  };
  EXPECT_TRUE(is_out("negate matmul negate"));
  EXPECT_TRUE(is_out("negate residual square all_mean"));
  EXPECT_TRUE(is_out("negate abs row_mean"));
  EXPECT_FALSE(is_out("relu matmul"));
  for (const Synthesised& one : synthesize(settings).tasks)
    EXPECT_FALSE(out.contains(fingerprint(one.chain, true))) << one.id;
}

TEST(Synthesis, KernelBenchsLinearIsAProductWithABias) {
  const auto ways = torch_operators_of(chain_of({"matmul", "bias", "relu"}));
  EXPECT_EQ(ways, (std::vector<std::set<std::string>>{{"matmul", "add", "relu"}, {"linear", "relu"}}));
  EXPECT_EQ(torch_operators_of(chain_of({"matmul", "relu", "bias"})).size(), 1u);
  EXPECT_TRUE(torch_operators_of(chain_of({"gather_rows"})).empty());
}

// Windows of 3 by 3 at a stride of 2, padded by 1, in 8 channels.
Traced windows_of(int channels, std::vector<int> sizes) {
  return {
      .sizes = std::move(sizes),
      .window = {
          .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}, .channels = channels}};
}

TEST(Windows, AreEvaluated) {
  const std::vector<double> most = evaluate(chain_of({"max_pool1d"}), 1),
                            mean = evaluate(chain_of({"avg_pool1d"}), 1);
  ASSERT_EQ(most.size(), 2u * 5 * 2) << "images, places, channels";
  // The first window sees one element, and one that is not there; the next one sees it, too.
  EXPECT_DOUBLE_EQ(most[0], 2 * mean[0]);
  EXPECT_GE(most[2], most[0]);
  EXPECT_EQ(evaluate(chain_of({"max_pool3d"}), 1).size(), 2u * 3 * 4 * 5 * 2);
  EXPECT_EQ(evaluate(chain_of({"pointwise_conv2d"}), 1).size(), 2u * 3 * 4 * 2);
  EXPECT_EQ(evaluate(chain_of({"conv2d", "all_sum"}), 1).size(), 1u);
  EXPECT_NE(fingerprint(chain_of({"conv2d"})), fingerprint(chain_of({"depthwise_conv2d"})));
}

TEST(Windows, HaveTheFlawsOfChains) {
  EXPECT_THAT(flaw_of(chain_of({"relu", "max_pool2d", "relu"})), HasSubstr("redundant: relu"));
  EXPECT_THAT(flaw_of(chain_of({"negate", "avg_pool2d", "negate"})), HasSubstr("negate and negate"));
  EXPECT_THAT(flaw_of(chain_of({"negate", "conv1d", "negate"})), HasSubstr("negate and negate"));
  EXPECT_EQ(flaw_of(chain_of({"negate", "max_pool2d", "negate"})), "") << "the smallest element";
  EXPECT_EQ(flaw_of(chain_of({"relu", "conv2d", "relu"})), "");
  EXPECT_EQ(fingerprint(chain_of({"relu", "max_pool2d"})), fingerprint(chain_of({"max_pool2d", "relu"})));
  EXPECT_NE(fingerprint(chain_of({"relu", "avg_pool2d"})), fingerprint(chain_of({"avg_pool2d", "relu"})));
}

TEST(Windows, AreNoTaskAlone) {
  EXPECT_FALSE(can_be_traced(chain_of({"max_pool2d"})));
  EXPECT_TRUE(can_be_traced(chain_of({"max_pool2d", "bias"})));
  EXPECT_FALSE(can_be_traced(chain_of({"conv2d", "bias"}))) << "one operator of torch";
  EXPECT_TRUE(can_be_traced(chain_of({"conv2d", "relu"})));
  EXPECT_FALSE(can_be_traced(chain_of({"conv2d", "row_softmax"})));
  EXPECT_FALSE(can_be_traced(chain_of({"max_pool1d", "relu", "row_sum"})));
  EXPECT_EQ(torch_operators_of(chain_of({"depthwise_conv2d", "bias", "relu"})),
            (std::vector<std::set<std::string>>{{"conv2d", "add", "relu"}, {"conv2d", "relu"}}));
}

// tests/integration/import_test.cc has these texts of modules that nobody synthesised.
TEST(Windows, ReferenceIsAsTorchsTracerWritesIt) {
  EXPECT_EQ(reference_of(chain_of({"max_pool2d", "residual", "tanh"}), windows_of(8, {8, 13, 20})),
            "def forward(x: Tensor, other: Tensor) -> Tensor:\n"
            "  v_max_pool2d = torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])\n"
            "  v_add = torch.add(v_max_pool2d, other)\n"
            "  v_tanh = torch.tanh(v_add)\n"
            "  return v_tanh\n");
  Traced traced = windows_of(16, {3, 13, 20});
  traced.window.has_bias = true;
  EXPECT_EQ(reference_of(chain_of({"conv2d", "bias", "relu", "bias", "all_mean"}), traced),
            "def forward(x: Tensor, bias: Tensor, conv_weight: Tensor, conv_bias: Tensor) -> Tensor:\n"
            "  v_conv2d = torch.conv2d(x, conv_weight, conv_bias, [2, 2], [1, 1])\n"
            "  v_relu = torch.relu(v_conv2d)\n"
            "  v_add = torch.add(v_relu, bias)\n"
            "  v_mean = torch.mean(v_add)\n"
            "  return v_mean\n");
  traced = windows_of(8, {8, 13, 20});
  EXPECT_THAT(reference_of(chain_of({"abs", "depthwise_conv2d", "relu"}), traced),
              HasSubstr("torch.conv2d(v_abs_1, conv_weight, None, [2, 2], [1, 1], [1, 1], 8)"));
}

TEST(Windows, CostWhatTheirSizesSay) {
  // 13 by 20 at a stride of 2, padded by 1: 7 by 10 windows, and all of x is seen.
  const std::string pooled =
      task_file(chain_of({"max_pool2d", "residual", "tanh"}), windows_of(8, {8, 13, 20}), {});
  EXPECT_THAT(pooled, HasSubstr("other: {shape: [BATCH, 8, 7, 10]"));
  EXPECT_THAT(pooled, HasSubstr("out: {shape: [BATCH, 8, 7, 10]}"));
  EXPECT_THAT(pooled, HasSubstr(fmt::format("flops: {} * BATCH\n", 8 * 70 * (8 + 1 + 4))));
  EXPECT_THAT(pooled, HasSubstr(fmt::format("bytes: {} * BATCH\n", 4 * 8 * (13 * 20 + 2 * 70))));
  Traced traced = windows_of(16, {3, 13, 20});
  traced.window.padding = {0, 0};  // 6 by 9 windows, which see 13 by 19
  const std::string convolved = task_file(chain_of({"conv2d", "bias", "relu"}), traced, {});
  EXPECT_THAT(convolved, HasSubstr("bias: {role: parameter, shape: [16, 1, 1], values: \"normal(0, 1)\"}"));
  EXPECT_THAT(
      convolved,
      HasSubstr(
          "conv_weight: {role: parameter, shape: [16, 3, 3, 3], values: \"uniform(-0.19245, 0.19245)\"}"));
  EXPECT_THAT(convolved, HasSubstr(fmt::format("flops: {} * BATCH\n", 16 * 54 * (2 * 27 + 2))));
  EXPECT_THAT(convolved, HasSubstr(fmt::format("bytes: {} * BATCH + {}\n", 4 * (3 * 13 * 19 + 16 * 54),
                                               4 * (16 * 27 + 16))));
  // A maximum writes a fourth of what it reads, and the step of eager reads and writes that again.
  EXPECT_NEAR(gain_of(chain_of({"max_pool2d", "relu"}), windows_of(8, {8, 128, 128})), (4. + 1 + 2) / (4 + 1),
              0.01);
}

TEST(Windows, ProgramsHaveTheTasksSizesAndNames) {
  const auto sources = [](const std::vector<std::string>& names, const Traced& traced) {
    std::map<std::string, std::string> out;
    for (const Program& program : programs_of(chain_of(names), traced)) out[program.name] = program.source;
    return out;
  };
  const auto pooled = sources({"max_pool2d", "bias", "scale"}, windows_of(8, {8, 13, 20}));
  EXPECT_EQ(pooled.at("flat"),
            "// plan: launch k<<<cdiv(BATCH * 8 * 7 * 10, 256), 256>>>(x, bias, out, BATCH)\n"
            "extern \"C\" __global__ void k(const float* x, const float* bias, float* out, int BATCH) {\n"
            "  int i = blockIdx.x * 256 + threadIdx.x;\n"
            "  if (i >= BATCH * 8 * 7 * 10) return;\n"
            "  int c = i / (7 * 10) % 8;\n"
            "  int n = i / (7 * 10);\n"
            "  int y = i / 10 % 7 * 2 - 1, z = i % 10 * 2 - 1;\n"
            "  float v = -INFINITY;\n"
            "  for (int ky = 0; ky < 3; ky++)\n"
            "    for (int kz = 0; kz < 3; kz++) {\n"
            "      int iy = y + ky, iz = z + kz;\n"
            "      if (iy >= 0 && iy < 13 && iz >= 0 && iz < 20) v = fmaxf(v, x[(n * 13 + iy) * 20 + iz]);\n"
            "    }\n"
            "  v = v + bias[c];\n"
            "  v = v * 0.5f;\n"
            "  out[i] = v;\n"
            "}\n");
  EXPECT_TRUE(pooled.contains("grid_stride") && pooled.contains("chunk") && pooled.contains("tile"));
  Traced apart = windows_of(8, {8, 12, 20});
  apart.window.stride = {3, 3};
  EXPECT_FALSE(sources({"max_pool2d", "bias"}, apart).contains("tile")) << "nothing is seen twice";
  EXPECT_TRUE(sources({"conv2d", "relu"}, windows_of(5, {3, 13, 20})).contains("channels_4"));
  EXPECT_EQ(sources({"conv2d", "relu", "all_sum"}, windows_of(5, {3, 13, 20})).size(), 2u);
  const std::regex open("(^|[^.\\w])(M|N|K|s|w|b)([^\\w]|$)");
  for (const Operator& start : operators()) {
    if (start.windows == Windows::kNone) continue;
    for (const Operator& one : operators()) {
      if (!takes(start, one) || one.place == Place::kElement) continue;
      const Chain chain = chain_of({"tanh", start.name, "bias", "gate", "scale", one.name});
      for (std::uint64_t key = 0; key < 2; ++key)
        for (const Program& program : programs_of(chain, draw_traced(chain, key, key % 2 == 0))) {
          EXPECT_FALSE(std::regex_search(program.source, open)) << program.source;
          expect_names_of_their_own(program.source);
        }
    }
  }
}

TEST(Windows, AreDrawnWithinLimits) {
  for (const Operator& start : operators()) {
    if (start.windows == Windows::kNone) continue;
    const Chain chain = chain_of({start.name, "relu"});
    std::set<std::string> files;
    for (std::uint64_t key = 0; key < 20; ++key) {
      const Traced traced = draw_traced(chain, key, key % 2 == 0);
      const std::string text = task_file(chain, traced, {});
      files.insert(text);
      EXPECT_EQ(traced.window.kernel.size(), static_cast<std::size_t>(start.rank));
      EXPECT_EQ(traced.sizes.size(), static_cast<std::size_t>(start.rank) + 1);
      std::int64_t elements = std::stoll(text.substr(text.find("gpu: [{BATCH: ") + 14));
      for (const int size : traced.sizes) elements *= size;
      EXPECT_LE(elements, 1 << 24) << text;
      for (std::size_t d = 0; d < traced.window.kernel.size(); ++d)
        EXPECT_LE(2 * traced.window.padding[d], traced.window.kernel[d]);
    }
    EXPECT_GT(files.size(), 17u) << start.name;
  }
}

TEST(Synthesis, FamiliesAreDrawnAlike) {
  Settings settings{{.count = 60, .heldout = 12, .families = {"convolution", "chains", "pooling"}}, {}, {}};
  settings.without = {{"conv2d", "relu"}, {"conv1d", "relu", "tanh"}};
  const auto family = [](const Synthesised& one) { return std::string(family_of(op(one.chain.start))); };
  std::map<std::string, std::map<std::string, int>> counts;
  const Synthesis made = synthesize(settings);
  for (const Synthesised& one : made.tasks) {
    ++counts[one.split][family(one)];
    EXPECT_EQ(one.traced.has_value(), family(one) != "chains") << one.id;
    for (const std::set<std::string>& parts : torch_operators_of(one.chain))
      EXPECT_FALSE(settings.without.contains({parts.begin(), parts.end()})) << one.id;
    EXPECT_EQ(flaw_of(one.chain), "") << one.id;
  }
  EXPECT_EQ(counts.at("train"),
            (std::map<std::string, int>{{"chains", 20}, {"convolution", 20}, {"pooling", 20}}));
  EXPECT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts.at("heldout_length").at("pooling"), 4);
  // What is held out can stand in the family.
  settings.families = {"pooling"};
  const Synthesis pooling = synthesize(settings);
  for (const std::string& name : pooling.operators_out)
    EXPECT_TRUE(takes(operator_named("max_pool2d"), operator_named(name))) << name;
  settings.families = {};
  EXPECT_THROW(synthesize(settings), Error);
}

// By default what was drawn before there were families: sha256 of all tasks, their files and programs.
TEST(Synthesis, DrawsWhatItDrewBefore) {
  const auto digest = [](const Settings& settings) {
    Sha256 all;
    for (const Synthesised& one : synthesize(settings).tasks) {
      all.field(one.id).field(one.split);
      all.field(one.traced ? task_file(one.chain, *one.traced, {}) : task_file(one.chain, {}));
      all.field(kernelbench_module(one.chain));
      for (const Program& program : programs_of(one)) all.field(program.name).field(program.source);
    }
    return all.hex().substr(0, 16);
  };
  EXPECT_EQ(digest({{.seed = 5,
                     .count = 150,
                     .unsolved = 20,
                     .sft_only = 100,
                     .heldout = 20,
                     .longest = 5,
                     .traced_share = 0.5},
                    {},
                    {}}),
            "49a03208f067e553");
  EXPECT_EQ(digest({{.count = 50, .heldout = 20, .program_bytes = 900}, {}, {}}), "4e68472028c0d9c8");
}

// Two branches meet: the chain and what it began with, or the chain and a function of another matrix.
TEST(Branches, AreWrittenInAllForms) {
  const Chain skip = chain_of({"bias", "gelu", "skip"}), gate = chain_of({"bias", "silu_gate"});
  EXPECT_EQ(reference_of(skip),
            "def forward(x: Tensor, b: Tensor) -> Tensor:\n  return (x + b).gelu() + x\n");
  EXPECT_EQ(reference_of(chain_of({"gather_rows", "relu", "self_gate"})),
            "def forward(t: Tensor, idx: Tensor) -> Tensor:\n  x = torch.index_select(t, 0, idx)\n"
            "  return torch.relu(x) * x\n");
  EXPECT_EQ(reference_of(gate),
            "def forward(x: Tensor, b: Tensor, g: Tensor) -> Tensor:\n"
            "  return (x + b) * (g * torch.sigmoid(g))\n");
  EXPECT_THAT(kernelbench_module(skip), HasSubstr("torch.nn.functional.gelu(x + self.b) + x\n"));
  const Traced traced = {.sizes = {16, 20}, .first = "predictions", .second = "targets"};
  EXPECT_EQ(reference_of(chain_of({"tanh", "skip", "silu_gate"}), traced),
            "def forward(predictions: Tensor, targets: Tensor) -> Tensor:\n"
            "  v_tanh = torch.tanh(predictions)\n"
            "  v_add = torch.add(v_tanh, predictions)\n"
            "  v_sigmoid = torch.sigmoid(targets)\n"
            "  v_mul = torch.mul(targets, v_sigmoid)\n"
            "  v_mul_1 = torch.mul(v_add, v_mul)\n"
            "  return v_mul_1\n");
  // What it began with is read once and no input of its own.
  EXPECT_EQ(bytes_of(skip), "8 * M * N + 4 * N");
  EXPECT_EQ(flops_of(gate), "7 * M * N");
  const std::vector<double> x = evaluate(chain_of({}), 1), y = evaluate(chain_of({"relu", "skip"}), 1);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_DOUBLE_EQ(y[i], std::max(x[i], 0.0) + x[i]);
  EXPECT_NEAR(gain_of(chain_of({"relu", "skip"})), (8 + 12) / 8., 1e-9);
}

TEST(Branches, ProgramsReadTheStartAgain) {
  std::map<std::string, std::string> sources;
  for (const Program& program : programs_of(chain_of({"row_softmax", "skip"})))
    sources[program.name] = program.source;
  EXPECT_THAT(sources.at("warp_per_row"), HasSubstr("  v = v + x[i];\n"));
  EXPECT_THAT(programs_of(chain_of({"gather_rows", "relu", "self_gate"})).front().source,
              HasSubstr("  v = v * t[idx[m] * N + c];\n"));
  const std::vector<Program> elements = programs_of(chain_of({"relu", "self_gate"}));
  EXPECT_EQ(elements.back().name, "vector4");
  EXPECT_THAT(elements.back().source, HasSubstr("o.y = f(v4.y, v4.y);\n"));
}

TEST(Branches, WithoutUseAreNoTask) {
  EXPECT_THAT(flaw_of(chain_of({"skip", "relu"})), HasSubstr("degenerate")) << "x + x";
  EXPECT_THAT(flaw_of(chain_of({"negate", "skip"})), HasSubstr("degenerate")) << "0";
  EXPECT_THAT(flaw_of(chain_of({"abs", "skip", "l1_norm"})), HasSubstr("degenerate")) << "0 / 0";
  EXPECT_EQ(flaw_of(chain_of({"tanh", "skip"})), "");
  EXPECT_FALSE(takes(operator_named("matmul"), operator_named("skip")));
  EXPECT_FALSE(takes(operator_named("conv2d"), operator_named("self_gate")));
  EXPECT_TRUE(takes(operator_named("conv2d"), operator_named("sigmoid_gate")));
}

TEST(Branches, AreDrawnAsOftenAsAskedFor) {
  Settings settings{{.count = 80,
                     .heldout = 20,
                     .traced_share = 0.5,
                     .families = {"chains", "convolution"},
                     .branches = 0.5},
                    {},
                    {}};
  const Synthesis made = synthesize(settings);
  std::map<std::string, int> counts;
  std::set<std::string> meetings;
  for (const Synthesised& one : made.tasks) {
    counts[one.split] += has_branch(one.chain);
    for (const std::size_t step : one.chain.steps)
      if (op(step).branches) meetings.insert(op(step).name);
    for (const std::size_t step : one.chain.steps)
      EXPECT_TRUE(takes(op(one.chain.start), op(step))) << one.id;
  }
  EXPECT_EQ(
      counts,
      (std::map<std::string, int>{
          {"heldout_combination", 10}, {"heldout_length", 10}, {"heldout_operation", 10}, {"train", 40}}));
  EXPECT_EQ(meetings.size(), 7u);
  settings.branches = 0;
  for (const Synthesised& one : synthesize(settings).tasks) EXPECT_FALSE(has_branch(one.chain)) << one.id;
  EXPECT_EQ(synthesize(settings).operators_out, made.operators_out);
}

// float16 only where nothing can overflow it; products and windows never.
TEST(HalfPrecision, FollowsWhatAChainComputes) {
  using enum Precision;
  EXPECT_EQ(half_precision_of(chain_of({"tanh", "bias"})), kFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"tanh", "row_mean"})), kFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"row_softmax", "gelu"})), kFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"tanh", "row_sum"})), kBFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"tanh", "row_cumsum"})), kBFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"l2_norm", "gelu"})), kBFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"square", "gate"})), kBFloat16);
  EXPECT_EQ(half_precision_of(chain_of({"matmul", "relu"})), std::nullopt);
  EXPECT_EQ(half_precision_of(chain_of({"conv2d", "relu"})), std::nullopt);
}

TEST(HalfPrecision, IsWrittenInTaskModuleAndPrograms) {
  Chain chain = chain_of({"tanh", "bias", "row_sum"});
  const std::string plain = task_file(chain, {}), module = kernelbench_module(chain);
  chain.precision = Precision::kBFloat16;
  const std::string half = task_file(chain, {});
  EXPECT_THAT(half, HasSubstr("x: {role: data, dtype: bfloat16,"));
  EXPECT_THAT(half, HasSubstr("out: {dtype: bfloat16,"));
  EXPECT_THAT(half, HasSubstr("bytes: 2 * M * N + 2 * N + 2 * M\n"));
  EXPECT_THAT(half, Not(HasSubstr("float32")));
  EXPECT_THAT(plain, HasSubstr("bytes: 4 * M * N + 4 * N + 4 * M\n"));
  EXPECT_EQ(reference_of(chain), reference_of(chain_of({"tanh", "bias", "row_sum"})));
  EXPECT_THAT(kernelbench_module(chain), HasSubstr("torch.randn(columns, dtype=torch.bfloat16)"));
  EXPECT_THAT(module, Not(HasSubstr("dtype")));
  for (const Program& program : programs_of(chain)) {
    EXPECT_THAT(program.source, HasSubstr("#include <cuda_bf16.h>")) << program.name;
    EXPECT_THAT(program.source, HasSubstr("__nv_bfloat16* out")) << program.name;
    EXPECT_THAT(program.source, HasSubstr("float(b[c])")) << program.name;
  }
}

TEST(HalfPrecision, IsDrawnAsOftenAsAskedForAndChangesNothingElse) {
  Settings settings{{.count = 400, .traced_share = 0.5, .half_precision = 0.5}, {}, {}};
  const Synthesis made = synthesize(settings);
  int narrow = 0, can = 0;
  for (const Synthesised& one : made.tasks) {
    const bool is_half = one.chain.precision != Precision::kFloat32;
    EXPECT_FALSE(is_half && one.traced) << one.id;
    can += !one.traced && half_precision_of(one.chain).has_value();
    narrow += is_half;
  }
  EXPECT_GT(can, 100);
  EXPECT_NEAR(narrow, can / 2, can / 5);
  settings.half_precision = 0;
  for (const Synthesised& one : synthesize(settings).tasks)
    EXPECT_EQ(one.chain.precision, Precision::kFloat32) << one.id;
}

TEST(Strided, IsWrittenInTaskModuleAndPrograms) {
  Chain chain = chain_of({"tanh", "gate"});
  const std::string plain = task_file(chain, {});
  EXPECT_THAT(plain, Not(HasSubstr("strides")));
  for (const auto& [storage, strides, module, element] :
       {std::tuple{Storage::kWider, "strides: [2 * N, 1]", "torch.randn(rows, 2 * columns)[:, :columns]",
                   "x[m * 2 * N + c]"},
        std::tuple{Storage::kColumns, "strides: [1, M]", "torch.randn(columns, rows).t()", "x[c * M + m]"}}) {
    chain.storage = storage;
    const std::string task = task_file(chain, {});
    EXPECT_THAT(task, HasSubstr(std::string("x: {role: data, dtype: float32, shape: [M, N], ") + strides));
    EXPECT_EQ(task.find("strides"), task.rfind("strides")) << "of x alone";
    EXPECT_THAT(kernelbench_module(chain), HasSubstr(module));
    for (const Program& program : programs_of(chain)) {
      EXPECT_THAT(program.source, HasSubstr(element)) << program.name;
      EXPECT_THAT(program.source, Not(HasSubstr("x[i]"))) << program.name;
      EXPECT_THAT(program.source, HasSubstr("g[i]")) << program.name;
      EXPECT_THAT(program.name, Not(HasSubstr("vector4")));
    }
  }
}

TEST(Strided, OnlyAMatrixCanBe) {
  EXPECT_TRUE(can_lie(chain_of({"tanh", "bias"}), Storage::kColumns));
  EXPECT_TRUE(can_lie(chain_of({"tanh", "transpose"}), Storage::kWider));
  EXPECT_FALSE(can_lie(chain_of({"tanh", "transpose"}), Storage::kColumns));
  EXPECT_FALSE(can_lie(chain_of({"matmul", "relu"}), Storage::kColumns));
  EXPECT_FALSE(can_lie(chain_of({"gather_rows", "relu"}), Storage::kWider));
  EXPECT_FALSE(can_lie(chain_of({"conv2d", "relu"}), Storage::kWider));
}

TEST(Strided, IsDrawnAsOftenAsAskedForAndChangesNothingElse) {
  Settings settings{{.count = 400, .traced_share = 0.5}, {}, {}};
  settings.strided = 0.5;
  int strided = 0, can = 0;
  for (const Synthesised& one : synthesize(settings).tasks) {
    const bool is_strided = one.chain.storage != Storage::kRows;
    EXPECT_FALSE(is_strided && one.traced) << one.id;
    EXPECT_TRUE(can_lie(one.chain, one.chain.storage)) << one.id;
    can += !one.traced && can_lie(one.chain, Storage::kWider);
    strided += is_strided;
  }
  EXPECT_GT(can, 80);
  EXPECT_NEAR(strided, can / 2, can / 5);
  settings.strided = 0;
  for (const Synthesised& one : synthesize(settings).tasks)
    EXPECT_EQ(one.chain.storage, Storage::kRows) << one.id;
}

TEST(Synthesis, SaysWhereTheGrammarEnds) {
  EXPECT_THROW(synthesize({{.count = 5000, .longest = 1}, {}, {}}), Error);
}

}  // namespace
}  // namespace warpsmith::synthesis

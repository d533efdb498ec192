#include "warpsmith/task/launch_plan.h"

#include <gtest/gtest.h>

#include <limits>

namespace warpsmith::task {
namespace {

TensorSpec tensor(const char* name, std::vector<const char*> shape, Dtype dtype = Dtype::kFloat32) {
  TensorSpec spec;
  spec.name = name;
  spec.dtype = dtype;
  for (const char* size : shape) spec.shape.push_back(Expression::parse(size));
  return spec;
}

// x [M, N], w [N], ids [M] of int32 -> out [M, N]; scalars eps (float), K (int); 1 MiB for temporaries.
Task test_task() {
  Task task;
  task.id = "test";
  task.dims = {"M", "N"};
  task.inputs = {tensor("x", {"M", "N"}), tensor("w", {"N"}), tensor("ids", {"M"}, Dtype::kInt32)};
  task.scalars = {{"eps", true, 1e-5}, {"K", false, 3}};
  task.outputs = {tensor("out", {"M", "N"})};
  task.memory_bytes = 1 << 20;
  return task;
}
const Dims kDims = {{"M", 10}, {"N", 100}};

std::string source(const std::vector<const char*>& lines) {
  std::string text;
  for (const char* line : lines) text += std::string("// plan: ") + line + "\n";
  return text;
}

ConcretePlan run(const std::string& text, const Dims& dims = kDims) {
  Diagnostics diagnostics;
  const Task task = test_task();
  const LaunchPlan plan = LaunchPlan::parse(text, task, "k.cu", diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  if (!diagnostics.empty()) return {};
  return plan.evaluate(plan_bindings(task, dims));
}

TEST(LaunchPlan, OneLaunch) {
  const ConcretePlan plan =
      run("#define A 1\n"
          "  //plan: launch k<<<cdiv(M * N, 256), 256>>>(x, w, out, eps, K, M * N)\n"
          "__global__ void k() {}\n");
  ASSERT_EQ(plan.steps.size(), 1u);
  const ConcreteStep& step = plan.steps[0];
  EXPECT_EQ(step.kind, StepKind::kLaunch);
  EXPECT_EQ(step.line, 2);
  EXPECT_EQ(step.kernel, "k");
  EXPECT_EQ(step.grid, (std::array<std::int64_t, 3>{4, 1, 1}));
  EXPECT_EQ(step.block, (std::array<std::int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(step.smem, 0);
  ASSERT_EQ(step.args.size(), 6u);
  EXPECT_EQ(step.args[0].kind, ArgKind::kPointer);
  EXPECT_EQ(step.args[0].tensor, "x");
  EXPECT_EQ(step.args[2].tensor, "out");
  EXPECT_EQ(step.args[3].kind, ArgKind::kF32);
  EXPECT_EQ(step.args[3].real, 1e-5);
  EXPECT_EQ(step.args[4].kind, ArgKind::kI32);
  EXPECT_EQ(step.args[4].integer, 3);
  EXPECT_EQ(step.args[5].integer, 1000);
}

// Calls must not overlap: only a launch right behind another one of the same plan may begin early.
TEST(LaunchPlan, PdlIsForLaunchesBehindLaunches) {
  const ConcretePlan plan = run(source({
      "temp part float32[M]",
      "for s in 0..3",
      "  launch k<<<1, 32>>>() pdl",
      "end",
      "fill part 0",
      "launch k<<<1, 32>>>() pdl",
      "launch k<<<1, 32>>>()",
      "launch k<<<1, 32>>>() pdl",
  }));
  std::vector<bool> early;
  for (const ConcreteStep& step : plan.steps) early.push_back(step.pdl);
  EXPECT_EQ(early, (std::vector<bool>{false, true, true, false, false, false, true}));
}

TEST(LaunchPlan, EveryStatement) {
  const ConcretePlan plan = run(source({
      "let T = cdiv(N, 32)",
      "temp part float16[M, T]",
      "fill part -inf",
      "copy out <- x",
      "const W <- w",
      "launch row<float, 256><<<dim3(T, M), dim3(32, 4), 256 * 4>>>(x, part, i64(M * N), f64(eps), f16(1 / "
      "2), f32(1.0 / N)) cooperative pdl",
      "launch k<<<dim3(8, 2), 64>>>() cluster(2, 2)",
      "tensormap tm = x tile[64, 32] swizzle128",
      "launch row<float, 256><<<1, 32>>>(tm, x.s0)",
  }));
  ASSERT_EQ(plan.temps.size(), 1u);
  EXPECT_EQ(plan.temps[0].name, "part");
  EXPECT_EQ(plan.temps[0].shape, (std::vector<std::int64_t>{10, 4}));
  EXPECT_EQ(plan.temps[0].bytes, 80u);
  ASSERT_EQ(plan.steps.size(), 6u);
  EXPECT_EQ(plan.steps[0].kind, StepKind::kFill);
  EXPECT_EQ(plan.steps[0].destination, "part");
  EXPECT_EQ(plan.steps[0].value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(plan.steps[1].kind, StepKind::kCopy);
  EXPECT_EQ(plan.steps[1].source, "x");
  EXPECT_EQ(plan.steps[2].kind, StepKind::kConst);
  EXPECT_EQ(plan.steps[2].destination, "W");
  const ConcreteStep& row = plan.steps[3];
  EXPECT_EQ(row.kernel, "row<float, 256>");
  EXPECT_EQ(row.grid, (std::array<std::int64_t, 3>{4, 10, 1}));
  EXPECT_EQ(row.block, (std::array<std::int64_t, 3>{32, 4, 1}));
  EXPECT_EQ(row.smem, 1024);
  EXPECT_TRUE(row.cooperative);
  EXPECT_FALSE(row.pdl) << "behind no launch";
  EXPECT_EQ(row.args[2].kind, ArgKind::kI64);
  EXPECT_EQ(row.args[3].kind, ArgKind::kF64);
  EXPECT_EQ(row.args[4].kind, ArgKind::kF16);
  EXPECT_EQ(row.args[4].real, 0.5);
  EXPECT_EQ(row.args[5].real, 0.01);
  EXPECT_EQ(plan.steps[4].cluster, (std::array<std::int64_t, 3>{2, 2, 1}));
  EXPECT_FALSE(plan.steps[4].cooperative);
  ASSERT_EQ(plan.tensor_maps.size(), 1u);
  EXPECT_EQ(plan.tensor_maps[0].tensor, "x");
  EXPECT_EQ(plan.tensor_maps[0].tile, (std::vector<std::int64_t>{64, 32}));
  EXPECT_EQ(plan.tensor_maps[0].swizzle, 128);
  EXPECT_EQ(plan.steps[5].args[0].kind, ArgKind::kTensorMap);
  EXPECT_EQ(plan.steps[5].args[1].integer, 100);
}

TEST(LaunchPlan, BranchesAndLoops) {
  const std::string text = source({
      "temp a float32[N]",
      "if N % 4 == 0 && aligned(x, 16) && contiguous(x) && ON_CPU",
      "  let V = N / 4",
      "  launch k4<<<V, 32>>>(x)",
      "else",
      "  launch k1<<<N, 32>>>(x)",
      "end",
      "for s in 0..clog2(N)",
      "  if s % 2 == 0",
      "    launch even<<<1, 1>>>(a, out, s)",
      "  else",
      "    launch odd<<<1, 1>>>(out, a, s)",
      "  end",
      "end",
  });
  const ConcretePlan plan = run(text);
  ASSERT_EQ(plan.steps.size(), 8u);
  EXPECT_EQ(plan.steps[0].kernel, "k4");
  EXPECT_EQ(plan.steps[0].grid[0], 25);
  EXPECT_EQ(plan.steps[1].kernel, "even");
  EXPECT_EQ(plan.steps[2].kernel, "odd");
  EXPECT_EQ(plan.steps[7].args[2].integer, 6);
  const ConcretePlan other = run(text, {{"M", 10}, {"N", 5}});
  ASSERT_EQ(other.steps.size(), 4u);
  EXPECT_EQ(other.steps[0].kernel, "k1");

  Diagnostics diagnostics;
  const LaunchPlan parsed = LaunchPlan::parse(text, test_task(), "k.cu", diagnostics);
  EXPECT_EQ(parsed.kernels(), (std::vector<std::string>{"k4", "k1", "even", "odd"}));
}

TEST(LaunchPlan, SymbolsEachOnce) {
  Diagnostics diagnostics;
  const LaunchPlan plan =
      LaunchPlan::parse(source({"const W <- w", "const B <- x", "const W <- w", "launch k<<<1, 1>>>()"}),
                        test_task(), "k.cu", diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(plan.symbols(), (std::vector<std::string>{"W", "B"}));
}

TEST(LaunchPlan, SeesTheTensorsAsTheyAre) {
  Diagnostics diagnostics;
  const Task task = test_task();
  const LaunchPlan plan = LaunchPlan::parse(source({"launch k<<<1, 1>>>(x.s0, aligned(x, 16), contiguous(x), "
                                                    "blocks_per_sm(k, 64, 0), SMS, SMEM_MAX)"}),
                                            task, "k.cu", diagnostics);
  ASSERT_TRUE(diagnostics.empty());
  PlanBindings bindings = plan_bindings(task, kDims);
  bindings.tensors["x"].address = 4;
  bindings.tensors["x"].strides = {128, 1};
  bindings.device.is_cpu = false;
  bindings.device.sms = 132;
  bindings.device.smem_max = 232448;
  bindings.device.blocks_per_sm = [](const std::string& kernel, std::int64_t block, std::int64_t smem) {
    EXPECT_EQ(kernel, "k");
    EXPECT_EQ(smem, 0);
    return 2048 / block;
  };
  const ConcretePlan concrete = plan.evaluate(bindings);
  std::vector<std::int64_t> values;
  for (const ConcreteArg& arg : concrete.steps.at(0).args) values.push_back(arg.integer);
  EXPECT_EQ(values, (std::vector<std::int64_t>{128, 0, 0, 32, 132, 232448}));
}

// ---- mistakes in the text: the exact message

struct Bad {
  const char* line;  // after "// plan: ", which is 9 columns wide
  const char* message;
};
class BadPlan : public testing::TestWithParam<Bad> {};
TEST_P(BadPlan, IsToldWithItsPlace) {
  Diagnostics diagnostics;
  LaunchPlan::parse(source({GetParam().line, "launch ok<<<1, 1>>>()"}), test_task(), "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(to_string(diagnostics[0]), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, BadPlan,
    testing::Values(
        Bad{"lunch k<<<1, 1>>>()", "k.cu:1:10: unknown statement `lunch` (did you mean `launch`?)"},
        Bad{"", "k.cu:1:10: a statement is expected here"}, Bad{"launch k(x)", "k.cu:1:21: `<<<` is missing"},
        Bad{"launch k<[]{ asm(\"nop\"); }><<<1, 1>>>(x)",
            "k.cu:1:19: `[` cannot stand in the name of a kernel"},
        Bad{"launch k<({ 1; })><<<1, 1>>>(x)", "k.cu:1:20: `{` cannot stand in the name of a kernel"},
        Bad{"launch k<(<:]<%%>)><<<1, 1>>>(x)", "k.cu:1:20: `<` cannot stand in the name of a kernel"},
        Bad{"launch k<0>, j<<<1, 1>>>(x)", "k.cu:1:21: `,` cannot stand in the name of a kernel"},
        Bad{"launch k j<<<1, 1>>>(x)", "k.cu:1:19: `<<<` is missing"},
        Bad{"launch k<asm><<<1, 1>>>(x)", "k.cu:1:19: `asm` is no name of a source"},
        Bad{"launch k<wstw_x><<<1, 1>>>(x)", "k.cu:1:19: names that begin with wstw_ belong to the twin"},
        Bad{"launch k<0' '><<<1, 1>>>(x)", "k.cu:1:20: `'` cannot stand in the name of a kernel"},
        Bad{"launch k<\"a\"><<<1, 1>>>(x)", "k.cu:1:19: `\"` cannot stand in the name of a kernel"},
        Bad{"launch k<1 /* */><<<1, 1>>>(x)", "k.cu:1:21: `/` cannot stand in the name of a kernel"},
        Bad{"launch k<(1><<<1, 1>>>(x)", "k.cu:1:22: `)` is missing"},
        Bad{"launch k<1<<<1, 1>>>(x)", "k.cu:1:20: `>` is missing"},
        Bad{"launch k::<<<1, 1>>>(x)", "k.cu:1:20: a name is expected here"},
        Bad{"launch caf\xC3\xA9<<<1, 1>>>(x)", "k.cu:1:20: `\xC3\xA9` cannot stand in the name of a kernel"},
        Bad{"launch k\x1b[31m<<<1, 1>>>(x)", "k.cu:1:18: `\\x1b` cannot stand in the name of a kernel"},
        Bad{"const wstw_kernels <- x", "k.cu:1:16: names that begin with wstw_ belong to the twin"},
        Bad{"const asm <- x", "k.cu:1:16: `asm` is no name of a source"},
        Bad{"launch k<<<1, 256(x)", "k.cu:1:30: `>>>` is missing"},
        Bad{"launch k<<<1>>>(x)",
            "k.cu:1:21: <<<grid, block>>> or <<<grid, block, shared memory>>> is expected"},
        Bad{"launch k<<<1, 1>>>(x", "k.cu:1:30: `)` is missing"},
        Bad{"launch k<<<1, 1>>>", "k.cu:1:28: `(` is missing"},
        Bad{"launch k<<<1, 1>>>(x,)", "k.cu:1:31: an argument is expected here"},
        Bad{"launch k<<<1, 1>>>(y, K)", "k.cu:1:29: unknown name `y` (did you mean `K`?)"},
        Bad{"launch k<<<1, 1>>>(outt)", "k.cu:1:29: unknown name `outt` (did you mean `out`?)"},
        Bad{"launch k<<<1, 1>>>(x + 4)", "k.cu:1:29: `x` is a tensor where a number is expected"},
        Bad{"launch k<<<1, 1>>>(eps * 2)", "k.cu:1:29: `eps` is a real number where an integer is expected"},
        Bad{"launch k<<<1, 1>>>(0.5)",
            "k.cu:1:29: a real number where an integer is expected (reals stand in f32(…), f64(…), f16(…))"},
        Bad{"launch k<<<1, 1>>>(x.s2)", "k.cu:1:29: `x` has no `s2` (its strides are `x.s0` to `x.s1`)"},
        Bad{"launch k<<<cdiv(R, 4), 1>>>(x)", "k.cu:1:26: unknown name `R` (did you mean `K`?)"},
        Bad{"launch k<<<1, 1>>>(x) fast",
            "k.cu:1:32: unexpected `fast` after the launch (cooperative, cluster(x, y, z) or pdl)"},
        Bad{"launch k<<<dim3(1, 2, 3, 4), 1>>>(x)", "k.cu:1:21: dim3 takes one to three sizes"},
        Bad{"launch k<<<blocks_per_sm(kk, 1, 0), 1>>>(x)",
            "k.cu:1:35: blocks_per_sm: no launch of kernel `kk` (did you mean `k`?)"},
        Bad{"let M = 3", "k.cu:1:14: `M` already has a meaning"},
        Bad{"let cdiv = 3", "k.cu:1:14: `cdiv` already has a meaning"},
        Bad{"let T 3", "k.cu:1:17: `=` is missing"}, Bad{"let 3 = 3", "k.cu:1:14: a name is expected here"},
        Bad{"let T = (3", "k.cu:1:20: `)` is missing"},
        Bad{"temp t float33[M]", "k.cu:1:17: unknown type `float33` (did you mean `float32`?)"},
        Bad{"temp t float32", "k.cu:1:24: `[` is missing"},
        Bad{"temp x float32[M]", "k.cu:1:15: `x` already has a meaning"},
        Bad{"temp t float32[]", "k.cu:1:17: a size is expected in the brackets (`t float32[M, 32]`)"},
        Bad{"fill x 0", "k.cu:1:15: `x` is an input: it must not be written"},
        Bad{"fill ou 0", "k.cu:1:15: unknown tensor `ou` (did you mean `out`?)"},
        Bad{"copy w <- x", "k.cu:1:15: `w` is an input: it must not be written"},
        Bad{"copy out x", "k.cu:1:20: `<-` is missing"},
        Bad{"const 4 <- x", "k.cu:1:16: the name of a __constant__ or __device__ variable is expected here"},
        Bad{"else", "k.cu:1:14: `else` without `if`"}, Bad{"end", "k.cu:1:13: `end` without `if` or `for`"},
        Bad{"if M > 1", "k.cu:1:1: this `if` has no `end`"},
        Bad{"for s in 0..3", "k.cu:1:1: this `for` has no `end`"},
        Bad{"tensormap tm = x tile[8]", "k.cu:1:31: the tile has 1 sizes, `x` has 2"},
        Bad{"tensormap tm = x tile[8, 8] swizzle1",
            "k.cu:1:38: unexpected `swizzle1` (swizzle32, swizzle64 or swizzle128)"}));

TEST(LaunchPlan, TellsAllMistakesAtOnce) {
  Diagnostics diagnostics;
  LaunchPlan::parse("// plan: let A = R\n// plan: launch k<<<A, 1>>>(z)\n// plan: fill t 0\n", test_task(),
                    "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 3u);
  EXPECT_EQ(diagnostics[0].line, 1);
  EXPECT_EQ(diagnostics[1].line, 2);
  EXPECT_EQ(diagnostics[2].line, 3);
}

TEST(LaunchPlan, NamesEndWithTheirBlock) {
  Diagnostics diagnostics;
  LaunchPlan::parse(source({"if M > 1", "let T = 2", "else", "let T = 3", "end", "launch k<<<T, 1>>>()"}),
                    test_task(), "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].line, 6);
  EXPECT_EQ(diagnostics[0].message, "unknown name `T`");
}

TEST(LaunchPlan, NamesOfKernelsWithTheirPlaces) {
  const std::vector<std::string> names = {"k",
                                          "ns::k",
                                          "k<float, 256>",
                                          "k<(N > 2), sizeof(float4), 'x', -1, 1'000, 1.5e-3f>",
                                          "k<pair<int, pair<float, half>>>",
                                          "k<&S::f, const float*, ::T, !true, 1 << 4, (1 >> 2)>",
                                          "k<::T>",
                                          "ns::A<int>::k< 4 >"};
  std::string text = "\xEF\xBB\xBF// plan: const W <- x\n";
  for (const std::string& name : names) text += "  //  plan:launch  " + name + "<<<1, 1>>>()\n";
  Diagnostics diagnostics;
  const LaunchPlan plan = LaunchPlan::parse(text, test_task(), "k.cu", diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  EXPECT_EQ(plan.kernels(), names);
  const auto places = plan.places();
  ASSERT_EQ(places.size(), names.size() + 1);
  EXPECT_EQ(places.at("W").line, 1);
  EXPECT_EQ(places.at("W").column, 16);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(places.at(names[i]).line, static_cast<int>(i) + 2) << names[i];
    EXPECT_EQ(places.at(names[i]).column, 20) << names[i];
  }
}

TEST(LaunchPlan, ManyMistakesAreCounted) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "// plan: let some_name_" + std::to_string(i) + " = 1\n";
  for (int i = 0; i < 20'000; ++i) text += "// plan: let other = 2 + same_name_" + std::to_string(i) + "\n";
  Diagnostics diagnostics;
  LaunchPlan::parse(text, test_task(), "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 51u);
  EXPECT_EQ(diagnostics[49].line, 20'050);
  EXPECT_EQ(to_string(diagnostics[50]), "k.cu: and 19950 more");
}

TEST(LaunchPlan, BlocksThatAreTooDeepEndWithoutFurtherMistakes) {
  std::vector<const char*> lines(19, "if M > 1");
  lines.insert(lines.end(), {"for i in 0..2", "launch k<<<i, 1>>>()", "end", "else"});
  lines.insert(lines.end(), 19, "end");
  lines.push_back("launch k<<<blocks_per_sm(k, 1, 0), 1>>>()");
  Diagnostics diagnostics;
  LaunchPlan::parse(source(lines), test_task(), "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(to_string(diagnostics[0]), "k.cu:17:13: blocks are nested too deeply");
}

TEST(LaunchPlan, AProgramWithoutLaunchIsAMistake) {
  for (const auto& [text, place] :
       {std::pair("", "k.cu:1:1"), std::pair("__global__ void k() {}\n", "k.cu:1:1"),
        std::pair("\n// plan: fill out 0\n// plan: let n = 1\n", "k.cu:2:10"),
        std::pair("// the plan: launch k<<<1, 1>>>()\n", "k.cu:1:1")}) {
    Diagnostics diagnostics;
    LaunchPlan::parse(text, test_task(), "k.cu", diagnostics);
    ASSERT_EQ(diagnostics.size(), 1u) << text;
    EXPECT_EQ(to_string(diagnostics[0]), std::string(place) +
                                             ": the launch plan launches nothing (a line such as "
                                             "`// plan: launch kernel<<<cdiv(N, 256), 256>>>(x, out, N)`)");
  }
}

TEST(LaunchPlan, TempInLoopAndDeepNestingAreMistakes) {
  Diagnostics diagnostics;
  LaunchPlan::parse(source({"for s in 0..2", "temp t float32[4]", "launch k<<<1, 1>>>(t)", "end"}),
                    test_task(), "k.cu", diagnostics);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(to_string(diagnostics[0]), "k.cu:2:15: `temp` inside `for` (define it before the loop)");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "// plan: if M\n";
  diagnostics.clear();
  LaunchPlan::parse(deep, test_task(), "k.cu", diagnostics);
  EXPECT_FALSE(diagnostics.empty());
}

// ---- trouble at a shape: PlanError

struct Trouble {
  std::vector<const char*> lines;
  const char* message;
  int line;
  bool out_of_memory = false;
};
class PlanTrouble : public testing::TestWithParam<Trouble> {};
TEST_P(PlanTrouble, EndsEvaluation) {
  Diagnostics diagnostics;
  const Task task = test_task();
  const LaunchPlan plan = LaunchPlan::parse(source(GetParam().lines), task, "k.cu", diagnostics);
  ASSERT_TRUE(diagnostics.empty()) << to_string(diagnostics[0]);
  try {
    plan.evaluate(plan_bindings(task, kDims));
    FAIL() << "no PlanError";
  } catch (const PlanError& error) {
    EXPECT_EQ(error.message, GetParam().message);
    EXPECT_EQ(error.line, GetParam().line);
    EXPECT_EQ(error.out_of_memory, GetParam().out_of_memory);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Rows, PlanTrouble,
    testing::Values(
        Trouble{{"launch k<<<M - 10, 1>>>()"}, "grid.x is 0, not 1 to 2147483647", 1},
        Trouble{{"launch k<<<-M, 1>>>()"}, "grid.x is -10, not 1 to 2147483647", 1},
        Trouble{{"launch k<<<dim3(1, 65536), 1>>>()"}, "grid.y is 65536, not 1 to 65535", 1},
        Trouble{{"launch k<<<1, 1025>>>()"}, "block.x is 1025, not 1 to 1024", 1},
        Trouble{{"launch k<<<1, dim3(1, 1, 65)>>>()"}, "block.z is 65, not 1 to 64", 1},
        Trouble{
            {"launch k<<<1, dim3(64, 32)>>>()"}, "a block of 2048 threads: at most 1,024 are possible", 1},
        Trouble{
            {"launch k<<<1, 1, 232449>>>()"}, "dynamic shared memory of 232449 bytes, not 0 to 232448", 1},
        Trouble{{"launch k<<<1, 1, 0 - 4>>>()"}, "dynamic shared memory of -4 bytes, not 0 to 232448", 1},
        Trouble{{"launch k<<<3, 1>>>() cluster(2)"}, "the grid is no multiple of the cluster", 1},
        Trouble{{"launch k<<<16, 1>>>() cluster(4, 4)"}, "a cluster of more than 8 blocks", 1},
        Trouble{{"launch k<<<1, 1>>>(M * 1000000000)"},
                "argument 1: 10000000000 does not fit int32; i64(…) passes 64 bits",
                1},
        Trouble{{"let A = M * 4611686018427387904", "launch k<<<1, 1>>>(A)"},
                "`M * 4611686018427387904`: the result does not fit 64 bits",
                1},
        Trouble{{"let A = 2", "launch k<<<1 / (M - 10), 1>>>(A)"}, "`1 / (M - 10)`: division by zero", 2},
        Trouble{{"temp t float32[M - 10]", "launch k<<<1, 1>>>(t)"}, "temporary `t`: size `M - 10` is 0", 1},
        Trouble{{"temp t float32[M - 11]", "launch k<<<1, 1>>>(t)"}, "temporary `t`: size `M - 11` is -1", 1},
        Trouble{{"temp t float32[262145]", "launch k<<<1, 1>>>(t)"},
                "temporary `t` of 1048580 bytes: the task allows 1048576 in all",
                1,
                true},
        Trouble{{"temp a float32[200000]", "temp b float32[100000]", "launch k<<<1, 1>>>(a, b)"},
                "temporary `b` of 400000 bytes: the task allows 1048576 in all",
                2,
                true},
        Trouble{{"temp t float64[9223372036854775807, 4]", "launch k<<<1, 1>>>(t)"},
                "temporary `t` does not fit 64 bits",
                1,
                true},
        Trouble{{"for s in 0..1001", "launch k<<<1, 1>>>(s)", "end"}, "more than 1,000 steps", 2},
        Trouble{{"for s in 0..9000000000000000000", "end", "launch k<<<1, 1>>>()"},
                "more than 100,000 statements are evaluated",
                1},
        Trouble{{"if M == 11", "launch k<<<1, 1>>>()", "end"}, "the plan launches nothing at this shape", 1},
        Trouble{{"temp t int8[4]", "fill t 128", "launch k<<<1, 1>>>(t)"}, "fill: `128` is no int8", 2},
        Trouble{{"temp t int32[4]", "fill t 0.5", "launch k<<<1, 1>>>(t)"}, "fill: `0.5` is no int32", 2},
        Trouble{{"temp t int32[4]", "fill t inf", "launch k<<<1, 1>>>(t)"}, "fill: `inf` is no int32", 2},
        Trouble{{"copy out <- ids", "launch k<<<1, 1>>>()"}, "copy: `out` and `ids` differ in type", 1},
        Trouble{{"copy out <- w", "launch k<<<1, 1>>>()"}, "copy: `out` has 1000 elements, `w` has 100", 1},
        Trouble{{"if M > 1", "temp t float32[4]", "end", "if M > 2", "temp t float32[4]", "end",
                 "launch k<<<1, 1>>>()"},
                "temporary `t` is made twice",
                5}));

}  // namespace
}  // namespace warpsmith::task

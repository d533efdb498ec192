// Real candidates, compiled, run in their children and measured.
#include "warpsmith/measure/measurer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "task_folder.h"
#include "torch_flags.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/job.h"
#include "warpsmith/measure/task_check.h"

namespace warpsmith::measure {
namespace {

const std::string kRight = candidate("out[i] = logf(expf(x[i]) + 1.f) * 2.f;");

class MeasurerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    stay_on_one_cpu(0);  // as a measure job does
    shared_ = std::make_unique<Shared>();
    shared_->measurer = std::make_unique<Measurer>(quick_settings());
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static std::filesystem::path compile(const Candidate& made) { return shared_->folder.compile(made); }

  static Measured measure(const std::string& source) {
    const Candidate made = make_plan_candidate("softplus", source, {});
    return shared_->measurer->measure(shared_->folder.task(), made, compile(made));
  }
  static Measurement verdict_of(const std::string& body) { return measure(candidate(body)).measurement; }

  struct Shared {
    TaskFolder folder{"softplus", kSoftplus};
    std::unique_ptr<Measurer> measurer;
  };
  static std::unique_ptr<Shared> shared_;
};

std::unique_ptr<MeasurerTest::Shared> MeasurerTest::shared_;

// Whether a timing came to a score; on a busy host it may be thrown away, but no verdict may be made of that.
void expect_timed(const Measurement& m) {
  EXPECT_TRUE(m.verdict == Verdict::kOk || m.verdict == Verdict::kUnstable)
      << to_string(m.verdict) << ": " << m.detail;
}

TEST_F(MeasurerTest, ARightCandidateIsTimed) {
  const Measured measured = measure(kRight);
  const Measurement& m = measured.measurement;
  expect_timed(m);
  EXPECT_EQ(m.task, "softplus");
  EXPECT_GE(m.rounds, 7);
  EXPECT_EQ(m.rounds % 7, 0);
  EXPECT_EQ(measured.samples.size(), 2u * static_cast<unsigned>(m.rounds));
  EXPECT_GT(m.speedup, 0.01);
  EXPECT_LE(m.speedup_low, m.speedup);
  EXPECT_GE(m.speedup_high, m.speedup);
  EXPECT_GT(m.batch, 1);  // some 50 us a call: several in an interval
  EXPECT_GT(m.error_bound, 0);
  EXPECT_LE(m.max_error, m.error_bound);
  EXPECT_EQ(m.shape, (std::vector<std::pair<std::string, std::int64_t>>{{"M", 64}, {"N", 128}}));
  ASSERT_TRUE(m.device.has_value());
  EXPECT_EQ(m.device->kind, "cpu");
  EXPECT_FALSE(m.device->name.empty());
  EXPECT_FALSE(m.device->sandbox.empty());
  EXPECT_EQ(m.device->extra.at("torch").substr(0, 2), "2.");
  // By its bytes at the speed of the first-level cache, which memory-bound code does not come near.
  EXPECT_EQ(m.roofline_bound, "memory");
  ASSERT_TRUE(roofline_share(m));
  EXPECT_GT(*roofline_share(m), 0);
  EXPECT_LT(*roofline_share(m), 1);
  EXPECT_FALSE(m.gpu_held_s || m.host_bound || m.gpu_before) << "there was no GPU";
}

TEST_F(MeasurerTest, AWrongOneNamesTheElementAndTheShape) {
  const Measurement m = verdict_of("out[i] = logf(expf(x[i]) + 1.f) * 2.f + (i == 3 ? 0.5f : 0.f);");
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput);
  EXPECT_NE(m.detail.find("out[0, 3]: "), std::string::npos) << m.detail;
  EXPECT_NE(m.detail.find("M=3 N=33"), std::string::npos) << m.detail;  // the smallest shape where it shows
  EXPECT_FALSE(m.only_hidden);
  EXPECT_EQ(m.rounds, 0);
}

TEST_F(MeasurerTest, OneThatIsWrongAtAHiddenShapeOnlyIsSaidToBe) {
  const Measurement m = verdict_of("out[i] = N % 32 == 0 ? logf(expf(x[i]) + 1.f) * 2.f : 0.f;");
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput);
  EXPECT_TRUE(m.only_hidden);
  EXPECT_NE(m.detail.find("hidden shape"), std::string::npos) << m.detail;
  EXPECT_NE(m.detail.find("right at the timing shapes"), std::string::npos) << m.detail;
}

TEST_F(MeasurerTest, BeyondTheToleranceIsWrong) {
  // Half the precision of the type: a relative 1e-4.
  EXPECT_EQ(verdict_of("out[i] = logf(expf(x[i]) + 1.f) * 2.0002f;").verdict, Verdict::kWrongOutput);
}

TEST_F(MeasurerTest, RoundingOtherwiseIsRight) {
  expect_timed(verdict_of("float e = expf(-fabsf(x[i])); out[i] = 2.f * (fmaxf(x[i], 0.f) + log1pf(e));"));
}

// Of such a task most answers are all zeros, and the checks' bounds are 0 then. A timed call that has one of
// the few other answers asks for its own.
TEST_F(MeasurerTest, TimedCallsWithRareAnswersHaveBoundsOfTheirOwn) {
  const TaskFolder folder("rare", R"yaml(schema: warpsmith.task/1
title: What is far out
level: 1
split: train
ops: [clamp]
dims: [N]
inputs:
  x: {role: data, dtype: float32, shape: [N], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return torch.relu((x * 0.7 - 2.3) * 1.5)
timing:
  - {N: 256}
hidden:
  - {N: 3}
flops: 4 * N
bytes: 8 * N
)yaml");
  const std::string source =
      "// plan: launch k<<<cdiv(N, 128), 128>>>(x, out, N)\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int N) {\n"
      "  int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < N) out[i] = fmaxf(fmaf(x[i], 1.05f, -3.45f), 0.f);\n}\n";
  Settings settings = quick_settings();
  settings.check_seeds = 1;
  settings.budget_s = 1;
  const Candidate made = make_plan_candidate("rare", source, {});
  const std::filesystem::path binary = folder.compile(made);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    settings.seed = seed;
    expect_timed(Measurer(settings).measure(folder.task(), made, binary).measurement);
  }
}

// A program that leaves the zeros of a triangular matrix unread is right where the task makes them.
TEST_F(MeasurerTest, PreparedInputsAreThoseOfReferenceAndCandidate) {
  const std::string task = R"yaml(schema: warpsmith.task/1
title: Sum of each row of an upper triangular matrix
level: 1
split: train
ops: [row_sum]
dims: [N]
inputs:
  x: {role: data, dtype: float32, shape: [N, N], values: "uniform(0, 1)"}
outputs:
  out: {dtype: float32, shape: [N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return x.sum(1)
timing:
  - {N: 64}
hidden:
  - {N: 3}
distributions:
  - {x: "normal(0, 1)"}
)yaml";
  const std::string source =
      "// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, N)\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int N) {\n"
      "  int m = blockIdx.x * 64 + threadIdx.x;\n"
      "  if (m >= N) return;\n"
      "  float a = 0.f;\n"
      "  for (int n = m; n < N; n++) a += x[m * N + n];\n"
      "  out[m] = a;\n}\n";
  const Candidate made = make_plan_candidate("upper", source, {});
  const TaskFolder prepared(
      "upper", (task + "prepare: |\n  def prepare(x: Tensor) -> Tensor:\n    return x.triu()\n").c_str());
  Measurer measurer(quick_settings());
  expect_timed(measurer.measure(prepared.task(), made, prepared.compile(made)).measurement);
  const TaskFolder plain("upper", task.c_str());
  EXPECT_EQ(measurer.measure(plain.task(), made, plain.compile(made)).measurement.verdict,
            Verdict::kWrongOutput);
}

TEST_F(MeasurerTest, NanAndPoisonAreWrong) {
  EXPECT_EQ(verdict_of("out[i] = x[i] > 1.f ? logf(-1.f) : logf(expf(x[i]) + 1.f) * 2.f;").verdict,
            Verdict::kWrongOutput);
  const Measurement unwritten = verdict_of("if (i % 7 != 6) out[i] = logf(expf(x[i]) + 1.f) * 2.f;");
  EXPECT_EQ(unwritten.verdict, Verdict::kWrongOutput);
  EXPECT_NE(unwritten.detail.find("nan where"), std::string::npos) << unwritten.detail;
}

TEST_F(MeasurerTest, ReadingTheOldOutputIsWrong) {
  EXPECT_EQ(verdict_of("out[i] = out[i] * 0.f + logf(expf(x[i]) + 1.f) * 2.f;").verdict,
            Verdict::kWrongOutput);
}

TEST_F(MeasurerTest, OneThatDiffersFromCallToCallIsNondeterministic) {
  const std::string source =
      "__device__ int calls;\n"
      "// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M, N)\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
      "  int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i == 0) calls = calls + 1;\n"
      "  if (i < M * N) out[i] = logf(expf(x[i]) + 1.f) * 2.f + (calls % 2) * 0.25f;\n"
      "}\n";
  const Measurement m = measure(source).measurement;
  EXPECT_EQ(m.verdict, Verdict::kNondeterministic) << m.detail;
}

TEST_F(MeasurerTest, OneThatReturnsTheLastAnswerAgainIsFound) {
  // Remembers its first answers of each size, and gives them again: right in a benchmark that repeats its
  // inputs.
  const std::string source =
      "// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M, N)\n"
      "__device__ float kept[8192];\n"
      "__device__ int size;\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
      "  int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < M * N) {\n"
      "    if (size != M * N) kept[i] = logf(expf(x[i]) + 1.f) * 2.f;\n"
      "    out[i] = kept[i];\n"
      "    if (i == M * N - 1) size = M * N;\n"
      "  }\n"
      "}\n";
  const Measurement m = measure(source).measurement;
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput) << m.detail;
}

TEST_F(MeasurerTest, OneThatDoesTheWorkOfCallsToComeIsFound) {
  // Keeps the addresses of all calls' operands, and does the work of those in each that is not done yet.
  // (Were it all of it each time, calls would take so long that rows were of one.)
  const std::string source =
      "// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M, N)\n"
      "__device__ const float* xs[128];\n"
      "__device__ float* outs[128];\n"
      "__device__ int known;\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
      "  int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i >= M * N) return;\n"
      "  out[i] = logf(expf(x[i]) + 1.f) * 2.f;\n"
      "  if (M * N < 8192) return;\n"
      "  for (int s = 0; s < known; ++s)\n"
      "    if (__float_as_uint(outs[s][i]) == 0xFFFFFFFFu) outs[s][i] = logf(expf(xs[s][i]) + 1.f) * 2.f;\n"
      "  if (i < 8191) return;\n"
      "  bool seen = false;\n"
      "  for (int s = 0; s < known; ++s) seen = seen || outs[s] == out;\n"
      "  if (!seen && known < 128) { xs[known] = x; outs[known] = out; known = known + 1; }\n"
      "}\n";
  const Measurement m = measure(source).measurement;
  EXPECT_EQ(m.verdict, Verdict::kOutOfBounds) << m.batch << " calls a row";
  EXPECT_EQ(m.detail, kWorkedAhead);
}

TEST_F(MeasurerTest, OneThatKeepsAnswersForCallsToComeIsFound) {
  // As above, but into memory of its own; each call copies what an earlier one has worked out for it.
  const std::string source =
      "// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M, N)\n"
      "__device__ const float* xs[32];\n"
      "__device__ float kept[32][8192];\n"
      "__device__ int known, worked_out;\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
      "  int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i >= M * N) return;\n"
      "  int self = -1;\n"
      "  for (int s = 0; s < known; ++s) if (xs[s] == x) self = s;\n"
      "  if (M * N == 8192 && self > 0 && worked_out) { out[i] = kept[self][i]; return; }\n"
      "  out[i] = logf(expf(x[i]) + 1.f) * 2.f;\n"
      "  if (M * N < 8192) return;\n"
      "  if (self == 0)\n"
      "    for (int s = 0; s < known; ++s) kept[s][i] = logf(expf(xs[s][i]) + 1.f) * 2.f;\n"
      "  if (i < 8191) return;\n"
      "  if (self == 0) worked_out = 1;\n"
      "  if (self < 0 && known < 32) { xs[known] = x; known = known + 1; }\n"
      "}\n";
  const Measurement m = measure(source).measurement;
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput) << m.detail;
}

TEST_F(MeasurerTest, WritingToAnInputIsFound) {
  const Measurement m = verdict_of("out[i] = logf(expf(x[i]) + 1.f) * 2.f; ((float*)x)[i] = 1.f;");
  EXPECT_EQ(m.verdict, Verdict::kInputModified) << m.detail;
}

// What g++ makes of native code, without the toolchain's looks at it: `body` is done once a call.
Measurement measure_native(Measurer& measurer, const TaskFolder& folder, const std::string& body) {
  const Scratch scratch;
  const std::filesystem::path source = scratch / "k.cc", binary = scratch / "k.so";
  write_file_atomic(
      source, "#include \"" WARPSMITH_SOURCE_DIR
              "/include/warpsmith/toolchain/twin_abi.h\"\n"
              "#include <math.h>\n#include <string.h>\n#include <sys/mman.h>\n"
              "static void run(wstw_block*, unsigned long long, unsigned long long, void* const* args) {\n"
              "  float* x = *(float**)args[0]; float* out = *(float**)args[1];\n"
              "  const int n = *(int*)args[2] * *(int*)args[3];\n" +
                  body +
                  "\n}\n"
                  "static const wstw_param params[] = {{kWstwPointer, 8}, {kWstwPointer, 8}, {kWstwInteger, "
                  "4}, {kWstwInteger, 4}};\n"
                  "static const wstw_kernel kernels[] = {{\"k\", \"x,out,M,N\", params, 4, 0, 0, run, "
                  "nullptr}};\n"
                  "extern \"C\" const wstw_module wstw_module_table = {kWstwAbi, 1, 0, 0, kernels, "
                  "nullptr};\n"
                  "static void one(const wstw_ctx*, void* const* args) { run(nullptr, 0, 1, args); }\n"
                  "static const wstw_kernel checked[] = {{\"k\", \"x,out,M,N\", params, 4, 0, 0, nullptr, "
                  "one}};\n"
                  "extern \"C\" const wstw_module wstw_checked_table = {kWstwAbi, 1, 0, 0, checked, "
                  "nullptr};\n");
  const std::string command =
      "c++ -w -shared -fPIC -O1 -o " + binary.string() + " " + source.string() + " -lm";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string plan =
      "// plan: launch k<<<1, 1>>>(x, out, M, N)\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {}\n";
  return measurer.measure(folder.task(), make_plan_candidate("softplus", plan, {}), binary).measurement;
}

TEST_F(MeasurerTest, OneThatPutsEasierValuesInTheInputsPlaceIsFound) {
  // Honest in the checks. Where it is timed (more places for its results than a check has) it makes its
  // inputs writable, and zero, of which the answer is easy.
  const std::string cheat =
      "static float* seen[64]; static int count;\n"
      "bool known = n != 8192;\n"
      "for (int i = 0; i < count; ++i) known = known || seen[i] == out;\n"
      "if (!known && count < 64) seen[count++] = out;\n"
      "if (n == 8192 && count > 2) {\n"
      "  char* from = (char*)((unsigned long)x & ~4095ul); char* to = (char*)(((unsigned long)(x + n) + "
      "4095) & "
      "~4095ul);\n"
      "  PROTECT\n"
      "  memset(x, 0, 4 * n);\n"
      "  for (int i = 0; i < n; ++i) out[i] = 1.3862944f;\n"
      "  return;\n"
      "}\n"
      "for (int i = 0; i < n; ++i) out[i] = logf(expf(x[i]) + 1.f) * 2.f;";
  const auto with = [&](const std::string& protect) {
    std::string body = cheat;
    return measure_native(*shared_->measurer, shared_->folder,
                          body.replace(body.find("PROTECT"), 7, protect));
  };
  const Measurement m = with("mprotect(from, to - from, PROT_READ | PROT_WRITE);");
  EXPECT_EQ(m.verdict, Verdict::kInputModified) << m.detail;
  // Pages of its own in their place: what it calls with is wrong for what it was given.
  const Measurement own =
      with("mmap(from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);");
  EXPECT_EQ(own.verdict, Verdict::kWrongOutput) << own.detail;
}

TEST_F(MeasurerTest, ATimedCallIsHeldAgainstTheValuesThatWereDrawn) {
  const task::Task& task = shared_->folder.task();
  const Candidate made = make_plan_candidate("softplus", kRight, {});
  Diagnostics mistakes;
  const task::LaunchPlan plan = task::LaunchPlan::parse(kRight, task, "kernel.cu", mistakes);
  device::TwinOptions options;
  options.binary = compile(made);
  options.sandbox = process::available_sandbox();
  CandidateProcess process(task, plan, options);
  const Reference reference(task);
  const ValueSource source;
  CandidateArm arm(process, task, reference, source, {1e-4}, 0);
  const task::Dims& dims = task.timing.front();
  ASSERT_EQ(process.prepare(dims, 4).verdict, Verdict::kOk);
  arm.renew(7, 3);
  ASSERT_EQ(arm.run(3).verdict, Verdict::kOk);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(arm.inspect(call).verdict, Verdict::kOk);
  // The right answer for zeros in the place of both.
  std::ranges::fill(process.inputs(1)[0], std::byte{0});
  const std::string output = task.outputs[0].name;
  const std::span<std::byte> bytes = process.session().operand(1, output);
  std::ranges::fill(std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)),
                    1.3862944f);
  const Arm::Run found = arm.inspect(1);
  EXPECT_EQ(found.verdict, Verdict::kInputModified);
  EXPECT_EQ(found.detail, "writes to input `x` in a timed call");
  EXPECT_EQ(arm.inspect(0).verdict, Verdict::kOk);
  arm.renew(8, 3);
  ASSERT_EQ(arm.run(3).verdict, Verdict::kOk);
  process.session().operand(2, output)[3] ^= std::byte{0x80};  // a sign
  EXPECT_EQ(arm.inspect(1).verdict, Verdict::kOk);
  EXPECT_EQ(arm.inspect(2).verdict, Verdict::kWrongOutput);
}

TEST_F(MeasurerTest, ACrashCostsItsVerdictAndNoOthers) {
  const Measurement m = verdict_of("((float*)(long)(i + 8))[0] = 1.f; out[i] = 0.f;");
  EXPECT_EQ(m.verdict, Verdict::kCrash) << m.detail;
  expect_timed(measure(kRight).measurement);
}

TEST_F(MeasurerTest, WritingBehindTheEndIsFound) {
  const Measurement m = verdict_of("out[i] = logf(expf(x[i]) + 1.f) * 2.f; if (i == 0) out[M * N] = 1.f;");
  EXPECT_EQ(m.verdict, Verdict::kOutOfBounds) << m.detail;
}

TEST_F(MeasurerTest, AnEndlessLoopEnds) {
  const Measurement m = verdict_of("volatile float f = x[i]; while (f < 1e30f) f = f * 0.5f; out[i] = f;");
  EXPECT_EQ(m.verdict, Verdict::kTimeout) << m.detail;
  EXPECT_LT(m.seconds, 30);
}

TEST_F(MeasurerTest, APlanThatCannotBeEvaluatedIsALaunchError) {
  const std::string source =
      "// plan: launch k<<<M / (N - 33), 128>>>(x, out, M, N)\n"
      "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {}\n";
  const Measurement m = measure(source).measurement;
  EXPECT_TRUE(m.verdict == Verdict::kLaunchError || m.verdict == Verdict::kWrongOutput) << m.detail;
  EXPECT_NE(m.verdict, Verdict::kOk);
}

TEST_F(MeasurerTest, NullTestsComeOutNearOne) {
  const Measured reference = shared_->measurer->measure_reference_against_itself(shared_->folder.task());
  expect_timed(reference.measurement);
  EXPECT_NEAR(reference.measurement.speedup, 1.0,
              0.3);  // tests/bench/null_test is the measurement; this is its pulse
  const Candidate made = make_plan_candidate("softplus", kRight, {});
  const Measured candidate =
      shared_->measurer->measure_candidate_against_itself(shared_->folder.task(), made, compile(made));
  expect_timed(candidate.measurement);
  EXPECT_NEAR(candidate.measurement.speedup, 1.0, 0.3);
}

TEST_F(MeasurerTest, AShardWritesRecordsAndSamples) {
  Scratch run;
  const std::filesystem::path folder = run / "stages/s/00000000/0/measure";
  make_folders(folder);
  std::string items;
  int number = 0;
  const std::string wide =
      "// plan: launch k<<<1, 2048>>>(x, out)\n"
      "__global__ void k(const float* x, float* out) {}\n";
  const Candidate too_wide =
      make_plan_candidate("softplus", wide, {"dataset", "s", 0, "launch_error/wide.cu", ""});
  const Candidate by_a_model = make_plan_candidate("softplus", wide + "// a model's\n", {});
  for (const Candidate& made :
       {make_plan_candidate("softplus", kRight, {}),
        make_plan_candidate("softplus", candidate("out[i] = 0.f;"), {}), too_wide, by_a_model}) {
    std::filesystem::copy_file(compile(made), run / ("c" + std::to_string(number) + ".so"));
    items +=
        Json{
            {"id", made.id}, {"candidate", to_json(made)}, {"binary", "c" + std::to_string(number++) + ".so"}}
            .dump() +
        "\n";
  }
  // One whose binary is gone: not measured, and the others are.
  const Candidate gone = make_plan_candidate("softplus", candidate("out[i] = 1.f;"), {});
  items += Json{{"id", gone.id}, {"candidate", to_json(gone)}, {"binary", "gone.so"}}.dump() + "\n";
  write_file_atomic(folder / "items.jsonl", items);
  JobFile job;
  job.shards = {{0, 5}};
  job.params = {{"datasets", shared_->folder.datasets().string()},
                {"unsandboxed", true},
                {"budget_s", 0.2},
                {"target", 0.05},
                {"variance_gate", 100}};
  write_file_atomic(folder / "job.json", to_json(job).dump());
  {
    ShardSession shard(folder / "job.json", 0);
    run_shard(shard);
  }
  const ShardRecords records = read_shard_records(folder / "0");
  EXPECT_TRUE(records.ended);
  ASSERT_EQ(records.records.size(), 5u);
  // Messages name a person's own file; a program of a model's by its id.
  const auto detail = [&](const Candidate& c) {
    return measurement_from_json(records.records.at(c.id)).detail;
  };
  EXPECT_TRUE(detail(too_wide).starts_with("launch_error/wide.cu:1: ")) << detail(too_wide);
  EXPECT_TRUE(detail(by_a_model).starts_with(by_a_model.id.substr(0, 8) + "/kernel.cu:1: "))
      << detail(by_a_model);
  int timed = 0;
  for (const auto& [id, record] : records.records) {
    const Measurement m = measurement_from_json(record);
    EXPECT_EQ(m.candidate, id);
    EXPECT_EQ(m.verdict == Verdict::kNotMeasured, id == gone.id);
    if (m.blob.empty()) continue;
    ++timed;
    EXPECT_EQ(m.blob_bytes, static_cast<std::uint64_t>(16 * m.rounds));
    const std::string samples =
        read_blob(records.folder.at(id), {m.blob, m.blob_offset, m.blob_bytes, m.blob_crc});
    EXPECT_EQ(samples.size(), m.blob_bytes);
  }
  EXPECT_EQ(timed, 1);
}

// A folder with a strict task and one at torch's default, and a candidate for each.
class MathTest : public MeasurerTest {
 protected:
  static Measurement measure(Measurer& measurer, const TaskFolder& folder) {
    const Candidate made = make_plan_candidate(folder.task().id, kRight, {});
    return measurer.measure(folder.task(), made, folder.compile(made)).measurement;
  }
  const TaskFolder strict_{"softplus", kSoftplus};
  const TaskFolder loose_{"loose", (std::string(kSoftplus) + "math: torch_default\n").c_str()};
};

TEST_F(MathTest, TorchsFlagsFollowTheTask) {
  for (const TaskFolder* folder : {&strict_, &loose_, &strict_}) {
    const bool strict = folder == &strict_;
    const Measurement m = measure(*shared_->measurer, *folder);
    expect_timed(m);
    EXPECT_EQ(m.math, strict ? "strict" : "torch_default");
    EXPECT_EQ(is_strict(), strict);
    EXPECT_EQ(is_torch_default(), !strict);
  }
}

TEST_F(MathTest, AWorkflowMayAllowItToAllTasks) {
  Settings settings = quick_settings();
  settings.math = "torch_default";
  settings.timing = false;
  Measurer measurer(settings);
  for (const TaskFolder* folder : {&strict_, &loose_}) {
    const Measurement m = measure(measurer, *folder);
    EXPECT_EQ(m.verdict, Verdict::kOk) << m.detail;
    EXPECT_EQ(m.math, "torch_default");
    EXPECT_TRUE(is_torch_default());
  }
}

TEST_F(MathTest, TaskChecksFollowTheTaskToo) {
  for (const TaskFolder* checked : {&strict_, &loose_, &strict_}) {
    Scratch run;
    const std::filesystem::path folder = run / "stages/s/00000000/0/measure";
    make_folders(folder);
    write_file_atomic(folder / "items.jsonl", Json{{"id", checked->task().id}}.dump() + "\n");
    JobFile job;
    job.shards = {{0, 1}};
    job.params = {{"datasets", checked->datasets().string()}, {"check_tasks", true}};
    write_file_atomic(folder / "job.json", to_json(job).dump());
    {
      ShardSession shard(folder / "job.json", 0);
      run_task_checks(shard);
    }
    const ShardRecords records = read_shard_records(folder / "0");
    ASSERT_EQ(records.records.size(), 1u);
    EXPECT_FALSE(records.records.begin()->second.contains("error")) << records.records.begin()->second;
    EXPECT_EQ(is_strict(), checked == &strict_);
  }
}

TEST(MeasureSettings, HowWellAScoreIsKnownHangsOnTheDevice) {
  EXPECT_EQ(settings_from_json({{"device_kind", "cpu"}}, 0).protocol.target, 0.01);
  EXPECT_EQ(settings_from_json({{"device_kind", "H100"}, {"target", 0}}, 0).protocol.target, 0.005);
  EXPECT_EQ(settings_from_json({{"device_kind", "H100"}, {"target", 0.03}}, 0).protocol.target, 0.03);
}

TEST(MeasureSettings, MistakesNameTheParameter) {
  const auto message = [](const Json& params) -> std::string {
    try {
      settings_from_json(params, 1);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(Json::object()), "");
  EXPECT_EQ(message({{"baseline", "compile"}}),
            "params: baseline `compile`: only `eager` is measured on the CPU");
  EXPECT_EQ(message({{"baselines", {"eager", "cudnn"}}}),
            "params: baselines: `cudnn`: only `eager` is measured on the CPU");
  EXPECT_EQ(message({{"device_kind", "H100"}}), "");
  EXPECT_EQ(message({{"device_kind", "H100"}, {"baseline", "compile"}}),
            "params: baseline `compile` is not known");
  EXPECT_EQ(message({{"device_kind", "H100"}, {"baselines", {"jit"}}}),
            "params: baselines: `jit` is not known");
  EXPECT_EQ(message({{"threads", 0}}), "params: threads must be at least 1");
  EXPECT_EQ(message({{"buckets", 1}}), "params: buckets must be 3 to 31");
  EXPECT_EQ(message({{"target", 1}}), "params: target must lie between 0 and 1");
  EXPECT_NE(message({{"budget_s", "long"}}).find("params: key `budget_s`"), std::string::npos);
}

TEST(MeasureSettings, TheScoresBaselineIsAmongThoseThatAreTimed) {
  const Settings s = settings_from_json(
      {{"device_kind", "H100"}, {"baseline", "torch_compile"}, {"baselines", {"eager", "cuda_graph"}}}, 1);
  EXPECT_EQ(s.baselines, (std::vector<std::string>{"eager", "cuda_graph", "torch_compile"}));
  EXPECT_TRUE(settings_from_json({{"device_kind", "H100"}}, 1).baselines.empty());
  EXPECT_TRUE(
      settings_from_json({{"baselines", {"eager"}}}, 1).baselines.empty());  // on the CPU it needs no row
}

}  // namespace
}  // namespace warpsmith::measure

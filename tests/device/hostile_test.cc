// Candidates that misbehave: each gets its verdict in bounded time, and a neighbour that runs beside it its
// own.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <thread>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

Case with_body(const std::string& body, std::size_t n = 100) {
  Case c;
  c.source =
      "// plan: launch k<<<1, 32>>>(x, out, N)\n__global__ void k(const float* x, float* out, int N) {\n" +
      body + "\n}\n";
  c.inputs["x"] = tensor(std::vector<float>(n, 1.f));
  c.outputs["out"] = tensor(std::vector<float>(n));
  c.dims["N"] = static_cast<std::int64_t>(n);
  c.call_timeout_s = 2;
  return c;
}

void expect_verdict(const Case& c, Verdict verdict, const std::string& part_of_detail = "") {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_case(c);
  EXPECT_EQ(outcome.verdict, verdict) << to_string(outcome.verdict) << ": " << outcome.detail << "\n"
                                      << c.source;
  EXPECT_NE(outcome.detail.find(part_of_detail), std::string::npos) << outcome.detail;
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 30);
}

TEST(Hostile, EndlessLoop) {
  expect_verdict(with_body("volatile int go = 1; while (go) {}"), Verdict::kTimeout);
  expect_verdict(with_body("__syncthreads(); volatile int go = 1; while (go) {}"), Verdict::kTimeout);
}

TEST(Hostile, OneElementPastEitherEndOfTheOutput) {
  // Sizes at which the data ends at the guard page, at which it begins at a page, and others.
  for (const std::size_t n : {1u, 63u, 64u, 100u, 1000u, 1024u, 4096u, 5000u}) {
    expect_verdict(with_body("if (threadIdx.x == 0) out[N] = 1.f;", n), Verdict::kOutOfBounds, "`out`");
    expect_verdict(with_body("if (threadIdx.x == 0) out[-1] = 1.f;", n), Verdict::kOutOfBounds, "`out`");
  }
}

TEST(Hostile, OneElementPastEitherEndOfATemporary) {
  for (const char* index : {"N", "-1"}) {
    Case c = with_body("");
    c.source = std::string(
                   "// plan: temp t float32[N]\n// plan: launch k<<<1, 1>>>(t, N)\n__global__ void k(float* "
                   "t, int N) { t[") +
               index + "] = 1.f; }\n";
    expect_verdict(c, Verdict::kOutOfBounds, "`t`");
  }
}

TEST(Hostile, FarOutside) {
  expect_verdict(with_body("out[(long)N * 1000000 + threadIdx.x] = 1.f;"), Verdict::kOutOfBounds);
  expect_verdict(with_body("out[-100000 - (int)threadIdx.x] = 1.f;"), Verdict::kOutOfBounds);
}

TEST(Hostile, WritesToAnInput) {
  expect_verdict(with_body("((float*)x)[threadIdx.x] = 0.f;"), Verdict::kInputModified, "`x`");
  expect_verdict(with_body("if (threadIdx.x == 0) ((float*)x)[N] = 0.f;"), Verdict::kOutOfBounds, "`x`");
  expect_verdict(with_body("if (threadIdx.x == 0) ((float*)x)[-1] = 0.f;"), Verdict::kOutOfBounds, "`x`");
}

TEST(Hostile, SharedMemoryOverrun) {
  Case c =
      with_body("extern __shared__ float s[]; s[threadIdx.x + 1] = 1.f; out[threadIdx.x] = s[threadIdx.x];");
  c.source = "// plan: launch k<<<1, 32, 128>>>(x, out, N)\n" + c.source.substr(c.source.find("__global__"));
  expect_verdict(c, Verdict::kOutOfBounds, "shared memory");
}

TEST(Hostile, NullPointerAndWildPointer) {
  expect_verdict(with_body("float* p = nullptr; p[threadIdx.x] = x[0];"), Verdict::kCrash, "null pointer");
  expect_verdict(with_body("((volatile float*)0x7e0000000000ull)[0] = x[0];"), Verdict::kCrash);
}

TEST(Hostile, StackOverflow) {
  const std::string recursion = R"(// plan: launch k<<<1, 1>>>(x, out, N)
__device__ __noinline__ float deep(float v, int n) {
  volatile float big[256];
  big[n & 255] = v;
  return n == 0 ? v : deep(big[n & 255] + 1.f, n + 1) + big[(n + 1) & 255];
}
)";
  Case c = with_body("");
  c.source = recursion + "__global__ void k(const float* x, float* out, int N) { out[0] = deep(x[0], 1); }\n";
  expect_verdict(c, Verdict::kCrash, "stack overflow");
  // On a fiber's stack.
  c.source = recursion +
             "__global__ void k(const float* x, float* out, int N) { __syncthreads(); out[0] = deep(x[0], "
             "1); __syncwarp(); }\n";
  expect_verdict(c, Verdict::kCrash);
  // 160 KB at once: over the end of a fiber's stack, and over its guard page.
  expect_verdict(
      with_body("float v[40000]; for (int j = 0; j < 40000; ++j) v[j] = x[j % N]; __syncthreads(); "
                "out[0] = v[threadIdx.x] + v[8191 - threadIdx.x];"),
      Verdict::kCrash, "stack overflow");
}

TEST(Hostile, DivisionByZero) {
  expect_verdict(with_body("out[threadIdx.x] = (float)(N / ((int)x[0] - 1));"), Verdict::kCrash, "division");
}

TEST(Hostile, TrapAndAssert) {
  expect_verdict(with_body("if (x[0] > 0.f) __trap();"), Verdict::kCrash, "__trap");
  expect_verdict(with_body("assert(x[0] < 0.f); out[0] = 1.f;"), Verdict::kCrash, "assert");
}

TEST(Hostile, MisalignedVectors) {
  expect_verdict(with_body("out[threadIdx.x] = ((const float4*)(x + 1))[0].x;"), Verdict::kCrash,
                 "misaligned");
  expect_verdict(with_body("*(float4*)&out[1] = make_float4(1, 2, 3, 4);"), Verdict::kCrash, "misaligned");
  expect_verdict(with_body("*reinterpret_cast<float2*>(out + 1) = make_float2(1, 2);"), Verdict::kCrash,
                 "misaligned");
  expect_verdict(with_body("out[0] = reinterpret_cast<const float4&>(x[3]).y;"), Verdict::kCrash,
                 "misaligned");
  // A test for alignment that comes after the cast still works.
  expect_verdict(with_body("const float4* v = (const float4*)(x + 1); if ((unsigned long long)v % 16 == 0) "
                           "out[0] = v[0].x; else out[0] = x[1];"),
                 Verdict::kOk);
  // The operand itself lies askew, and the kernel's parameter is a vector pointer.
  Case c;
  c.source =
      "// plan: launch k<<<1, 1>>>(x, out)\n__global__ void k(const float4* x, float* out) { float4 v = "
      "x[0]; out[0] = v.x + v.w; }\n";
  c.inputs["x"] = tensor(std::vector<float>(8, 1.f));
  c.outputs["out"] = tensor(std::vector<float>(1));
  expect_verdict(c, Verdict::kOk);
  c.misalignment["x"] = 4;
  expect_verdict(c, Verdict::kCrash, "misaligned");
}

TEST(Hostile, TerabyteOfTemporaries) {
  Case c = with_body("");
  c.source =
      "// plan: temp t int8[1099511627776]\n// plan: launch k<<<1, 1>>>(t)\n__global__ void k(signed char* "
      "t) { t[0] = 1; }\n";
  expect_verdict(c, Verdict::kOutOfMemory);
  expect_verdict(with_body("static char big[1ull << 40]; big[threadIdx.x] = 1; out[0] = big[(int)x[0]];"),
                 Verdict::kCompileError);
}

TEST(Hostile, HostFunctionsAreRefusedByTheCompiler) {
  for (const char* call : {"fork()", "getpid()", "system(0)", "clock_gettime(0)", "mmap(0)"}) {
    const std::string name(call, std::string(call).find('('));
    Case c = with_body("");
    c.source = "// plan: launch k<<<1, 1>>>(out)\nextern \"C\" __device__ int " + name +
               "(...);\n__global__ void k(float* out) { out[0] = " + call + "; }\n";
    expect_verdict(c, Verdict::kCompileError, name);
  }
}

// What gets past the toolchain meets the sandbox: shared objects made by hand.
class NativeCode : public ::testing::Test {
 protected:
  std::filesystem::path build(const std::string& body) {
    const std::filesystem::path folder = test_cache() / "native";
    std::filesystem::create_directories(folder);
    static int count = 0;
    const std::filesystem::path source = folder / (std::to_string(++count) + ".cc"),
                                binary = folder / (std::to_string(count) + ".so");
    std::ofstream(source)
        << "#include \"" WARPSMITH_SOURCE_DIR "/include/warpsmith/toolchain/twin_abi.h\"\n"
        << "#include <fcntl.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
           "<sys/mman.h>\n#include <sys/socket.h>\n#include <unistd.h>\n"
        << "#include <time.h>\n#include \"" WARPSMITH_SOURCE_DIR "/src/device/twin_protocol.h\"\n"
        << "using namespace warpsmith::device;\n"
        // What it shares with its parent, found among its descriptors.
        << "static Control* control() {\n"
           "  for (int f = 3; f < 64; ++f) {\n"
           "    void* p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);\n"
           "    if (p != MAP_FAILED && ((Control*)p)->protocol == kProtocol) return (Control*)p;\n"
           "  }\n"
           "  return nullptr;\n"
           "}\n"
           "static void say(Answer a) {\n"
           "  control()->answer = (std::uint32_t)a;\n"
           "  control()->response = control()->request.load();\n"
           "}\n"
           "static void idle(double s) { timespec t{(time_t)s, (long)(1e9 * (s - (time_t)s))}; nanosleep(&t, "
           "0); }\n"
        << "static void run(wstw_block*, unsigned long long, unsigned long long, void* const* args) { float* "
           "out = *(float**)args[1]; const float* x = *(const float**)args[0]; (void)out; (void)x; "
        << body << " }\n"
        << "static const wstw_param params[] = {{kWstwPointer, 8}, {kWstwPointer, 8}, {kWstwInteger, 4}};\n"
        << "static const wstw_kernel kernels[] = {{\"k\", \"x,out,N\", params, 3, 0, 0, run, nullptr}};\n"
        << "extern \"C\" const wstw_module wstw_module_table = {kWstwAbi, 1, 0, 0, kernels, nullptr};\n";
    const std::string command =
        "c++ -w -std=c++20 -shared -fPIC -O1 -o " + binary.string() + " " + source.string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    return binary;
  }
  void expect(const std::string& body, Verdict verdict) {
    const Outcome outcome = run_binary(with_body(""), build(body));
    EXPECT_EQ(outcome.verdict, verdict) << to_string(outcome.verdict) << ": " << outcome.detail << "\n"
                                        << body;
  }
};

// One whose parent is the test: 100 floats each of `x`, all 1, and `out`.
struct Native {
  explicit Native(const std::filesystem::path& binary, int sets = 1) : session(options(binary)) {
    task::ConcretePlan plan;
    task::ConcreteStep step;
    step.kernel = "k";
    step.args = {pointer("x"), pointer("out"), {}};
    step.args.back().kind = task::ArgKind::kI32;
    plan.steps.push_back(step);
    prepare = [this, plan, sets] {
      const TwinRun run = session.prepare(plan, {{"x", 400, false}, {"out", 400, true}}, sets);
      if (run.verdict == Verdict::kOk)
        for (int set = 0; set < sets; ++set) std::ranges::fill(floats(set, "x"), 1.f);
      session.poison(0, run.verdict == Verdict::kOk ? sets : 0);
      return run;
    };
    EXPECT_EQ(prepare().verdict, Verdict::kOk);
  }
  std::span<float> floats(int set, const char* name) {
    const auto bytes = session.operand(set, name);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  static TwinOptions options(const std::filesystem::path& binary) {
    TwinOptions o;
    o.binary = binary;
    o.call_timeout_s = 0.5;
    o.sandbox = process::available_sandbox();
    return o;
  }
  static task::ConcreteArg pointer(const char* name) {
    task::ConcreteArg a;
    a.kind = task::ArgKind::kPointer;
    a.tensor = name;
    return a;
  }

  TwinSession session;
  std::function<TwinRun()> prepare;
};

bool all_are(std::span<const float> values, float value) {
  return std::ranges::all_of(values, [&](float v) { return v == value; });
}

TEST_F(NativeCode, InputsCannotBeMadeWritable) {
  // It asks for the right, and where it is refused goes on without.
  Native polite(
      build("char* page = (char*)((unsigned long)x & ~4095ul);\n"
            "out[0] = mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0 ? 2 : 1;\n"
            "if (out[0] == 2) ((float*)x)[3] = 7;"));
  EXPECT_EQ(polite.session.run(0, 1).verdict, Verdict::kOk);
  EXPECT_EQ(polite.floats(0, "out")[0], 1.f);
  EXPECT_TRUE(all_are(polite.floats(0, "x"), 1.f));
  expect(
      "char* page = (char*)((unsigned long)x & ~4095ul); mprotect(page, 4096, PROT_READ | PROT_WRITE); "
      "*(float*)x = 7;",
      Verdict::kInputModified);
}

TEST_F(NativeCode, InputsCannotBeReachedByAnotherWay) {
  // By every descriptor, at every place: written, mapped, opened anew; holes; pages of its own in their
  // place.
  const char* const ways[] = {
      "for (long at = start; at < size; at += 4096) pwrite(f, junk, 4096, at);",
      "char* p = (char*)mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);\n"
      "if (p != MAP_FAILED) for (long at = start; at < size; at += 4096) memset(p + at, 7, 4096);",
      "char* p = (char*)mmap(0, size, PROT_READ, MAP_SHARED, f, 0);\n"
      "if (p != MAP_FAILED && mprotect(p, size, PROT_READ | PROT_WRITE) == 0)\n"
      "  for (long at = start; at < size; at += 4096) memset(p + at, 7, 4096);",
      "char* p = (char*)mmap(0, size, PROT_READ, MAP_SHARED, f, 0);\n"
      "if (p != MAP_FAILED) madvise(p + start, size - start, MADV_REMOVE);",
      "char* page = (char*)((unsigned long)x & ~4095ul);\n"
      "if (mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == "
      "page)\n"
      "  *(float*)x = 7;",
  };
  for (const char* way : ways) {
    Native native(
        build(std::string("static char junk[4096]; memset(junk, 7, 4096);\n"
                          "for (int f = 3; f < 64; ++f) { long size = lseek(f, 0, SEEK_END); "
                          "const long start = kControlBytes + kPlanBytes; if (size <= start) continue;\n") +
              way + "}"));
    native.session.run(0, 1);  // whatever comes of it
    EXPECT_TRUE(all_are(native.floats(0, "x"), 1.f)) << way;
  }
  expect(
      "char name[] = \"/proc/self/fd/ \"; for (int f = 3; f < 10; ++f) { name[14] = '0' + f; open(name, "
      "O_RDWR); }",
      Verdict::kSandboxViolation);
  expect("open(\"/proc/self/mem\", O_RDWR);", Verdict::kSandboxViolation);
}

TEST_F(NativeCode, NothingComesBehindAnAnswer) {
  const std::filesystem::path binary = build(
      "volatile unsigned* count = (unsigned*)out; *count = 1; say(Answer::kDone); for (;;) *count = *count + "
      "1;");
  for (const bool held : {false, true}) {
    Native native(binary);
    ASSERT_EQ((held ? native.session.run_and_hold(0, 1) : native.session.run(0, 1)).verdict, Verdict::kOk);
    const auto count = [&] { return std::bit_cast<std::uint32_t>(native.floats(0, "out")[0]); };
    const std::uint32_t first = count();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(count() == first, held);
  }
}

TEST_F(NativeCode, OneThatWasHeldGoesOn) {
  Native native(build("static int calls; out[0] = ++calls;"), 2);
  for (float call = 1; call < 20; ++call) {
    ASSERT_EQ(native.session.run_and_hold(0, 1).verdict, Verdict::kOk);
    EXPECT_EQ(native.floats(0, "out")[0], call);
  }
  ASSERT_EQ(native.prepare().verdict, Verdict::kOk);
  ASSERT_EQ(native.session.run(1, 1).verdict, Verdict::kOk);
  EXPECT_EQ(native.floats(1, "out")[0], 20);
}

TEST_F(NativeCode, WhoLoopsBehindAnAnswerCostsTheTimeOfACall) {
  for (const bool again : {false, true}) {
    Native native(build("say(Answer::kDone); for (volatile int go = 1; go;) {}"));
    ASSERT_EQ(native.session.run(0, 1).verdict, Verdict::kOk);
    const auto start = std::chrono::steady_clock::now();
    const TwinRun next = again ? native.prepare() : native.session.run(0, 1);
    EXPECT_EQ(next.verdict, Verdict::kTimeout) << next.detail;
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10);
  }
}

TEST_F(NativeCode, WhatItSaysIsPrintable) {
  Native native(
      build("strcpy(control()->message, \"\\033]0;title\\a no\\r\\n\\23331m \\303\\244\\177\");"
            "say(Answer::kLaunchError); idle(60);"));
  const TwinRun run = native.session.run(0, 1);
  EXPECT_EQ(run.verdict, Verdict::kLaunchError);
  EXPECT_EQ(run.detail, " ]0;title  no  ?31m ? ");
}

TEST_F(NativeCode, NumbersThatItSaysAreNoAddresses) {
  // A fault that never was, as far from the operands as numbers go.
  for (const char* address : {"~0ull", "1ull << 63", "(1ull << 63) - 1", "1 << 20"})
    for (const char* base : {"0", "1", "~0ull", "1ull << 63"}) {
      Native native(build(std::string("Control* c = control(); c->signal = SIGSEGV; c->code = 1; c->region = "
                                      "Region::kUnknown; c->address = ") +
                          address + "; c->base = " + base + "; say(Answer::kFault); idle(60);"));
      const TwinRun run = native.session.run(0, 1);
      EXPECT_TRUE(run.verdict == Verdict::kCrash || run.verdict == Verdict::kOutOfBounds) << run.detail;
    }
}

TEST_F(NativeCode, SignalsByWayOfADescriptor) {
  expect("fcntl(1, F_SETOWN, getppid());", Verdict::kSandboxViolation);
  expect("fcntl(1, 10 /* F_SETSIG */, SIGKILL);", Verdict::kSandboxViolation);
}

TEST_F(NativeCode, ForkBomb) { expect("for (;;) fork();", Verdict::kSandboxViolation); }
TEST_F(NativeCode, Exec) { expect("execl(\"/bin/true\", \"true\", (char*)0);", Verdict::kSandboxViolation); }
TEST_F(NativeCode, Socket) { expect("socket(AF_INET, SOCK_STREAM, 0);", Verdict::kSandboxViolation); }
TEST_F(NativeCode, WriteOutside) {
  const std::string path = (test_cache() / "written").string();
  expect("int f = open(\"" + path + "\", O_WRONLY | O_CREAT, 0644); write(f, \"x\", 1);",
         Verdict::kSandboxViolation);
  EXPECT_FALSE(std::filesystem::exists(path));
}
TEST_F(NativeCode, KillsItsParent) { expect("kill(getppid(), SIGKILL);", Verdict::kSandboxViolation); }
TEST_F(NativeCode, Abort) { expect("abort();", Verdict::kCrash); }
TEST_F(NativeCode, Exit) { expect("exit(0);", Verdict::kCrash); }
TEST_F(NativeCode, Terabyte) {
  expect(
      "char* p = (char*)mmap(0, 1ull << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); "
      "p[0] = 1; out[0] = p[0];",
      Verdict::kCrash);
}
TEST_F(NativeCode, HonestCodeRuns) { expect("out[0] = 1.f;", Verdict::kOk); }

TEST(Hostile, NeighboursAreNotAffected) {
  Case good = with_body("for (int i = threadIdx.x; i < N; i += 32) out[i] = x[i] + 1.f;");
  const toolchain::CompileResult compiled = compile(good);
  ASSERT_EQ(compiled.verdict, Verdict::kOk) << compiled.log;
  for (int i = 0; i < 3; ++i) {
    expect_verdict(with_body("out[N + threadIdx.x] = 1.f;"), Verdict::kOutOfBounds);
    const Outcome outcome = run_binary(good, compiled.binary);
    ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
    EXPECT_EQ(values<float>(outcome.outputs.at("out")), std::vector<float>(100, 2.f));
  }
}

}  // namespace
}  // namespace warpsmith::device

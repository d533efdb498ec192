// Candidates of tier `extension` and the process that they run in, host memory standing in for the GPU's: the
// protocol, where results come to lie, and what the sandbox does about host code that means no good. Compiled
// by nvcc, as real ones are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "operands_in_memory.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/device/extension_session.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith::device {
namespace {

using ::testing::HasSubstr;

// What every candidate here is wrapped in. Host memory: kernels are loops.
constexpr const char* kHead =
    "#include <torch/extension.h>\n#include <cstdlib>\n"
    "static void twice(const torch::Tensor& x, torch::Tensor& o) { for (int64_t i = 0; i < x.numel(); ++i) "
    "o.data_ptr<float>()[i] = 2 * "
    "x.data_ptr<float>()[i]; }\n";
constexpr const char* kHonest = "auto o = torch::empty_like(x); twice(x, o); return o;";

class ExtensionChild : public OperandsInMemory {
 protected:
  static void SetUpTestSuite() {
    cache_ = fs::temp_directory_path() / ("warpsmith-extension-child-" + std::to_string(::getpid()));
  }
  static void TearDownTestSuite() { fs::remove_all(cache_); }
  void SetUp() override {
    if (const std::string lacks = toolchain::extension_toolchain_lacks(); !lacks.empty())
      GTEST_SKIP() << lacks;
    map();
    options_.program = fs::path(WARPSMITH_BINARY_DIR) / "tests/extension_fake_child";
    options_.sandbox = process::available_sandbox();
    options_.call_timeout_s = 2;
    options_.first_call_s = 0;
  }
  // Of .cpp: g++ alone is asked.
  fs::path compile(const std::string& text) {
    Candidate c;
    c.task = "double";
    c.tier = Tier::kExtension;
    c.files = {{"main.cpp", text}};
    if (text.find("control_block.h") != std::string::npos)
      c.files.push_back({"control_block.h",
                         read_file(WARPSMITH_SOURCE_DIR "/tests/hacks/extension/shared/control_block.h")});
    c.id = candidate_id(c);
    toolchain::CompileOptions options;
    options.cache = cache_;
    options.timeout_s = 100;
    options.unsandboxed = true;
    task::Task task;
    task.id = "double";
    const toolchain::CompileResult made = toolchain::compile_extension(c, task, {8, 0, 0}, options);
    EXPECT_EQ(made.verdict, Verdict::kOk) << made.log;
    return made.binary;
  }
  fs::path forward(const std::string& body, const std::string& before = "") {
    return compile(std::string(kHead) + before + "torch::Tensor forward(torch::Tensor x) {\n" + body +
                   "\n}\n");
  }

  ExtensionRun whole(const fs::path& binary) {
    options_.binary = binary;
    return OperandsInMemory::whole(layout());
  }
  ExtensionRun tried(const std::string& body, const std::string& before = "") {
    return whole(forward(body, before));
  }

  static fs::path cache_;
};
fs::path ExtensionChild::cache_;

// On one processor, in turns with this thread.
TEST_F(ExtensionChild, StaysOnTheProcessorThatItIsGiven) {
  options_.cpu = process::allowed_cpus().back();
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  EXPECT_TRUE(right(0) && right(1));
  const ExtensionRun run = session_->time(0, 4, [] {});
  ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_GT(run.elapsed_ns, 0);
  EXPECT_FALSE(session_->moved());
}

TEST_F(ExtensionChild, OneThatMovesToAnotherProcessorIsSeen) {
  if (process::allowed_cpus().size() < 2) GTEST_SKIP() << "one processor";
  options_.cpu = process::allowed_cpus().back();
  const std::string moves =
      "cpu_set_t all; CPU_ZERO(&all); for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all); "
      "sched_setaffinity(0, sizeof all, &all);";
  ASSERT_EQ(tried(moves + kHonest, "#include <thread>\n").verdict, Verdict::kOk);
  EXPECT_TRUE(session_->moved());
}

TEST_F(ExtensionChild, RunsAndTimes) {
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  EXPECT_TRUE(right(0) && right(1));
  EXPECT_FALSE(right(2));
  for (int round = 0; round < 3; ++round) {
    renew(static_cast<float>(round) + 5);
    int turns = 0;
    const ExtensionRun run = session_->time(0, 4, [&] { ++turns; });
    ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
    EXPECT_EQ(turns, 1);
    for (int set = 0; set < kSets; ++set) EXPECT_TRUE(right(set)) << set;
    EXPECT_GT(run.elapsed_ns, 0);
    EXPECT_GT(run.event_ns, 0);
    EXPECT_LE(run.event_ns, run.elapsed_ns);
  }
  EXPECT_GT(session_->threads_before(), 0);
  EXPECT_EQ(session_->threads(), session_->threads_before());
}

TEST_F(ExtensionChild, TellsTheKernelsOfACall) {
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  renew(5);
  std::vector<ExtensionKernel> kernels;
  ASSERT_EQ(session_->trace(1, &kernels).verdict, Verdict::kOk);
  EXPECT_TRUE(right(1));
  ASSERT_GT(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "_Z1kPKfPfi");
  EXPECT_EQ(kernels[0].ns, 700);
  EXPECT_EQ(kernels[1].name, "sm90_xmma_gemm_f32f32");
  EXPECT_EQ(kernels.back().name, "many");  // whole lines, as many as there is room for
  EXPECT_LT(kernels.size(), 20'000u);
  // It can be called behind that.
  EXPECT_EQ(session_->run(0, 1).verdict, Verdict::kOk);
  EXPECT_THROW(session_->trace(kSets + 9, &kernels), Error);
}

TEST_F(ExtensionChild, OneThatThrowsTellsNoKernels) {
  ASSERT_EQ(tried("static int calls = 0; if (++calls > 2) throw std::runtime_error(\"no more\");" +
                      std::string(kHonest),
                  "#include <stdexcept>\n")
                .verdict,
            Verdict::kOk);
  std::vector<ExtensionKernel> kernels = {{"before", 1}};
  const ExtensionRun run = session_->trace(0, &kernels);
  EXPECT_EQ(run.verdict, Verdict::kLaunchError);
  EXPECT_THAT(run.detail, HasSubstr("no more"));
  EXPECT_TRUE(kernels.empty());
}

// There may be no room for operands of an untimed call.
TEST_F(ExtensionChild, TheUntimedCallTakesTheRowsOperandsWhereThereAreNoOthers) {
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  for (const int calls : {4, 5}) {
    renew(7);
    bool spare = false, own = false;
    const auto look = [&] {
      spare = right(4);
      own = right(0);
      renew(8);
    };
    ASSERT_EQ(session_->time(0, calls, look).verdict, Verdict::kOk);
    EXPECT_EQ(spare, calls == 4);
    EXPECT_EQ(own, calls == 5);
    for (int set = 0; set < calls; ++set) EXPECT_TRUE(right(set)) << set;
  }
}

TEST_F(ExtensionChild, ForgetsOperandsAndGetsOthers) {
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  ASSERT_EQ(session_->forget().verdict, Verdict::kOk);
  EXPECT_THROW((void)session_->run(0, 1), Error);
  ASSERT_EQ(session_->forget().verdict, Verdict::kOk) << "there is nothing any more";
  ASSERT_EQ(session_->prepare(layout(), share()).verdict, Verdict::kOk);
  renew(2);
  ASSERT_EQ(session_->run(0, 2).verdict, Verdict::kOk);
  EXPECT_TRUE(right(0) && right(1));
}

// It says itself that it is ready, waits for the row's values in its untimed call, and works there: what that
// takes is told.
TEST_F(ExtensionChild, WorkBeforeTheClockIsSeen) {
  const std::string works = R"(
  static int calls = 0;
  volatile Control* c = control();
  if (c != nullptr && ++calls == 3) {
    c->ready = c->request;
    while (c->arm != c->request) {}
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200)) {}
  }
)";
  ASSERT_EQ(tried(kHonest).verdict, Verdict::kOk);
  EXPECT_LT(session_->time(0, 4, [] {}).arm_ns, 100'000'000);
  ASSERT_EQ(tried(works + kHonest, "#include <chrono>\n#include \"control_block.h\"\n").verdict,
            Verdict::kOk);  // two calls
  const ExtensionRun run = session_->time(0, 4, [] {});
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_GE(run.arm_ns, 190'000'000);
  EXPECT_LT(run.elapsed_ns, 150'000'000);
}

TEST_F(ExtensionChild, ARowCanPause) {
  const char* slow =
      "const auto begin = std::chrono::steady_clock::now(); "
      "while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100)) {} ";
  ASSERT_EQ(tried(std::string(slow) + kHonest, "#include <chrono>\n").verdict, Verdict::kOk);
  pause_in_a_row();
}

TEST_F(ExtensionChild, WhoTakesTheWordBackIsSeen) {
  const std::string slow =
      "const auto begin = std::chrono::steady_clock::now(); "
      "while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200)) {} ";
  ASSERT_EQ(tried(slow + "if (auto* c = control()) c->stop = 0; " + kHonest,
                  "#include <chrono>\n#include \"control_block.h\"\n")
                .verdict,
            Verdict::kOk);
  const ExtensionRun run = session_->time(0, 4, [] {}, {0.02, 0, [] { ADD_FAILURE() << "nobody waits"; }});
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_TRUE(run.did_not_wait);
}

TEST_F(ExtensionChild, WithoutACandidateItTimesNothing) {
  session_ = std::make_unique<ExtensionSession>(options_);
  ASSERT_EQ(session_->prepare(layout(), share()).verdict, Verdict::kOk);
  const ExtensionRun run = session_->time(0, 4, [] {});
  EXPECT_EQ(run.verdict, Verdict::kOk);
  EXPECT_GT(run.elapsed_ns, 0);
}

// A tensor that is kept, one that comes second, a view: all end where they belong, in every call.
TEST_F(ExtensionChild, ResultsComeToLieWhereTheyBelong) {
  const char* bodies[] = {
      "static torch::Tensor o = torch::empty_like(x); twice(x, o); return o;",
      "auto t = torch::empty_like(x), o = torch::empty_like(x); twice(x, t); o.copy_(t); t.zero_(); return "
      "o;",
      "auto t = torch::zeros({100}, x.options()); twice(x, t); return t.view({4, -1});",
      "static int n = 0; auto a = torch::empty_like(x), b = torch::empty_like(x); auto& o = ++n % 2 ? a : b; "
      "twice(x, o); return o;",
  };
  for (const char* body : bodies) {
    ASSERT_EQ(tried(body).verdict, Verdict::kOk) << body;
    for (int round = 0; round < 3; ++round) {
      renew(static_cast<float>(round) * 7 + 3);
      ASSERT_EQ(session_->time(0, 4, [] {}).verdict, Verdict::kOk);
      for (int set = 0; set < kSets; ++set) EXPECT_TRUE(right(set)) << body << " set " << set;
    }
  }
}

TEST_F(ExtensionChild, ScalarsAndSeveralResults) {
  options_.binary = compile(
      std::string(kHead) +
      "std::vector<torch::Tensor> f(const torch::Tensor& x, double a, int64_t n) {\n"
      "  auto o = torch::full({2}, a, x.options()), p = torch::full({3}, n, at::kLong); return {o, p}; }\n"
      "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &f); }\n");
  ExtensionLayout l = layout();
  l.outputs = {{"out0", task::Dtype::kFloat32, {2}, 8}, {"out1", task::Dtype::kInt64, {3}, 24}};
  l.sets = 1;
  l.offsets = {0, kStride, kStride + 256};
  l.scalars = {{"a", true, 2.5}, {"n", false, 7}};
  ExtensionSession session(options_);
  ASSERT_EQ(session.load().verdict, Verdict::kOk);
  ASSERT_EQ(session.prepare(l, share()).verdict, Verdict::kOk);
  const ExtensionRun run = session.run(0, 1);
  ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_EQ(output(0)[1], 2.5f);
  std::int64_t n = 0;
  std::memcpy(&n, memory_ + kStride + 256 + 16, 8);
  EXPECT_EQ(n, 7);
}

TEST_F(ExtensionChild, WhatForwardSaysIsItsVerdict) {
  struct Row {
    const char* body;
    Verdict verdict;
    const char* words;
  };
  const Row rows[] = {
      {"TORCH_CHECK(false, \"no \", 3); return x;", Verdict::kLaunchError, "no 3"},
      {"throw std::runtime_error(\"thrown\");", Verdict::kLaunchError, "thrown"},
      {"return torch::empty({25, 4}, x.options());", Verdict::kWrongOutput, "another shape or dtype"},
      {"return torch::empty({4, 25}, torch::kFloat64);", Verdict::kWrongOutput, "another shape or dtype"},
      {"return torch::Tensor();", Verdict::kWrongOutput, "undefined tensor"},
      {"return torch::empty({1 << 20, 1 << 20}, x.options());", Verdict::kOutOfMemory, "out of memory"},
      {"x.data_ptr<double>(); return x;", Verdict::kLaunchError,
       "expected scalar type Double but found Float"},
      {"std::abort();", Verdict::kCrash, "signal 6"},
      {"std::exit(0);", Verdict::kCrash, "ended its process (exit code 0)"},
      {"*(volatile int*)8 = 1; return x;", Verdict::kCrash, "signal 11"},
      {"for (volatile int i = 0;; i = i + 1) {}", Verdict::kTimeout, "no answer"},
  };
  options_.call_timeout_s = 0.5;
  for (const Row& row : rows) {
    const ExtensionRun run = tried(row.body);
    EXPECT_EQ(run.verdict, row.verdict) << row.body << ": " << run.detail;
    EXPECT_THAT(run.detail, HasSubstr(row.words)) << row.body;
  }
}

// Rows may have thousands of calls: one that hangs does not hold the GPU for all of them.
TEST_F(ExtensionChild, ARowThatHangsIsGivenUpAfterTheTimeOfFourCalls) {
  options_.call_timeout_s = 0.5;
  ASSERT_EQ(tried("static int calls = 0; if (++calls > 10) for (volatile int i = 0;; i = i + 1) {}\n" +
                  std::string(kHonest))
                .verdict,
            Verdict::kOk);
  ExtensionLayout many = layout();
  constexpr int kRow = 60;
  many.sets = kRow + 1;
  for (int set = kSets; set < many.sets; ++set)
    for (const std::uint64_t tensor : {0ull, 1ull}) many.offsets.push_back(tensor * kStride);
  ASSERT_EQ(session_->prepare(many, share()).verdict, Verdict::kOk);
  const auto begin = std::chrono::steady_clock::now();
  const ExtensionRun run = session_->time(0, kRow, [] {});
  EXPECT_EQ(run.verdict, Verdict::kTimeout) << run.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));  // of 30 for as many calls
}

// Of each size once: what is not used any more makes room for what is.
TEST_F(ExtensionChild, MemoryThatIsNotUsedMakesRoom) {
  options_.arena_bytes = 64 << 20;
  const std::string asks =
      "for (int64_t mib : {8, 17, 35, 50, 9, 20, 41}) torch::empty({mib << 20}, torch::kByte); ";
  const ExtensionRun run = tried(asks + kHonest);
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_TRUE(right(0) && right(1));
  EXPECT_EQ(tried("auto kept = torch::empty({40 << 20}, torch::kByte), more = torch::empty({30 << 20}, "
                  "torch::kByte); " +
                  std::string(kHonest))
                .verdict,
            Verdict::kOutOfMemory);
}

// A thread of its own would see a row's values as they are written, and work while others are timed. This one
// counts in the operands, which are seen from here.
TEST_F(ExtensionChild, StandsStillWhileNobodyCallsIt) {
  const std::string counts =
      "static std::atomic<volatile unsigned*> at{nullptr}; "
      "static bool once = [] { std::thread([] { for (;;) if (auto* word = at.load()) *word = *word + 1; "
      "}).detach(); return true; }(); (void)once; at = (volatile unsigned*)x.data_ptr<float>(); "
      "std::this_thread::sleep_for(std::chrono::milliseconds(50)); ";
  ASSERT_EQ(tried(counts + kHonest, "#include <atomic>\n#include <chrono>\n#include <thread>\n").verdict,
            Verdict::kOk);
  const auto words_now = [&] {
    std::vector<std::uint32_t> words(kSets);
    for (int set = 0; set < kSets; ++set)
      std::memcpy(&words[static_cast<std::size_t>(set)], input(set), sizeof(std::uint32_t));
    return words;
  };
  const auto moves = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a signal takes its time
    const std::vector<std::uint32_t> before = words_now();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return words_now() != before;
  };
  EXPECT_FALSE(moves());
  const std::vector<std::uint32_t> before = words_now();
  ASSERT_EQ(session_->run(0, 1).verdict, Verdict::kOk);
  EXPECT_NE(words_now(), before);  // while it is called it counts
  bool moved_before_clock = true, moved_in_pause = true, paused = false;
  ExtensionRun run = session_->time(0, 1, [&] { moved_before_clock = moves(); });
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_FALSE(moved_before_clock);
  EXPECT_FALSE(moves());
  run = session_->time(0, 4, [] {}, {0, std::nullopt, [&] { paused = true, moved_in_pause = moves(); }});
  EXPECT_TRUE(paused);
  EXPECT_FALSE(moved_in_pause);
}

TEST_F(ExtensionChild, AnInputHandedBackIsCopied) {
  ASSERT_EQ(tried("return x;").verdict, Verdict::kOk);
  EXPECT_EQ(output(0)[3], input(0)[3]);
  EXPECT_FALSE(right(0));
}

TEST_F(ExtensionChild, WhatTheSandboxForbids) {
  if (options_.sandbox == process::SandboxLevel::kNone) GTEST_SKIP() << "no sandbox is to be had here";
  const char* bodies[] = {
      "if (fork() == 0) _exit(0);",
      "socket(2, 1, 0);",
      "execl(\"/bin/true\", \"true\", (char*)0);",
      "kill(getppid(), 9);",
      "ptrace(16, getppid(), 0, 0);",
      "fcntl(1, 8, getppid());",  // F_SETOWN: who is told of what happens to a descriptor
      "fcntl(1, 10, 19);",        // F_SETSIG, SIGSTOP: and by which signal
      "int who = getppid(); ioctl(1, 0x8901, &who);",  // FIOSETOWN
      "int on = 1; ioctl(1, 0x5452, &on);",            // FIOASYNC
  };
  const std::string names =
      "extern \"C\" { int fork(); void _exit(int); int socket(int, int, int); int execl(const char*, const "
      "char*, ...); int kill(int, int); int "
      "getppid(); long ptrace(int, ...); int fcntl(int, int, ...); int ioctl(int, unsigned long, ...); }\n";
  for (const char* body : bodies) {
    const ExtensionRun run = tried(std::string(body) + kHonest, names);
    EXPECT_EQ(run.verdict, Verdict::kSandboxViolation) << body << ": " << run.detail;
  }
  // In a constructor, too.
  EXPECT_EQ(tried(kHonest, names + "static int before = socket(2, 1, 0);\n").verdict,
            Verdict::kSandboxViolation);
}

// Files: the system's can be read, its own folder written; nothing else is there. What finds more gives no
// answer.
TEST_F(ExtensionChild, FilesOutsideAreNotThere) {
  if (options_.sandbox == process::SandboxLevel::kNone) GTEST_SKIP() << "no sandbox is to be had here";
  const fs::path secret = fs::temp_directory_path() / ("warpsmith-secret-" + std::to_string(::getpid()));
  write_file_atomic(secret, "secret");
  const std::string names = "#include <cstdio>\n";
  const std::string reads = "for (const char* path : {\"" + secret.string() +
                            "\", \"/etc/passwd\", \"/root/.bashrc\"}) if (std::fopen(path, \"r\")) throw "
                            "std::runtime_error(std::string(\"reads \") + path);\n"
                            "std::fopen(\"" +
                            secret.string() +
                            "-new\", \"w\");\n"  // under bubblewrap a file of its own /tmp
                            "for (const char* path : {\"/usr/lib/warpsmith\", \"/etc/warpsmith\", "
                            "\"/dev/mem\"}) if (std::fopen(path, \"w\")) "
                            "throw std::runtime_error(std::string(\"writes \") + path);\n"
                            "if (!std::fopen(\"own\", \"w\")) throw std::runtime_error(\"own\");\n";
  const ExtensionRun run = tried(reads + kHonest, names);
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_FALSE(fs::exists(secret.string() + "-new"));
  fs::remove(secret);
}

TEST_F(ExtensionChild, HostMemoryIsLimited) {
  options_.host_memory_bytes = 200 << 20;
  options_.call_timeout_s = 20;
  const ExtensionRun run = tried(
      "for (long n = 0; n < 4000; ++n) { char* p = (char*)std::malloc(1 << 20); for (int i = 0; i < 1 << 20; "
      "i += 4096) p[i] = 1; usleep(200); }" +
          std::string(kHonest),
      "extern \"C\" int usleep(unsigned);\n");
  EXPECT_EQ(run.verdict, Verdict::kOutOfMemory) << run.detail;
}

// Small ones as large ones; and what is within the limits is nobody's affair.
TEST_F(ExtensionChild, FilesAreLimitedTogether) {
  options_.call_timeout_s = 20;
  const std::string names = "#include <cstdio>\nextern \"C\" int usleep(unsigned);\n";
  const auto writes = [](int files, const char* then) {
    return "for (int i = 0; i < " + std::to_string(files) +
           "; ++i) if (FILE* f = std::fopen(std::to_string(i).c_str(), \"w\")) std::fclose(f);" + then +
           std::string(kHonest);
  };
  const ExtensionRun many = tried(writes(11'000, "for (;;) usleep(1000);"), names);
  EXPECT_EQ(many.verdict, Verdict::kSandboxViolation);
  EXPECT_EQ(many.detail, "it has made more than 10000 files");
  const ExtensionRun few = tried(writes(1'000, "usleep(600'000);"), names);
  EXPECT_EQ(few.verdict, Verdict::kOk) << few.detail;
}

TEST_F(ExtensionChild, ThreadsThatStayAreCounted) {
  const ExtensionRun run = tried(
      "static bool once = (std::thread([] { for (;;) std::this_thread::sleep_for(std::chrono::seconds(1)); "
      "}).detach(), "
      "true); (void)once;" +
          std::string(kHonest),
      "#include <chrono>\n#include <thread>\n");
  ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_EQ(session_->threads(), session_->threads_before() + 1);
}

// It writes to every descriptor and over all that it shares with us: that makes nothing right, and nothing of
// ours falls over.
TEST_F(ExtensionChild, ForgedAnswersHelpNobody) {
  const std::string names =
      "extern \"C\" { long write(int, const void*, unsigned long); long pwrite(int, const void*, unsigned "
      "long, long); int ftruncate(int, long); }\n#include "
      "<cstdio>\n#include <cstring>\n";
  const ExtensionRun junk = tried(
      "char junk[4096]; std::memset(junk, 0x5A, sizeof junk); for (int fd = 0; fd < 64; ++fd) if (fd > 2) { "
      "write(fd, junk, 4096); } return torch::empty_like(x);",
      names);
  if (junk.verdict == Verdict::kOk) {
    EXPECT_FALSE(right(0));
  }
  // Every writable mapping of the control block, filled with ones: the answer is nonsense or none.
  options_.call_timeout_s = 1;
  const ExtensionRun forged = tried(
      "FILE* maps = std::fopen(\"/proc/self/maps\", \"r\"); char line[512]; while (maps && std::fgets(line, "
      "sizeof line, maps)) if (std::strstr(line, "
      "\"warpsmith-extension\")) { unsigned long a = 0, b = 0; std::sscanf(line, \"%lx-%lx rw-s\", &a, &b); "
      "std::memset((void*)a, 0x01, b - a); } return "
      "torch::empty_like(x);",
      names);
  EXPECT_FALSE(right(0));
  EXPECT_NE(forged.verdict, Verdict::kNotMeasured);
}

TEST_F(ExtensionChild, ACachedResultIsFoundOut) {
  ASSERT_EQ(tried("static std::map<void*, torch::Tensor> seen; auto& o = seen[x.data_ptr()]; if "
                  "(!o.defined()) { o = torch::empty_like(x); twice(x, o); } "
                  "return o;",
                  "#include <map>\n")
                .verdict,
            Verdict::kOk);
  EXPECT_TRUE(right(0));
  renew(100);
  ASSERT_EQ(session_->run(0, 2).verdict, Verdict::kOk);
  EXPECT_FALSE(right(0));
}

TEST_F(ExtensionChild, WhatIsNoCandidate) {
  const fs::path file = fs::temp_directory_path() / ("warpsmith-no-object-" + std::to_string(::getpid()));
  write_file_atomic(file, "no shared object");
  const ExtensionRun run = whole(file);
  EXPECT_EQ(run.verdict, Verdict::kLaunchError);
  EXPECT_THAT(run.detail, HasSubstr("it cannot be loaded"));
  fs::remove(file);
  // No GPU is not the candidate's fault.
  options_.program.clear();
  if (!fs::exists("/dev/nvidiactl")) {
    EXPECT_THROW(ExtensionSession{options_}, Error);
  }
}

}  // namespace
}  // namespace warpsmith::device

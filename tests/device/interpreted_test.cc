// Candidates of tier `python` and the process that they run in, host memory standing in for the GPU's: what
// they are given, where their results come to lie, what becomes of those that fail, and what the sandbox does
// about code that means no good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "candidate_archive.h"
#include "operands_in_memory.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/device/extension_session.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/scripts.h"

namespace warpsmith::device {
namespace {

using ::testing::HasSubstr;

class InterpretedChild : public OperandsInMemory {
 protected:
  void SetUp() override {
    const std::optional<fs::path> python = python::find_python();
    if (!python) GTEST_SKIP() << "there is no python3 here";
    process::ChildSpec look;
    look.argv = {python->string(), "-c", "import torch"};
    if (process::run_child(look).exit_code != 0) GTEST_SKIP() << python->string() << " has no torch";
    map();
    factor_ = 2.5f;
    more_ = 7;
    ExtensionInterpreter interpreter;
    interpreter.command = python::python_command(*python);
    interpreter.script = python::candidate_script();
    interpreter.folders = python::python_folders(*python);
    interpreter.environment = python::python_variables();
    interpreter.device = "cpu";
    interpreter.library = fs::path(WARPSMITH_BINARY_DIR) / "tests/interpreted_fake.so";
    options_.interpreter = std::move(interpreter);
    options_.sandbox = process::available_sandbox();
    options_.call_timeout_s = 2;
    options_.first_call_s = 10;
  }
  static ExtensionLayout with_scalars() {
    ExtensionLayout l = layout();
    l.scalars = {{"a", true, 2.5}, {"n", false, 7}};
    return l;
  }
  ExtensionRun tried(const std::string& model) {
    options_.binary = folder_.path() / "candidate.zip";
    write_file_atomic(options_.binary, candidate_archive(model));
    return whole(with_scalars());
  }
  // The body of a forward(x, a, n), as a function.
  ExtensionRun tried_body(const std::string& body, const std::string& before = "") {
    return tried("import torch\n" + before + "\ndef forward(x, a, n):\n  " + body + "\n");
  }

  TemporaryFolder folder_{"interpreted"};
};

TEST_F(InterpretedChild, ARowCanPause) {
  const ExtensionRun tries = tried_body(
      "begin = time.perf_counter()\n"
      "  while time.perf_counter() - begin < 0.1: pass\n"
      "  return x * a + n",
      "import time");
  ASSERT_EQ(tries.verdict, Verdict::kOk) << tries.detail;
  pause_in_a_row();
}

TEST_F(InterpretedChild, AModuleRunsAndIsTimed) {
  const ExtensionRun tries = tried(
      "import torch\n"
      "class ModelNew(torch.nn.Module):\n"
      "  def __init__(self):\n"
      "    super().__init__()\n"
      "    self.more = torch.nn.Parameter(torch.zeros(1))\n"
      "  def forward(self, x, a, n):\n"
      "    assert isinstance(a, float) and isinstance(n, int) and not torch.is_grad_enabled()\n"
      "    return x * a + n + self.more\n");
  ASSERT_EQ(tries.verdict, Verdict::kOk) << tries.detail;
  EXPECT_TRUE(right(0) && right(1));
  EXPECT_FALSE(right(2));
  for (int round = 0; round < 3; ++round) {
    renew(static_cast<float>(round) + 5);
    int turns = 0;
    const ExtensionRun run = session_->time(0, 4, [&] { ++turns; });
    ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
    EXPECT_EQ(turns, 1);
    for (int set = 0; set < kSets; ++set) EXPECT_TRUE(right(set)) << set;
    EXPECT_GT(run.event_ns, 0);
    EXPECT_LE(run.event_ns, run.elapsed_ns);
  }
  EXPECT_GT(session_->threads_before(), 0);
  EXPECT_EQ(session_->threads(), session_->threads_before());
}

// Packages ask for libraries while they are imported (CuPy does), which would start a process.
TEST_F(InterpretedChild, ALibraryIsLookedForWithoutAProcess) {
  const ExtensionRun tries =
      tried_body("return x * a + n",
                 "import ctypes.util, os\n"
                 "assert ctypes.util.find_library('there_is_no_such_library') is None\n"
                 "assert os.environ['CUPY_CACHE_IN_MEMORY'] == '1'");
  EXPECT_EQ(tries.verdict, Verdict::kOk) << tries.detail;
}

// It loads torch while somebody else has the GPU, and goes there when it is told to.
TEST_F(InterpretedChild, OneThatWaitsIsOpenedLater) {
  options_.binary = folder_.path() / "candidate.zip";
  write_file_atomic(options_.binary, candidate_archive("def forward(x):\n  return x\n"));
  options_.waits = true;
  { const ExtensionSession never(options_); }  // ends unopened
  ExtensionSession session(options_);
  session.wait_until_loaded(30);
  EXPECT_FALSE(session.alive());
  EXPECT_THROW(session.prepare(layout(), {}), Error) << "not before it is opened";
  session.open(2);
  EXPECT_TRUE(session.alive());
  const ExtensionRun loaded = session.load();
  EXPECT_EQ(loaded.verdict, Verdict::kOk) << loaded.detail;
}

// What candidates are timed against runs in a child of the same kind, by the same calls.
TEST_F(InterpretedChild, AReferenceRunsAsACandidateDoes) {
  options_.binary = folder_.path() / "reference.json";
  const auto run = [&](const std::string& body, int times) {
    const std::string program =
        "def forward(x: Tensor, a: float, n: int) -> Tensor:\n  return " + body + "\n";
    write_file_atomic(options_.binary, Json{{"task", "t"}, {"reference", program}, {"times", times}}.dump());
    return whole(with_scalars());
  };
  for (const int times : {1, 2, 3}) {
    const ExtensionRun first = run("torch.add(x * a, n)", times);
    ASSERT_EQ(first.verdict, Verdict::kOk) << first.detail;
    renew(static_cast<float>(times) + 5);
    ASSERT_EQ(session_->time(0, 4, [] {}).verdict, Verdict::kOk);
    for (int set = 0; set < kSets; ++set) EXPECT_TRUE(right(set)) << set;
  }
  const ExtensionRun wrong = run("torch.no_such_operator(x)", 1);
  EXPECT_EQ(wrong.verdict, Verdict::kLaunchError);
  EXPECT_THAT(wrong.detail, HasSubstr("AttributeError: module 'torch' has no attribute 'no_such_operator'"));
}

// Python is faster or slower by some per cent with the place of its stack, which lies below its arguments and
// its environment.
TEST_F(InterpretedChild, ArgumentsAndEnvironmentAreEquallyLongInAllChildren) {
  const std::string model =
      "import ctypes, os, sys\n"
      "def forward(x, a, n):\n"
      "  fixed = ctypes.CDLL(None).personality(ctypes.c_ulong(0xffffffff)) & 0x40000\n"
      "  texts = [os.fsencode(one) for one in sys.orig_argv]\n"
      "  texts += [name + b'=' + value for name, value in os.environb.items()]\n"
      "  raise ValueError(f'{fixed} of {sum(len(one) + 9 for one in texts)} bytes' if fixed else 'other "
      "places')\n";
  std::vector<std::string> said;
  for (const char* name : {"c.zip", "a_longer_name_than_the_other.zip"}) {
    options_.binary = folder_.path() / name;
    write_file_atomic(options_.binary, candidate_archive(model));
    said.push_back(whole(with_scalars()).detail);
  }
  if (said[0].find("other places") != std::string::npos) GTEST_SKIP() << "addresses cannot be fixed here";
  EXPECT_THAT(said[0], HasSubstr("bytes"));
  EXPECT_EQ(said[0], said[1]);
}

// What a call costs beside its work is what rows of calls that do nothing take. Their results stay unwritten,
// and the candidate's calls are its own again afterwards.
TEST_F(InterpretedChild, CallsThatDoNothingCanBeTimed) {
  const ExtensionRun first = tried_body(
      "begin = time.perf_counter()\n"
      "  while time.perf_counter() - begin < 0.02: pass\n"
      "  return x * a + n",
      "import time");
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.detail;
  renew(11);
  for (int i = 0; i < 2; ++i) {  // the first makes what they give back
    const ExtensionRun idle = session_->time_idle(0, 3, 50, [] {});
    ASSERT_EQ(idle.verdict, Verdict::kOk) << idle.detail;
    EXPECT_LT(idle.elapsed_ns, 20e6);
    EXPECT_GE(idle.drain_ns, 0);
    EXPECT_LE(idle.drain_ns, idle.elapsed_ns);
  }
  EXPECT_FALSE(right(0) || right(1) || right(2));
  const ExtensionRun run = session_->time(0, 3, [] {});
  ASSERT_EQ(run.verdict, Verdict::kOk) << run.detail;
  EXPECT_GT(run.elapsed_ns, 60e6);
  EXPECT_TRUE(right(0) && right(1) && right(2));
}

// A task that is a module: what it makes of its arguments is the reference, and what the candidate makes of
// them has the same weights.
TEST_F(InterpretedChild, ACandidateIsMadeWithTheArgumentsOfItsTask) {
  const auto module_of = [](const std::string& name) {
    return "import torch\n"
           "class " +
           name +
           "(torch.nn.Module):\n"
           "  def __init__(self, most, *, least=0):\n"
           "    super().__init__()\n"
           "    self.weight = torch.nn.Parameter(torch.randint(least, most, (25,)).float())\n"
           "  def forward(self, x):\n"
           "    return x * self.weight\n";
  };
  options_.interpreter->module =
      module_of("Model") + "def get_inputs():\n  return []\n" +
      "def get_init_inputs():\n  return {'most': 9, 'least': int(torch.randint(1, 3, (1,)))}\n";
  const auto outputs = [&](const ExtensionRun& run) {
    EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
    return std::vector<float>(output(0), output(0) + kCount);
  };
  const auto run = [&](const std::string& name, const std::string& content) {
    options_.binary = folder_.path() / name;
    write_file_atomic(options_.binary, content);
    return whole(layout());
  };
  const std::string reference = Json{
      {"task", "t"},
      {"reference", "def forward(x: Tensor, w: Tensor) -> Tensor:\n  return x"},
      {"times", 1}}.dump();
  const std::vector<float> right = outputs(run("reference.json", reference));
  EXPECT_NE(right, std::vector<float>(kCount, 0.f));
  EXPECT_EQ(outputs(run("candidate.zip", candidate_archive(module_of("ModelNew")))), right);
  // Without the task's module it would be made without arguments.
  options_.interpreter->module.clear();
  EXPECT_THAT(run("candidate.zip", candidate_archive(module_of("ModelNew"))).detail,
              HasSubstr("missing 1 required positional argument: 'most'"));
}

// `forward` may be anything that can be called.
TEST_F(InterpretedChild, AForwardThatIsAModuleRuns) {
  const ExtensionRun tries = tried(
      "import torch\n"
      "class Scale(torch.nn.Module):\n"
      "  def forward(self, x, a, n):\n"
      "    return x * a + n\n"
      "forward = Scale()\n");
  ASSERT_EQ(tries.verdict, Verdict::kOk) << tries.detail;
  EXPECT_TRUE(right(0) && right(1));
}

// A tensor that is kept, an input handed back after work in a copy, a view that is not contiguous, a tuple.
TEST_F(InterpretedChild, ResultsComeToLieWhereTheyBelong) {
  const std::pair<const char*, const char*> bodies[] = {
      {"return torch.add(n, x, alpha=a, out=kept)", "kept = torch.empty(4, 25)"},
      {"return (x.t() * a + n).t()", ""},
      {"return (x * a + n).view(25, 4).clone().view(4, 25),", ""},
      {"y = [x * a + n for _ in range(3)]; return y[1]", ""},
  };
  for (const auto& [body, before] : bodies) {
    const ExtensionRun first = tried_body(body, before);
    ASSERT_EQ(first.verdict, Verdict::kOk) << body << ": " << first.detail;
    for (int round = 0; round < 2; ++round) {
      renew(static_cast<float>(round) * 7 + 3);
      ASSERT_EQ(session_->time(0, 4, [] {}).verdict, Verdict::kOk) << body;
      for (int set = 0; set < kSets; ++set) EXPECT_TRUE(right(set)) << body << " set " << set;
    }
  }
}

TEST_F(InterpretedChild, WhatACandidateDoesIsItsVerdict) {
  struct Row {
    const char* model;
    Verdict verdict;
    const char* words;
  };
  const Row rows[] = {
      {"x = (\n", Verdict::kLaunchError, "SyntaxError"},
      {"import torch\nprint(undefined)\n", Verdict::kLaunchError, "NameError: name 'undefined'"},
      {"import torch\n", Verdict::kLaunchError, "neither a class `ModelNew` nor a function `forward`"},
      {"def forward(x, a, n):\n  raise ValueError('no')\n", Verdict::kLaunchError,
       "ValueError: no (model.py:2)"},
      {"def forward(x, a, n):\n  return x.view(25, 4)\n", Verdict::kWrongOutput, "another shape or dtype"},
      {"def forward(x, a, n):\n  return x.double()\n", Verdict::kWrongOutput, "another shape or dtype"},
      {"def forward(x, a, n):\n  return x, x\n", Verdict::kWrongOutput, "returns 2 tensors"},
      {"def forward(x, a, n):\n  return 3\n", Verdict::kWrongOutput, "output 0 is int, and no tensor"},
      {"import os\ndef forward(x, a, n):\n  os._exit(0)\n", Verdict::kCrash, "exit code 0"},
      {"import ctypes\ndef forward(x, a, n):\n  ctypes.string_at(8)\n", Verdict::kCrash, "signal 11"},
      {"def forward(x, a, n):\n  while True: pass\n", Verdict::kTimeout, "no answer"},
      {"from torch.utils.cpp_extension import load_inline\n"
       "m = load_inline('m', 'int f() { return 1; }', functions=['f'])\n",
       Verdict::kLaunchError, "was not built when the candidate was compiled"},
  };
  options_.call_timeout_s = 0.5;
  options_.first_call_s = 2;
  for (const Row& row : rows) {
    const ExtensionRun run = tried(row.model);
    EXPECT_EQ(run.verdict, row.verdict) << row.model << ": " << run.detail;
    EXPECT_THAT(run.detail, HasSubstr(row.words)) << row.model;
    EXPECT_THAT(run.detail, ::testing::Not(HasSubstr("candidate/source"))) << "a path of ours";
  }
}

// What is packed, and what the first run has left, is the candidate's work in part.
TEST_F(InterpretedChild, WhatIsPackedWronglyIsTheCandidates) {
  options_.binary = folder_.path() / "candidate.zip";
  write_file_atomic(options_.binary, "PK no zip");
  ExtensionSession session(options_);
  const ExtensionRun run = session.load();
  EXPECT_EQ(run.verdict, Verdict::kLaunchError);
  EXPECT_THAT(run.detail, HasSubstr("BadZipFile"));
  const TemporaryFolder kept("kept-test");
  options_.interpreter->kept = kept.path();
  for (const char* answers : {"no JSON", "[1, 2]", "{\"a\": 3}"}) {
    write_file_atomic(kept.path() / "answers.json", answers);
    EXPECT_EQ(tried_body("return x * a + n").verdict, Verdict::kOk) << answers;
  }
}

TEST_F(InterpretedChild, OneThatFailsInATimedRowIsToldFrom) {
  const char* later =
      "import torch\ncalls = 0\ndef forward(x, a, n):\n  global calls\n  calls += 1\n"
      "  if calls > 4: raise ValueError('late')\n  return x * a + n\n";
  ASSERT_EQ(tried(later).verdict, Verdict::kOk);
  const ExtensionRun run = session_->time(0, 4, [] {});
  EXPECT_EQ(run.verdict, Verdict::kLaunchError);
  EXPECT_THAT(run.detail, HasSubstr("ValueError: late (model.py:6)"));
}

TEST_F(InterpretedChild, WhatTheSandboxForbids) {
  if (options_.sandbox == process::SandboxLevel::kNone) GTEST_SKIP() << "no sandbox is to be had here";
  const char* bodies[] = {
      "os.fork()",
      "os.system('true')",
      "__import__('subprocess').run(['true'])",
      "__import__('socket').socket()",
      "os.kill(os.getppid(), 9)",
  };
  for (const char* body : bodies) {
    const ExtensionRun run = tried_body(std::string(body) + "; return x * a + n", "import os");
    EXPECT_EQ(run.verdict, Verdict::kSandboxViolation) << body << ": " << run.detail;
  }
  // While it is imported, too.
  EXPECT_EQ(tried_body("return x * a + n", "import os; os.fork()").verdict, Verdict::kSandboxViolation);
}

TEST_F(InterpretedChild, FilesOutsideAreNotThere) {
  if (options_.sandbox == process::SandboxLevel::kNone) GTEST_SKIP() << "no sandbox is to be had here";
  const fs::path secret = fs::temp_directory_path() / ("warpsmith-secret-" + std::to_string(::getpid()));
  write_file_atomic(secret, "secret");
  const ExtensionRun run = tried_body("return x * a + n",
                                      "import os\n"
                                      "for path in ('" +
                                          secret.string() +
                                          "', '/etc/passwd', '/root/.bashrc'):\n"
                                          "  if os.path.exists(path): raise RuntimeError('reads ' + path)\n"
                                          "for path in (torch.__file__, os.__file__, '/usr/lib/warpsmith'):\n"
                                          "  try: open(path, 'a')\n"
                                          "  except OSError: continue\n"
                                          "  raise RuntimeError('writes ' + path)\n"
                                          "open('own', 'w').write('own')\n");
  EXPECT_EQ(run.verdict, Verdict::kOk) << run.detail;
  fs::remove(secret);
}

TEST_F(InterpretedChild, FilesAreLimitedTogether) {
  options_.call_timeout_s = 20;
  const ExtensionRun run = tried_body(
      "for i in range(11000): open(str(i), 'w').close()\n  while True: time.sleep(0.1)", "import time");
  EXPECT_EQ(run.verdict, Verdict::kSandboxViolation);
  EXPECT_EQ(run.detail, "it has made more than 10000 files");
}

// As Triton does it: a program is asked at every start, and what is made is found again by a key.
TEST_F(InterpretedChild, WhatIsCompiledWhenItFirstRunsIsFoundByTheNextChild) {
  const std::string model =
      "import os, subprocess\n"
      "version = subprocess.check_output(['/bin/echo', 'version 1'])\n"
      "place = os.path.join(os.environ['TRITON_CACHE_DIR'], version.decode().split()[1])\n"
      "if not os.path.exists(place):\n"
      "  os.makedirs(os.path.dirname(place), exist_ok=True)\n"
      "  subprocess.check_call(['/bin/sh', '-c', 'echo 2.5 > ' + place])\n"
      "  open(place + '.group', 'w').write(place)\n"
      "place = open(place + '.group').read()\n"
      "def forward(x, a, n):\n"
      "  return x * float(open(place).read()) + n\n";
  const TemporaryFolder kept("kept-test");
  options_.interpreter->kept = kept.path();
  options_.interpreter->may_compile = true;
  const ExtensionRun first = tried(model);
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.detail;
  EXPECT_TRUE(fs::exists(kept.path() / "triton/1"));
  options_.interpreter->may_compile = false;
  const ExtensionRun second = tried(model);
  EXPECT_EQ(second.verdict, Verdict::kOk) << second.detail;
  EXPECT_TRUE(right(0) && right(1));
  // It changes nothing there, and starts nothing.
  const ExtensionRun third =
      tried_body("return x * a + n",
                 "import os, subprocess\nos.makedirs(os.environ['TRITON_CACHE_DIR'], exist_ok=True)\n"
                 "try: open(os.environ['TRITON_CACHE_DIR'] + '/new', 'w')\n"
                 "except OSError: pass\n"
                 "try: subprocess.check_output(['/bin/echo', 'version 2'])\n"
                 "except FileNotFoundError as e: assert 'no program can be started here' in str(e)\n"
                 "else: raise RuntimeError('it was started')\n");
  EXPECT_EQ(third.verdict, Verdict::kOk) << third.detail;
  if (options_.sandbox == process::SandboxLevel::kNone) return;
  EXPECT_FALSE(fs::exists(kept.path() / "triton/new"));
  EXPECT_EQ(tried_body("os.fork(); return x * a + n", "import os").verdict, Verdict::kSandboxViolation);
}

// All that Triton does for a kernel but to launch it, for which there is no GPU here.
TEST_F(InterpretedChild, TritonFindsWhatItHasCompiled) {
  const std::string model =
      "import os, torch, triton, triton.language as tl\n"
      "from triton.backends.compiler import GPUTarget\n"
      "from triton.compiler import ASTSource\n"
      "from triton.runtime.build import compile_module_from_src\n"
      "@triton.jit\n"
      "def kernel(x_ptr, n, BLOCK: tl.constexpr):\n"
      "  at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "  tl.store(x_ptr + at, at.to(tl.float32), mask=at < n)\n"
      "source = ASTSource(kernel, {'x_ptr': '*fp32', 'n': 'i32', 'BLOCK': 'constexpr'}, {'BLOCK': 128})\n"
      "cubin = triton.compile(source, target=GPUTarget('cuda', 90, 32)).asm['cubin']\n"
      "assert cubin[:4] == b'\\x7fELF'\n"
      "launcher = compile_module_from_src('#include <Python.h>\\n'\n"
      "  'static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, \"launcher\", 0, -1, 0, 0, 0, 0, 0};\\n'\n"
      "  'PyMODINIT_FUNC PyInit_launcher(void) { return PyModule_Create(&d); }\\n', 'launcher')\n"
      "def forward(x, a, n):\n"
      "  return x * a + n\n";
  const TemporaryFolder kept("kept-test");
  options_.interpreter->kept = kept.path();
  options_.interpreter->may_compile = true;
  options_.call_timeout_s = 60;
  const ExtensionRun first = tried(model);
  for (const char* missing : {"No module named 'triton'", "Failed to find C compiler", "CalledProcessError"})
    if (first.detail.find(missing) != std::string::npos) GTEST_SKIP() << first.detail;
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.detail;
  options_.interpreter->may_compile = false;
  const ExtensionRun second = tried(model);
  EXPECT_EQ(second.verdict, Verdict::kOk) << second.detail;
  EXPECT_TRUE(right(0) && right(1));
}

// (Which instructions the processor has, torch asks in processes; without them it asks for none.)
TEST_F(InterpretedChild, TorchCompileFindsWhatItHasCompiled) {
  const std::string model =
      "import torch, torch._inductor.config as config, torch._inductor.cpu_vec_isa as instructions\n"
      "instructions.valid_vec_isa_list, config.cpp_cache_precompile_headers = lambda: [], False\n"
      "@torch.compile\n"
      "def forward(x, a, n):\n"
      "  return (x * a).abs() * torch.sign(x * a) + n\n";
  const TemporaryFolder kept("kept-test");
  fs::create_directory(kept.path() / "inductor");
  options_.interpreter->kept = kept.path();
  options_.interpreter->may_compile = true;
  options_.call_timeout_s = 120;
  const ExtensionRun first = tried(model);
  for (const char* missing : {"InvalidCxxCompiler", "CppCompileError"})
    if (first.detail.find(missing) != std::string::npos) GTEST_SKIP() << first.detail;
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.detail;
  EXPECT_TRUE(right(0) && right(1));
  EXPECT_TRUE(fs::exists(kept.path() / "inductor/fxgraph"));
  options_.interpreter->may_compile = false;
  const ExtensionRun second = tried(model);
  EXPECT_EQ(second.verdict, Verdict::kOk) << second.detail;
  EXPECT_TRUE(right(0) && right(1));
  // What was not compiled is not compiled there, and nobody is told that it was.
  options_.call_timeout_s = 20;
  EXPECT_NE(tried("import torch\n@torch.compile\ndef forward(x, a, n):\n  return x * a + n + 0 * x.exp()\n")
                .verdict,
            Verdict::kOk);
}

TEST_F(InterpretedChild, WithoutTorchItSaysSo) {
  options_.interpreter->command = {"/usr/bin/python3"};
  if (!fs::exists("/usr/bin/python3")) GTEST_SKIP() << "no python3 of the system";
  process::ChildSpec look;
  look.argv = {"/usr/bin/python3", "-c", "import torch"};
  if (process::run_child(look).exit_code == 0) GTEST_SKIP() << "the system's python3 has torch";
  try {
    ExtensionSession session(options_);
    FAIL() << "it started";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot run candidates of tier `python`"));
    EXPECT_THAT(e.what(), HasSubstr("has no torch"));
  }
}

}  // namespace
}  // namespace warpsmith::device

// Candidates of tier `python`: real compilations where a python3 with torch is, and nvcc for those of CUDA.
#include "warpsmith/toolchain/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/process/child.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/scripts.h"
#include "warpsmith/toolchain/extension.h"
#include "with_variable.h"

namespace warpsmith::toolchain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kModel =
    "import torch\n"
    "class ModelNew(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "    def forward(self, x):\n"
    "        return x * 2\n";

Candidate candidate_of(std::vector<SourceFile> files) {
  Candidate c;
  c.task = "gelu";
  c.tier = Tier::kPython;
  c.files = std::move(files);
  c.id = candidate_id(c);
  return c;
}
Candidate candidate_of(const std::string& source) { return candidate_of({{"model.py", source}}); }

// ---- without a compilation

TEST(PythonFiles, NamesAndSizes) {
  if (const std::string lacks = python_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
  const auto log = [](Candidate c) {
    CompileOptions options;
    options.cache = fs::temp_directory_path() / ("warpsmith-python-names-" + std::to_string(::getpid()));
    const CompileResult r = compile_python(c, task::Task(), *parse_gpu_target("sm_90a"), options);
    EXPECT_EQ(r.verdict, Verdict::kCompileError);
    EXPECT_FALSE(fs::exists(options.cache));
    return r.log;
  };
  for (const char* path : {"/etc/x.py", "../x.py", "a/../x.py", ".x.py", "-o.py", "a b.py", "x.so", "x.pyc",
                           "warpsmith_compile.py", ""})
    EXPECT_THAT(log(candidate_of({{"model.py", kModel}, {path, ""}})),
                HasSubstr("is no name of a source file"))
        << path;
  EXPECT_EQ(log(candidate_of({{"kernel.cu", ""}, {"model.py", kModel}})),
            "kernel.cu:1:1: error: the first file is the module: <name>.py\n");
  EXPECT_THAT(log(candidate_of({{"model.py", kModel}, {"model.py", kModel}})), HasSubstr("at most 32 files"));
  EXPECT_THAT(log(candidate_of({{"model.py", kModel}, {std::string(300, 'x') + ".py", ""}})),
              HasSubstr("is no name of a source file"));
  EXPECT_EQ(log(candidate_of({{"model.py", kModel}, {"a.h", ""}, {"a.h/b.h", ""}})),
            "a.h:1:1: error: a file cannot be the folder of another one\n");
  EXPECT_THAT(log(candidate_of({{"model.py", std::string((1 << 20) + 1, '#')}})), HasSubstr("1 MiB"));
  Candidate with_options = candidate_of(kModel);
  with_options.options = {"-DTILE=32"};
  EXPECT_THAT(log(with_options), HasSubstr("compile options are no part of a module"));
}

TEST(PythonFiles, WithoutPythonNothingIsSupported) {
  const WithVariable none("WARPSMITH_PYTHON", "");
  EXPECT_THAT(python_toolchain_lacks(), HasSubstr("there is no python3 here"));
  EXPECT_THROW(python_toolchain_id(), Error);
  const CompileResult r =
      compile_python(candidate_of(kModel), task::Task(), *parse_gpu_target("sm_90a"), CompileOptions());
  EXPECT_EQ(r.verdict, Verdict::kUnsupported);
  EXPECT_THAT(r.log, HasSubstr("there is no python3 here"));
}

// What a script prints below the folders of a candidate, run by a python3 of any kind.
std::string run_script(const std::string& script) {
  const auto python = python::find_python();
  if (!python) return "";
  process::ChildSpec spec;
  spec.argv = {python->string(), "-c", python::extension_key_script() + "\n" + script};
  const process::ChildResult result = process::run_child(spec);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(PythonExtensionKey, IsOfWhatTheBinaryIsMadeFrom) {
  if (!python::find_python()) GTEST_SKIP() << "no python3 here";
  const std::string out = run_script(R"(
import os, tempfile
def key(folder="/a", **more):
    return extension_key("load_inline", dict(dict(name="x", cpp_sources=["int f();"], functions=None, verbose=False,
                         build_directory=None), **more), folder)
one = key()
print(len(one), one == key(verbose=True, build_directory="/tmp/x"), one == key(cpp_sources=("int f();",)))
print(one == key(name="y"), one == key(functions=["f"]), one == key(cpp_sources=["int g();"]))
print(key("/a", name="-I/a/sub") == key("/b", name="-I/b/sub"), one == extension_key("load", {"sources": []}, "/a"))
def loaded(content, name="k.cu"):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w") as file:
            file.write(content)
        return [extension_key("load", {"name": "x", "sources": s}, folder) for s in
                ([os.path.join(folder, name)], name)]
print(loaded("a") == loaded("a"), loaded("a")[0] == loaded("a")[1][:0] or loaded("a") == loaded("b"))
)");
  EXPECT_EQ(out,
            "64 True True\n"
            "False False False\n"
            "True False\n"
            "True False\n");
}

// A python3 that is a script: `guard` runs before the one that is here.
class ScriptedPython {
 public:
  explicit ScriptedPython(const std::string& guard)
      : folder_(fs::temp_directory_path() / ("warpsmith-scripted-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    make_folders(folder_);
    write_file_atomic(path(), "#!/bin/sh\n" + guard + "\nexec " +
                                  fs::absolute(*python::find_python()).string() + " \"$@\"\n");
    fs::permissions(path(), fs::perms::owner_all);
  }
  ~ScriptedPython() { fs::remove_all(folder_); }
  ScriptedPython(const ScriptedPython&) = delete;
  ScriptedPython& operator=(const ScriptedPython&) = delete;
  fs::path path() const { return folder_ / "python3"; }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

TEST(PythonFolders, OurWorkingFolderIsNoneOfThem) {
  if (!python::find_python()) GTEST_SKIP() << "no python3 here";
  const ScriptedPython python("");
  const WithVariable path("PYTHONPATH", ":" + python.folder().string());
  const fs::path before = fs::current_path(),
                 here = python.folder().parent_path() / "warpsmith-working-folder";
  make_folders(here);
  fs::current_path(here);
  const std::vector<fs::path> folders = python::python_folders(python.path());
  fs::current_path(before);
  fs::remove_all(here);
  EXPECT_THAT(folders, ::testing::Contains(python.folder()));
  EXPECT_THAT(folders, Not(::testing::Contains(here)));
}

TEST(PythonFolders, AreAskedForAgainWhereItDidNotStart) {
  if (!python::find_python()) GTEST_SKIP() << "no python3 here";
  // In a folder of its own, as python3 is known by its path.
  const ScriptedPython python("[ -e " + (fs::temp_directory_path() / "warpsmith-scripted-").string() +
                              std::to_string(::getpid()) + "/again ] || exit 1");
  const fs::path again = python.folder() / "." / "python3";
  EXPECT_TRUE(python::python_folders(again).empty());
  write_file_atomic(python.folder() / "again", "");
  EXPECT_FALSE(python::python_folders(again).empty());
}

TEST(PythonFolders, VariablesThatPythonWants) {
  const WithVariable path("PYTHONPATH", "/a:/b"), home("PYTHONHOME", ""), other("PYTHONSTARTUP", "/x");
  EXPECT_EQ(python::python_variables().at("PYTHONPATH"), "/a:/b");
  EXPECT_FALSE(python::python_variables().contains("PYTHONHOME"));
  EXPECT_FALSE(python::python_variables().contains("PYTHONSTARTUP"));
}

// ---- compiled

class PythonCompiler : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = python_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
    options_.cache = fs::temp_directory_path() / ("warpsmith-python-test-" + std::to_string(::getpid()));
    options_.unsandboxed = true;
    task_.id = "gelu";
  }
  void TearDown() override {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(options_.cache, error))
      EXPECT_FALSE(fs::is_directory(entry)) << entry << " was left";
    fs::remove_all(options_.cache, error);
  }
  CompileResult compile(const Candidate& c, const std::string& target = "sm_90a",
                        const PythonLimits& least = {}) {
    return compile_python(c, task_, *parse_gpu_target(target), options_, least);
  }
  CompileResult compile(const std::string& source) { return compile(candidate_of(source)); }
  static bool has_builders() {
    return extension_toolchain_lacks().empty() && std::system("ninja --version > /dev/null 2>&1") == 0;
  }
  CompileOptions options_;
  task::Task task_;
};

// {name: content} of an archive; shared objects as the architectures that are named in them.
Json contents(const fs::path& zip) {
  return parse_json(run_script("import json, re, zipfile\n"
                               "with zipfile.ZipFile('" +
                               zip.string() +
                               "') as z:\n"
                               "    print(json.dumps({n: sorted(set(re.findall(r'sm_[0-9]+a?', "
                               "z.read(n).decode('latin1')))) if n.endswith('.so') else z.read(n).decode() "
                               "for n in z.namelist()}))\n"),
                    "zip");
}

TEST_F(PythonCompiler, APlainModuleOfTwoFiles) {
  const std::vector<SourceFile> files = {{"model.py",
                                          "import torch\nfrom parts.scale import SCALE\nprint('x' * 100)\n"
                                          "assert __name__ == 'model'\n"
                                          "def forward(x):\n    return x * SCALE\n"},
                                         {"parts/scale.py", "SCALE = 2\n"}};
  const CompileResult made = compile(candidate_of(files));
  ASSERT_EQ(made.verdict, Verdict::kOk) << made.log;
  EXPECT_EQ(made.log, "");
  EXPECT_EQ(made.binary.extension(), ".zip");
  const Json zip = contents(made.binary);
  EXPECT_EQ(zip.at("source/model.py"), files[0].content);
  EXPECT_EQ(zip.at("source/parts/scale.py"), files[1].content);
  EXPECT_EQ(parse_json(zip.at("index.json").get<std::string>(), "index"),
            (Json{{"schema", "warpsmith.python/1"}, {"module", "model.py"}, {"extensions", Json::object()}}));
  EXPECT_EQ(zip.size(), 3u);
  EXPECT_EQ(read_extension_facts(made.binary).target, "sm_90a");
  EXPECT_THAT(read_extension_facts(made.binary).nvcc, HasSubstr("torch 2."));
  EXPECT_EQ(read_extension_facts(made.binary).code.tensor_cores, std::nullopt) << "no kernel of its own";
  const CompileResult again = compile(candidate_of(files));
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.binary, made.binary);
}

// A sandbox may hold no list of users, and the import alone asks for a name.
TEST_F(PythonCompiler, ThereIsAUsersName) {
  const CompileResult made = compile(candidate_of({{"model.py",
                                                    "import getpass\nimport torch._inductor.config\n"
                                                    "assert getpass.getuser() == 'warpsmith'\n"
                                                    "def forward(x):\n    return x\n"}}));
  EXPECT_EQ(made.verdict, Verdict::kOk) << made.log;
}

struct Mistake {
  const char* source;
  const char* log;
};

TEST_F(PythonCompiler, MistakesWithTheirPlaces) {
  const Mistake rows[] = {
      {"import torch\ndef forward(x:\n    return x\n",
       "model.py:2:12: error: SyntaxError: '(' was never closed\n"},
      {"def other(x):\n    return x\n",
       "model.py:1:1: error: neither a class `ModelNew` nor a function `forward` is defined\n"},
      {"x = 1\ny = x.missing\n",
       "model.py:2:5: error: AttributeError: 'int' object has no attribute 'missing'\n"},
      {"import torch\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, n):\n        pass\n",
       "model.py:3:1: error: TypeError: ModelNew.__init__() missing 1 required positional argument: 'n'\n"},
      {"raise ValueError('half \\ud800 in /usr/lib/x.so')\n",
       "model.py:1:1: error: ValueError: half ? in x.so\n"},
      {"import sys\nsys.exit(3)\n", "model.py:2:1: error: SystemExit: 3\n"},
      {"import os\nos._exit(0)\n",
       "model.py: error: python3 ended while the module was imported, or it was made to end\n"},
  };
  for (const Mistake& row : rows) {
    const CompileResult r = compile(row.source);
    EXPECT_EQ(r.verdict, Verdict::kCompileError) << row.source;
    EXPECT_EQ(r.log, row.log);
  }
}

TEST_F(PythonCompiler, AGpuIsNotWanted) {
  const CompileResult r = compile(std::string(kModel) + "x = torch.zeros(4, device='cuda')\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_THAT(
      r.log, AllOf(StartsWith("model.py:7:5: note: stopped here for want of a GPU"), Not(HasSubstr("/tmp"))));
}

// It is told of a GPU, so that it builds what it builds for one.
TEST_F(PythonCompiler, AGpuIsPretended) {
  const CompileResult r = compile(std::string(kModel) +
                                  "assert torch.cuda.is_available() and torch.cuda.device_count() == 1\n"
                                  "assert torch.cuda.get_device_capability() == (9, 0)\n"
                                  "assert torch.cuda.get_device_properties(0).major == 9\n"
                                  "torch.cuda.synchronize()\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_THAT(r.log, StartsWith("model.py:10:1: note: stopped here for want of a GPU"));
}

// Of a task that is a module it gets the arguments. Weights are not made, unless it looks at them.
TEST_F(PythonCompiler, AModuleIsMadeWithTheArgumentsOfItsTask) {
  task::Task task;
  task.module =
      "import torch\n"
      "def get_init_inputs():\n"
      "    return [1 << 20]\n";
  const auto made = [&](const std::string& body) {
    return compile_python(candidate_of("import torch\n"
                                       "class ModelNew(torch.nn.Module):\n"
                                       "    def __init__(self, width):\n"
                                       "        super().__init__()\n"
                                       "        " +
                                       body + "\n"),
                          task, *parse_gpu_target("sm_90a"), options_);
  };
  const CompileResult large = made("self.weight = torch.nn.Parameter(torch.randn(width, width))");
  EXPECT_EQ(large.verdict, Verdict::kOk) << large.log;
  const CompileResult looks = made("assert torch.rand(4).sum().item() > 0 and width == 1 << 20");
  EXPECT_EQ(looks.verdict, Verdict::kOk) << looks.log;
  const CompileResult wrong = made("raise ValueError(f'width {width}')");
  EXPECT_EQ(wrong.verdict, Verdict::kCompileError);
  EXPECT_EQ(wrong.log, "model.py:5:9: error: ValueError: width 1048576\n");
  // Another module, another binary: what is built may depend on the arguments.
  const fs::path before = looks.binary;
  task.module += "# another\n";
  EXPECT_NE(made("assert torch.rand(4).sum().item() > 0 and width == 1 << 20").binary, before);
}

TEST_F(PythonCompiler, WhatTheSandboxKeepsFromIt) {
  if (process::available_sandbox() != process::SandboxLevel::kBubblewrap)
    GTEST_SKIP() << "no bubblewrap here";
  // All of it in one message: nothing was read, reached or written.
  const CompileResult r = compile(
      "import os, socket, torch\n"
      "found = []\n"
      "def attempt(name, action):\n"
      "    try:\n"
      "        action()\n"
      "        found.append(name)\n"
      "    except OSError:\n"
      "        pass\n"
      "attempt('passwd', lambda: found.append(open('/etc/passwd').read()))\n"
      "attempt('network', lambda: socket.create_connection(('1.1.1.1', 53), timeout=2))\n"
      "attempt('write', lambda: open(os.path.join(os.path.dirname(torch.__file__), 'x'), 'w'))\n"
      "raise ValueError('found ' + repr(found) + ' in ' + os.getcwd())\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_THAT(r.log, StartsWith("model.py:12:1: error: ValueError: found [] in "));
  EXPECT_THAT(r.log, Not(HasSubstr("/tmp")));
}

// The candidate's process may leave links in its folder; what follows them sees no more than it did.
TEST_F(PythonCompiler, LinksAreNotFollowed) {
  const fs::path victim = options_.cache / "victim.json";
  make_folders(options_.cache);
  write_file_atomic(victim, "untouched");
  const CompileResult r = compile(
      "import os, shutil, sys\n"
      "top = os.path.dirname(os.getcwd())\n"
      "shutil.rmtree(os.path.join(top, 'source'))\n"
      "os.symlink('" +
      options_.cache.string() +
      "', os.path.join(top, 'source'))\n"
      "shutil.rmtree(os.path.join(top, 'extensions'))\n"
      "os.symlink('" +
      options_.cache.string() +
      "', os.path.join(top, 'extensions'))\n"
      "def forward(x):\n    return x\n");
  ASSERT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_THAT(contents(r.binary).at("source/model.py").get<std::string>(), StartsWith("import os, shutil"));
  EXPECT_EQ(read_file(victim), "untouched");
}

// What stands at the end of a module that writes what our own script would say: `say` writes to every
// descriptor.
constexpr const char* kForge =
    "import json, os\n"
    "def say(text, code):\n"
    "    for fd in range(3, 64):\n"
    "        try:\n"
    "            os.write(fd, text.encode())\n"
    "        except OSError:\n"
    "            pass\n"
    "    os._exit(code)\n"
    "def report(outcome, extensions={}):\n"
    "    say(json.dumps({'outcome': outcome, 'log': 'so it is', 'compiler_log': '', 'libraries': [],\n"
    "                    'extensions': extensions}), 0)\n";

TEST_F(PythonCompiler, WhatAModuleSaysOfThisMachineIsNotBelieved) {
  CompileResult r = compile(std::string(kForge) + "say('No space left on device', 1)\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError) << r.log;
  r = compile(std::string(kForge) + "report('broken')\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError) << r.log;
  EXPECT_THAT(r.log, Not(HasSubstr("so it is")));
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  r = compile(std::string(kForge) + "report('unsupported')\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError) << r.log;
}

TEST_F(PythonCompiler, ExtensionsHaveASize) {
  const auto of_sizes = [&](const std::string& sizes) {
    const CompileResult r = compile(std::string(kForge) +
                                    "made = {}\n"
                                    "for i, size in enumerate([" +
                                    sizes +
                                    "]):\n"
                                    "    made['%064x' % i] = 'x'\n"
                                    "    with open('../extensions/%064x.so' % i, 'wb') as file:\n"
                                    "        file.truncate(size << 20)\n"
                                    "report('ok', made)\n");
    EXPECT_EQ(r.verdict, Verdict::kCompileError) << sizes;
    return r.log;
  };
  EXPECT_EQ(of_sizes("193"), "model.py: error: an extension has over 192 MiB\n");
  EXPECT_EQ(of_sizes("190, 190, 190"), "model.py: error: the extensions have over 512 MiB together\n");
  const CompileResult r = compile(std::string(kForge) + "report('ok', {'%064x' % 0: 'x'})\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_EQ(r.log, "model.py: error: what the module has built cannot be read\n");
}

// It starts outside, where its version is asked for, and not in the sandbox.
TEST_F(PythonCompiler, APythonThatDoesNotStartIsNotTheCandidatesFault) {
  if (process::available_sandbox() == process::SandboxLevel::kNone) GTEST_SKIP() << "no sandbox here";
  const ScriptedPython python(
      "cat /etc/passwd > /dev/null 2>&1 || { echo where is everything >&2; exit 1; }");
  const WithVariable chosen("WARPSMITH_PYTHON", python.path().string());
  if (const std::string lacks = python_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
  for (int i = 0; i < 2; ++i) {
    try {
      compile(kModel);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_THAT(e.what(),
                  AllOf(HasSubstr("does not start in the sandbox"), HasSubstr("where is everything")));
    }
  }
}

TEST_F(PythonCompiler, WhatNeverEnds) {
  options_.timeout_s = 1;
  CompileResult r = compile(candidate_of("while True:\n    pass\n"), "sm_90a", {.whole_s = 60, .own_s = 2});
  EXPECT_EQ(r.verdict, Verdict::kCompileTimeout) << r.log;
  EXPECT_EQ(r.log, "model.py: importing the module, without what it builds, took too long\n");
  EXPECT_LT(r.seconds, 40);
  // A module that keeps the signal away meets the limit of the sandbox.
  r = compile(candidate_of("import signal\nsignal.alarm(0)\nsignal.setitimer(signal.ITIMER_REAL, 0)\n"
                           "while True:\n    pass\n"),
              "sm_90a", {.whole_s = 12, .own_s = 2});
  EXPECT_EQ(r.verdict, Verdict::kCompileTimeout) << r.log;
  EXPECT_EQ(r.log, "model.py: importing the module and building its extensions took over 12 s\n");
  EXPECT_FALSE(compile(candidate_of(kModel), "sm_90a").cached);
}

TEST_F(PythonCompiler, InputsWithStridesAreUnsupported) {
  task_.inputs.emplace_back().name = "x";
  task_.inputs.back().shape = task_.inputs.back().strides = {task::Expression::parse("2")};
  const CompileResult made = compile(kModel);
  EXPECT_EQ(made.verdict, Verdict::kUnsupported);
  EXPECT_THAT(made.log, HasSubstr("input `x` has strides"));
}

// ---- with extensions

constexpr const char* kPlainSource =
    "import torch\n"
    "from torch.utils.cpp_extension import load_inline, load\n"
    "import os\n"
    "SOURCE = '''\n"
    "int twice(int x) { return 2 * x; }\n"
    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"twice\", twice); }\n"
    "'''\n"
    "HEAD = '#include <pybind11/pybind11.h>'\n"
    "sources = [HEAD, SOURCE]\n"
    "def make():\n"
    "    return load_inline(name='plain', cpp_sources=sources, no_implicit_headers=True, verbose=True,\n"
    "                       extra_cflags=['-O1', '-march=native'])\n";

// Names of the extensions that were built.
std::vector<std::string> extensions_in(const fs::path& zip) {
  const Json index = parse_json(contents(zip).at("index.json").get<std::string>(), "index");
  std::vector<std::string> names;
  for (const auto& [key, name] : index.at("extensions").items()) names.push_back(name);
  return names;
}

// The module asks for them when it is first called: it is, with tensors that have no values.
TEST_F(PythonCompiler, WhatForwardBuildsIsBuilt) {
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  const std::string model = std::string(kPlainSource) +
                            "class ModelNew(torch.nn.Module):\n"
                            "    def __init__(self):\n"
                            "        super().__init__()\n"
                            "        self.layer, self.plain = torch.nn.Linear(3, 2), None\n"
                            "    def forward(self, x):\n"
                            "        x = self.layer(x)\n"
                            "        if not x.is_cuda or x.shape != (8, 2):\n"
                            "            return x\n"
                            "        self.plain = self.plain or make()\n"
                            "        y = self.plain.twice(x.float())\n"
                            "        return y if y.sum().item() > 0 else x\n";
  task_.timing = {{}};
  task_.inputs.emplace_back();
  task_.inputs[0].shape = {task::Expression::parse("8"), task::Expression::parse("3")};
  const CompileResult own = compile(model);
  ASSERT_EQ(own.verdict, Verdict::kOk) << own.log;
  EXPECT_THAT(extensions_in(own.binary), ElementsAre("plain"));
  task_ = task::Task();
  task_.module =
      "import torch\ndef get_init_inputs():\n    return []\n"
      "def get_inputs():\n    return [torch.rand(8, 3)]\n";
  const CompileResult module = compile(model);
  ASSERT_EQ(module.verdict, Verdict::kOk) << module.log;
  EXPECT_THAT(extensions_in(module.binary), ElementsAre("plain"));
  // What it does then is no verdict.
  const CompileResult ends =
      compile(std::string(kPlainSource) + "def forward(*x):\n    make()\n    raise SystemExit(3)\n");
  ASSERT_EQ(ends.verdict, Verdict::kOk) << ends.log;
  EXPECT_THAT(extensions_in(ends.binary), ElementsAre("plain"));
  // A mistake in it is found where the module is compiled.
  const CompileResult wrong =
      compile(std::string(kPlainSource) +
              "def forward(*x):\n    return load_inline('wrong', HEAD + '\\nint f() { return y; }', "
              "no_implicit_headers=True)\n");
  EXPECT_EQ(wrong.verdict, Verdict::kCompileError);
  EXPECT_THAT(wrong.log, HasSubstr("'y' was not declared"));
}

// Without torch's headers that is quick.
TEST_F(PythonCompiler, ExtensionsOfCppAloneAndOfFiles) {
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  const std::vector<SourceFile> files = {
      {"model.py", std::string(kPlainSource) +
                       "first, second = make(), make()\n"
                       "assert first.twice(21) == 42 and second is first\n"
                       "here = os.path.dirname(os.path.abspath(__file__))\n"
                       "other = load('other', [os.path.join(here, 'parts', 'other.cpp')])\n"
                       "assert other.thrice(2) == 6\n"
                       "def forward(x):\n    return x\n"},
      {"parts/other.cpp",
       "#include <pybind11/pybind11.h>\n#include \"other.h\"\n"
       "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"thrice\", thrice); }\n"},
      {"parts/other.h", "inline int thrice(int x) { return 3 * x; }\n"}};
  const CompileResult made = compile(candidate_of(files));
  ASSERT_EQ(made.verdict, Verdict::kOk) << made.log;
  const Json zip = contents(made.binary);
  const Json index = parse_json(zip.at("index.json").get<std::string>(), "index");
  for (const auto& [key, name] : index.at("extensions").items())
    EXPECT_TRUE(zip.contains("extensions/" + key + ".so"));
  EXPECT_THAT(extensions_in(made.binary), ::testing::UnorderedElementsAre("plain", "other"));
  EXPECT_TRUE(compile(candidate_of(files)).cached);
}

TEST_F(PythonCompiler, MistakesInExtensions) {
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  std::string source = kPlainSource;
  source.replace(source.find("2 * x"), 5, "2 * y");
  CompileResult r = compile(source + "make()\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_THAT(r.log, StartsWith("model.py:5:31: error: "));
  EXPECT_THAT(r.log,
              AllOf(HasSubstr("was not declared"), Not(HasSubstr("/tmp")), Not(HasSubstr("main.cpp"))));
  // A module that goes on without it says so.
  r = compile(source + "try:\n    make()\nexcept Exception:\n    pass\ndef forward(x):\n    return x\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_THAT(r.log, HasSubstr("an extension failed to build"));
  EXPECT_EQ(contents(r.binary).size(), 2u);
  // So does one that asks for it when it is called, whatever comes of the call.
  r = compile(source +
              "def forward(*x):\n    try:\n        make()\n    except Exception:\n        pass\n"
              "    import nothing_of_this_name\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_THAT(r.log, HasSubstr("an extension failed to build"));
  // An option that is none is told of the call.
  source = kPlainSource;
  source.replace(source.find("'-O1'"), 5, "'-fnone'");
  r = compile(source + "make()\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_THAT(r.log, AllOf(StartsWith("model.py:11:1: error: "), HasSubstr("-fnone")));
  // What no file defines is found out when it is loaded.
  source = kPlainSource;
  source.replace(source.find("int twice(int x) { return 2 * x; }"), 34, "int twice(int x);");
  r = compile(source + "make()\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_THAT(r.log,
              AllOf(StartsWith("model.py:11:"), HasSubstr("undefined symbol"), Not(HasSubstr("/tmp"))));
}

TEST_F(PythonCompiler, WithoutNinjaExtensionsAloneAreUnsupported) {
  if (!extension_toolchain_lacks().empty()) GTEST_SKIP() << extension_toolchain_lacks();
  const auto python = python::find_python();
  if (fs::exists(python->parent_path() / "ninja")) GTEST_SKIP() << "this python3 has a ninja of its own";
  // A folder of links to all that is in PATH but ninja.
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-no-ninja-" + std::to_string(::getpid()));
  make_folders(folder);
  for (const char* name : {"g++", "sh", "ls"}) fs::create_symlink(fs::path("/usr/bin") / name, folder / name);
  const WithVariable path("PATH", folder.string());
  // (What is here is looked for once a process and python3.)
  const WithVariable again("WARPSMITH_PYTHON", (python->parent_path() / "." / python->filename()).string());
  const CompileResult r = compile(std::string(kPlainSource) +
                                  "try:\n    make()\nexcept Exception:\n    pass\ndef forward(x): pass\n");
  EXPECT_EQ(r.verdict, Verdict::kUnsupported) << r.log;
  EXPECT_THAT(r.log, HasSubstr("torch wants ninja"));
  EXPECT_EQ(compile(kModel).verdict, Verdict::kOk);
  fs::remove_all(folder);
}

constexpr const char* kCudaSource =
    "import torch\n"
    "from torch.utils.cpp_extension import load_inline\n"
    "cuda_source = '''#include <cublas_v2.h>\n"
    "__global__ void k(const float* x, float* o, int n) {\n"
    "  int i = blockIdx.x * 256 + threadIdx.x;\n"
    "  if (i < n) o[i] = 2 * x[i];\n"
    "}\n"
    "torch::Tensor twice(torch::Tensor x) {\n"
    "  auto o = torch::empty_like(x);\n"
    "  cublasHandle_t h; cublasCreate(&h); cuInit(0);\n"
    "  k<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), o.data_ptr<float>(), x.numel());\n"
    "  return o;\n"
    "}\n"
    "'''\n"
    "cpp_source = 'torch::Tensor twice(torch::Tensor x);'\n"
    "module = load_inline(name='twice', cpp_sources=cpp_source, cuda_sources=cuda_source, "
    "functions=['twice'],\n"
    "                     extra_cuda_cflags=['-O3', '-arch=sm_80', '-gencode', "
    "'arch=compute_86,code=sm_86'],\n"
    "                     extra_ldflags=['-lcuda', '-lcublas'])\n"
    "class ModelNew(torch.nn.Module):\n"
    "    def forward(self, x):\n"
    "        return module.twice(x)\n";

// One minute: two files with torch's headers. It wants the driver's library, which need not be here.
TEST_F(PythonCompiler, AnExtensionOfCuda) {
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  const CompileResult made = compile(kCudaSource);
  ASSERT_EQ(made.verdict, Verdict::kOk) << made.log;
  const Json zip = contents(made.binary);
  ASSERT_EQ(zip.size(), 3u);
  for (const auto& [name, content] : zip.items())
    if (name.ends_with(".so")) {
      EXPECT_EQ(content, (Json{"sm_90a"}));
    }
  EXPECT_THAT(read_extension_facts(made.binary).libraries, ElementsAre("cublas"));
  const CodeFacts code = read_extension_facts(made.binary).code;
  EXPECT_EQ(code.tensor_cores, false);
  EXPECT_GT(code.registers, 4);
  EXPECT_EQ(code.shared_bytes, 0);
  EXPECT_EQ(code.spill_bytes, std::nullopt);
  RecordProperty("seconds", std::to_string(made.seconds));
}

TEST_F(PythonCompiler, AMistakeInCuda) {
  if (!has_builders()) GTEST_SKIP() << "nvcc, a host compiler or ninja is not here";
  // Without torch's headers, which take a minute.
  const CompileResult r = compile(
      "import torch\n"
      "from torch.utils.cpp_extension import load_inline\n"
      "cuda_source = '''#include <cublas_v2.h>\n"
      "__global__ void k(const float* x, float* o, int n) {\n"
      "  int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < n) o[i] = 2 * y[i];\n"
      "}\n"
      "'''\n"
      "module = load_inline(name='twice', cpp_sources='', cuda_sources=cuda_source, "
      "no_implicit_headers=True)\n"
      "def forward(x):\n"
      "    return x\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_EQ(r.log, "model.py:6:25: error: identifier \"y\" is undefined\n");
}

}  // namespace
}  // namespace warpsmith::toolchain

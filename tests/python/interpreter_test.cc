#include "warpsmith/python/interpreter.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "with_variable.h"

namespace warpsmith::python {
namespace {

// Answers each line of JSON by what `answer` makes of it.
std::string script(const std::string& answer) {
  return "import json, os, socket, sys\n"
         "channel = socket.socket(fileno=int(sys.argv[1]))\n"
         "for line in channel.makefile('r'):\n"
         "    question = json.loads(line)\n" +
         answer;
}

class InterpreterTest : public testing::Test {
 protected:
  void SetUp() override {
    python_ = find_python();
    if (!python_) GTEST_SKIP() << "there is no python3 here";
  }
  Interpreter start(const std::string& text) {
    return Interpreter({.python = *python_,
                        .script = text,
                        .folder = folder_ / "python",
                        .environment = {{"WARPSMITH_X", "x"}}});
  }
  std::string failure(Interpreter& child, double timeout_s = 30) {
    try {
      child.ask({{"n", 1}}, timeout_s);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  Scratch folder_;
  std::optional<std::filesystem::path> python_;
};

TEST_F(InterpreterTest, AnswersOneQuestionAfterAnother) {
  Interpreter child =
      start(script("    print('chatter')\n"
                   "    channel.sendall((json.dumps({'twice': question['n'] * 2, 'x': "
                   "os.environ['WARPSMITH_X']}) + '\\n').encode())\n"));
  for (int n = 0; n < 100; ++n) {
    const Json answer = child.ask({{"n", n}}, 30);
    EXPECT_EQ(answer.at("twice"), 2 * n);
    EXPECT_EQ(answer.at("x"), "x");
  }
}

TEST_F(InterpreterTest, ALongAnswerComesWhole) {
  Interpreter child =
      start(script("    channel.sendall((json.dumps(list(range(200000))) + '\\n').encode())\n"));
  EXPECT_EQ(child.ask({{"n", 1}}, 30).size(), 200000u);
}

TEST_F(InterpreterTest, WhatEndedItIsItsLastLine) {
  Interpreter child = start(script("    raise RuntimeError('no triton')\n"));
  EXPECT_EQ(failure(child), "python3 has ended (RuntimeError: no triton)");
  EXPECT_EQ(failure(child), "python3 has ended");
}

TEST_F(InterpreterTest, AScriptThatDoesNotAnswerIsGivenUp) {
  Interpreter child = start(script("    pass\n"));
  EXPECT_EQ(failure(child, 0.3), "python3 does not answer");
}

TEST_F(InterpreterTest, WhatIsNoJsonIsAnError) {
  Interpreter child = start(script("    channel.sendall(b'well\\n')\n"));
  EXPECT_EQ(failure(child), "python3 answers with what is no JSON: well");
}

TEST(FindPython, TheEnvironmentSaysWhich) {
  {
    const WithVariable none("WARPSMITH_PYTHON", "");
    EXPECT_FALSE(find_python());
  }
  {
    const WithVariable shell("WARPSMITH_PYTHON", "/bin/sh");
    EXPECT_EQ(find_python(), std::filesystem::path("/bin/sh"));
  }
  const WithVariable gone("WARPSMITH_PYTHON", "/nowhere/python3");
  EXPECT_FALSE(find_python());
}

TEST(FindPython, ThatOfTheTorchThatIsNamed) {
  const char* chosen = std::getenv("WARPSMITH_PYTHON");
  if (chosen != nullptr) GTEST_SKIP() << "WARPSMITH_PYTHON is set";
  const Scratch scratch;
  const fs::path python = scratch / "bin/python3", torch = scratch / "lib/python3.11/site-packages/torch";
  make_folders(python.parent_path());
  make_folders(torch);
  {
    const WithVariable none("TORCH_ROOT", torch.string());
    EXPECT_NE(find_python(), python) << "it is not there";
  }
  fs::create_symlink("/bin/sh", python);
  for (const std::string& root : {torch.string(), torch.string() + "/"}) {
    const WithVariable named("TORCH_ROOT", root);
    EXPECT_EQ(find_python(), python) << root;
  }
  make_folders(scratch / "libtorch");
  const WithVariable no_wheel("TORCH_ROOT", (scratch / "libtorch").string());
  EXPECT_NE(find_python(), python);
}

}  // namespace
}  // namespace warpsmith::python

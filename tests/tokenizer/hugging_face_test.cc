// Ids against Hugging Face's `tokenizers`, on this project's own files and on odd texts.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::tokenizer {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOdd = {
    "",
    " ",
    "\n",
    "a",
    "  \n\n  x\t\ty \r\n\r\n z",
    "trailing blanks   ",
    "   \n   ",
    "don't I'LL we'Ve it'S 's",
    "1234567890 12,345.678e-9 0x1F ٣٤٥ ①②③ ½",
    "caf\u00e9 cafe\u0301 \u212b \u1e9b\u0323 \uac01 \u1100\u1161\u11a8",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f \u30ab\u30bf\u30ab\u30ca",
    "\u00a0\u2003\u3000x\u0085y\u180ez\u200b",
    "<|begin_of_text|>hello<|end_of_text|> <|im_start|>user\nhi<|im_end|><|endoftext|>",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>x<\uff5cend\u2581of\u2581sentence\uff5c>",
    "a  [MASK] b float4 float4x float4\t \n y _float4 float4\u0301",
    "__global__ void k(const float* __restrict__ x) { x[i] += 1.f / (1.f + __expf(-x[i])); }",
    "\x01\x02\x7f\x1b[0m",
    "!!!???...---===///\\\\\\```~~~",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22 \u05e2\u05d1\u05e8\u05d9\u05ea "
    "\u0639\u0631\u0628\u064a",
};

std::string long_run(const char* of, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += of;
  return text;
}

bool is_text(const fs::path& path) {
  for (const char* ending : {".cc", ".h", ".py", ".md", ".cu", ".cuh", ".yaml", ".sh", ".txt"})
    if (path.extension() == ending) return true;
  return false;
}

class HuggingFaceTokenizers : public testing::Test {
 protected:
  void add(const fs::path& path) {
    const std::string text = read_file(path);
    if (first_not_utf8(text) != text.size()) return;
    texts_.push_back(text);
    list_ += path.string() + "\n";
  }
  void add_text(const std::string& text) {
    const fs::path path = folder_ / ("odd" + std::to_string(texts_.size()));
    write_file_atomic(path, text);
    add(path);
  }

  Scratch folder_;
  std::vector<std::string> texts_;
  std::string list_;
};

TEST_F(HuggingFaceTokenizers, GiveTheSameIds) {
  const std::optional<fs::path> python = python::find_python();
  if (!python) GTEST_SKIP() << "there is no python3 with torch here, and none with `tokenizers`";
  for (const std::string& text : kOdd) add_text(text);
  for (const char* run : {" ", "a", "ab", "=", "\n", "1", "\u00e9", "\u4e2d", "\t "})
    add_text(long_run(run, 3000));
  for (const char* part : {"src", "include", "datasets", "workflows", "slurm", "README.md"}) {
    const fs::path path = fs::path(WARPSMITH_SOURCE_DIR) / part;
    if (!fs::is_directory(path)) {
      add(path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file() && is_text(entry.path())) add(entry.path());
  }
  ASSERT_GT(texts_.size(), 500u);
  write_file_atomic(folder_ / "files", list_);
  const std::string command = "'" + python->string() +
                              "' '" WARPSMITH_SOURCE_DIR "/tests/tokenizer/hugging_face.py' '" +
                              (folder_ / "out").string() + "' '" + (folder_ / "files").string() + "' 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::vector<std::string> names;
  std::string said;
  for (char line[512]; std::fgets(line, sizeof line, pipe) != nullptr;) {
    names.emplace_back(line, std::strcspn(line, "\n"));
    said += line;
  }
  const int status = ::pclose(pipe);
  if (said.find("No module named 'tokenizers'") != std::string::npos || (status == 0 && names.empty()))
    GTEST_SKIP() << "`tokenizers` or its vocabularies are not installed (cmake/setup.sh test)";
  ASSERT_EQ(status, 0) << said;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const fs::path folder = folder_ / "out" / name;
    const Pretrained tokenizer = Pretrained::load(folder / "tokenizer.json");
    const std::string ids = read_file(folder / "ids");
    std::size_t at = 0, different = 0;
    for (const std::string& text : texts_) {
      if (at == ids.size()) break;  // fewer texts of this one
      std::int32_t count = 0;
      std::memcpy(&count, ids.data() + at, sizeof count);
      at += sizeof count;
      std::vector<Token> wanted(static_cast<std::size_t>(count));
      std::memcpy(wanted.data(), ids.data() + at, wanted.size() * sizeof(Token));
      at += wanted.size() * sizeof(Token);
      const std::vector<Token> got = tokenizer.encode(text);
      if (got != wanted && ++different <= 3) {
        const auto where = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end()).first;
        ADD_FAILURE() << "other ids from token " << where - got.begin() << " of:\n" << text.substr(0, 300);
      }
    }
    EXPECT_EQ(at, ids.size());
    EXPECT_GT(at, 0u);
    EXPECT_EQ(different, 0u) << "of " << texts_.size() << " texts";
  }
}

}  // namespace
}  // namespace warpsmith::tokenizer

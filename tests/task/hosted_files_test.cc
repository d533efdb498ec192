#include "warpsmith/task/hosted_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"

namespace warpsmith::task {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const char* const kModel = "class ModelNew(torch.nn.Module): ...\n";

class HostedFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomic(path, text);
  }
  Task task() const {
    Task task;
    task.folder = folder_.path();
    return task;
  }
  std::vector<HostedSource> load(HostedTier tier) { return load_hosted_sources(task(), tier, mistakes_); }
  static std::vector<std::string> paths(const HostedSource& source) {
    std::vector<std::string> paths;
    for (const HostedFile& file : source.files) paths.push_back(file.path);
    return paths;
  }
  // Without the folder, which has another name each time.
  std::vector<std::string> mistakes() const {
    std::vector<std::string> texts;
    for (const Diagnostic& mistake : mistakes_)
      texts.push_back(to_string(mistake).substr(folder_.path().string().size() + 1));
    return texts;
  }
  TemporaryFolder folder_{"hosted-files"};
  Diagnostics mistakes_;
};

TEST_F(HostedFiles, OfTierExtensionAreOneFileOrAFolderOfThem) {
  write("extension/ok/plain.cu", "// one");
  write("extension/ok/parts/main.cpp", "// host");
  write("extension/ok/parts/inner/k.cuh", "// device");
  write("extension/hack/side_stream.cu", "// bad");
  const std::vector<HostedSource> sources = load(HostedTier::kExtension);
  EXPECT_THAT(mistakes_, SizeIs(0));
  ASSERT_THAT(sources, SizeIs(3));
  EXPECT_EQ(sources[0].expected + "/" + sources[0].name, "hack/side_stream");
  EXPECT_EQ(sources[0].tier, HostedTier::kExtension);
  EXPECT_EQ(sources[1].name, "parts");
  EXPECT_THAT(paths(sources[1]), ElementsAre("inner/k.cuh", "main.cpp"));
  EXPECT_EQ(sources[1].files[1].content, "// host");
  EXPECT_EQ(sources[2].name, "plain");
  EXPECT_THAT(paths(sources[2]), ElementsAre("kernel.cu"));
}

TEST_F(HostedFiles, OfTierPythonAreOneFileOrAFolderWithAModel) {
  write("python/ok/plain.py", kModel);
  write("python/ok/parts/a.py", "");
  write("python/ok/parts/kernels/k.cu", "// device");
  write("python/ok/parts/model.py", "def forward(x): ...\n");
  write("python/ok/parts/z.cuh", "// more");
  write("python/compile_error/no_model.py", "x = (\n");
  const std::vector<HostedSource> sources = load(HostedTier::kPython);
  EXPECT_THAT(mistakes(), ElementsAre());
  ASSERT_THAT(sources, SizeIs(3));
  EXPECT_EQ(sources[0].expected + "/" + sources[0].name, "compile_error/no_model");
  EXPECT_EQ(sources[1].name, "parts");
  EXPECT_EQ(sources[1].tier, HostedTier::kPython);
  EXPECT_THAT(paths(sources[1]), ElementsAre("model.py", "a.py", "kernels/k.cu", "z.cuh"));
  EXPECT_EQ(sources[2].name, "plain");
  EXPECT_THAT(paths(sources[2]), ElementsAre("model.py"));
  EXPECT_EQ(sources[2].files[0].content, kModel);
}

TEST_F(HostedFiles, WhatPythonLeavesBehindIsNone) {
  write("python/ok/__pycache__/plain.cpython-311.pyc", "");
  write("python/ok/plain.py", kModel);
  write("python/ok/parts/__pycache__/model.cpython-311.pyc", "");
  write("python/ok/parts/model.py", kModel);
  const std::vector<HostedSource> sources = load(HostedTier::kPython);
  EXPECT_THAT(mistakes(), ElementsAre());
  ASSERT_THAT(sources, SizeIs(2));
  EXPECT_THAT(paths(sources[0]), ElementsAre("model.py"));
}

TEST_F(HostedFiles, OfBothTiers) {
  write("extension/ok/plain.cu", "// one");
  write("python/ok/plain.py", kModel);
  const std::vector<HostedSource> sources = load_hosted_sources(task(), mistakes_);
  EXPECT_THAT(mistakes_, SizeIs(0));
  ASSERT_THAT(sources, SizeIs(2));
  EXPECT_EQ(sources[0].tier, HostedTier::kExtension);
  EXPECT_EQ(sources[1].tier, HostedTier::kPython);
}

TEST_F(HostedFiles, NoneAreNoMistake) {
  EXPECT_THAT(load_hosted_sources(task(), mistakes_), SizeIs(0));
  EXPECT_THAT(mistakes_, SizeIs(0));
}

TEST_F(HostedFiles, MistakesOfTierExtensionHaveTheirPlace) {
  write("extension/okay/plain.cu", "");
  write("extension/ok/notes.txt", "");
  write("extension/ok/parts/main.py", "");
  EXPECT_THAT(load(HostedTier::kExtension), SizeIs(0));
  ASSERT_THAT(mistakes_, SizeIs(3));
  EXPECT_THAT(mistakes_[0].message, HasSubstr("`okay` is no verdict"));
  EXPECT_THAT(mistakes_[1].file, HasSubstr("ok/notes.txt"));
  EXPECT_THAT(mistakes_[2].file, HasSubstr("ok/parts/main.py"));
}

TEST_F(HostedFiles, MistakesOfTierPythonHaveTheirPlace) {
  write("python/okay/plain.py", kModel);
  write("python/ok/a_kernel.cu", "");
  write("python/ok/b_parts/main.py", kModel);
  write("python/ok/c_parts/model.py", kModel);
  write("python/ok/c_parts/notes.txt", "");
  write("python/ok/d_nothing.py", "class Model: ...\nforwards = ModelNew2 = 1\n");
  write("python/ok/e_latin.py", "# one\n# gr\xfc\xdf\n" + std::string(kModel));
  write("python/ok/f_parts/model.py", kModel);
  write("python/ok/f_parts/part.py", std::string("a\0b", 3));
  std::filesystem::create_directories(folder_.path() / "python/ok/g_empty");
  EXPECT_THAT(load(HostedTier::kPython), SizeIs(0));
  EXPECT_THAT(
      mistakes(),
      ElementsAre(
          "python/okay: `okay` is no verdict that a candidate can be expected to get",
          "python/ok/a_kernel.cu: a candidate of one file ends in .py; several lie in a folder",
          "python/ok/b_parts: the folder holds no model.py (model.py defines `ModelNew` or `forward`, "
          "and imports the others)",
          "python/ok/c_parts/notes.txt: a file of a Python candidate ends in .py, or as C++ and CUDA do",
          "python/ok/d_nothing.py:1:1: defines neither `ModelNew` nor `forward` (class "
          "ModelNew(torch.nn.Module): …, or def forward(…): …)",
          "python/ok/e_latin.py:2:5: a byte that is not UTF-8",
          "python/ok/f_parts/part.py:1:2: a byte that is not UTF-8",
          "python/ok/g_empty: the folder holds no file"));
}

TEST_F(HostedFiles, PythonRefusesSomeFormsOfUtf8) {
  const std::vector<std::string> good = {
      "\xc2\x80",         "\xe0\xa0\x80",     "\xed\x9f\xbf",          "\xee\x80\x80",
      "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xef\xbb\xbf# \xc3\xa4"};
  const std::vector<std::string> bad = {"\xc0\x80",
                                        "\xe0\x80\x80",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xe2\x82",
                                        "\x80"};
  const std::string model = std::string("# ") + kModel;
  for (const std::string& character : good) {
    write("python/ok/one.py", "x = '" + character + "'\n" + model);
    load(HostedTier::kPython);
    EXPECT_THAT(mistakes(), ElementsAre()) << testing::PrintToString(character);
  }
  for (const std::string& character : bad) {
    mistakes_.clear();
    write("python/ok/one.py", "x = '" + character + "'\n" + model);
    load(HostedTier::kPython);
    EXPECT_THAT(mistakes(), ElementsAre("python/ok/one.py:1:6: a byte that is not UTF-8"))
        << testing::PrintToString(character);
  }
}

TEST_F(HostedFiles, AFileMaySayWhatElseItIs) {
  const std::string text = "# gr\xfc\xdf\n" + std::string(kModel);
  for (const char* head : {"# coding: latin-1\n", "#!/usr/bin/python3\r\n# -*- coding: iso-8859-15 -*-\r\n",
                           "\n# vim: set fileencoding=cp1252 :\n"}) {
    write("python/ok/one.py", head + text);
    load(HostedTier::kPython);
    EXPECT_THAT(mistakes(), ElementsAre()) << head;
  }
  for (const char* head : {"# coding: UTF_8\n", "x = 1\n# coding: latin-1\n", "\n\n# coding: latin-1\n",
                           "x = '# coding: latin-1'\n", "\xef\xbb\xbf# coding: latin-1\n"}) {
    mistakes_.clear();
    write("python/ok/one.py", head + text);
    load(HostedTier::kPython);
    EXPECT_THAT(mistakes(), SizeIs(1)) << head;
  }
  mistakes_.clear();
  write("python/ok/one.py", "# coding: latin-1\n" + std::string("\0", 1) + kModel);
  load(HostedTier::kPython);
  EXPECT_THAT(mistakes(), ElementsAre("python/ok/one.py:2:1: a byte that is not UTF-8"));
}

TEST_F(HostedFiles, WhereNoCompilingIsExpectedAModelMayDefineNothing) {
  write("python/compile_error/latin.py", "# \xff\n");
  EXPECT_THAT(load(HostedTier::kPython), SizeIs(1));
  EXPECT_THAT(mistakes(), ElementsAre());
}

// What cannot run gets its verdict when it is measured.
TEST_F(HostedFiles, ImportedKernelsAreOfAnyTierAndNeedDefineNothing) {
  write("imported/b.py", kModel);
  write("imported/a.py", "print('nothing')\n");
  write("imported/c.cu", "  // plan: launch k<<<1, 1>>>(x)\n");
  write("imported/d.cu", "// explains the plan: none\n");
  write("imported/origin.json", "{}");
  write("imported/__pycache__/a.pyc", "x");
  const std::vector<HostedSource> sources = load_imported_sources(folder_.path(), mistakes_);
  EXPECT_THAT(mistakes(), SizeIs(0));
  ASSERT_THAT(sources, SizeIs(4));
  EXPECT_EQ(sources[0].name, "a");
  EXPECT_EQ(sources[1].tier, HostedTier::kPython);
  EXPECT_EQ(sources[1].files.front().path, "model.py");
  EXPECT_EQ(sources[1].expected, "");
  EXPECT_FALSE(has_plan(sources[1]));
  EXPECT_TRUE(has_plan(sources[2]));
  EXPECT_FALSE(has_plan(sources[3]));
  write("imported/readme.txt", "x");
  write("imported/e.py", "# \xff\n");
  EXPECT_THAT(load_imported_sources(folder_.path(), mistakes_), SizeIs(4));
  EXPECT_THAT(mistakes(),
              ElementsAre("imported/e.py:1:3: a byte that is not UTF-8",
                          "imported/readme.txt: an imported kernel is a file that ends in .py or .cu"));
}

}  // namespace
}  // namespace warpsmith::task

#include "warpsmith/task/extension_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"

namespace warpsmith::task {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ExtensionFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / "extension" / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomic(path, text);
  }
  std::vector<ExtensionSource> load() {
    Task task;
    task.folder = folder_.path();
    return load_extension_sources(task, mistakes_);
  }
  TemporaryFolder folder_{"extension-files"};
  Diagnostics mistakes_;
};

TEST_F(ExtensionFiles, AreOneFileOrAFolderOfThem) {
  write("ok/plain.cu", "// one");
  write("ok/parts/main.cpp", "// host");
  write("ok/parts/inner/k.cuh", "// device");
  write("hack/side_stream.cu", "// bad");
  const std::vector<ExtensionSource> sources = load();
  EXPECT_THAT(mistakes_, SizeIs(0));
  ASSERT_THAT(sources, SizeIs(3));
  EXPECT_EQ(sources[0].expected + "/" + sources[0].name, "hack/side_stream");
  EXPECT_EQ(sources[1].name, "parts");
  ASSERT_THAT(sources[1].files, SizeIs(2));
  EXPECT_EQ(sources[1].files[0].path, "inner/k.cuh");
  EXPECT_EQ(sources[1].files[1].content, "// host");
  EXPECT_EQ(sources[2].name, "plain");
  EXPECT_EQ(sources[2].files.front().path, "kernel.cu");
}

TEST_F(ExtensionFiles, NoneAreNoMistake) {
  EXPECT_THAT(load(), SizeIs(0));
  EXPECT_THAT(mistakes_, SizeIs(0));
}

TEST_F(ExtensionFiles, MistakesHaveTheirPlace) {
  write("okay/plain.cu", "");
  write("ok/notes.txt", "");
  write("ok/parts/main.py", "");
  EXPECT_THAT(load(), SizeIs(0));
  ASSERT_THAT(mistakes_, SizeIs(3));
  EXPECT_THAT(mistakes_[0].message, HasSubstr("`okay` is no verdict"));
  EXPECT_THAT(mistakes_[1].file, HasSubstr("ok/notes.txt"));
  EXPECT_THAT(mistakes_[2].file, HasSubstr("ok/parts/main.py"));
}

}  // namespace
}  // namespace warpsmith::task

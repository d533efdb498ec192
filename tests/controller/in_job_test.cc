// The controller as a Slurm job: no path of its working folder may reach Slurm as a file name pattern.
#include "warpsmith/controller/in_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// slurmstepd expands `%` in the whole path of a job's output, and drops backslashes; in the working folder it
// does neither.
TEST(InJob, ASuccessorPrintsBelowItsWorkingFolder) {
  const Scratch scratch;
  const fs::path before = fs::current_path();
  for (const char* name : {"100%j", "r%%b", "r%5Cx", "%", "a b %A_%a", "r\\b", "%\\", "c [1] %u"}) {
    make_folders(scratch / name);
    fs::current_path(scratch / name);
    const executor::SlurmJob job = successor_job({}, "0a1b", {"/bin/warpsmith", "run", "100%j/w x.yaml"});
    EXPECT_EQ(job.folder, fs::current_path());
    EXPECT_EQ(job.output, "warpsmith-0a1b.log");
    EXPECT_EQ(job.script, "#!/bin/sh\nexec /bin/warpsmith run '100%j/w x.yaml'\n");
    fs::current_path(before);
  }
}

// sbatch makes an absolute path of what these options name, and then expands the folder's own `%`.
TEST(InJob, TheBatchScriptLeavesFileNamesToSlurm) {
  const std::string script = read_file(fs::path(WARPSMITH_SOURCE_DIR) / "slurm/warpsmith.sbatch");
  int directives = 0;
  for (const std::string& line : split_lines(script)) {
    if (!line.starts_with("#SBATCH")) continue;
    ++directives;
    for (const char* option : {"--output", "--error", "--input", "--chdir", " -o", " -e", " -i", " -D"})
      EXPECT_THAT(line, Not(HasSubstr(option)));
  }
  EXPECT_GT(directives, 0);
}

}  // namespace
}  // namespace warpsmith::controller

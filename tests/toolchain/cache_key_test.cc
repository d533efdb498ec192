// Caches are kept from version to version: a changed key compiles every candidate again.
#include <gtest/gtest.h>

#include "common/compile_unit.h"
#include "common/hosted.h"

namespace warpsmith::toolchain {
namespace {

task::Task some_task() {
  task::Task task;
  task.id = "copy";
  task.digest = "d1";
  return task;
}

TEST(CacheKey, OfPlansStaysTheSame) {
  Candidate candidate = make_plan_candidate("copy", "__global__ void k() {}\n", {});
  candidate.options = {"-DTILE=32", "--use_fast_math"};
  EXPECT_EQ(start_key("g++ 12", candidate, some_task(), {{"k", "k<3>"}, {"table"}}).hex(),
            "17d11e5547ba2db56b0f9ccd960c88ab86868e8dcd4660aa5884ca1670be3897");
}

TEST(CacheKey, OfFilesWithHostCodeStaysTheSame) {
  Candidate candidate;
  candidate.tier = Tier::kExtension;
  candidate.files = {{"kernel.cu", "int a;\n"}, {"part/b.cuh", "int b;\n"}};
  EXPECT_EQ(hosted_key("nvcc 13", candidate, some_task(), "sm_90a"),
            "a12fd51770b12c524b34ae2e57718cb3d371ea450a66dd5d37e5a4af858ee4ea");
  candidate.tier = Tier::kPython;
  EXPECT_EQ(hosted_key("python 3", candidate, some_task(), "sm_90a"),
            "74d4757c8b21175d6bf2adc25d43ae4273ebe6075e95a7371b03003dd1e25d35");
}

}  // namespace
}  // namespace warpsmith::toolchain

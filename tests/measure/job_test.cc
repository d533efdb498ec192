// A shard of a `measure` job: what is the machine's fault, and not one candidate's or one task's.
#include <gtest/gtest.h>

#include <cstdlib>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::measure {
namespace {

class MeasureJob : public testing::Test {
 protected:
  // So many candidates of each task, whose binaries are gone: the exit status, and how many have a record.
  std::pair<int, std::size_t> run(const std::vector<std::pair<std::string, int>>& tasks) const {
    const std::filesystem::path folder = scratch_.path() / "stages/s/00000000/0/measure";
    make_folders(folder);
    std::string items;
    std::size_t count = 0;
    for (const auto& [task, candidates] : tasks)
      for (int i = 0; i < candidates; ++i, ++count) {
        const Candidate made = make_plan_candidate(
            task,
            "// plan: launch k<<<1, 1>>>(x, out)\n__global__ void k(const float* x, float* out) {}\n// " +
                std::to_string(i) + "\n",
            {});
        items += Json{{"id", made.id}, {"candidate", to_json(made)}, {"binary", "gone.so"}}.dump() + "\n";
      }
    write_file_atomic(folder / "items.jsonl", items);
    JobFile job;
    job.shards = {{0, count}};
    job.params = {{"datasets", WARPSMITH_SOURCE_DIR "/datasets"}, {"unsandboxed", true}, {"budget_s", 0.1}};
    write_file_atomic(folder / "job.json", to_json(job).dump());
    const std::string command = "'" WARPSMITH_BINARY_DIR "/warpsmith-measure' '" +
                                (folder / "job.json").string() + "' 0 2>'" + (folder / "log.txt").string() +
                                "'";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read_shard_records(folder / "0").records.size()};
  }
  const Scratch scratch_;
};

TEST_F(MeasureJob, FaultsOfOneTaskAreNotTheMachines) {
  const auto [status, records] = run({{"gelu", 4}, {"transpose", 2}});
  EXPECT_EQ(status, kExitEnvironment);
  EXPECT_EQ(records, 4u);  // the fifth is of another task
}

TEST_F(MeasureJob, FaultsInARowEndTheShard) {
  const auto [status, records] = run({{"gelu", 4}});
  EXPECT_EQ(status, kExitEnvironment);
  EXPECT_EQ(records, 2u);
}

}  // namespace
}  // namespace warpsmith::measure

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "run_fixture.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/warpsmith-store-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

std::string run_command(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = ::pclose(pipe);
  if (WEXITSTATUS(status) != 0) out += "[exit " + std::to_string(WEXITSTATUS(status)) + "]";
  return out;
}

TEST_F(StoreTest, RecordsBecomeRows) {
  store_fixture::make_run(folder_, {.shards = 2, .items_a_shard = 3, .pairs = 35});
  const Results r = read_run(folder_);
  ASSERT_EQ(r.measurements.size(), 6u);
  EXPECT_EQ(r.candidates.size(), 6u);
  EXPECT_EQ(r.samples.size(), 6u * 70);
  EXPECT_EQ(r.devices.size(), 1u);
  EXPECT_EQ(r.measurements[0].stage, "contrastive");
  EXPECT_EQ(r.measurements[0].round, 2);
  EXPECT_EQ(r.measurements[0].sample_count, 70);
  ASSERT_EQ(r.shards.size(), 2u);
  EXPECT_TRUE(r.shards[1].ended);
  EXPECT_EQ(r.shards[1].folder, "stages/contrastive/0a1b2c3d/2/measure/1");
}

TEST_F(StoreTest, WhatIsWrittenIsReadBack) {
  store_fixture::make_run(folder_, {});
  Results r = read_run(folder_);
  r.measurements[1].value.verdict = Verdict::kHack;
  r.measurements[1].value.hack = "side_stream";
  r.measurements[2].value.detail = std::string("NUL \0 inside, and ünicode", 26);
  r.training.push_back({"sft", 0, 17, 1500, 2.5, 4e-3, 0.7, 0.09, 0, 0, 0});
  r.generated.push_back({"evaluate-sft", "row_softmax", "train", r.candidates[0].id, "ok", 0, 1.5});
  write_results(folder_ / "r.h5", r);
  const Results back = read_results(folder_ / "r.h5");
  ASSERT_EQ(back.measurements.size(), r.measurements.size());
  EXPECT_EQ(back.measurements[1].value.verdict, Verdict::kHack);
  EXPECT_EQ(back.measurements[1].value.hack, "side_stream");
  EXPECT_EQ(back.measurements[2].value.detail, "NUL \xEF\xBF\xBD inside, and ünicode");
  EXPECT_EQ(back.measurements[0].value.shape, r.measurements[0].value.shape);
  EXPECT_EQ(back.samples, r.samples);
  EXPECT_EQ(back.candidates[5].source, r.candidates[5].source);
  EXPECT_EQ(back.training[0].loss, 2.5);
  EXPECT_EQ(back.generated[0].candidate, r.candidates[0].id);
  EXPECT_EQ(back.devices[0].name, "Test CPU");
  EXPECT_EQ(back.workflow, "schema: warpsmith.workflow/1\n");
}

TEST_F(StoreTest, AnEmptyRunIsAFileWithEmptyTables) {
  write_results(folder_ / "r.h5", Results{});
  EXPECT_TRUE(read_results(folder_ / "r.h5").measurements.empty());
}

TEST_F(StoreTest, AggregateWritesOnceAndThenOnlyWhatIsNew) {
  store_fixture::make_run(folder_, {});
  EXPECT_EQ(aggregate(folder_).reason, "new");
  const Aggregated again = aggregate(folder_);
  EXPECT_FALSE(again.written) << again.reason;
  // A stage that has finished since.
  write_file_atomic(folder_ / "stages/contrastive/0a1b2c3d/output.json", R"({"kind":"contrastive","summary":{"valid":0.5}})");
  EXPECT_EQ(aggregate(folder_).reason, "1 shard or stage has changed");
  EXPECT_EQ(read_results(folder_ / "results.h5").stages.at(0).summary, R"({"valid":0.5})");
  EXPECT_EQ(aggregate(folder_, true).reason, "asked for");
}

TEST_F(StoreTest, EveryDamageIsFoundAndRebuilt) {
  store_fixture::make_run(folder_, {});
  aggregate(folder_);
  const fs::path file = folder_ / "results.h5";
  const std::string whole = read_file(file);
  Random random(3);
  for (int trial = 0; trial < 40; ++trial) {
    std::string bad = whole;
    if (trial % 2 == 0) bad.resize(random.below(whole.size()));
    else bad[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
    std::ofstream(file, std::ios::binary) << bad;
    const Aggregated done = aggregate(folder_);
    ASSERT_TRUE(done.written);
    ASSERT_TRUE(done.reason.starts_with("damaged: ")) << done.reason;
    ASSERT_EQ(read_results(file).measurements.size(), 6u);
  }
}

TEST_F(StoreTest, ACutFileIsRefusedByTheReader) {
  store_fixture::make_run(folder_, {});
  aggregate(folder_);
  fs::resize_file(folder_ / "results.h5", 3000);
  EXPECT_THROW(read_results(folder_ / "results.h5"), Error);
  EXPECT_THROW(read_results(folder_ / "nothing.h5"), Error);
}

TEST_F(StoreTest, CutRecordsCostOnlyThemselves) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 4, .pairs = 35});
  const fs::path records = folder_ / "stages/contrastive/0a1b2c3d/2/measure/0/1/records.jsonl";
  const std::string text = read_file(records);
  fs::resize_file(records, text.size() - 30);  // the end record and the tail of the last item
  EXPECT_EQ(read_run(folder_).measurements.size(), 3u);
  EXPECT_FALSE(read_run(folder_).shards[0].ended);
}

TEST_F(StoreTest, H5pyAndH5dumpReadIt) {
  if (run_command("/usr/bin/python3 -c 'import h5py'") != "") GTEST_SKIP() << "h5py is not installed";
  store_fixture::make_run(folder_, {});
  aggregate(folder_);
  const std::string script =
      "import h5py,sys\n"
      "f=h5py.File(sys.argv[1],'r')\n"
      "m=f['measurements']\n"
      "print(f.attrs['schema'].decode(), len(m['speedup']), m['verdict'][0].decode(), m['shape'][0].decode(), m['sample_count'][0])\n"
      "b=m['sample_begin'][1]; n=m['sample_count'][1]\n"
      "print(int(m['samples_ns'][b:b+n].min())>=50000, f['candidates/source'][0].decode().splitlines()[0])\n";
  std::ofstream(folder_ / "read.py") << script;
  const std::string file = (folder_ / "results.h5").string();
  EXPECT_EQ(run_command("/usr/bin/python3 " + (folder_ / "read.py").string() + " " + file),
            "warpsmith.results/1 6 ok M=64 N=1024 70\nTrue // plan: launch k<<<1, 1>>>(x, out)\n");
  EXPECT_NE(run_command("h5dump -d /measurements/speedup " + file).find("1.5"), std::string::npos);
}

}  // namespace
}  // namespace warpsmith::store

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "in_order.h"
#include "run_fixture.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/hdf5/hdf5.h"
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

// The lines of a records.jsonl as `edit` makes them of the text of each, with checksums that fit.
void edit_records(const fs::path& records, const std::function<void(std::string& line)>& edit) {
  std::istringstream in(read_file(records));
  std::string out;
  for (std::string line; std::getline(in, line);) {
    line.resize(line.size() - kLineCrcBytes);
    edit(line);
    const std::size_t begin = out.size();
    out += line;
    append_line_crc(out, begin);
    out += "\n";
  }
  write_file_atomic(records, out);
}

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

// Servers count what they like to.
TEST_F(StoreTest, TokensOfAShardAreKnownWhereEachRecordTellsThem) {
  const fs::path folder = folder_ / "stages/sft/0a1b2c3d/0/generate";
  make_folders(folder);
  JobFile job;
  job.program = "warpsmith-generate";
  job.stage = "sft";
  job.job = "generate";
  const std::vector<std::vector<Json>> records = {
      {{{"samples", {{{"tokens", 5}}, {{"tokens", 7}}}}}, {{"samples", Json::array()}}},
      {{{"samples", {Json::object()}}, {"spent", {{"prompt", 100}, {"completion", 30}}}},
       {{"samples", {{{"tokens", 4}}}}}},
      {{{"samples", {{{"tokens", 5}}}}}, {{"samples", {Json::object()}}, {"spent", {{"prompt", 1}}}}},
      {{{"samples", {{{"tokens", "many"}}}}}, {{"samples", Json::array()}}}};
  std::string items;
  for (std::size_t i = 0; i < records.size(); ++i) {
    job.shards.emplace_back(2 * i, 2 * i + 2);
    for (const char* item : {"/a", "/b"}) items += Json{{"id", std::to_string(i) + item}}.dump() + "\n";
  }
  write_file_atomic(folder / "items.jsonl", items);
  write_file_atomic(folder / "job.json", to_json(job).dump());
  for (std::size_t i = 0; i < records.size(); ++i) {
    ShardSession session(folder / "job.json", i);
    std::size_t at = 0;
    for (const Item& item : session.open_items()) session.write(item, records[i][at++]);
    session.finish();
  }
  aggregate(folder_);
  const Results r = read_results(folder_ / "results.h5");
  ASSERT_EQ(r.shards.size(), 4u);
  EXPECT_EQ(r.shards[0].tokens, 12);
  EXPECT_EQ(r.shards[1].tokens, 34) << "the server's count, where it has one";
  EXPECT_EQ(r.shards[2].tokens, std::nullopt) << "one of two is not known";
  EXPECT_EQ(r.shards[3].tokens, std::nullopt);
  EXPECT_EQ(r.shards[3].records, 2) << "and the record counts all the same";
  store_fixture::make_run(folder_, {});
  for (const ShardRow& row : read_run(folder_).shards)
    if (row.job == "measure") {
      EXPECT_EQ(row.tokens, std::nullopt);
    }
}

TEST_F(StoreTest, WhatIsWrittenIsReadBack) {
  store_fixture::make_run(folder_, {});
  Results r = read_run(folder_);
  r.measurements[1].value.verdict = Verdict::kHack;
  r.measurements[1].value.hack = "side_stream";
  r.measurements[2].value.detail = std::string("NUL \0 inside, and ünicode", 26);
  r.training.push_back({"sft", "01234567", 0, 17, 1500, 2.5, 4e-3, 0.7, 0.09, 0, 0, 0});
  r.generated.push_back(
      {"evaluate-sft", "89abcdef", "row_softmax", "train", r.candidates[0].id, "ok", 0, 1.5});
  r.generated.back().turn = 3;
  r.measurements[0].value.baseline_ratio = 1.5;
  r.baselines.push_back({"contrastive", "0a1b2c3d", 2, {}});
  BaselineTiming& baseline = r.baselines[0].value;
  baseline.task = "row_softmax";
  baseline.name = "torch_compile_reduce_overhead";
  baseline.state = BaselineState::kCovered;
  baseline.ratio = 1.75;
  baseline.flags = {{"tf32", "off"}};
  baseline.shape = {{"M", 64}, {"N", 1024}};
  baseline.rounds = 35;
  r.baselines.push_back({"contrastive", "0a1b2c3d", 2, {}});
  r.baselines[1].value.reason = "there is no python3 here";
  r.opinions.push_back({"contrastive", "0a1b2c3d", r.candidates[0].id, "row_softmax", 2, 9.5, 1.25, "hack",
                        "line 3", "judge", "[]"});
  r.attempts.resize(2);
  r.attempts[0].where = "a-node-with-a-long-name.cluster:4711";
  r.attempts[0].cause = "out_of_memory";
  r.attempts[0].memory_bytes = std::int64_t{6} << 30;
  r.attempts[0].gpu_type = "H100";
  r.attempts[0].wall_s = 12.5;
  r.attempts[1].set_aside = true;
  Measurement& on_gpu = r.measurements[3].value;
  on_gpu.gpu_held_s = 0.25;
  on_gpu.gpu_timed_s = 0.125;
  on_gpu.baseline_idle_ns = 9000;
  on_gpu.candidate_idle_ns = 4000;
  on_gpu.host_bound = false;
  on_gpu.baseline_alone_ns = 1500.5;
  on_gpu.candidate_event_ns = 990.25;
  on_gpu.clock = {{"threads", "3 before, 3 after"}, {"processor", "\"15\", for both sides"}};
  on_gpu.speedup_before = 2.5;
  on_gpu.tensor_cores = false;
  on_gpu.registers = 255;
  on_gpu.shared_bytes = 0;
  on_gpu.spill_bytes = 96;
  on_gpu.roofline_ns = 700.5;
  on_gpu.roofline_bound = "compute";
  on_gpu.gpu_before =
      GpuState{.sm_clock_mhz = 1980, .memory_clock_mhz = 2619, .temperature_c = 45, .power_w = 312.5};
  on_gpu.gpu_after = GpuState{.temperature_c = 0};
  on_gpu.clock_reasons = "sw_power_cap";
  on_gpu.rounds_thrown_away = 7;
  r.measurements[4].value.host_bound = true;
  r.measurements[4].value.tensor_cores = true;
  TaskRow& task = r.tasks.emplace_back();
  task.id = "row_softmax";
  task.degenerate = "one constant, 0.5, passes";
  task.level = 2;
  write_results(folder_ / "r.h5", r);
  const Results back = read_results(folder_ / "r.h5");
  ASSERT_EQ(back.measurements.size(), r.measurements.size());
  for (std::size_t i = 0; i < r.measurements.size(); ++i)
    if (i != 2) {
      EXPECT_EQ(to_json(back.measurements[i].value), to_json(r.measurements[i].value)) << i;
    }
  EXPECT_EQ(back.measurements[0].value.host_bound, std::nullopt) << "what is not known stays so";
  EXPECT_EQ(back.measurements[0].value.tensor_cores, std::nullopt);
  EXPECT_EQ(back.measurements[0].value.speedup_before, std::nullopt);
  EXPECT_TRUE(back.measurements[0].value.clock.empty());
  EXPECT_EQ(back.measurements[3].value.clock, on_gpu.clock);
  EXPECT_EQ(back.measurements[3].value.tensor_cores, false);
  EXPECT_EQ(back.measurements[4].value.tensor_cores, true);
  EXPECT_EQ(back.measurements[0].value.registers, std::nullopt);
  EXPECT_EQ(back.measurements[3].value.registers, 255);
  EXPECT_EQ(back.measurements[3].value.shared_bytes, 0);
  EXPECT_EQ(back.measurements[3].value.spill_bytes, 96);
  EXPECT_EQ(hdf5::File::open_read_only(folder_ / "r.h5")
                .open_dataset("measurements/spill_bytes")
                .string_attribute("unit"),
            "bytes");
  ASSERT_EQ(back.tasks.size(), r.tasks.size());
  EXPECT_EQ(back.tasks.back().id, "row_softmax");
  EXPECT_EQ(back.tasks.back().degenerate, "one constant, 0.5, passes");
  EXPECT_EQ(back.tasks.back().level, 2);
  EXPECT_EQ(back.measurements[1].value.verdict, Verdict::kHack);
  EXPECT_EQ(back.measurements[1].value.hack, "side_stream");
  EXPECT_EQ(back.measurements[2].value.detail, "NUL \xEF\xBF\xBD inside, and ünicode");
  EXPECT_EQ(back.measurements[0].value.shape, r.measurements[0].value.shape);
  EXPECT_EQ(back.samples, r.samples);
  EXPECT_EQ(back.measurements[0].value.baseline_ratio, 1.5);
  EXPECT_EQ(back.measurements[1].value.baseline_ratio, 0);
  ASSERT_EQ(back.baselines.size(), 2u);
  EXPECT_EQ(to_json(back.baselines[0].value), to_json(r.baselines[0].value));
  EXPECT_EQ(back.baselines[0].hash8, "0a1b2c3d");
  EXPECT_EQ(back.baselines[0].round, 2);
  EXPECT_EQ(back.baselines[1].value.state, BaselineState::kMissing);
  EXPECT_EQ(back.baselines[1].value.reason, "there is no python3 here");
  EXPECT_EQ(back.candidates[5].source, r.candidates[5].source);
  EXPECT_EQ(back.measurements[0].hash8, "0a1b2c3d");
  EXPECT_EQ(back.training[0].loss, 2.5);
  EXPECT_EQ(back.training[0].hash8, "01234567");
  EXPECT_EQ(back.generated[0].hash8, "89abcdef");
  EXPECT_EQ(back.generated[0].candidate, r.candidates[0].id);
  EXPECT_EQ(back.generated[0].turn, 3);
  EXPECT_EQ(back.devices[0].name, "Test CPU");
  ASSERT_EQ(back.opinions.size(), 1u);
  EXPECT_EQ(back.opinions[0].says, "hack");
  EXPECT_EQ(back.opinions[0].before, 1.25);
  EXPECT_EQ(back.opinions[0].cases, "[]");
  ASSERT_EQ(back.attempts.size(), 2u);
  EXPECT_EQ(back.attempts[0].where, "a-node-with-a-long-name.cluster:4711");
  EXPECT_EQ(back.attempts[0].cause, "out_of_memory");
  EXPECT_EQ(back.attempts[0].memory_bytes, std::int64_t{6} << 30);
  EXPECT_EQ(back.attempts[0].gpu_type, "H100");
  EXPECT_EQ(back.attempts[0].wall_s, 12.5);
  EXPECT_FALSE(back.attempts[0].set_aside);
  EXPECT_EQ(back.attempts[1].where, "");
  EXPECT_TRUE(back.attempts[1].set_aside);
  EXPECT_EQ(back.workflow, "schema: warpsmith.workflow/1\n");
}

// A row whose first try came to nothing, of two attempts of a shard.
TEST_F(StoreTest, BaselinesAreExtraRecordsAndTheRowWithANumberStays) {
  store_fixture::make_run(folder_, {});
  aggregate(folder_);
  const fs::path records = folder_ / "stages/contrastive/0a1b2c3d/2/measure/0/1/records.jsonl";
  ASSERT_TRUE(fs::exists(records));
  const auto add = [&](const std::string& row) {
    write_file_atomic(records,
                      read_file(records) + line_with_crc({{"extra", true}, {"baseline", Json::parse(row)}}));
  };
  add(R"({"task":"row_softmax","baseline":"cuda_graph","state":"missing","reason":"lost"})");
  add(R"({"task":"row_softmax","baseline":"cuda_graph","state":"covered","ratio":1.5,"interval":[1.4,1.6],)"
      R"("eager_ns":3000,"baseline_ns":2000})");
  add(R"({"task":"row_softmax","baseline":"cudnn","state":"not_covered","reason":"none"})");
  const Results r = read_run(folder_);
  ASSERT_EQ(r.baselines.size(), 2u);
  EXPECT_EQ(r.baselines[0].value.name, "cuda_graph");
  EXPECT_EQ(r.baselines[0].value.ratio, 1.5);
  EXPECT_EQ(r.baselines[0].round, 2);
  EXPECT_EQ(r.baselines[1].value.state, BaselineState::kNotCovered);
  EXPECT_EQ(r.measurements.size(), 6u);
  aggregate(folder_);
  EXPECT_EQ(read_results(folder_ / "results.h5").baselines.size(), 2u) << "the file is brought up to date";
}

// As older programs wrote them. Both shards have timed it: the row with a number stays, and each baseline has
// one.
TEST_F(StoreTest, BaselinesComeWithTheFirstRecordOfATask) {
  store_fixture::make_run(folder_, {});
  const fs::path job = folder_ / "stages/contrastive/0a1b2c3d/2/measure";
  const auto put = [&](const char* shard, const std::string& baselines) {
    for (const auto& entry : fs::directory_iterator(job / shard)) {
      const fs::path records = entry.path() / "records.jsonl";
      if (!fs::exists(records)) continue;
      bool first = true;
      edit_records(records, [&](std::string& line) {
        if (std::exchange(first, false)) line.insert(1, "\"baselines\":[" + baselines + "],");
      });
    }
  };
  const std::string missing =
      R"({"task":"row_softmax","baseline":"cuda_graph","state":"missing","reason":"lost"})";
  const std::string cudnn =
      R"({"task":"row_softmax","baseline":"cudnn","state":"not_covered","reason":"none"})";
  put("0", missing + "," + cudnn);
  put("1",
      R"({"task":"row_softmax","baseline":"cuda_graph","state":"covered","ratio":1.5,"interval":[1.4,1.6],)"
      R"("eager_ns":3000,"baseline_ns":2000},)" +
          cudnn);
  const Results r = read_run(folder_);
  ASSERT_EQ(r.baselines.size(), 2u);
  EXPECT_EQ(r.baselines[0].value.name, "cuda_graph");
  EXPECT_EQ(r.baselines[0].value.ratio, 1.5);
  EXPECT_EQ(r.baselines[0].stage, "contrastive");
  EXPECT_EQ(r.baselines[1].value.state, BaselineState::kNotCovered);
  EXPECT_EQ(r.measurements.size(), 6u);
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
  write_file_atomic(folder_ / "stages/contrastive/0a1b2c3d/output.json",
                    R"({"kind":"contrastive","summary":{"valid":0.5}})");
  EXPECT_EQ(aggregate(folder_).reason, "1 shard or stage has changed");
  EXPECT_EQ(read_results(folder_ / "results.h5").stages.at(0).summary, R"({"valid":0.5})");
  EXPECT_EQ(aggregate(folder_, true).reason, "asked for");
}

// A version of a stage that the controller left behind, or that is the current one.
void write_state(const fs::path& run, const std::string& contrastive) {
  const Json stages = {{{"stage", "sft"}, {"hash8", ""}},
                       {{"stage", "contrastive"}, {"hash8", contrastive}},
                       {{"stage", "collect"}, {"hash8", "0c0c0c0c"}}};
  write_file_atomic(run / "state.json", Json{{"stages", stages}}.dump());
}

TEST_F(StoreTest, VersionsOfAStageAreToldApart) {
  store_fixture::make_run(folder_, {.shards = 1, .hash8 = "11111111", .speedup = 2});
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 2, .hash8 = "22222222", .speedup = 3});
  write_state(folder_, "22222222");
  Results r = read_run(folder_);
  ASSERT_EQ(r.stages.size(), 2u);
  EXPECT_EQ(r.stages[0].hash8, "22222222");
  EXPECT_TRUE(r.stages[0].current);
  EXPECT_EQ(r.stages[0].place, 1);
  EXPECT_EQ(r.stages[1].hash8, "11111111");
  EXPECT_FALSE(r.stages[1].current);
  ASSERT_EQ(r.measurements.size(), 5u);
  EXPECT_EQ(r.measurements[0].hash8, "22222222");
  EXPECT_EQ(r.measurements[0].value.speedup, 3);
  EXPECT_EQ(r.measurements[4].hash8, "11111111");
  ASSERT_EQ(r.candidates.size(), 3u) << "two programs are in both";
  EXPECT_EQ(r.candidates[0].hash8, "22222222");
  EXPECT_EQ(r.candidates[2].hash8, "11111111");
  EXPECT_EQ(r.shards[1].hash8, "11111111");
  const Results current = current_versions(r);
  EXPECT_EQ(current.measurements.size(), 2u);
  EXPECT_EQ(current.candidates.size(), 2u);
  EXPECT_EQ(current.shards.size(), 1u);
  EXPECT_EQ(current.devices.size(), 1u);
  EXPECT_EQ(current.stages.size(), 2u) << "a report says how many are left out";
}

AttemptRow attempt(const std::string& hash8, std::int64_t shard, bool set_aside = false) {
  AttemptRow row;
  row.stage = "contrastive";
  row.hash8 = hash8;
  row.job = "measure";
  row.shard = shard;
  row.cause = "finished";
  row.set_aside = set_aside;
  return row;
}

TEST_F(StoreTest, AttemptsOfCurrentVersionsComeFirst) {
  store_fixture::make_run(folder_, {.shards = 1, .hash8 = "11111111"});
  store_fixture::make_run(folder_, {.shards = 1, .hash8 = "22222222"});
  write_state(folder_, "22222222");
  aggregate(folder_, false,
            {attempt("44444444", 0), attempt("11111111", 1), attempt("22222222", 2, true),
             attempt("22222222", 3), attempt("11111111", 4), attempt("22222222", 5)});
  Results r = read_results(folder_ / "results.h5");
  std::string order;
  for (const AttemptRow& row : r.attempts)
    order += row.hash8.substr(0, 1) + ":" + std::to_string(row.shard) + " ";
  EXPECT_EQ(order, "2:3 2:5 1:1 1:4 4:0 2:2 ");
  order.clear();
  for (const AttemptRow& row : current_versions(std::move(r)).attempts)
    order += std::to_string(row.shard) + " ";
  EXPECT_EQ(order, "3 5 ") << "neither of older versions nor of results that were set aside";
}

TEST_F(StoreTest, AggregateNoticesAttemptsThatHaveEnded) {
  store_fixture::make_run(folder_, {.shards = 1});
  EXPECT_EQ(aggregate(folder_).attempts, 0u);
  const std::vector<AttemptRow> one = {attempt("0a1b2c3d", 0)}, two = {one[0], attempt("0a1b2c3d", 0)};
  EXPECT_EQ(aggregate(folder_, false, one).reason, "attempts of shards have ended");
  EXPECT_FALSE(aggregate(folder_, false, one).written);
  EXPECT_EQ(aggregate(folder_, false, two).attempts, 2u);
  EXPECT_EQ(read_results(folder_ / "results.h5").attempts.size(), 2u);
  const std::string before = read_file(folder_ / "results.h5");
  fs::remove(folder_ / "results.h5");
  aggregate(folder_, false, two);
  EXPECT_EQ(read_file(folder_ / "results.h5"), before) << "rebuilt, it is the same";
}

TEST_F(StoreTest, AStageThatWasChangedBackIsCurrentAgain) {
  store_fixture::make_run(folder_, {.hash8 = "11111111"});
  store_fixture::make_run(folder_, {.hash8 = "22222222"});
  write_state(folder_, "22222222");
  aggregate(folder_);
  write_state(folder_, "11111111");
  EXPECT_EQ(aggregate(folder_).reason, "2 shards or stages have changed");
  const std::string before = read_file(folder_ / "results.h5");
  EXPECT_EQ(read_results(folder_ / "results.h5").measurements[0].hash8, "11111111");
  EXPECT_FALSE(aggregate(folder_).written);
  fs::remove(folder_ / "results.h5");
  aggregate(folder_);
  EXPECT_EQ(read_file(folder_ / "results.h5"), before) << "rebuilt, it is the same";
}

TEST_F(StoreTest, AStageThatWaitsHasNoCurrentVersion) {
  store_fixture::make_run(folder_, {});
  write_state(folder_, "");
  EXPECT_TRUE(current_versions(read_run(folder_)).measurements.empty());
}

TEST_F(StoreTest, WithoutAStateTheVersionWrittenLastIsCurrent) {
  for (const char* version : {"11111111", "22222222", "33333333"}) {
    const fs::path folder = folder_ / "stages/sft" / version;
    make_folders(folder);
    write_file_atomic(folder / "inputs.json", "{}");
    fs::last_write_time(folder / "inputs.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(version[0] == '2' ? 1 : 2));
  }
  const auto versions = stage_versions(folder_);
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0].hash8, "22222222");
  EXPECT_TRUE(versions[0].current);
  EXPECT_FALSE(versions[1].current);
}

TEST_F(StoreTest, StagesAreInTheOrderOfTheWorkflow) {
  for (const char* stage :
       {"collect/0c0c0c0c", "contrastive/11111111", "contrastive/22222222", "gone/44444444"})
    make_folders(folder_ / "stages" / stage);
  write_state(folder_, "22222222");
  std::string order;
  for (const StageVersion& v : stage_versions(folder_)) order += v.stage + (v.current ? " " : "! ");
  EXPECT_EQ(order, "contrastive collect contrastive! gone! ");
}

// Steps of both versions, each in its order; the item's name would sort step-10 before step-9.
TEST_F(StoreTest, CurvesOfVersionsStayApart) {
  for (const char* version : {"11111111", "22222222"}) {
    const fs::path job_folder = folder_ / "stages/contrastive" / version / "0/train";
    make_folders(job_folder);
    JobFile job;
    job.job = "train";
    job.shards = {{0, 2}};
    write_file_atomic(job_folder / "job.json", to_json(job).dump());
    write_file_atomic(job_folder / "items.jsonl", "{\"id\":\"step-9\"}\n{\"id\":\"step-10\"}\n");
    ShardSession session(job_folder / "job.json", 0);
    for (const Item& item : session.open_items())
      session.write(item, {{"step", std::stoi(item.id.substr(5))}, {"loss", 1.0}});
    session.finish();
  }
  write_state(folder_, "22222222");
  std::string order;
  for (const TrainingRow& row : read_run(folder_).training)
    order += row.hash8.substr(0, 1) + ":" + std::to_string(row.step) + " ";
  EXPECT_EQ(order, "2:9 2:10 1:9 1:10 ");
}

TEST_F(StoreTest, AFileOfAnOlderLayoutIsWrittenAnew) {
  store_fixture::make_run(folder_, {});
  const fs::path file = folder_ / "results.h5";
  {
    hdf5::File old = hdf5::File::create(file);
    old.set_attribute("schema", "warpsmith.results/1");
    old.close();
  }
  write_file_atomic(file.string() + ".sha256", sha256_file_hex(file) + "  results.h5\n");
  EXPECT_TRUE(aggregate(folder_).reason.starts_with("another layout: ")) << aggregate(folder_, true).reason;
  EXPECT_EQ(read_results(file).measurements.size(), 6u);
}

TEST_F(StoreTest, JobsOfALaterTurnAreReadAsTheFirstOnes) {
  store_fixture::make_run(folder_, {.job = "measure-2"});
  const Results r = read_run(folder_);
  EXPECT_EQ(r.measurements.size(), 6u);
  EXPECT_EQ(r.candidates.size(), 6u);
  EXPECT_EQ(r.shards.at(0).job, "measure-2");
}

TEST_F(StoreTest, SamplesOfOlderFilesAreOfTheFirstTurnAndOfTheNewestPolicy) {
  Results r;
  r.generated.push_back({"evaluate-sft", "89abcdef", "a", "train", "", "ok", 0, 1.5});
  r.generated.back().turn = 2;
  r.generated.back().behind = 1;
  const fs::path file = folder_ / "results.h5";
  write_results(file, r);
  EXPECT_EQ(read_results(file).generated.at(0).turn, 2);
  EXPECT_EQ(read_results(file).generated.at(0).behind, 1);
  hdf5::File old = hdf5::File::open(file);
  old.set_attribute("schema", "warpsmith.results/15");
  old.remove("samples/turn");
  old.remove("samples/behind");
  old.close();
  EXPECT_EQ(read_results(file).generated.at(0).turn, 1);
  EXPECT_EQ(read_results(file).generated.at(0).behind, 0);
}

// Read as it is, where the records are gone; written anew where they are there.
TEST_F(StoreTest, FilesOfTheSchemasBeforeAreRead) {
  store_fixture::make_run(folder_, {});
  Results r = read_run(folder_);
  r.measurements[0].value.host_bound = true;
  r.measurements[0].value.tensor_cores = true;
  r.measurements[0].value.registers = 32;
  r.measurements[0].value.clock = {{"threads", "3"}};
  const fs::path file = folder_ / "results.h5";
  write_results(file, r);
  const auto remove = [&](const std::vector<std::string>& columns) {
    hdf5::File old = hdf5::File::open(file);
    for (const std::string& column : columns) old.remove("measurements/" + column);
    old.close();
  };
  const auto say = [&](const char* schema) {
    hdf5::File old = hdf5::File::open(file);
    old.set_attribute("schema", schema);
    old.close();
  };
  remove({"only_hidden"});
  EXPECT_THROW(read_results(file), Error) << "a file of today has it";
  say("warpsmith.results/7");
  EXPECT_EQ(read_results(file).measurements.at(0).value.registers, 32);
  remove({"registers", "shared_bytes", "spill_bytes"});
  EXPECT_THROW(read_results(file), Error) << "one of schema 7 has those";
  say("warpsmith.results/6");
  const Results six = read_results(file);
  EXPECT_EQ(six.measurements.at(0).value.registers, std::nullopt);
  EXPECT_EQ(six.measurements.at(0).value.tensor_cores, true);
  EXPECT_EQ(six.measurements.at(0).value.clock, r.measurements[0].value.clock);
  remove({"baseline_alone_ns", "candidate_event_ns", "speedup_before", "tensor_cores", "clock"});
  EXPECT_THROW(read_results(file), Error) << "one of schema 6 has those";
  say("warpsmith.results/4");
  EXPECT_THROW(read_results(file), Error);
  say("warpsmith.results/5");
  const Results back = read_results(file);
  ASSERT_EQ(back.measurements.size(), 6u);
  EXPECT_EQ(back.measurements[0].value.speedup, 1.5);
  EXPECT_EQ(back.measurements[0].value.host_bound, true);
  EXPECT_EQ(back.measurements[0].value.tensor_cores, std::nullopt);
  EXPECT_EQ(back.measurements[0].value.baseline_alone_ns, std::nullopt);
  EXPECT_TRUE(back.measurements[0].value.clock.empty());
  EXPECT_EQ(back.samples, r.samples);
  write_file_atomic(file.string() + ".sha256", sha256_file_hex(file) + "  results.h5\n");
  EXPECT_TRUE(aggregate(folder_).reason.starts_with("another layout: "));
  const hdf5::File anew = hdf5::File::open_read_only(file);
  EXPECT_EQ(anew.string_attribute("schema"), kSchema);
  EXPECT_TRUE(anew.contains("measurements/tensor_cores"));
  EXPECT_TRUE(anew.contains("measurements/registers"));
}

TEST_F(StoreTest, AResultMadeAnewUnderTheSameHashIsNoticed) {
  store_fixture::make_run(folder_, {});
  const fs::path output = folder_ / "stages/contrastive/0a1b2c3d/output.json";
  write_file_atomic(output, R"({"kind":"contrastive","summary":{},"step":1})");
  aggregate(folder_);
  write_file_atomic(output, R"({"kind":"contrastive","summary":{},"step":2})");
  EXPECT_TRUE(aggregate(folder_).written);
}

// A stage of a sweep on a site that lacks its device: no job, and a row all the same.
TEST_F(StoreTest, WhatWasNotMeasuredForWantOfADeviceHasARow) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 1});
  const fs::path folder = folder_ / "stages/sweep-H20/33333333";
  make_folders(folder);
  write_file_atomic(
      folder / "inputs.json",
      R"({"stage":"sweep-H20","base":"sweep","inputs":{"device":"H20","device_found":"none"}})");
  const Candidate c = store_fixture::candidate(7);
  Measurement m;
  m.candidate = c.id;
  m.task = c.task;
  m.detail = "no device: site lab has no H20";
  Json output = {{"kind", "measure"}, {"device", "H20"}};
  output["candidates"] = {{{"candidate", to_json(c)}, {"measurement", to_json(m)}}};
  write_file_atomic(folder / "output.json", output.dump());
  EXPECT_EQ(read_run(folder_).measurements.size(), 1u) << "numbers come from records alone";
  output["lacks"] = m.detail;
  write_file_atomic(folder / "output.json", output.dump());
  write_results(folder_ / "r.h5", read_run(folder_));
  const Results r = read_results(folder_ / "r.h5");
  ASSERT_EQ(r.measurements.size(), 2u);
  const MeasurementRow& row = r.measurements.back();
  EXPECT_EQ(row.stage, "sweep-H20");
  EXPECT_EQ(row.value.candidate, c.id);
  EXPECT_EQ(row.value.verdict, Verdict::kNotMeasured);
  EXPECT_EQ(row.value.detail, "no device: site lab has no H20");
  EXPECT_EQ(row.device, -1);
  EXPECT_EQ(row.sample_count, 0);
  const StageRow& stage = r.stages.back();
  EXPECT_EQ(stage.base, "sweep");
  EXPECT_EQ(stage.device, "H20");
  EXPECT_EQ(stage.device_found, "none");
  EXPECT_EQ(r.stages.front().base, "");
}

TEST_F(StoreTest, EveryDamageIsFoundAndRebuilt) {
  store_fixture::make_run(folder_, {});
  aggregate(folder_);
  const fs::path file = folder_ / "results.h5";
  const std::string whole = read_file(file);
  Random random(3);
  for (int trial = 0; trial < 40; ++trial) {
    std::string bad = whole;
    if (trial % 2 == 0)
      bad.resize(random.below(whole.size()));
    else
      bad[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
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

constexpr const char* kMeasureJob = "stages/contrastive/0a1b2c3d/2/measure";

// The journal's rows of the shards of make_run.
std::vector<AttemptRow> attempts_of(int shards, int items) {
  std::vector<AttemptRow> rows;
  for (int s = 0; s < shards; ++s) {
    AttemptRow row;
    row.stage = "contrastive";
    row.hash8 = "0a1b2c3d";
    row.round = 2;
    row.job = "measure";
    row.shard = s;
    row.attempt = 1;
    row.items = items;
    row.cause = "finished";
    rows.push_back(row);
  }
  return rows;
}

// A shard that has lost records since results.h5 was written: the file still has them.
TEST_F(StoreTest, LostRecordsLeaveTheFileAsItWas) {
  store_fixture::make_run(folder_, {.shards = 2, .items_a_shard = 3});
  const auto attempts = attempts_of(2, 3);
  aggregate(folder_, false, attempts);
  const fs::path records = folder_ / kMeasureJob / "1/1/records.jsonl";
  const std::string whole = read_file(records);
  const auto cut = [&] { write_file_atomic(records, whole.substr(0, whole.find('\n') + 20)); };
  const auto garbage = [&] { write_file_atomic(records, "garbage\n" + whole.substr(whole.find('\n') + 1)); };
  const auto gone = [&] { fs::remove_all(folder_ / kMeasureJob / "1"); };
  for (const std::function<void()>& damage :
       {std::function<void()>(cut), std::function<void()>(garbage), std::function<void()>(gone)}) {
    damage();
    ::testing::internal::CaptureStdout();
    const Aggregated kept = aggregate(folder_, false, attempts);
    const std::string told = ::testing::internal::GetCapturedStdout();
    EXPECT_FALSE(kept.written) << kept.reason;
    EXPECT_NE(kept.reason.find(std::string(kMeasureJob) + "/1"), std::string::npos) << kept.reason;
    EXPECT_NE(told.find("of 3 records"), std::string::npos) << told;
    EXPECT_NE(told.find("--rebuild"), std::string::npos) << told;
    EXPECT_EQ(read_results(folder_ / "results.h5").measurements.size(), 6u);
  }
  // Who asks for it gets what is there.
  EXPECT_EQ(aggregate(folder_, true, attempts).reason, "asked for");
  EXPECT_EQ(read_results(folder_ / "results.h5").measurements.size(), 3u);
}

// Nobody makes those of an older version anew: they keep nothing newer out.
TEST_F(StoreTest, LossesOfOlderVersionsCostOnlyThemselves) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  const auto attempts = attempts_of(1, 3);
  aggregate(folder_, false, attempts);
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3, .hash8 = "22222222"});
  write_state(folder_, "22222222");
  fs::remove(folder_ / kMeasureJob / "0/1/records.jsonl");
  write_file_atomic(folder_ / "stages/contrastive/0a1b2c3d/output.json", "garbage");
  EXPECT_TRUE(aggregate(folder_, false, attempts).written);
  EXPECT_EQ(read_results(folder_ / "results.h5").measurements.size(), 3u);
  write_state(folder_, "0a1b2c3d");
  ::testing::internal::CaptureStdout();
  aggregate(folder_, false, attempts);
  const std::string told = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(told.find("--force contrastive"), std::string::npos) << "what counts is missed: " << told;
}

TEST_F(StoreTest, WithoutAJournalTheFileSaysHowManyRecordsThereWere) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  aggregate(folder_);
  fs::remove(folder_ / kMeasureJob / "0/1/records.jsonl");
  EXPECT_FALSE(aggregate(folder_).written);
  EXPECT_EQ(read_results(folder_ / "results.h5").measurements.size(), 3u);
}

// What `run --force` made room for, and what an attempt wrote whose records were set aside as bad.
TEST_F(StoreTest, FewerRecordsAreNoLossWhereTheJournalSaysSo) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  auto attempts = attempts_of(1, 3);
  aggregate(folder_, false, attempts);
  const fs::path records = folder_ / kMeasureJob / "0/1/records.jsonl";
  const std::string whole = read_file(records);
  write_file_atomic(records, whole.substr(0, whole.find('\n') + 1));
  attempts[0].set_aside = true;
  EXPECT_TRUE(aggregate(folder_, false, attempts).written);
  attempts = attempts_of(1, 3);
  aggregate(folder_, true, attempts);
  attempts.push_back(attempts[0]);
  attempts[1].attempt = 2;
  attempts[1].items = 0;
  attempts[1].open = 2;
  EXPECT_TRUE(aggregate(folder_, false, attempts).written);
}

TEST_F(StoreTest, ABadCandidateIsLeftOut) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  const fs::path items = folder_ / kMeasureJob / "items.jsonl";
  std::string text = read_file(items);
  text.replace(text.find("number 1"), 8, "number 9");
  write_file_atomic(items, text);
  ::testing::internal::CaptureStdout();
  const Results r = read_run(folder_);
  const std::string told = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(r.candidates.size(), 2u);
  EXPECT_EQ(r.measurements.size(), 3u);
  EXPECT_NE(told.find(items.string()), std::string::npos) << told;
  EXPECT_NE(told.find("its id is not that of its content"), std::string::npos) << told;
}

TEST_F(StoreTest, ARecordOfWrongTypesIsLeftOut) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  const fs::path records = folder_ / kMeasureJob / "0/1/records.jsonl";
  bool first = true;
  edit_records(records, [&](std::string& line) {
    if (std::exchange(first, false))
      line.replace(line.find("\"task\":\"row_softmax\""), 20, "\"task\":[\"row_softma\"]");
  });
  EXPECT_EQ(read_run(folder_).measurements.size(), 2u);
}

TEST_F(StoreTest, GarbageInWhatCanBeMadeAnewIsNoHindrance) {
  store_fixture::make_run(folder_, {.shards = 1, .items_a_shard = 3});
  for (const char* content :
       {"garbage", "[1]", R"({"stages": [3]})", R"({"stages": 7, "inputs": 3, "name": 4})"})
    for (const char* name : {"state.json", "run.json", "stages/contrastive/0a1b2c3d/inputs.json"}) {
      const bool there = fs::exists(folder_ / name);
      const std::string before = there ? read_file(folder_ / name) : "";
      write_file_atomic(folder_ / name, content);
      EXPECT_EQ(read_run(folder_).measurements.size(), 3u) << name << " " << content;
      if (there)
        write_file_atomic(folder_ / name, before);
      else
        fs::remove(folder_ / name);
    }
}

TEST_F(StoreTest, H5pyAndH5dumpReadIt) {
  if (run_command("/usr/bin/python3 -c 'import h5py'") != "") GTEST_SKIP() << "h5py is not installed";
  store_fixture::make_run(folder_, {});
  AttemptRow ended = attempt("0a1b2c3d", 0);
  ended.where = "here:7";
  aggregate(folder_, false, {ended});
  const std::string script =
      "import h5py,sys\n"
      "f=h5py.File(sys.argv[1],'r')\n"
      "m=f['measurements']\n"
      "print(f.attrs['schema'].decode(), len(m['speedup']), m['verdict'][0].decode(), "
      "m['shape'][0].decode(), m['sample_count'][0])\n"
      "b=m['sample_begin'][1]; n=m['sample_count'][1]\n"
      "print(int(m['samples_ns'][b:b+n].min())>=50000, f['candidates/source'][0].decode().splitlines()[0])\n"
      "a=f['attempts']\n"
      "print(a.attrs['rows'], a['job'][0].decode(), a['cause'][0].decode(), a['where'][0].decode(), "
      "a['wall_s'].attrs['unit'].decode())\n";
  std::ofstream(folder_ / "read.py") << script;
  const std::string file = (folder_ / "results.h5").string();
  EXPECT_EQ(run_command("/usr/bin/python3 " + (folder_ / "read.py").string() + " " + file),
            "warpsmith.results/18 6 ok M=64 N=1024 70\nTrue // plan: launch k<<<1, 1>>>(x, out)\n1 measure "
            "finished here:7 s\n");
  EXPECT_NE(run_command("h5dump -d /measurements/speedup " + file).find("1.5"), std::string::npos);
}

// The Python of results/README.md, as it stands there.
TEST_F(StoreTest, TheWorkedExampleWorks) {
  if (run_command("/usr/bin/python3 -c 'import h5py, numpy'") != "") GTEST_SKIP() << "h5py is not installed";
  const std::string text = read_file(fs::path(WARPSMITH_SOURCE_DIR) / "results/README.md");
  const std::string fence = "```python\n";
  const auto begin = text.find(fence) + fence.size();
  write_file_atomic(folder_ / "example.py", text.substr(begin, text.find("```", begin) - begin));
  const fs::path run = folder_ / "results/quickstart";
  make_folders(run);
  store_fixture::make_run(run, {.hash8 = "11111111", .speedup = 9});
  store_fixture::make_run(run, {.hash8 = "22222222", .speedup = 1.25});
  write_state(run, "22222222");
  aggregate(run);
  const std::string said = run_command("cd " + folder_.string() + " && /usr/bin/python3 example.py");
  EXPECT_TRUE(said.starts_with("row_softmax 1.25 "))
      << said << "a faster one of an older version does not count";
}

TEST(InOrder, ResultsAreTakenInOrder) {
  std::string taken;
  in_order(
      50, 3, [](std::size_t i) { return std::to_string(i); },
      [&](std::string&& made) { taken += made + " "; });
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += std::to_string(i) + " ";
  EXPECT_EQ(taken, expected);
  in_order(
      0, 3, [](std::size_t) { return 1; }, [](int) { FAIL(); });
}

TEST(InOrder, TheFirstErrorIsThrownAndNothingTakenBehindIt) {
  int taken = 0;
  const auto make = [](std::size_t i) {
    if (i == 7 || i == 9) throw std::runtime_error(std::to_string(i));
    return i;
  };
  try {
    in_order(1000, 2, make, [&](std::size_t) { ++taken; });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "7");
  }
  EXPECT_EQ(taken, 7);
}

}  // namespace
}  // namespace warpsmith::store

// Every file of a run folder damaged in every way: the others still make tables, no wrong number comes of it,
// and the warning names the cure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "run_fixture.h"
#include "score_check.h"
#include "scratch.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/stats/score.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/store/hacks.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {
namespace {

using ::testing::HasSubstr;

constexpr const char* kStage = "stages/contrastive/0a1b2c3d";
constexpr const char* kShard = "stages/contrastive/0a1b2c3d/2/measure/1/1";

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_fixture::make_run(run_, {.shards = 2, .items_a_shard = 3});
    // A second stage, which nobody damages.
    const fs::path other = run_ / "stages/other/99999999/0/train";
    make_folders(other);
    JobFile job;
    job.program = "warpsmith-train";
    job.job = "train";
    job.shards = {{0, 1}};
    write_file_atomic(other / "job.json", to_json(job).dump());
    write_file_atomic(other / "items.jsonl", "{\"id\":\"a\"}\n");
    ShardSession session(other / "job.json", 0);
    session.write(session.items().front(), {{"step", 7}, {"loss", 2.5}});
    session.finish();
    write_file_atomic(
        run_ / "state.json",
        R"({"stages":[{"stage":"contrastive","hash8":"0a1b2c3d"},{"stage":"other","hash8":"99999999"}]})");
    write_file_atomic(run_ / kStage / "inputs.json", R"({"base":"contrastive","inputs":{}})");
    write_file_atomic(run_ / kStage / "accepted.json", "[]");
    write_output(0.34);
    fs::remove(run_ / kStage / "accepted.json");
    outputs_[{"contrastive", "0a1b2c3d"}] = sha256_file_hex(run_ / kStage / "output.json");
  }

  void write_output(double speedup) {
    const Json sample = {{"task", "row_softmax"},
                         {"group", "train"},
                         {"candidate", "c"},
                         {"verdict", "ok"},
                         {"speedup", speedup}};
    write_file_atomic(
        run_ / kStage / "output.json",
        Json{{"kind", "contrastive"}, {"summary", Json::object()}, {"samples", {sample}}}.dump());
  }

  // What is said while `results` are made from what is there.
  std::string warnings_of(Results& results) {
    ::testing::internal::CaptureStdout();
    try {
      aggregate(run_, true, {}, outputs_);
      results = read_results(run_ / "results.h5");
    } catch (...) {
      std::cerr << ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }

  // No number but those that were written, and all that another stage left.
  static void expect_only_true_rows(const Results& r, const std::string& what) {
    ASSERT_EQ(r.training.size(), 1u) << what;
    EXPECT_EQ(r.training[0].loss, 2.5) << what;
    for (const MeasurementRow& row : r.measurements) {
      EXPECT_EQ(row.value.speedup, 1.5) << what;
      EXPECT_EQ(row.value.speedup_high, 1.5 * 1.01) << what;
      EXPECT_EQ(row.sample_count, 70) << what;
    }
    for (const SampleRow& row : r.generated) EXPECT_EQ(row.speedup, 0.34) << what;
  }

  const Scratch scratch_;
  const fs::path run_ = scratch_ / "fixture";
  OutputDigests outputs_;
};

struct Damage {
  const char* name;
  std::function<void(const fs::path&, Random&)> make;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"missing", [](const fs::path& file, Random&) { fs::remove(file); }},
      {"empty", [](const fs::path& file, Random&) { write_file_atomic(file, ""); }},
      {"truncated",
       [](const fs::path& file, Random& random) {
         const std::string whole = read_file(file);
         write_file_atomic(file, whole.substr(0, random.below(whole.size())));
       }},
      {"one bit",
       [](const fs::path& file, Random& random) {
         std::string whole = read_file(file);
         whole[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
         write_file_atomic(file, whole);
       }},
      {"a folder",
       [](const fs::path& file, Random&) {
         fs::remove(file);
         make_folders(file / "x");
       }},
      {"a link to itself",
       [](const fs::path& file, Random&) {
         fs::remove(file);
         fs::create_symlink(file.filename(), file);
       }},
      {"unreadable", [](const fs::path& file, Random&) { ::chmod(file.c_str(), 0); }},
  };
  return all;
}

// Root may read everything: as long as it lives, this process is nobody, who owns `folder`.
class AsNobody {
 public:
  explicit AsNobody(const fs::path& folder) {
    if (::geteuid() != 0) return;
    EXPECT_EQ(std::system(("chown -R 65534 '" + folder.string() + "'").c_str()), 0);
    EXPECT_EQ(::seteuid(65534), 0);
    changed_ = true;
  }
  ~AsNobody() { EXPECT_TRUE(!changed_ || ::seteuid(0) == 0); }

 private:
  bool changed_ = false;
};

TEST_F(DamageTest, OfAnyFileCostsOnlyWhatItHeld) {
  Results whole;
  warnings_of(whole);
  ASSERT_EQ(whole.measurements.size(), 6u);
  ASSERT_EQ(whole.generated.size(), 1u);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(run_))
    if (entry.is_regular_file() && entry.path().string().find("/other/") == std::string::npos)
      files.push_back(entry.path().lexically_relative(run_));
  ASSERT_GE(files.size(), 13u);
  const fs::path copy = scratch_ / "copy";
  fs::copy(run_, copy, fs::copy_options::recursive);
  Random random(5);
  const AsNobody nobody(scratch_.path());
  for (const fs::path& file : files)
    for (const Damage& damage : damages())
      for (int trial = 0; trial < (std::string_view(damage.name) == "one bit" ? 6 : 1); ++trial) {
        const std::string what = file.string() + ": " + damage.name;
        damage.make(run_ / file, random);
        Results r;
        if (file.string().starts_with("results.h5")) {
          ASSERT_NO_THROW(warnings_of(r)) << what;
        } else {
          ::testing::internal::CaptureStdout();
          ASSERT_NO_THROW(r = read_run(run_, outputs_)) << what;
          ::testing::internal::GetCapturedStdout();
        }
        expect_only_true_rows(r, what);
        EXPECT_GE(r.measurements.size(), file.string().find("measure/1/") == std::string::npos &&
                                                 file.string().find("measure/0/") == std::string::npos
                                             ? 6u
                                             : 3u)
            << what;
        ::testing::internal::CaptureStdout();
        ASSERT_NO_THROW(read_hacks(run_)) << what;
        ::testing::internal::GetCapturedStdout();
        for (const fs::path& one : files)
          if (one == file || one.string().starts_with("results.h5")) {
            fs::remove_all(run_ / one);
            fs::copy_file(copy / one, run_ / one);
          }
      }
}

// Nobody knows whether there is a file: that it is left out must not go unsaid.
TEST_F(DamageTest, WhatCannotBeLookedAtIsNamed) {
  for (const fs::path& file : {fs::path("run.json"), fs::path("workflow.yaml"), fs::path("state.json"),
                               fs::path(kStage) / "inputs.json", fs::path(kStage) / "output.json"}) {
    const std::string whole = fs::exists(run_ / file) ? read_file(run_ / file) : "";
    fs::remove(run_ / file);
    fs::create_symlink(file.filename(), run_ / file);
    Results r;
    EXPECT_THAT(warnings_of(r), HasSubstr("cannot look at " + (run_ / file).string())) << file;
    EXPECT_EQ(r.measurements.size(), 6u) << file;
    fs::remove(run_ / file);
    write_file_atomic(run_ / file, whole);
  }
}

TEST_F(DamageTest, ATornBlobCostsItsRowsAndTheCureIsNamed) {
  fs::resize_file(run_ / kShard / "blob.bin", 600);  // the first record's 560 bytes are whole
  Results r;
  const std::string told = warnings_of(r);
  EXPECT_EQ(r.measurements.size(), 4u);
  EXPECT_THAT(told, HasSubstr("stage contrastive"));
  EXPECT_THAT(told, HasSubstr("stages/contrastive/0a1b2c3d/2/measure/1: 2 records left out"));
  EXPECT_THAT(told, HasSubstr("blob.bin ends before byte"));
  EXPECT_THAT(told, HasSubstr("--force contrastive`"));
}

TEST_F(DamageTest, ATornJobFileCostsNoRecord) {
  write_file_atomic(run_ / kStage / "2/measure/job.json", "{\"schema\": \"warp");
  Results r;
  const std::string told = warnings_of(r);
  EXPECT_EQ(r.measurements.size(), 6u);
  EXPECT_THAT(told, HasSubstr("job.json: bad JSON"));
  EXPECT_THAT(told, HasSubstr("--force contrastive`"));
}

// The digit as it stands, and with a checksum that fits, as a bug would write it.
TEST_F(DamageTest, AChangedDigitIsNoHeadline) {
  const fs::path records = run_ / kShard / "records.jsonl";
  const std::string whole = read_file(records);
  for (const char* key : {"\"speedup\":1.5", "\"interval\":[1.4", "\"speedup_rounded\":1.5",
                          "\"variance\":0.0", "\"candidate_ns\":5", "\"baseline_ns\":7", "\"rounds\":35"})
    for (const bool sealed : {false, true}) {
      std::string text = whole;
      const std::size_t at = text.find(key);
      ASSERT_NE(at, std::string::npos) << key;
      char& digit = text[at + std::string_view(key).size() - 1];
      digit = digit == '9' ? '8' : static_cast<char>(digit + 1);
      if (sealed) {
        const std::size_t end = text.find('\n');
        std::string line = text.substr(0, end - kLineCrcBytes);
        append_line_crc(line, 0);
        text = line + text.substr(end);
      }
      write_file_atomic(records, text);
      Results r;
      const std::string told = warnings_of(r);
      EXPECT_EQ(r.measurements.size(), 5u) << key << sealed;
      expect_only_true_rows(r, key);
      EXPECT_THAT(told, HasSubstr(sealed ? "1 records left out: the record of" : "its checksum is wrong"))
          << key;
      EXPECT_THAT(told, HasSubstr(sealed ? "" : "records.jsonl: bad line at byte 0")) << key;
    }
}

// Means of buckets give the same score as medians here, and another variance: both protocols are tried.
TEST(ScoreProblem, IsNoneWhereAnotherProtocolGivesTheSameScoreByChance) {
  Measurement m;
  std::vector<std::int64_t> samples(18, 1'000'000'000);
  const std::vector<double> shares = {1, 1, 1.03, 1, 1, 1 / 1.03, 1, 1, 1};
  for (std::size_t i = 0; i < shares.size(); ++i) samples[i] = std::llround(1e9 * shares[i]);
  m.rounds = 9;
  m.speedup = m.speedup_rounded = 1;
  m.speedup_low = 1 / 1.05;
  m.speedup_high = 1.05;
  m.baseline_ns = m.candidate_ns = 1e9;
  stats::Protocol protocol;
  protocol.buckets = 3;
  protocol.rounds_a_bucket = 9;
  const std::span<const std::int64_t> all = samples;
  for (const bool medians : {true, false}) {
    protocol.bucket_medians = medians;
    m.variance = stats::score_of(stats::log_ratios(all.first(9), all.last(9)), protocol).variance;
    EXPECT_EQ(score_problem(m, samples, 3), "") << medians;
    EXPECT_EQ(score_problem(m, samples, 0), "") << medians;
  }
  m.variance *= 1.5;
  EXPECT_THAT(score_problem(m, samples, 3), HasSubstr("the variance is"));
}

// Records of older versions have no checksum: the samples tell.
TEST_F(DamageTest, RecordsWithoutChecksumsAreHeldAgainstTheirSamples) {
  const fs::path records = run_ / kShard / "records.jsonl";
  std::istringstream in(read_file(records));
  std::string old;
  for (std::string line; std::getline(in, line);) old += line.substr(0, line.size() - kLineCrcBytes) + "}\n";
  write_file_atomic(records, old);
  Results r;
  EXPECT_EQ(warnings_of(r), "");
  EXPECT_EQ(r.measurements.size(), 6u);
  old.replace(old.find("\"speedup\":1.5"), 13, "\"speedup\":7.5");
  write_file_atomic(records, old);
  EXPECT_THAT(warnings_of(r), HasSubstr("the score is 7.500000, its samples give 1.500000"));
  EXPECT_EQ(r.measurements.size(), 5u);
}

TEST_F(DamageTest, AnOutputThatIsNotTheStagesIsLeftOutUnlessAccepted) {
  write_output(7.34);
  Results r;
  EXPECT_THAT(warnings_of(r), HasSubstr("output.json: it is not what the stage wrote"));
  EXPECT_TRUE(r.generated.empty());
  EXPECT_EQ(r.measurements.size(), 6u);
  write_file_atomic(run_ / kStage / "accepted.json", "[\"0\"]");
  warnings_of(r);
  ASSERT_EQ(r.generated.size(), 1u);
  EXPECT_EQ(r.generated[0].speedup, 7.34);
}

// Where results.h5 has what is damaged now, it stays.
TEST_F(DamageTest, WhatTheFileHasIsKept) {
  aggregate(run_, false, {}, outputs_);
  fs::resize_file(run_ / kShard / "blob.bin", 600);
  EXPECT_FALSE(aggregate(run_, false, {}, outputs_).written);
  EXPECT_EQ(read_results(run_ / "results.h5").measurements.size(), 6u);
  write_file_atomic(run_ / kStage / "output.json", "torn");
  EXPECT_FALSE(aggregate(run_, false, {}, outputs_).written);
  EXPECT_EQ(read_results(run_ / "results.h5").generated.size(), 1u);
}

// Beside a running job: the blob as it was read first need not hold what later records point at.
TEST_F(DamageTest, AGrowingBlobIsReadAgain) {
  const fs::path run = scratch_ / "growing", shard = run / kStage / "2/measure/0/1";
  constexpr int kItems = 400;
  store_fixture::make_run(run, {.shards = 1, .items_a_shard = kItems});
  const std::string blob = read_file(shard / "blob.bin"), records = read_file(shard / "records.jsonl");
  fs::remove(shard / "records.jsonl");
  fs::remove(shard / "blob.bin");
  std::atomic<bool> done = false;
  std::thread writer([&] {
    AppendFile blob_file(shard / "blob.bin"), record_file(shard / "records.jsonl");
    for (std::size_t at = 0, line = 0; line < kItems; ++line) {
      blob_file.append(std::string_view(blob).substr(line * 560, 560));
      const std::size_t end = records.find('\n', at) + 1;
      record_file.append(std::string_view(records).substr(at, end - at));
      at = end;
    }
    done = true;
  });
  ::testing::internal::CaptureStdout();
  while (!done) read_run(run);
  writer.join();
  EXPECT_EQ(read_run(run).measurements.size(), std::size_t{kItems});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

// A reader that finds the same checksum before and after it has read the file has a pair.
TEST_F(DamageTest, TheChecksumIsNeverThatOfAnotherFile) {
  const fs::path file = run_ / "results.h5", sum = run_ / "results.h5.sha256";
  Results r = read_run(run_);
  replace_results(file, r);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) {
      r.host = "host" + std::to_string(i);
      replace_results(file, r);
    }
    done = true;
  });
  const auto said = [&] {
    std::ifstream in(sum);
    std::string digest;
    in >> digest;
    return digest;
  };
  int pairs = 0;
  while (!done) {
    const std::string before = said(), found = sha256_file_hex(file), after = said();
    if (before.empty() || before != after) continue;
    ++pairs;
    EXPECT_EQ(found, before);
  }
  writer.join();
  EXPECT_GT(pairs, 10);
  EXPECT_EQ(said(), sha256_file_hex(file));
}

}  // namespace
}  // namespace warpsmith::store

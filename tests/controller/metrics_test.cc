// metrics.jsonl, TensorBoard's event files and metrics.prom: no row twice, none lost, and other people's
// programs read them.
#include "metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "document_rows.h"
#include "event_file.h"
#include "fake_executor.h"
#include "output_of.h"
#include "scratch.h"
#include "warpsmith/controller/run_folder.h"

namespace warpsmith::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> lines;
  EXPECT_FALSE(scan_json_lines(file, 0, [&](Json&& line, std::uint64_t) { lines.push_back(line); }).cut_tail);
  return lines;
}

MetricRow step_row(std::int64_t step, double loss) {
  return {.time = 1000.5 + static_cast<double>(step),
          .stage = "sft",
          .hash8 = "0a1b2c3d",
          .kind = kStepRow,
          .step = step,
          .loss = loss};
}

// The records of all event files in a folder, their checksums checked.
std::vector<std::string> records_below(const fs::path& folder) {
  std::vector<std::string> records;
  const auto number = [](std::string_view bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  };
  const auto masked = [](std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; };
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string text = read_file(entry.path());
    for (std::string_view rest = text; !rest.empty();) {
      const std::uint64_t length = number(rest.substr(0, 8));
      EXPECT_EQ(number(rest.substr(8, 4)), masked(rest.substr(0, 8)));
      records.emplace_back(rest.substr(12, length));
      EXPECT_EQ(number(rest.substr(12 + length, 4)), masked(records.back()));
      rest.remove_prefix(16 + length);
    }
  }
  return records;
}

// Told by nobody: nothing must go wrong.
Metrics metrics_of(const fs::path& run) {
  return Metrics(run, [](const std::string& what) { ADD_FAILURE() << what; });
}

TEST(EventFile, HasCastagnolisChecksum) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
}

TEST(Metrics, KeepEachRowOnceInBothForms) {
  const Scratch run;
  for (int life = 1; life <= 2; ++life) {  // the second is told of the same, and of one more
    Metrics metrics = metrics_of(run.path());
    for (int step = 1; step <= 1 + life; ++step) metrics.add(step_row(step, 2.5 / step));
    metrics.add(step_row(1, 7));
  }
  const std::vector<Json> lines = lines_of(run / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], Json({{"time", 1001.5},
                            {"stage", "sft"},
                            {"hash8", "0a1b2c3d"},
                            {"kind", "step"},
                            {"round", 0},
                            {"step", 1},
                            {"loss", 2.5}}));
  EXPECT_EQ(lines[2].at("step"), 3);
  const auto records = records_below(run / "tensorboard/sft-0a1b2c3d");
  ASSERT_EQ(records.size(), 4u);
  EXPECT_THAT(records[0], HasSubstr("brain.Event:2"));
  EXPECT_THAT(records[1], HasSubstr("step/loss"));
  EXPECT_EQ(records[1].substr(9, 2), std::string("\x10\x01")) << "its step";
}

TEST(Metrics, AreMendedAfterAKillInTheMidstOfALine) {
  const Scratch run;
  {
    Metrics metrics = metrics_of(run.path());
    for (int step = 1; step <= 3; ++step) metrics.add(step_row(step, 1));
  }
  const std::string text = read_file(run / "metrics.jsonl");
  write_file_atomic(run / "metrics.jsonl", "no JSON\n" + text.substr(0, text.size() - 5));
  fs::remove_all(run / "tensorboard");
  Metrics metrics = metrics_of(run.path());
  EXPECT_TRUE(metrics.has(step_row(2, 1)));
  EXPECT_FALSE(metrics.has(step_row(3, 1)));
  metrics.add(step_row(3, 1));
  EXPECT_EQ(read_file(run / "metrics.jsonl"), text);
  EXPECT_EQ(records_below(run / "tensorboard/sft-0a1b2c3d").size(), 4u);
  metrics.forget("sft", "0a1b2c3d");
  EXPECT_EQ(read_file(run / "metrics.jsonl"), "");
  EXPECT_FALSE(fs::exists(run / "tensorboard/sft-0a1b2c3d"));
}

TEST(Metrics, FollowRecordsThatAreStillWritten) {
  const Scratch run;
  const fs::path records = run / "0/1/records.jsonl";
  make_folders(records.parent_path());
  AppendFile file(records);
  file.append(line_with_crc({{"item", "a"}, {"step", 1}, {"loss", 3.0}}) + "{\"item\"");
  Metrics metrics = metrics_of(run.path());
  const MetricRow place{.stage = "sft", .hash8 = "0a1b2c3d", .kind = kStepRow};
  metrics.add_steps_so_far(place, run / "0");
  EXPECT_EQ(lines_of(run / "metrics.jsonl").size(), 1u);
  file.append(":\"b\",\"step\":2,\"loss\":2.0}\n{\"item\":\"c\",\"step\":\"x\",\"loss\":1}\n");
  metrics.add_steps_so_far(place, run / "0");
  EXPECT_EQ(lines_of(run / "metrics.jsonl").size(), 2u);
}

TEST(Metrics, CostAMessageWhereTheyCannotBeWritten) {
  const Scratch run;
  write_file_atomic(run / "tensorboard", "a file in its place");
  std::vector<std::string> told;
  Metrics metrics(run.path(), [&](const std::string& what) { told.push_back(what); });
  metrics.add(step_row(1, 1));
  metrics.add(step_row(2, 1));
  EXPECT_THAT(told, ElementsAre(HasSubstr("go without what follows")));
}

TEST(Metrics, AreReadByTensorBoard) {
  const std::string python = std::string(WARPSMITH_SOURCE_DIR) + "/.venv/bin/python3";
  if (std::system((python + " -c 'import tensorboard' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no tensorboard in .venv (cmake/setup.sh test)";
  const Scratch run;
  Metrics metrics = metrics_of(run.path());
  for (int step = 1; step <= 300; ++step) metrics.add(step_row(step, 1.0 / step));
  write_file_atomic(run / "read.py",
                    "import sys\n"
                    "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
                    "events = EventAccumulator(sys.argv[1], {'scalars': 0}).Reload()\n"
                    "loss = events.Scalars('step/loss')\n"
                    "print(events.Tags()['scalars'], len(loss), loss[199].step, loss[199].wall_time, "
                    "round(loss[199].value, 6))\n");
  EXPECT_EQ(output_of("(" + python + " " + (run / "read.py").string() + " " +
                      (run / "tensorboard/sft-0a1b2c3d").string() + " 2>/dev/null)"),
            "['step/loss'] 300 200 1200.5 0.005\n");
}

TEST(Metrics, AreThoseOfTheFormatDocument) {
  std::string rows;
  for (const Field<MetricRow>& field : metric_fields())
    rows += "| `" + field.name + "` | " + field.notes.unit + (*field.notes.unit != '\0' ? " | " : "| ") +
            field.notes.meaning + " |\n";
  EXPECT_EQ(document_rows("results/README.md", "Keys of `metrics.jsonl`"), rows)
      << "results/README.md, below \"Keys of `metrics.jsonl`\", should have these rows:\n"
      << rows;
}

// ---- in a run

// Three rounds of one training job each.
class LoopStage : public stages::Stage {
 public:
  stages::StageStep start() override { return next(); }
  stages::StageStep on_job(const stages::JobResult&) override {
    rounds_.push_back({{"round", round_},
                       {"loss", 1.0 / round_},
                       {"samples", 8},
                       {"novel", 2},
                       {"best", 1.5},
                       {"verdicts", {{"ok", 4}}}});
    stages::StageStep step = round_ < 3 ? next() : stages::StageStep{};
    step.round = rounds_.back();
    if (round_ == 3 && step.jobs.empty()) {
      step.finished = true;
      step.output = {
          {"stage", "a"},
          {"rounds", rounds_},
          {"summary", {{"best", 1.5}, {"loss", nullptr}, {"groups", {{"train", {{"best", 1.5}}}}}}}};
    }
    return step;
  }

 private:
  stages::StageStep next() {
    ++round_;
    stages::JobRequest request{.round = round_, .job = "train", .program = "/bin/true"};
    request.one_shard = true;
    request.resources.gpus = 2;
    request.resources.gpu_type = "H100";
    for (int i = 0; i < 4; ++i)
      request.items.push_back({{"id", "s" + std::to_string(i)}, {"step", 4 * (round_ - 1) + i + 1}});
    return {.jobs = {request}, .finished = false, .output = {}};
  }
  int round_ = 0;
  std::vector<Json> rounds_;
};

class MetricsOfARun : public ::testing::Test {
 protected:
  MetricsOfARun() {
    workflow::StageSpec stage;
    stage.name = stage.base_name = "a";
    stage.kind = "command";
    stage.settings = workflow::CommandSettings{};
    spec_.stages.push_back(std::move(stage));
  }
  class Quiet : public RunObserver {
   public:
    void on_state(const Json&) override {}
    void on_message(const std::string& message) override { EXPECT_THAT(message, Not(HasSubstr("metrics"))); }
  };
  // Until that many items have run.
  RunOutcome run(int items = 100) {
    FakeExecutor executor;
    executor.program = [](const JobFile&, const Item& item) {
      return Json{{"step", item.value.at("step")}, {"loss", 0.5}, {"kl", 0.01}};
    };
    ControllerParts parts = parts_of(spec_, scratch_ / "run", executor, quiet_);
    parts.make_stage = [](stages::StageInputs) { return std::make_unique<LoopStage>(); };
    parts.selection = selection_;
    parts.gpus = {{"H100", 4}};
    parts.interrupted = [&] { return executor.items_run >= items; };
    return Controller(std::move(parts)).run();
  }
  // By kind, round and step.
  std::vector<std::string> rows() const {
    std::vector<std::string> out;
    for (const Json& line : lines_of(scratch_ / "run/metrics.jsonl"))
      out.push_back(line.at("kind").get<std::string>() + line.at("round").dump() + "." +
                    line.value("step", Json("")).dump());
    std::sort(out.begin(), out.end());
    return out;
  }

  const Scratch scratch_;
  workflow::WorkflowSpec spec_;
  plan::Selection selection_;
  Quiet quiet_;
};

TEST_F(MetricsOfARun, AreWholeHoweverOftenItWasInterruptedAndAreMadeAgain) {
  make_folders(scratch_ / "run");
  for (const int items : {4, 5, 100}) run(items);
  const std::vector<std::string> all = rows();
  EXPECT_EQ(all.size(), 12u + 3u + 1u);
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  for (const Json& line : lines_of(scratch_ / "run/metrics.jsonl"))
    if (line.at("kind") == "round") {
      EXPECT_EQ(line.at("novel_share"), 0.25);
      EXPECT_EQ(line.at("gpu_s"), 1.0) << "half a second of two GPUs";
    }
  const std::string before = read_file(scratch_ / "run/metrics.jsonl");
  EXPECT_EQ(run().kind, RunOutcome::Kind::kNothingToDo);
  EXPECT_EQ(read_file(scratch_ / "run/metrics.jsonl"), before);
  fs::remove(scratch_ / "run/metrics.jsonl");
  fs::remove_all(scratch_ / "run/tensorboard");
  run();
  EXPECT_EQ(rows(), all) << "from the journal, the records and the output";
  selection_.force = {"a"};
  run();
  EXPECT_EQ(rows(), all) << "those of the set-aside execution are gone";
}

TEST_F(MetricsOfARun, AreForPrometheusToo) {
  make_folders(scratch_ / "run");
  run();
  const std::string text = read_file(scratch_ / "run/metrics.prom");
  for (const char* line :
       {"# TYPE warpsmith_shards gauge\n", "warpsmith_shards{run=\"run\",stage=\"a\",state=\"done\"} 3\n",
        "warpsmith_shards{run=\"run\",stage=\"a\",state=\"running\"} 0\n",
        "warpsmith_samples_total{run=\"run\",stage=\"a\"} 24\n",
        "# TYPE warpsmith_gpu_seconds_total counter\n",
        "warpsmith_gpu_seconds_total{run=\"run\",stage=\"a\",job=\"train\"} 3\n",
        "warpsmith_items_total{run=\"run\",stage=\"a\",job=\"train\"} 12\n",
        "warpsmith_gpus{run=\"run\",type=\"H100\"} 4\n",
        "warpsmith_run_state{run=\"run\",state=\"finished\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("warpsmith_gpu_held_seconds_total"))) << "nothing is known of it";
  std::istringstream in(text);  // each metric once: HELP, TYPE, samples
  std::set<std::string> seen;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("# HELP ")) {
      EXPECT_TRUE(seen.insert(line.substr(0, line.find(' ', 7))).second) << line;
    }
}

}  // namespace
}  // namespace warpsmith::controller

// Value types and their JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/end_cause.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/records/shown_file.h"
#include "warpsmith/records/verdict.h"

namespace warpsmith {
namespace {

using testing::HasSubstr;

Candidate relu() {
  return make_plan_candidate(
      "relu", "int x;",
      {.kind = "generated", .stage = "rl", .round = 3, .detail = "relu#1/0", .parent = "p"});
}

TEST(Candidate, IdIsThatOfAnIndependentProgram) {
  EXPECT_EQ(relu().id, "25b28d6f06543b45b266227826b1d3050805e56b84a7222ab0cfb9b2b6b2e430");
  Candidate with_options = relu();
  with_options.options = {"-O2", "-g"};
  EXPECT_EQ(candidate_id(with_options), "0bd2c91138f20df2a9fac3fafd6ba585a1198c0044752fc5d2b2dbd142deb926");
}

TEST(Candidate, IdDependsOnContentAndNotOnOrigin) {
  const Candidate a = relu();
  Candidate b = a;
  b.origin = {};
  EXPECT_EQ(candidate_id(b), a.id);
  const auto changed = [&](auto change) {
    Candidate c = a;
    change(c);
    return candidate_id(c) != a.id;
  };
  EXPECT_TRUE(changed([](Candidate& c) { c.task = "gelu"; }));
  EXPECT_TRUE(changed([](Candidate& c) { c.tier = Tier::kPython; }));
  EXPECT_TRUE(changed([](Candidate& c) { c.options = {""}; }));
  EXPECT_TRUE(changed([](Candidate& c) { c.files[0].path = "k.cu"; }));
  EXPECT_TRUE(changed([](Candidate& c) { c.files[0].content += " "; }));
  EXPECT_TRUE(changed([](Candidate& c) { c.files.push_back({"b", ""}); }));
}

TEST(Candidate, RoundTrip) {
  Candidate candidate = relu();
  candidate.options = {"-O2"};
  candidate.files.push_back({"b.h", "// \"quoted\"\n\t\\"});
  candidate.id = candidate_id(candidate);
  const Candidate back = candidate_from_json(Json::parse(to_json(candidate).dump()));
  EXPECT_EQ(back.id, candidate.id);
  EXPECT_EQ(back.files[1].content, candidate.files[1].content);
  EXPECT_EQ(back.origin.kind, "generated");
  EXPECT_EQ(back.origin.stage, "rl");
  EXPECT_EQ(back.origin.round, 3);
  EXPECT_EQ(back.origin.detail, "relu#1/0");
  EXPECT_EQ(back.origin.parent, "p");
}

TEST(Candidate, MessagesNameItsFileSoThatOneFindsIt) {
  Candidate c = relu();
  EXPECT_EQ(shown_file(c), "25b28d6f/kernel.cu");
  c.origin = {"augmented", "collect", 0, "ok/host.cu: block 128 to 256", "p"};
  EXPECT_EQ(shown_file(c), "25b28d6f/kernel.cu");
  c.origin = {"dataset", "collect", 0, "ok/host.cu", ""};
  EXPECT_EQ(shown_file(c), "ok/host.cu");
  c.origin.detail = "host";  // as older runs have it
  EXPECT_EQ(shown_file(c), "25b28d6f/kernel.cu");
  c.files.push_back({"part.cuh", ""});
  EXPECT_EQ(shown_file(c), "");
  EXPECT_EQ(name_shown_file("kernel.cu:1: bad", c), "kernel.cu:1: bad");
}

TEST(Candidate, OnlyItsOwnNameIsReplacedInMessages) {
  Candidate c = relu();
  c.origin = {"dataset", "collect", 0, "ok/kernel.cu.cu", ""};
  for (const auto& [message, shown] : std::map<std::string, std::string>{
           {"", ""},
           {"timed out", "timed out"},
           {"kernel.cu:2:3: error: kernel.cu: no", "ok/kernel.cu.cu:2:3: error: ok/kernel.cu.cu: no"},
           {"(kernel.cu:12)", "(ok/kernel.cu.cu:12)"},
           {"in kernel.cu.", "in ok/kernel.cu.cu."},
           {"kernel.cuh: kernel.cu", "kernel.cuh: ok/kernel.cu.cu"},
           {"my_kernel.cu my-kernel.cu a/kernel.cu .kernel.cu",
            "my_kernel.cu my-kernel.cu a/kernel.cu .kernel.cu"},
           {"kernelxcu", "kernelxcu"}})
    EXPECT_EQ(name_shown_file(message, c), shown);
  c.tier = Tier::kPython;
  c.files[0].path = "model.py";
  c.origin.detail = "python/ok/fast.py";
  EXPECT_EQ(name_shown_file("RuntimeError: no (model.py:12)", c), "RuntimeError: no (python/ok/fast.py:12)");
}

TEST(Candidate, ForgedAndBrokenRecordsAreRefused) {
  Json forged = to_json(relu());
  forged["files"][0]["content"] = "something else";
  EXPECT_THROW(candidate_from_json(forged), Error);
  Json no_files = to_json(relu());
  no_files["files"] = Json::array();
  EXPECT_THROW(candidate_from_json(no_files), Error);
  Json no_task = to_json(relu());
  no_task.erase("task");
  EXPECT_THROW(candidate_from_json(no_task), Error);
  Json odd_tier = to_json(relu());
  odd_tier["tier"] = "fpga";
  EXPECT_THROW(candidate_from_json(odd_tier), Error);
  Json odd_task = to_json(relu());
  odd_task["task"] = 3;
  try {
    candidate_from_json(odd_task);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "candidate record: `task`: type must be string, but is number");
  }
}

TEST(Names, OfEnumsAreClosedLists) {
  for (std::size_t i = 0; i < kVerdictNames.size(); ++i) {
    const auto verdict = parse_verdict(kVerdictNames[i]);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(to_string(*verdict), kVerdictNames[i]);
  }
  EXPECT_EQ(parse_verdict("fine"), std::nullopt);
  EXPECT_EQ(to_string(Verdict::kNotMeasured), "not_measured");
  for (std::size_t i = 0; i < kEndCauseNames.size(); ++i)
    EXPECT_EQ(to_string(*parse_end_cause(kEndCauseNames[i])), kEndCauseNames[i]);
  EXPECT_EQ(parse_end_cause(""), std::nullopt);
  EXPECT_EQ(to_string(EndCause::kUnknown), "unknown");
  for (const Tier tier : {Tier::kPlan, Tier::kExtension, Tier::kPython})
    EXPECT_EQ(parse_tier(to_string(tier)), tier);
}

TEST(Names, SuccessAndFailure) {
  for (const std::string_view name : kVerdictNames) {
    const Verdict verdict = *parse_verdict(name);
    EXPECT_EQ(is_success(verdict), name == "ok") << name;
    EXPECT_EQ(is_failure(verdict), name != "ok" && name != "unsupported" && name != "not_measured") << name;
  }
}

TEST(Measurement, RoundTripOfEverything) {
  Measurement m;
  m.candidate = "c";
  m.task = "relu";
  m.baseline = "eager";
  m.math = "strict";
  m.verdict = Verdict::kUnstable;
  m.detail = "why";
  m.hack = "cache";
  m.only_hidden = true;
  m.speedup = 1.23456789012345;
  m.speedup_rounded = 1.23;
  m.speedup_low = 1.2;
  m.speedup_high = 1.3;
  m.imprecise = true;
  m.baseline_ns = 1000.5;
  m.candidate_ns = 800.25;
  m.variance = 0.001;
  m.rounds = 35;
  m.batch = 4;
  m.remeasured = 1;
  m.shape = {{"M", 3}, {"N", 1LL << 40}};
  m.max_error = 1e-6;
  m.error_bound = 1e-5;
  m.blob = "blob.bin";
  m.blob_offset = 1ull << 40;
  m.blob_bytes = 560;
  m.blob_crc = 0xffffffffu;
  m.seconds = 2.5;
  m.device = DeviceFacts{.kind = "cpu",
                         .name = "CPU",
                         .uuid = "u",
                         .driver = "d",
                         .host = "h",
                         .threads = 2,
                         .cores = 4,
                         .load_before = 0.5,
                         .load_after = 0.75,
                         .sandbox = "landlock",
                         .extra = {{"a", "b"}}};
  m.gpu_held_s = 0.25;
  m.gpu_timed_s = 0.0625;
  m.baseline_idle_ns = 1500.5;
  m.candidate_idle_ns = 900;
  m.own_share = 0.75;
  m.host_bound = true;
  m.baseline_alone_ns = 1001.5;
  m.candidate_event_ns = 790.25;
  m.clock = {{"threads", "3 before, 3 after"}, {"processor", "15, for both sides"}};
  m.speedup_before = 2.5;
  m.tensor_cores = false;
  m.registers = 168;
  m.shared_bytes = 49152;
  m.spill_bytes = 0;
  m.roofline_ns = 400.125;
  m.roofline_bound = "memory";
  m.gpu_before = GpuState{1980, 2619, 45, 312.5, "sw_power_cap"};
  m.gpu_after = GpuState{.sm_clock_mhz = 1200, .clock_reasons = "none"};
  m.clock_reasons = "sw_power_cap hw_slowdown";
  m.rounds_thrown_away = 3;
  const Json json = to_json(m);
  const Measurement back = measurement_from_json(Json::parse(json.dump()));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.speedup, m.speedup);  // bit for bit through the text
  EXPECT_EQ(back.shape, m.shape);
  EXPECT_EQ(back.verdict, Verdict::kUnstable);
  EXPECT_EQ(back.blob_offset, m.blob_offset);
  EXPECT_EQ(back.blob_crc, m.blob_crc);
  EXPECT_TRUE(back.only_hidden);
  ASSERT_TRUE(back.device);
  EXPECT_EQ(back.device->load_after, 0.75);
  EXPECT_EQ(back.device->extra.at("a"), "b");
  EXPECT_EQ(back.gpu_held_s, 0.25);
  EXPECT_EQ(back.gpu_timed_s, 0.0625);
  EXPECT_EQ(back.baseline_idle_ns, 1500.5);
  EXPECT_EQ(back.candidate_idle_ns, 900.0);
  EXPECT_EQ(back.own_share, 0.75);
  EXPECT_EQ(back.host_bound, true);
  EXPECT_EQ(back.baseline_alone_ns, 1001.5);
  EXPECT_EQ(back.candidate_event_ns, 790.25);
  EXPECT_EQ(back.clock, m.clock);
  EXPECT_EQ(back.speedup_before, 2.5);
  EXPECT_EQ(back.tensor_cores, false) << "known, and none";
  EXPECT_EQ(back.registers, 168);
  EXPECT_EQ(back.shared_bytes, 49152);
  EXPECT_EQ(back.spill_bytes, 0) << "known, and none";
  EXPECT_EQ(back.roofline_ns, 400.125);
  EXPECT_EQ(back.roofline_bound, "memory");
  ASSERT_TRUE(back.gpu_before && back.gpu_after);
  EXPECT_EQ(back.gpu_before->memory_clock_mhz, 2619);
  EXPECT_EQ(back.gpu_before->temperature_c, 45);
  EXPECT_EQ(back.gpu_before->power_w, 312.5);
  EXPECT_EQ(back.gpu_before->clock_reasons, "sw_power_cap");
  EXPECT_EQ(back.gpu_after->sm_clock_mhz, 1200);
  EXPECT_EQ(back.gpu_after->power_w, std::nullopt);
  EXPECT_EQ(back.clock_reasons, "sw_power_cap hw_slowdown");
  EXPECT_EQ(back.rounds_thrown_away, 3);
  EXPECT_NEAR(*roofline_share(back), 0.5, 1e-12);
}

TEST(Measurement, RecordsOfOlderVersionsLackWhatTheyDidNotKnow) {
  const Measurement old = measurement_from_json(
      {{"candidate", "c"},
       {"verdict", "ok"},
       {"rounds", 35},
       {"speedup", 2.0},
       {"speedup_rounded", 2.0},
       {"interval", {1.9, 2.1}},
       {"baseline_ns", 2000.0},
       {"candidate_ns", 1000.0},
       {"device", {{"kind", "H200"}, {"extra", {{"gpu_held_s", "0.25"}, {"host_bound", "yes"}}}}}});
  EXPECT_EQ(old.gpu_held_s, std::nullopt);
  EXPECT_EQ(old.host_bound, std::nullopt);
  EXPECT_EQ(old.baseline_alone_ns, std::nullopt);
  EXPECT_EQ(old.candidate_event_ns, std::nullopt);
  EXPECT_TRUE(old.clock.empty());
  EXPECT_EQ(old.own_share, std::nullopt);
  EXPECT_EQ(old.speedup_before, std::nullopt);
  EXPECT_EQ(old.tensor_cores, std::nullopt);
  EXPECT_EQ(old.registers, std::nullopt);
  EXPECT_EQ(old.shared_bytes, std::nullopt);
  EXPECT_EQ(old.spill_bytes, std::nullopt);
  EXPECT_EQ(old.roofline_ns, std::nullopt);
  EXPECT_EQ(old.gpu_before.has_value(), false);
  EXPECT_EQ(old.rounds_thrown_away, 0);
  EXPECT_EQ(roofline_share(old), std::nullopt);
  for (const char* key : {"gpu_held_s", "host_bound", "baseline_alone_ns", "candidate_event_ns", "clock",
                          "own_share", "speedup_before", "tensor_cores", "registers", "shared_bytes",
                          "spill_bytes", "roofline_ns", "gpu_before", "clock_reasons", "rounds_thrown_away"})
    EXPECT_FALSE(to_json(old).contains(key)) << key;
}

TEST(Measurement, OneThatWasNotTimedHasNoNumbers) {
  Measurement m;
  m.candidate = "c";
  m.verdict = Verdict::kWrongOutput;
  const Json json = to_json(m);
  for (const char* key : {"speedup", "samples", "device", "hack", "variance"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_EQ(measurement_from_json(json).verdict, Verdict::kWrongOutput);
  EXPECT_THROW(measurement_from_json({{"verdict", "great"}}), Error);
  EXPECT_THROW(measurement_from_json(Json::object()), Error);
}

TEST(JobFile, JobsOfLaterTurnsAreOfTheirKind) {
  EXPECT_EQ(job_of_turn("measure", 1), "measure");
  EXPECT_EQ(job_of_turn("measure", 12), "measure-12");
  for (const char* kind : {"generate", "compile", "measure"})
    for (const int turn : {1, 2, 12}) EXPECT_EQ(kind_of_job(job_of_turn(kind, turn)), kind);
  for (const char* other :
       {"train", "train-2", "ask-4", "measure-", "measure-tasks", "measure-2b", "measured-2"})
    EXPECT_EQ(kind_of_job(other), other);
}

TEST(JobFile, RoundTrip) {
  JobFile job;
  job.program = "warpsmith-measure";
  job.arguments = {"a", "b c"};
  job.run = "quickstart";
  job.stage = "rl";
  job.hash8 = "0123abcd";
  job.round = 2;
  job.job = "measure";
  job.token = "ws-1";
  job.seed = ~0ull;
  job.shards = {{0, 10}, {10, 17}};
  job.resources = {.cpus = 2,
                   .memory_bytes = 4ull << 30,
                   .gpus = 1,
                   .gpu_type = "H100",
                   .time_s = 60.5,
                   .output_bytes = 99,
                   .ranks = 3,
                   .nodes = 2};
  job.params = {{"x", {1, 2}}};
  const Scratch scratch;
  write_file_atomic(scratch / "job.json", to_json(job).dump());
  const JobFile back = read_job_file(scratch / "job.json");
  EXPECT_EQ(to_json(back), to_json(job));
  EXPECT_EQ(back.seed, ~0ull);
  EXPECT_EQ(back.resources, job.resources);
  EXPECT_EQ(back.shards, job.shards);
}

TEST(JobFile, BadOnesNameTheFile) {
  const Scratch scratch;
  const auto problem = [&](const std::string& text) {
    write_file_atomic(scratch / "job.json", text);
    try {
      read_job_file(scratch / "job.json");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(problem("{"), HasSubstr("job.json"));
  EXPECT_THAT(problem("{\"schema\": \"warpsmith.job/9\"}"), HasSubstr("schema is not warpsmith.job/1"));
  EXPECT_THAT(problem("{\"schema\": \"warpsmith.job/1\"}"), HasSubstr("program"));
}

}  // namespace
}  // namespace warpsmith

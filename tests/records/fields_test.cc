// The tables of fields of candidates, job files and ceilings: they hold every member of the record, and
// results/README.md describes every key. A new member does not compile here before the test has a value of
// it; without its line in the table that value is lost on the way through JSON.
#include <gtest/gtest.h>

#include <functional>

#include "document_rows.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/ceilings.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith {
namespace {

// ---- members ----

TEST(Fields, OfACandidateAreAllItsMembers) {
  Candidate candidate{.id = "",
                      .task = "relu",
                      .tier = Tier::kPython,
                      .options = {"-O2", "-g"},
                      .files = {{"model.py", "x = 1\n"}, {"part.cu", "int x;"}},
                      .origin = {"generated", "rl", 3, "relu#1/0", "p"}};
  candidate.id = candidate_id(candidate);
  const Candidate back = candidate_from_json(Json::parse(to_json(candidate).dump()));
  const auto& [id, task, tier, options, files, origin] = back;
  EXPECT_EQ(id, candidate.id);
  EXPECT_EQ(task, "relu");
  EXPECT_EQ(tier, Tier::kPython);
  EXPECT_EQ(options, candidate.options);
  ASSERT_EQ(files.size(), 2u);
  const auto& [path, content] = files[1];
  EXPECT_EQ(path, "part.cu");
  EXPECT_EQ(content, "int x;");
  const auto& [kind, stage, round, detail, parent] = origin;
  EXPECT_EQ(kind, "generated");
  EXPECT_EQ(stage, "rl");
  EXPECT_EQ(round, 3);
  EXPECT_EQ(detail, "relu#1/0");
  EXPECT_EQ(parent, "p");
}

TEST(Fields, OfAJobFileAreAllItsMembers) {
  const JobFile job{.program = "python3",
                    .arguments = {"a", "b c"},
                    .run = "quickstart",
                    .stage = "rl",
                    .hash8 = "0123abcd",
                    .round = 2,
                    .job = "train",
                    .token = "ws-1",
                    .seed = ~0ull,
                    .run_folder = "../..",
                    .shards = {{0, 10}, {10, 17}},
                    .resources = {2, 4ull << 30, 1, "H100", 60.5, 99, 3, 4, 5},
                    .params = {{"x", {1, 2}}}};
  const JobFile back = job_file_from_json(Json::parse(to_json(job).dump()));
  const auto& [program, arguments, run, stage, hash8, round, name, token, seed, run_folder, shards, resources,
               params] = back;
  EXPECT_EQ(program, "python3");
  EXPECT_EQ(arguments, job.arguments);
  EXPECT_EQ(run, "quickstart");
  EXPECT_EQ(stage, "rl");
  EXPECT_EQ(hash8, "0123abcd");
  EXPECT_EQ(round, 2);
  EXPECT_EQ(name, "train");
  EXPECT_EQ(token, "ws-1");
  EXPECT_EQ(seed, ~0ull);
  EXPECT_EQ(run_folder, "../..");
  EXPECT_EQ(shards, job.shards);
  EXPECT_EQ(params, job.params);
  const auto& [cpus, memory_bytes, gpus, gpu_type, time_s, output_bytes, ranks, nodes, shards_a_gpu] =
      resources;
  EXPECT_EQ(cpus, 2);
  EXPECT_EQ(memory_bytes, 4ull << 30);
  EXPECT_EQ(gpus, 1);
  EXPECT_EQ(gpu_type, "H100");
  EXPECT_EQ(time_s, 60.5);
  EXPECT_EQ(output_bytes, 99u);
  EXPECT_EQ(ranks, 3);
  EXPECT_EQ(nodes, 4);
  EXPECT_EQ(shards_a_gpu, 5);
}

TEST(Fields, OfCeilingsAreAllTheirMembers) {
  const Ceilings ceilings{.name = "NVIDIA H200",
                          .uuid = "GPU-1",
                          .driver = "13.0",
                          .host = "here",
                          .major = 9,
                          .minor = 1,
                          .sms = 132,
                          .l2_bytes = 60ull << 20,
                          .memory_bytes = 140ull << 30,
                          .date = "2026-05-01T12:00:00Z",
                          .thorough = true,
                          .seconds = 1.25,
                          .before = GpuState{1980, 2619, 45, 312.5, "gpu_idle"},
                          .after = GpuState{1755, 3201, 61, 512.25, "none"},
                          .settings = {{"ecc", "on"}},
                          .figures = {{"read_bytes_s", {4e12, 3e12, 5e12, 7, "1024 MiB"}}},
                          .kind = "H200",
                          .fingerprint = Fingerprint{"c0de", {{"exp2", "ab"}}, {{kFloat64Share, 0.5}}}};
  const Ceilings back = ceilings_from_json(Json::parse(to_json(ceilings).dump()));
  const auto& [name, uuid, driver, host, major, minor, sms, l2_bytes, memory_bytes, date, thorough, seconds,
               before, after, settings, figures, kind, fingerprint] = back;
  EXPECT_EQ(name, "NVIDIA H200");
  EXPECT_EQ(uuid, "GPU-1");
  EXPECT_EQ(driver, "13.0");
  EXPECT_EQ(host, "here");
  EXPECT_EQ(major, 9);
  EXPECT_EQ(minor, 1);
  EXPECT_EQ(sms, 132);
  EXPECT_EQ(l2_bytes, 60ull << 20);
  EXPECT_EQ(memory_bytes, 140ull << 30);
  EXPECT_EQ(date, "2026-05-01T12:00:00Z");
  EXPECT_TRUE(thorough);
  EXPECT_EQ(seconds, 1.25);
  EXPECT_EQ(settings, ceilings.settings);
  EXPECT_EQ(kind, "H200");
  ASSERT_TRUE(fingerprint);
  EXPECT_EQ(fingerprint->code, "c0de");
  EXPECT_EQ(fingerprint->patterns, ceilings.fingerprint->patterns);
  EXPECT_EQ(fingerprint->figures, ceilings.fingerprint->figures);
  ASSERT_TRUE(before && after && figures.contains("read_bytes_s"));
  const auto& [sm_clock_mhz, memory_clock_mhz, temperature_c, power_w, clock_reasons] = *before;
  EXPECT_EQ(sm_clock_mhz, 1980);
  EXPECT_EQ(memory_clock_mhz, 2619);
  EXPECT_EQ(temperature_c, 45);
  EXPECT_EQ(power_w, 312.5);
  EXPECT_EQ(clock_reasons, "gpu_idle");
  EXPECT_EQ(after->temperature_c, 61);
  const auto& [median, low, high, repeats, how] = figures.at("read_bytes_s");
  EXPECT_EQ(median, 4e12);
  EXPECT_EQ(low, 3e12);
  EXPECT_EQ(high, 5e12);
  EXPECT_EQ(repeats, 7);
  EXPECT_EQ(how, "1024 MiB");
}

// ---- files of older versions ----

// As earlier versions wrote them: the same text is written today. Keys that older files lack have their
// defaults.
TEST(Fields, StoredJsonStaysAsItWas) {
  const std::string job =
      R"({"arguments":[],"hash8":"0123abcd","job":"measure","params":{"x":1},"program":"warpsmith-measure",)"
      R"("resources":{"cpus":1,"gpu_type":"","gpus":0,"memory_bytes":0,"nodes":1,"output_bytes":0,"ranks":1,)"
      R"("time_s":0.0},"round":0,"run":"q","run_folder":"../../../../..","schema":"warpsmith.job/1",)"
      R"("seed":1,"shards":[[0,3],[3,4]],"stage":"collect","token":"ws-1"})";
  EXPECT_EQ(to_json(job_file_from_json(Json::parse(job))).dump(), job);
  const std::string candidate =
      R"({"files":[{"content":"int x;","path":"kernel.cu"}],)"
      R"("id":"25b28d6f06543b45b266227826b1d3050805e56b84a7222ab0cfb9b2b6b2e430","options":[],)"
      R"("origin":{"detail":"relu#1/0","kind":"generated","parent":"p","round":3,"stage":"rl"},)"
      R"("task":"relu","tier":"plan"})";
  EXPECT_EQ(to_json(candidate_from_json(Json::parse(candidate))).dump(), candidate);
  const std::string ceilings =
      R"({"before":{"sm_clock_mhz":1980},"compute_capability":[9,0],"date":"2026-05-01T12:00:00Z",)"
      R"("driver":"13.0","figures":{"read_bytes_s":{"high":5e+12,"how":"1 GiB","low":3e+12,"median":4e+12,)"
      R"("repeats":7}},"host":"here","l2_bytes":1,"memory_bytes":2,"name":"G","schema":)"
      R"("warpsmith.ceilings/1","seconds":1.5,"settings":{},"sms":132,"thorough":false,"uuid":"GPU-1"})";
  EXPECT_EQ(to_json(ceilings_from_json(Json::parse(ceilings))), Json::parse(ceilings));

  const JobFile oldest =
      job_file_from_json({{"schema", "warpsmith.job/1"}, {"program", "p"}, {"shards", Json::array()}});
  EXPECT_EQ(oldest.run_folder, "../../../../..");
  EXPECT_EQ(oldest.params, Json::object());
  EXPECT_EQ(oldest.resources, Resources());
}

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(Fields, OfAnotherTypeAreRefusedByName) {
  Json candidate = to_json(make_plan_candidate("relu", "int x;", {}));
  candidate["origin"] = 3;
  EXPECT_EQ(refusal([&] { candidate_from_json(candidate); }),
            "candidate record: `origin`: it is no JSON object");
  candidate["origin"] = {{"round", "three"}};
  EXPECT_EQ(refusal([&] { candidate_from_json(candidate); }),
            "candidate record: `round`: type must be number, but is string");
  candidate["origin"] = Json::object();
  candidate["files"] = {{{"path", "kernel.cu"}}};
  EXPECT_EQ(refusal([&] { candidate_from_json(candidate); }), "candidate record: it has no `content`");
  EXPECT_EQ(refusal([] { candidate_from_json(Json::array()); }), "candidate record: it is no JSON object");
  EXPECT_EQ(refusal([] {
              job_file_from_json({{"schema", "warpsmith.job/9"}});
            }),
            "job file: schema is not warpsmith.job/1");
  EXPECT_EQ(refusal([] { ceilings_from_json({{"name", "G"}}); }), "ceilings of a GPU: it has no `schema`");
}

// ---- results/README.md ----

// A key is its place in the JSON: `compute_capability/0` is the first element of a list.
template <typename R>
void expect_documented(const std::string& above, const Fields<R>& fields) {
  std::string rows;
  for (const Field<R>& field : fields) {
    EXPECT_STRNE(field.notes.meaning, "") << field.name;
    const std::string unit = field.notes.unit;
    rows += std::string("| `") + (field.notes.json == nullptr ? field.name : field.notes.json + 1) + "` | " +
            unit + (unit.empty() ? "" : " ") + (field.notes.presence == Presence::kNeeded ? "| yes " : "| ") +
            "| " + field.notes.meaning + " |\n";
  }
  EXPECT_EQ(document_rows("results/README.md", above), rows)
      << "results/README.md, below \"" << above << "\", should have these rows:\n"
      << rows;
}

TEST(Fields, AreThoseOfTheFormatDocument) {
  expect_documented("Keys of `job.json`", job_file_fields());
  expect_documented("Keys of `resources`", resource_fields());
  expect_documented("Keys of a candidate", candidate_fields());
  expect_documented("Keys of one of its `files`", fields_of(SourceFile()));
  expect_documented("Keys of its `origin`", fields_of(Origin()));
  expect_documented("Keys of ceilings", ceilings_fields());
  expect_documented("Keys of `before` and `after`", fields_of(GpuState()));
  expect_documented("Keys of a figure", fields_of(CeilingFigure()));
  expect_documented("Keys of `fingerprint`", fields_of(Fingerprint()));
}

}  // namespace
}  // namespace warpsmith

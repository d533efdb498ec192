// Makes a run folder as the controller and the job programs leave it, of any size.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::store_fixture {

struct RunShape {
  int shards = 2, items_a_shard = 3, pairs = 35;
  std::string hash8 = "0a1b2c3d";
  double speedup = 1.5;
  std::string job = "measure";
};

inline Candidate candidate(int number) {
  return make_plan_candidate(
      "row_softmax", "// plan: launch k<<<1, 1>>>(x, out)\n// number " + std::to_string(number) + "\n",
      {"generated", "contrastive", 2, "row_softmax#1/" + std::to_string(number), ""});
}

inline Measurement measurement(const Candidate& c, int pairs, double speedup) {
  Measurement m;
  m.candidate = c.id;
  m.task = c.task;
  m.baseline = "eager";
  m.math = "strict";
  m.verdict = Verdict::kOk;
  m.speedup = speedup;
  m.speedup_rounded = speedup;
  m.speedup_low = speedup / 1.01;
  m.speedup_high = speedup * 1.01;
  m.rounds = pairs;
  m.batch = 4;
  m.shape = {{"M", 64}, {"N", 1024}};
  m.device = DeviceFacts{
      .kind = "cpu", .name = "Test CPU", .uuid = "", .driver = "", .host = "here", .threads = 1, .cores = 2};
  return m;
}

// One stage `contrastive` with one measure job; again with another hash8 adds a version.
inline void make_run(const std::filesystem::path& run, const RunShape& shape) {
  const std::filesystem::path job_folder = run / "stages/contrastive" / shape.hash8 / "2" / shape.job;
  make_folders(job_folder);
  write_file_atomic(run / "run.json",
                    Json{{"name", "fixture"}, {"host", "here"}, {"version", "0.1.0"}}.dump());
  write_file_atomic(run / "workflow.yaml", "schema: warpsmith.workflow/1\n");
  JobFile job;
  job.program = "warpsmith-measure";
  job.stage = "contrastive";
  job.job = shape.job;
  job.round = 2;
  const auto per = static_cast<std::uint64_t>(shape.items_a_shard);
  std::string items;
  int number = 0;
  for (int s = 0; s < shape.shards; ++s) {
    job.shards.emplace_back(static_cast<std::uint64_t>(s) * per, static_cast<std::uint64_t>(s + 1) * per);
    for (int i = 0; i < shape.items_a_shard; ++i) {
      const Candidate c = candidate(number++);
      items += Json{{"id", c.id}, {"candidate", to_json(c)}, {"binary", "cache/x.so"}}.dump() + "\n";
    }
  }
  write_file_atomic(job_folder / "items.jsonl", items);
  write_file_atomic(job_folder / "job.json", to_json(job).dump());
  Random random(7);
  std::vector<std::int64_t> times(static_cast<std::size_t>(2 * shape.pairs));
  for (int s = 0; s < shape.shards; ++s) {
    ShardSession session(job_folder / "job.json", static_cast<std::size_t>(s));
    for (const Item& item : session.open_items()) {
      // Each round gives the same score, and its times are whole: multiples of 4 times a speedup in quarters.
      std::vector<double> ours, theirs;
      for (std::size_t i = 0, n = times.size() / 2; i < n; ++i) {
        times[n + i] = 50'000 + 4 * static_cast<std::int64_t>(random.below(250));
        times[i] = static_cast<std::int64_t>(static_cast<double>(times[n + i]) * shape.speedup);
        theirs.push_back(static_cast<double>(times[i]));
        ours.push_back(static_cast<double>(times[n + i]));
      }
      const BlobRef ref = session.write_blob(std::as_bytes(std::span(times)));
      Measurement m =
          measurement(candidate_from_json(item.value.at("candidate")), shape.pairs, shape.speedup);
      m.baseline_ns = stats::median(theirs);
      m.candidate_ns = stats::median(ours);
      m.blob = ref.file;
      m.blob_offset = ref.offset;
      m.blob_bytes = ref.bytes;
      m.blob_crc = ref.crc;
      session.write(item, to_json(m));
    }
    session.finish();
  }
}

}  // namespace warpsmith::store_fixture

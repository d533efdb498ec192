#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/job.h"

namespace warpsmith {

std::string_view to_string(Tier tier) {
  static constexpr std::string_view kNames[] = {"plan", "extension", "python"};
  return kNames[static_cast<int>(tier)];
}

Tier parse_tier(std::string_view name) {
  for (const Tier tier : {Tier::kPlan, Tier::kExtension, Tier::kPython})
    if (to_string(tier) == name) return tier;
  throw Error("unknown tier `" + std::string(name) + "`");
}

void from_text(std::string_view name, Tier& tier) { tier = parse_tier(name); }

std::string candidate_id(const Candidate& candidate) {
  Sha256 digest;
  digest.field(to_string(candidate.tier)).field(candidate.task);
  digest.field(std::to_string(candidate.options.size()));
  for (const std::string& option : candidate.options) digest.field(option);
  for (const SourceFile& file : candidate.files) digest.field(file.path).field(file.content);
  return digest.hex();
}

Candidate make_one_file_candidate(Tier tier, std::string task, std::string source, Origin origin) {
  Candidate candidate;
  candidate.tier = tier;
  candidate.task = std::move(task);
  candidate.files = {{tier == Tier::kPython ? "model.py" : "kernel.cu", std::move(source)}};
  candidate.origin = std::move(origin);
  candidate.id = candidate_id(candidate);
  return candidate;
}

Candidate make_plan_candidate(std::string task, std::string source, Origin origin) {
  return make_one_file_candidate(Tier::kPlan, std::move(task), std::move(source), std::move(origin));
}

const Fields<SourceFile>& fields_of(const SourceFile&) {
  using F = SourceFile;
  static const Fields<F> fields = {
      field("path", &F::path,
            {.meaning = "its path, relative to the candidate", .presence = Presence::kNeeded}),
      field("content", &F::content, {.meaning = "its text", .presence = Presence::kNeeded}),
  };
  return fields;
}

const Fields<Origin>& fields_of(const Origin&) {
  using O = Origin;
  constexpr Presence kWritten = Presence::kWritten;
  static const Fields<O> fields = {
      field("kind", &O::kind,
            {.meaning = "who wrote it: `dataset`, `augmented`, `generated`, …", .presence = kWritten}),
      field("stage", &O::stage, {.meaning = "stage that made it", .presence = kWritten}),
      field("round", &O::round, {.meaning = "round of the stage", .presence = kWritten}),
      field("detail", &O::detail,
            {.meaning = "dataset file, or prompt and number of the sample", .presence = kWritten}),
      field("parent", &O::parent,
            {.meaning = "id of the program that it was made from; empty: none", .presence = kWritten}),
  };
  return fields;
}

const Fields<Candidate>& candidate_fields() {
  using C = Candidate;
  constexpr Presence kNeeded = Presence::kNeeded, kWritten = Presence::kWritten;
  static const Fields<C> fields = {
      field("id", &C::id,
            {.meaning = "SHA-256 of tier, task, options and files, each framed by its length; a record with "
                        "another id is refused",
             .presence = kNeeded}),
      field("task", &C::task, {.meaning = "task", .presence = kNeeded}),
      field("tier", &C::tier, {.meaning = "`plan`, `extension` or `python`", .presence = kNeeded}),
      field("options", &C::options, {.meaning = "list of compile options", .presence = kWritten}),
      field("files", &C::files, {.meaning = "list of files, one or more", .presence = kNeeded}),
      field("origin", &C::origin,
            {.meaning = "where it came from; not part of the id", .presence = kWritten}),
  };
  return fields;
}

Json to_json(const Candidate& candidate) { return fields_to_json(candidate_fields(), candidate); }

Candidate candidate_from_json(const Json& json) {
  Candidate c = record_from_json(candidate_fields(), json, "candidate record");
  if (c.files.empty()) throw Error("candidate record " + c.id + ": no files");
  if (c.id != candidate_id(c))
    throw Error("candidate record " + c.id + ": its id is not that of its content");
  return c;
}

std::string job_of_turn(const std::string& kind, int turn) {
  return turn == 1 ? kind : kind + "-" + std::to_string(turn);
}

std::string_view kind_of_job(std::string_view job) {
  for (const std::string_view kind : {"generate", "compile", "measure"}) {
    if (!job.starts_with(kind) || job.size() < kind.size() + 2 || job[kind.size()] != '-') continue;
    const std::string_view turn = job.substr(kind.size() + 1);
    if (turn.find_first_not_of("0123456789") == std::string_view::npos) return kind;
  }
  return job;
}

const Fields<JobFile>& job_file_fields() {
  using J = JobFile;
  constexpr Presence kNeeded = Presence::kNeeded, kWritten = Presence::kWritten;
  static const Fields<J> fields = {
      schema_field<J>("warpsmith.job/1"),
      field(
          "program", &J::program,
          {.meaning = "the job program; of a `command` stage the first word of `argv`", .presence = kNeeded}),
      field("arguments", &J::arguments,
            {.meaning = "list of the further words of `argv`; else empty", .presence = kWritten}),
      field("run", &J::run, {.meaning = "name of the run, for messages", .presence = kWritten}),
      field("stage", &J::stage, {.meaning = "name of the stage, for messages", .presence = kWritten}),
      field("hash8", &J::hash8,
            {.meaning = "first 8 digits of the stage's hash, for messages", .presence = kWritten}),
      field("round", &J::round, {.meaning = "round of the stage", .presence = kWritten}),
      field("job", &J::job,
            {.meaning =
                 "name of the job: `generate`, `compile`, `measure`, `train`, …; of later turns of a round "
                 "`generate-2`, …",
             .presence = kWritten}),
      field("token", &J::token,
            {.meaning = "name of the job that no other job of any run has; on Slurm the job's name",
             .presence = kWritten}),
      field("seed", &J::seed, {.meaning = "seed of its random numbers", .presence = kWritten}),
      field("run_folder", &J::run_folder,
            {.meaning = "the run's folder, relative to the job's folder", .presence = kWritten}),
      field("shards", &J::shards,
            {.meaning = "list of pairs `[begin, end)`: the lines of items.jsonl of each shard, from 0",
             .presence = kNeeded}),
      field("resources", &J::resources, {.meaning = "what a shard may use, below", .presence = kWritten}),
      field("params", &J::params,
            {.meaning = "what else the program is told; other keys for each program", .presence = kWritten}),
  };
  return fields;
}

Json to_json(const JobFile& job) { return fields_to_json(job_file_fields(), job); }

JobFile job_file_from_json(const Json& json) { return record_from_json(job_file_fields(), json, "job file"); }

JobFile read_job_file(const std::filesystem::path& path) {
  try {
    return job_file_from_json(read_json_file(path));
  } catch (const Error& e) {
    throw e.with_context("while reading " + path.string());
  }
}

}  // namespace warpsmith

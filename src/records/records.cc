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

std::string candidate_id(const Candidate& candidate) {
  Sha256 digest;
  digest.field(to_string(candidate.tier)).field(candidate.task);
  digest.field(std::to_string(candidate.options.size()));
  for (const std::string& option : candidate.options) digest.field(option);
  for (const SourceFile& file : candidate.files) digest.field(file.path).field(file.content);
  return digest.hex();
}

Candidate make_plan_candidate(std::string task, std::string source, Origin origin) {
  Candidate candidate;
  candidate.task = std::move(task);
  candidate.files = {{"kernel.cu", std::move(source)}};
  candidate.origin = std::move(origin);
  candidate.id = candidate_id(candidate);
  return candidate;
}

Json to_json(const Candidate& c) {
  Json files = Json::array();
  for (const SourceFile& file : c.files) files.push_back({{"path", file.path}, {"content", file.content}});
  return {{"id", c.id},
          {"task", c.task},
          {"tier", to_string(c.tier)},
          {"options", c.options},
          {"files", std::move(files)},
          {"origin",
           {{"kind", c.origin.kind},
            {"stage", c.origin.stage},
            {"round", c.origin.round},
            {"detail", c.origin.detail},
            {"parent", c.origin.parent}}}};
}

Candidate candidate_from_json(const Json& json) {
  Candidate c;
  try {
    c.id = json.at("id").get<std::string>();
    c.task = json.at("task").get<std::string>();
    c.tier = parse_tier(json.at("tier").get<std::string>());
    c.options = json.value("options", std::vector<std::string>{});
    for (const Json& file : json.at("files"))
      c.files.push_back({file.at("path").get<std::string>(), file.at("content").get<std::string>()});
    if (const auto it = json.find("origin"); it != json.end()) {
      c.origin.kind = it->value("kind", "");
      c.origin.stage = it->value("stage", "");
      c.origin.round = it->value("round", 0);
      c.origin.detail = it->value("detail", "");
      c.origin.parent = it->value("parent", "");
    }
  } catch (const Json::exception& e) {
    throw Error(std::string("candidate record: ") + in_words(e));
  }
  if (c.files.empty()) throw Error("candidate record " + c.id + ": no files");
  if (c.id != candidate_id(c))
    throw Error("candidate record " + c.id + ": its id is not that of its content");
  return c;
}

Json to_json(const JobFile& job) {
  return {{"schema", "warpsmith.job/1"},
          {"program", job.program},
          {"arguments", job.arguments},
          {"run", job.run},
          {"stage", job.stage},
          {"hash8", job.hash8},
          {"round", job.round},
          {"job", job.job},
          {"token", job.token},
          {"seed", job.seed},
          {"run_folder", job.run_folder},
          {"shards", job.shards},
          {"resources", to_json(job.resources)},
          {"params", job.params}};
}

JobFile job_file_from_json(const Json& j) {
  if (!j.is_object()) throw Error("job file: it is no JSON object");
  JobFile job;
  try {
    if (j.at("schema") != "warpsmith.job/1") throw Error("job file: schema is not warpsmith.job/1");
    job.program = j.at("program").get<std::string>();
    job.arguments = j.value("arguments", std::vector<std::string>{});
    job.run = j.value("run", "");
    job.stage = j.value("stage", "");
    job.hash8 = j.value("hash8", "");
    job.round = j.value("round", 0);
    job.job = j.value("job", "");
    job.token = j.value("token", "");
    job.seed = j.value("seed", std::uint64_t{0});
    job.run_folder = j.value("run_folder", "../../../../..");
    job.shards = j.at("shards").get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>();
    if (const auto it = j.find("resources"); it != j.end()) job.resources = resources_from_json(*it);
    job.params = j.value("params", Json::object());
  } catch (const Json::exception& e) {
    throw Error(std::string("job file: ") + in_words(e));
  }
  return job;
}

JobFile read_job_file(const std::filesystem::path& path) {
  try {
    return job_file_from_json(read_json_file(path));
  } catch (const Error& e) {
    throw e.with_context("while reading " + path.string());
  }
}

}  // namespace warpsmith

#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/measurement.h"

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

Json to_json(const DeviceFacts& f) {
  return {{"kind", f.kind},       {"name", f.name},
          {"uuid", f.uuid},       {"driver", f.driver},
          {"host", f.host},       {"threads", f.threads},
          {"cores", f.cores},     {"load", {f.load_before, f.load_after}},
          {"sandbox", f.sandbox}, {"extra", f.extra}};
}

DeviceFacts device_facts_from_json(const Json& json) {
  DeviceFacts f;
  f.kind = json.value("kind", "");
  f.name = json.value("name", "");
  f.uuid = json.value("uuid", "");
  f.driver = json.value("driver", "");
  f.host = json.value("host", "");
  f.threads = json.value("threads", 0);
  f.cores = json.value("cores", 0);
  if (const auto it = json.find("load"); it != json.end() && it->size() == 2) {
    f.load_before = it->at(0).get<double>();
    f.load_after = it->at(1).get<double>();
  }
  f.sandbox = json.value("sandbox", "");
  if (const auto it = json.find("extra"); it != json.end() && !it->empty())
    f.extra = it->get<std::map<std::string, std::string>>();
  return f;
}

namespace {

template <typename T>
void take(const Json& json, const char* key, std::optional<T>& value) {
  if (const auto it = json.find(key); it != json.end() && !it->is_null()) value = it->get<T>();
}

}  // namespace

Json to_json(const GpuState& s) {
  Json j = Json::object();
  json_put(j, "sm_clock_mhz", s.sm_clock_mhz);
  json_put(j, "memory_clock_mhz", s.memory_clock_mhz);
  json_put(j, "temperature_c", s.temperature_c);
  json_put(j, "power_w", s.power_w);
  if (!s.clock_reasons.empty()) j["clock_reasons"] = s.clock_reasons;
  return j;
}

GpuState gpu_state_from_json(const Json& j) {
  GpuState s;
  take(j, "sm_clock_mhz", s.sm_clock_mhz);
  take(j, "memory_clock_mhz", s.memory_clock_mhz);
  take(j, "temperature_c", s.temperature_c);
  take(j, "power_w", s.power_w);
  s.clock_reasons = j.value("clock_reasons", "");
  return s;
}

std::optional<double> roofline_share(const Measurement& m) {
  if (!m.roofline_ns || m.rounds == 0 || !(m.candidate_ns > 0)) return std::nullopt;
  return *m.roofline_ns / m.candidate_ns;
}

Json to_json(const Measurement& m) {
  Json j = {
      {"candidate", m.candidate},        {"task", m.task},     {"baseline", m.baseline}, {"math", m.math},
      {"verdict", to_string(m.verdict)}, {"detail", m.detail}, {"seconds", m.seconds}};
  if (!m.hack.empty()) j["hack"] = m.hack;
  if (m.only_hidden) j["only_hidden"] = true;
  if (m.error_bound > 0) {
    j["max_error"] = m.max_error;
    j["error_bound"] = m.error_bound;
  }
  if (m.rounds > 0) {
    j["speedup"] = m.speedup;
    j["speedup_rounded"] = m.speedup_rounded;
    j["interval"] = {m.speedup_low, m.speedup_high};
    j["imprecise"] = m.imprecise;
    j["baseline_ns"] = m.baseline_ns;
    j["candidate_ns"] = m.candidate_ns;
    if (m.baseline_ratio > 0) j["baseline_ratio"] = m.baseline_ratio;
    j["variance"] = m.variance;
    j["rounds"] = m.rounds;
    j["batch"] = m.batch;
    j["remeasured"] = m.remeasured;
    Json shape = Json::array();
    for (const auto& [name, size] : m.shape) shape.push_back({name, size});
    j["shape"] = std::move(shape);
  }
  json_put(j, "gpu_held_s", m.gpu_held_s);
  json_put(j, "gpu_timed_s", m.gpu_timed_s);
  json_put(j, "baseline_idle_ns", m.baseline_idle_ns);
  json_put(j, "candidate_idle_ns", m.candidate_idle_ns);
  json_put(j, "host_bound", m.host_bound);
  json_put(j, "baseline_alone_ns", m.baseline_alone_ns);
  json_put(j, "candidate_event_ns", m.candidate_event_ns);
  if (!m.clock.empty()) j["clock"] = m.clock;
  json_put(j, "speedup_before", m.speedup_before);
  json_put(j, "tensor_cores", m.tensor_cores);
  json_put(j, "registers", m.registers);
  json_put(j, "shared_bytes", m.shared_bytes);
  json_put(j, "spill_bytes", m.spill_bytes);
  json_put(j, "roofline_ns", m.roofline_ns);
  if (!m.roofline_bound.empty()) j["roofline_bound"] = m.roofline_bound;
  if (m.gpu_before) j["gpu_before"] = to_json(*m.gpu_before);
  if (m.gpu_after) j["gpu_after"] = to_json(*m.gpu_after);
  if (!m.clock_reasons.empty()) j["clock_reasons"] = m.clock_reasons;
  if (m.rounds_thrown_away > 0) j["rounds_thrown_away"] = m.rounds_thrown_away;
  if (!m.blob.empty())
    j["samples"] = {
        {"file", m.blob}, {"offset", m.blob_offset}, {"bytes", m.blob_bytes}, {"crc", m.blob_crc}};
  if (m.device) j["device"] = to_json(*m.device);
  return j;
}

Measurement measurement_from_json(const Json& j) {
  Measurement m;
  try {
    m.candidate = j.value("candidate", "");
    m.task = j.value("task", "");
    m.baseline = j.value("baseline", "");
    m.math = j.value("math", "");
    const std::string verdict = j.at("verdict").get<std::string>();
    const auto parsed = parse_verdict(verdict);
    if (!parsed) throw Error("measurement record: unknown verdict `" + verdict + "`");
    m.verdict = *parsed;
    m.detail = j.value("detail", "");
    m.hack = j.value("hack", "");
    m.only_hidden = j.value("only_hidden", false);
    m.seconds = j.value("seconds", 0.0);
    m.max_error = j.value("max_error", 0.0);
    m.error_bound = j.value("error_bound", 0.0);
    m.rounds = j.value("rounds", 0);
    if (m.rounds > 0) {
      m.speedup = j.at("speedup").get<double>();
      m.speedup_rounded = j.at("speedup_rounded").get<double>();
      m.speedup_low = j.at("interval").at(0).get<double>();
      m.speedup_high = j.at("interval").at(1).get<double>();
      m.imprecise = j.value("imprecise", false);
      m.baseline_ns = j.at("baseline_ns").get<double>();
      m.candidate_ns = j.at("candidate_ns").get<double>();
      m.baseline_ratio = j.value("baseline_ratio", 0.0);
      m.variance = j.value("variance", 0.0);
      m.batch = j.value("batch", 1);
      m.remeasured = j.value("remeasured", 0);
      if (const auto it = j.find("shape"); it != j.end())
        for (const Json& axis : *it)
          m.shape.emplace_back(axis.at(0).get<std::string>(), axis.at(1).get<std::int64_t>());
    }
    take(j, "gpu_held_s", m.gpu_held_s);
    take(j, "gpu_timed_s", m.gpu_timed_s);
    take(j, "baseline_idle_ns", m.baseline_idle_ns);
    take(j, "candidate_idle_ns", m.candidate_idle_ns);
    take(j, "host_bound", m.host_bound);
    take(j, "baseline_alone_ns", m.baseline_alone_ns);
    take(j, "candidate_event_ns", m.candidate_event_ns);
    if (const auto it = j.find("clock"); it != j.end())
      m.clock = it->get<std::map<std::string, std::string>>();
    take(j, "speedup_before", m.speedup_before);
    take(j, "tensor_cores", m.tensor_cores);
    take(j, "registers", m.registers);
    take(j, "shared_bytes", m.shared_bytes);
    take(j, "spill_bytes", m.spill_bytes);
    take(j, "roofline_ns", m.roofline_ns);
    m.roofline_bound = j.value("roofline_bound", "");
    if (const auto it = j.find("gpu_before"); it != j.end()) m.gpu_before = gpu_state_from_json(*it);
    if (const auto it = j.find("gpu_after"); it != j.end()) m.gpu_after = gpu_state_from_json(*it);
    m.clock_reasons = j.value("clock_reasons", "");
    m.rounds_thrown_away = j.value("rounds_thrown_away", 0);
    if (const auto it = j.find("samples"); it != j.end()) {
      m.blob = it->at("file").get<std::string>();
      m.blob_offset = it->at("offset").get<std::uint64_t>();
      m.blob_bytes = it->at("bytes").get<std::uint64_t>();
      m.blob_crc = it->at("crc").get<std::uint32_t>();
    }
    if (const auto it = j.find("device"); it != j.end()) m.device = device_facts_from_json(*it);
  } catch (const Json::exception& e) {
    throw Error(std::string("measurement record: ") + in_words(e));
  }
  return m;
}

Json to_json(const Resources& r) {
  return {
      {"cpus", r.cpus},     {"memory_bytes", r.memory_bytes}, {"gpus", r.gpus},   {"gpu_type", r.gpu_type},
      {"time_s", r.time_s}, {"output_bytes", r.output_bytes}, {"ranks", r.ranks}, {"nodes", r.nodes}};
}

Resources resources_from_json(const Json& j) {
  Resources r;
  r.cpus = j.value("cpus", 1);
  r.memory_bytes = j.value("memory_bytes", std::uint64_t{0});
  r.gpus = j.value("gpus", 0);
  r.gpu_type = j.value("gpu_type", "");
  r.time_s = j.value("time_s", 0.0);
  r.output_bytes = j.value("output_bytes", std::uint64_t{0});
  r.ranks = j.value("ranks", 1);
  r.nodes = j.value("nodes", 1);
  return r;
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

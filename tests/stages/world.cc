#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <sstream>

#include "warpsmith/base/text.h"

namespace warpsmith::stages {

namespace {

double number(const std::string& source) { return std::stod(split(source, ' ').at(1)); }
std::string word(const std::string& source) { return split(source, ' ').at(0); }

std::string code_in(const std::string& source) {
  const std::size_t at = source.find("code=");
  return at == std::string::npos ? "" : trim(source.substr(at + 5));
}

std::optional<int> registers_in(const std::string& source) {
  const std::size_t at = source.find("registers=");
  if (at == std::string::npos) return std::nullopt;
  return std::stoi(source.substr(at + std::string("registers=").size()));
}

Json compile_record(const std::string& source) {
  if (word(source) == "bad")
    return {{"verdict", "compile_error"}, {"log", "kernel.cu:1: bad"}, {"seconds", 0.1}};
  if (word(source) == "unsupported") return {{"verdict", "unsupported"}, {"log", "wmma"}, {"seconds", 0.1}};
  Json record = {
      {"verdict", "ok"}, {"log", ""}, {"binary", "cache/x.so"}, {"seconds", 0.1}, {"cached", false}};
  if (const std::string code = code_in(source); !code.empty()) record["code"] = {{"cpu", code}};
  if (const auto n = registers_in(source))
    record["kernels"] = {{"sm_90a", {{{"registers", 1}}, {{"registers", *n}, {"spill_bytes", 0}}}}};
  return record;
}

Json sample_record(const std::string& text) {
  const Json blob = {{"file", "blob.bin"}, {"offset", 0}, {"bytes", 4}, {"crc", 1}};
  return {
      {"text", text}, {"finished", true}, {"tokens", 100}, {"tokens_blob", blob}, {"logprobs_blob", blob}};
}

}  // namespace

task::Task make_task(const std::string& id) {
  task::Task t;
  t.id = id;
  t.dims = {"N"};
  task::TensorSpec x;
  x.name = "x";
  x.shape = {task::Expression::parse("N")};
  task::TensorSpec out = x;
  out.name = "out";
  t.inputs = {x};
  t.outputs = {out};
  t.reference = "def forward(x):\n  return f_" + id + "(x)\n";
  t.folder = "/data/" + id;
  return t;
}

StageInputs make_inputs(const std::string& name, const std::string& kind, workflow::StageSettings settings) {
  StageInputs in;
  in.spec.name = in.spec.base_name = name;
  in.spec.kind = kind;
  in.spec.settings = std::move(settings);
  in.spec.seed = 7;
  in.spec.prompt.style = "compact";
  in.spec.dataset.folder = "/data";
  in.spec.dataset.train = {"a", "b"};
  in.spec.dataset.heldout_combination = {"c"};
  in.spec.dataset.heldout_operation = {"d"};
  for (const char* id : {"a", "b", "c", "d"}) in.tasks.push_back(make_task(id));
  return in;
}

Candidate program(const std::string& task, const std::string& source, const std::string& origin) {
  return make_plan_candidate(task, source + "\n", {origin, "upstream", 0, "", ""});
}

Measurement fate(const Candidate& candidate) {
  const std::string& source = candidate.source();
  Measurement m;
  m.candidate = candidate.id;
  m.task = candidate.task;
  m.baseline = "eager";
  m.math = "strict";
  m.registers = registers_in(source);
  const std::string kind = word(source);
  if (kind == "ok" || kind == "imprecise" || kind == "unstable") {
    m.verdict = kind == "unstable" ? Verdict::kUnstable : Verdict::kOk;
    m.speedup = m.speedup_rounded = kind == "unstable" ? 1 : number(source);
    const double half = kind == "imprecise" ? 0.1 : 0.01;
    m.speedup_low = m.speedup * (1 - half);
    m.speedup_high = m.speedup * (1 + half);
    m.rounds = 35;
    if (source.find(" host-bound") != std::string::npos) m.host_bound = true;
    if (source.find(" borrowed") != std::string::npos) m.own_share = 0.25;
  } else if (kind == "hack") {
    m.verdict = Verdict::kHack;
    m.hack = split(source, ' ').at(1);
    m.detail = trim(source.substr(source.find(m.hack) + m.hack.size()));
  } else if (kind == "once") {
    m.verdict = Verdict::kUnstable;
    m.remeasured = m.rounds = 1;
    m.detail = "measured again: 9.00x, then 1.10x, more than 10 % apart";
  } else if (kind == "bad") {
    m.verdict = Verdict::kCompileError;
  } else if (kind == "unsupported") {
    m.verdict = Verdict::kUnsupported;
  } else {
    m.verdict = Verdict::kWrongOutput;
  }
  return m;
}

StageOutput output_with(const std::string& stage, const std::string& task,
                        const std::vector<std::string>& sources, const std::string& origin) {
  StageOutput out = {{"schema", "warpsmith.stage_output/1"}, {"stage", stage}, {"device", "cpu"}};
  out["protocol"] = {{"device", "cpu"}, {"baseline", "eager"},  {"math", "strict"},
                     {"threads", 1},    {"target", 0.0},        {"budget_s", 2.0},
                     {"buckets", 7},    {"rounds_a_bucket", 5}, {"variance_gate", 0.0},
                     {"check_seeds", 2}};
  out["candidates"] = Json::array();
  for (const std::string& source : sources) {
    const Candidate c = program(task, source, origin);
    Json entry = {{"candidate", to_json(c)}, {"measurement", to_json(fate(c))}};
    if (const std::string code = code_in(source); !code.empty()) entry["code"] = {{"cpu", code}};
    out["candidates"].push_back(std::move(entry));
  }
  return out;
}

void add_upstream(StageInputs& inputs, const std::string& stage, StageOutput output) {
  inputs.upstream[stage] = std::move(output);
  inputs.upstream_order.push_back(stage);
}

StageInputs with_model(workflow::ContrastiveSettings settings, const std::vector<std::string>& programs) {
  StageInputs inputs = make_inputs("rl", "contrastive", std::move(settings));
  inputs.spec.dataset.train = {"a"};
  add_upstream(inputs, "collect", output_with("collect", "a", programs));
  StageOutput ssl = output_with("ssl", "a", {});
  ssl["checkpoint"] = "checkpoints/ssl-200";
  add_upstream(inputs, "ssl", ssl);
  return inputs;
}

JobResult World::run(const JobRequest& job) {
  JobResult result{job.round, job.job, {}};
  if (kind_of_job(job.job) == "measure") result.extras = extras;
  for (const Json& item : job.items) {
    const std::string id = item.at("id");
    ItemResult r{id, Json::object(), "stages/x/" + std::to_string(job.round) + "/" + job.job + "/0/1"};
    const std::string_view kind = kind_of_job(job.job);
    if (kind == "generate" || job.job == "check" || job.job.starts_with("ask-")) {
      const auto texts = answer(job, item);
      if (spent.is_null())
        EXPECT_EQ(texts.size(), item.at("n").get<std::size_t>());
      else
        r.record["spent"] = spent;
      r.record["prompt_tokens"] = 50;
      if (exemplars_left_out > 0) r.record["exemplars_left_out"] = exemplars_left_out;
      r.record["samples"] = Json::array();
      for (const std::string& text : texts) {
        Json sample = sample_record(text);
        if (!spent.is_null())  // a server tells no tokens
          for (const char* key : {"tokens_blob", "logprobs_blob"}) sample.erase(key);
        r.record["samples"].push_back(std::move(sample));
      }
    } else if (kind == "compile") {
      r.record = compile_record(candidate_from_json(item.at("candidate")).source());
    } else if (kind == "measure") {
      const Candidate c = candidate_from_json(item.at("candidate"));
      EXPECT_EQ(item.at("binary"), "cache/x.so");
      r.record = to_json(fate(c));
      if (word(c.source()) == "lost") r.record = nullptr;
    } else if (job.job == "train") {
      const std::int64_t step = std::stoll(id.substr(5));
      r.record = {{"step", step}, {"loss", 1.0 / static_cast<double>(step)}, {"seconds", 0.1}};
      if (&item == &job.items.back()) {
        r.record["checkpoint"] =
            job.params.at("checkpoint_prefix").get<std::string>() + "-" + std::to_string(step);
        r.record["checkpoint_digest"] = "digest of " + std::to_string(step);
      }
    } else if (job.job == "export" || job.job == "weights") {
      r.record["folder"] = "model";
    } else if (job.job == "collect") {
      r.record = collected(id);
    } else {
      r.record = command(item);
    }
    if (std::find(lost.begin(), lost.end(), id) != lost.end()) r.record = nullptr;
    result.items.push_back(std::move(r));
  }
  return result;
}

StageOutput World::drive(Stage& stage) {
  StageStep step = stage.start();
  std::deque<JobRequest> open;
  Json rounds = Json::array();  // as they were told
  const auto hear = [&] {
    if (step.round.is_object() && (rounds.empty() || rounds.back() != step.round))
      rounds.push_back(step.round);
  };
  while (!step.finished) {
    for (JobRequest& job : step.jobs) {
      EXPECT_FALSE(job.items.empty()) << "a job without items: " << job.job;
      log.push_back(job);
      open.push_back(std::move(job));
    }
    if (open.empty()) {
      ADD_FAILURE() << "a stage that is not finished asks for no job";
      return {};
    }
    const auto ended = open.begin() + static_cast<std::ptrdiff_t>(next ? next(open.size()) : 0);
    const JobRequest job = std::move(*ended);
    open.erase(ended);
    step = stage.on_job(run(job));
    hear();
  }
  EXPECT_TRUE(step.jobs.empty() && open.empty());
  if (step.output.contains("rounds")) {
    EXPECT_EQ(rounds, step.output["rounds"]) << "each when it has ended";
  }
  return step.output;
}

StageOutput World::drive(const StageInputs& inputs) { return drive(*make_stage(inputs)); }

std::vector<std::string> World::jobs() const {
  std::vector<std::string> out;
  for (const JobRequest& job : log) out.push_back(std::to_string(job.round) + "/" + job.job);
  return out;
}

const JobRequest& World::job(const std::string& name) const {
  for (const JobRequest& job : log)
    if (std::to_string(job.round) + "/" + job.job == name) return job;
  throw std::runtime_error("nobody asked for job " + name);
}

std::size_t World::count(const std::string& job) const {
  std::size_t n = 0;
  for (const JobRequest& j : log) n += j.job == job ? j.items.size() : 0;
  return n;
}

std::vector<Json> examples_of(const JobRequest& train) {
  std::vector<Json> out;
  for (const std::string& line : split(train.files.at("examples.jsonl"), '\n'))
    if (!line.empty()) out.push_back(Json::parse(line));
  return out;
}

std::vector<std::string> ids_of(const std::vector<Json>& items) {
  std::vector<std::string> out;
  for (const Json& item : items) out.push_back(item.at("id"));
  return out;
}

std::string dump(const JobRequest& job) {
  std::ostringstream out;
  out << job.round << ' ' << job.job << ' ' << job.program << ' ' << Json(job.arguments) << ' ' << job.params
      << '\n';
  for (const Json& item : job.items) out << item << '\n';
  for (const auto& [name, content] : job.files) out << name << ":\n" << content;
  out << to_json(job.resources) << ' ' << job.expected_item_s << ' ' << job.one_shard;
  return out.str();
}

}  // namespace warpsmith::stages

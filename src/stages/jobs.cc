#include "jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "warpsmith/records/baseline.h"

namespace warpsmith::stages {

namespace {

Json model_json(const workflow::ModelSettings& m) {
  return {{"layers", m.layers},
          {"width", m.width},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"hidden", m.hidden},
          {"context", m.context},
          {"vocabulary", m.vocabulary},
          {"rope_base", m.rope_base},
          {"norm_epsilon", m.norm_epsilon},
          {"init_deviation", m.init_deviation}};
}

Json optimizer_json(const workflow::OptimizerSettings& o) {
  Json json = {{"learning_rate", o.learning_rate},
               {"final_rate", o.final_rate},
               {"warmup_steps", o.warmup_steps},
               {"weight_decay", o.weight_decay},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"clip_norm", o.clip_norm},
               {"batch_tokens", o.batch_tokens},
               {"checkpoint_every", o.checkpoint_every},
               {"moments", o.moments},
               {"keep_last", o.keep_last},
               {"keep_best", o.keep_best}};
  if (!o.deterministic) json["deterministic"] = false;
  if (o.states != "auto") json["states"] = o.states;
  if (!o.states_folder.empty()) json["states_folder"] = o.states_folder;
  return json;
}

// What is left of its budget.
Json endpoint_json(const workflow::EndpointSettings& e, const Spent& spent) {
  Json json = {{"url", e.url},
               {"model", e.model},
               {"key_variable", e.key_env},
               {"ca_file", e.ca_file},
               {"proxy", e.proxy},
               {"chat", e.chat},
               {"answer_s", e.timeout_s},
               {"tries", e.tries},
               {"in_flight", e.in_flight},
               {"requests_a_minute", e.requests_a_minute},
               {"tokens_a_minute", e.tokens_a_minute},
               {"prices", {{"prompt", e.prices.prompt}, {"completion", e.prices.completion}}}};
  if (!e.service.empty()) json["service"] = e.service;  // the controller adds where its address is written
  if (spent.prompt + spent.completion > 0) json["spent_before"] = spent.prompt + spent.completion;
  // Of a budget that is used up so much is left that no request fits: 0 would be no bound.
  if (e.budget.tokens > 0)
    json["budget"]["tokens"] = std::max<std::int64_t>(1, e.budget.tokens - spent.prompt - spent.completion);
  if (e.budget.money > 0) json["budget"]["money"] = std::max(1e-12, e.budget.money - spent.money(e.prices));
  return json;
}

std::vector<std::string> baselines_of(const workflow::ProtocolSettings& p) {
  const auto asked = [&](const std::string& name) {
    const auto& list = p.baselines;
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  std::vector<std::string> names;
  for (const std::string& name : known_baselines())
    if (asked("all") || asked(name) || (name == p.baseline && name != "eager")) names.push_back(name);
  return names;
}

template <typename List, typename Seconds>
double mean_seconds(const List& list, double of_none, const Seconds& seconds) {
  double all_s = 0;
  for (const auto& one : list) all_s += seconds(one);
  return list.empty() ? of_none : all_s / static_cast<double>(list.size());
}

}  // namespace

std::vector<Prompt> split_samples(const std::string& task, int samples, int an_item) {
  std::vector<Prompt> prompts;
  for (int left = samples; left > 0; left -= an_item)
    prompts.push_back({fmt::format("{}#{}", task, prompts.size()), task, "", std::min(left, an_item), 0});
  return prompts;
}

void set_texts(std::vector<std::string> texts, Prompt* prompt) {
  prompt->text = std::move(texts.front());
  prompt->shorter.assign(std::move_iterator(texts.begin() + 1), std::move_iterator(texts.end()));
}

namespace {

// What a server calls these weights: no two checkpoints have one, also where a stage is run anew.
std::string version_of(const Checkpoint& checkpoint) {
  return std::filesystem::path(checkpoint.path).filename().string() + "-" + checkpoint.digest.substr(0, 8);
}

// The items of a job that samples.
void add_prompts(const workflow::StageSpec& spec, const std::vector<Prompt>& prompts, int max_tokens,
                 JobRequest& job) {
  int samples = 0;
  for (const Prompt& p : prompts) {
    job.items.push_back({{"id", p.id}, {"task", p.task}, {"prompt", p.text}, {"n", p.samples}});
    if (!p.shorter.empty()) job.items.back()["shorter"] = p.shorter;
    samples += p.samples;
  }
  job.program = "warpsmith-generate";
  job.resources = spec.generate;
  const double an_item = samples / std::max(1.0, static_cast<double>(prompts.size()));
  job.expected_item_s = seconds_a_token(spec) * max_tokens * an_item;
}

}  // namespace

JobRequest generate_request(const workflow::StageSpec& spec, int round, const Checkpoint& checkpoint,
                            const std::vector<Prompt>& prompts, const Spent& spent) {
  JobRequest job;
  job.round = round;
  job.job = "generate";
  job.params = {{"temperature", spec.sample.temperature},
                {"top_p", spec.sample.top_p},
                {"max_tokens", spec.sample.max_tokens}};
  if (spec.policy) {
    job.params["endpoint"] = endpoint_json(*spec.policy, spent);
    if (workflow::has_own_model(spec)) {
      job.params["stage_folder"] = "";
      job.params["endpoint"]["weights"] = {
          {"way", spec.policy_weights}, {"version", version_of(checkpoint)}, {"context", spec.model.context}};
    }
  } else {
    const bool waves = spec.generate.gpus > 0 || spec.sample.type == "bfloat16";
    job.params.update({{"checkpoint", checkpoint.path},
                       {"top_k", spec.sample.top_k},
                       {"threads", spec.generate.cpus},
                       {"gpus", spec.generate.gpus},
                       {"type", spec.sample.type},
                       {"batch", waves ? spec.sample.wave : kSamplesAnItem}});
    if (!spec.model.from.empty()) job.params["base_folder"] = spec.model.from;
  }
  add_prompts(spec, prompts, spec.sample.max_tokens, job);
  job.least_shards = spec.generate_shards;
  job.one_shard = spec.policy.has_value();  // limits and budget are one program's
  return job;
}

namespace {

// `asked`: whom, and how: TeacherSettings or CheckerSettings.
template <typename Asked>
JobRequest server_request(const workflow::StageSpec& spec, int round, const std::string& name,
                          const Asked& asked, const std::vector<Prompt>& prompts, const Spent& spent) {
  JobRequest job;
  job.round = round;
  job.job = name;
  job.params = {{"temperature", asked.temperature},
                {"max_tokens", asked.max_tokens},
                {"endpoint", endpoint_json(asked.endpoint, spent)}};
  if constexpr (requires { asked.top_p; }) job.params["top_p"] = asked.top_p;
  add_prompts(spec, prompts, asked.max_tokens, job);
  job.resources.gpus = 0;  // the server has them
  job.resources.gpu_type.clear();
  job.one_shard = true;  // limits and budget are one program's
  return job;
}

}  // namespace

JobRequest teacher_request(const workflow::StageSpec& spec, int round, const std::string& name,
                           const workflow::TeacherSettings& teacher, const std::vector<Prompt>& prompts,
                           const Spent& spent) {
  return server_request(spec, round, name, teacher, prompts, spent);
}

JobRequest checker_request(const workflow::StageSpec& spec, int round, const std::string& name,
                           const std::vector<Prompt>& prompts, const Spent& spent) {
  JobRequest job = server_request(spec, round, name, *spec.checker, prompts, spent);
  job.params["advice"] = true;
  return job;
}

JobRequest compile_request(const workflow::StageSpec& spec, int round,
                           const std::vector<Candidate>& candidates) {
  JobRequest job;
  job.round = round;
  job.job = "compile";
  job.program = "warpsmith-compile";
  job.params = {{"device_kind", spec.device},
                {"datasets", spec.dataset.folder.string()},
                {"cache", "cache"},
                {"timeout_s", spec.compiler.timeout_s},
                {"memory_bytes", spec.compiler.memory_bytes},
                {"log_bytes", spec.compiler.log_bytes},
                {"unsandboxed", false}};
  if (!spec.compile_target.empty()) job.params["targets"] = Json::array({spec.compile_target});
  for (const Candidate& c : candidates) {
    job.items.push_back({{"id", c.id}, {"candidate", to_json(c)}});
    job.item_s.push_back(compile_seconds(c));
  }
  job.resources = spec.compile;
  job.expected_item_s = compile_seconds(candidates);
  return job;
}

double measure_seconds(const workflow::StageSpec& spec, Tier tier) {
  if (spec.device == "cpu") return spec.protocol.budget_s + kCheckSeconds;
  switch (tier) {
    case Tier::kPlan:
      break;
    case Tier::kExtension:
      return kGpuExtensionSeconds;
    case Tier::kPython:
      return kGpuPythonSeconds;
  }
  return kGpuPlanSeconds;
}

namespace {

const Candidate& candidate_of(const Candidate& candidate) { return candidate; }
const Candidate& candidate_of(const Compiled& compiled) { return compiled.candidate; }

// Of a candidate in the mean. In a `measure` stage the baselines of each task come on top: other stages find
// them in the cache but for the first time.
template <typename List>
double measure_seconds_of(const workflow::StageSpec& spec, const List& candidates) {
  double baselines_s = 0;
  if (spec.kind == "measure" && spec.device != "cpu")
    for (const std::string& name : baselines_of(spec.protocol))
      baselines_s += name.starts_with("torch_compile") ? kCompiledBaselineSeconds : kBaselineSeconds;
  std::set<std::string> tasks;
  for (const auto& c : candidates) tasks.insert(candidate_of(c).task);
  return mean_seconds(candidates, measure_seconds(spec, Tier::kPlan),
                      [&](const auto& c) { return measure_seconds(spec, candidate_of(c).tier); }) +
         (candidates.empty()
              ? 0
              : baselines_s * static_cast<double>(tasks.size()) / static_cast<double>(candidates.size()));
}

}  // namespace

double measure_seconds(const workflow::StageSpec& spec, const std::vector<Candidate>& candidates) {
  return measure_seconds_of(spec, candidates);
}

double compile_seconds(const Candidate& candidate) {
  if (candidate.tier == Tier::kPlan) return kCompilePlanSeconds;
  if (candidate.tier == Tier::kExtension) return kCompileExtensionSeconds;
  const bool builds = std::any_of(candidate.files.begin(), candidate.files.end(), [](const SourceFile& file) {
    return file.content.find("load_inline") != std::string::npos ||
           file.content.find("cpp_extension") != std::string::npos;
  });
  return builds ? kBuildSeconds : kCompilePythonSeconds;
}

double compile_seconds(const std::vector<Candidate>& candidates) {
  return mean_seconds(candidates, kCompilePlanSeconds, [](const Candidate& c) { return compile_seconds(c); });
}

bool times_other_baselines(const workflow::StageSpec& spec) {
  if (spec.device == "cpu") return false;
  const std::vector<std::string> names = baselines_of(spec.protocol);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name != "eager"; });
}

JobRequest measure_request(const workflow::StageSpec& spec, int round,
                           const std::vector<Compiled>& candidates,
                           const std::map<std::string, double>& best) {
  const workflow::ProtocolSettings& p = spec.protocol;
  JobRequest job;
  job.round = round;
  job.job = "measure";
  job.program = "warpsmith-measure";
  job.params = {{"datasets", spec.dataset.folder.string()},
                {"device_kind", spec.device},
                {"threads", p.threads},
                {"baseline", p.baseline},
                {"math", p.math},
                {"target", p.target},
                {"budget_s", p.budget_s},
                {"buckets", p.buckets},
                {"rounds_a_bucket", p.rounds_a_bucket},
                {"variance_gate", p.variance_gate},
                {"check_seeds", p.check_seeds},
                {"call_timeout_s", p.call_timeout_s},
                {"memory_bytes", p.memory_bytes},
                {"remeasure_above", p.remeasure_above},
                {"remeasure_over_best", p.remeasure_over_best},
                {"best", best},
                {"unsandboxed", false}};
  if (!spec.device_names.empty()) job.params["device_names"] = spec.device_names;
  if (spec.device != "cpu") job.params["baselines"] = baselines_of(p);
  for (const Compiled& c : candidates) {
    job.items.push_back({{"id", c.candidate.id}, {"candidate", to_json(c.candidate)}, {"binary", c.binary}});
    job.item_s.push_back(measure_seconds(spec, c.candidate.tier));
  }
  job.resources = spec.measure;
  job.expected_item_s = measure_seconds_of(spec, candidates);
  job.one_shard = measures_in_one_shard(spec);
  return job;
}

Json decoder_json(const workflow::StageSpec& stage) {
  return stage.model.pretrained ? stage.model.pretrained->settings : model_json(stage.model);
}

Json lora_json(const workflow::LoraSettings& lora) {
  return {{"rank", lora.rank}, {"alpha", lora.alpha}, {"targets", lora.targets}};
}

JobRequest train_request(const workflow::StageSpec& spec, const TrainJob& train) {
  JobRequest job;
  job.round = train.round;
  job.job = "train";
  job.program = "warpsmith-train";
  job.params = {{"mode", train.mode},
                {"init", train.init ? Json(train.init->path) : Json()},
                {"reference", train.reference.empty() ? Json() : Json(train.reference)},
                {"optimizer", optimizer_json(spec.optimizer)},
                {"threads", spec.train.cpus},
                {"gpus", spec.train.gpus},
                {"type", spec.optimizer.type},
                {"micro_batch_tokens", spec.optimizer.micro_batch_tokens},
                {"recompute", spec.optimizer.recompute},
                {"checkpoint_prefix", "checkpoints/" + spec.name}};
  if (!train.sampled_by.empty()) job.params["sampled_by"] = train.sampled_by;
  if (!spec.model.from.empty()) job.params["base_folder"] = spec.model.from;
  if (spec.lora.rank > 0) job.params["lora"] = lora_json(spec.lora);
  if (!train.init) {
    const workflow::ModelSettings& m = spec.model;
    job.params["model"] = decoder_json(spec);
    if (m.pretrained)
      job.params["pretrained"] = {{"folder", m.from.empty() ? m.shape_of : m.from},
                                  {"weights", !m.from.empty()},
                                  {"frame", m.pretrained->frame}};
  }
  const std::int64_t first = train.init ? train.init->step : 0;
  for (std::int64_t i = 1; i <= train.steps; ++i)
    job.items.push_back({{"id", fmt::format("step-{}", first + i)}});
  if (train.steps == 0) {  // its checkpoint alone
    job.params["steps"] = 0;
    job.items.push_back({{"id", fmt::format("step-{}", first)}});
  }
  std::string lines;
  for (const Json& example : train.examples)
    lines += example.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  job.files["examples.jsonl"] = std::move(lines);
  job.resources = spec.train;
  job.expected_item_s = kTrainStepSeconds;
  job.one_shard = true;
  return job;
}

JobRequest export_request(const workflow::StageSpec& spec, int round, const std::string& checkpoint) {
  JobRequest job;
  job.round = round;
  job.job = "export";
  job.program = "warpsmith-train";
  job.params = {{"mode", "export"},
                {"init", checkpoint},
                {"type", workflow::export_type(spec)},
                {"threads", spec.train.cpus},
                {"stage_folder", ""}};
  if (!spec.model.from.empty()) job.params["base_folder"] = spec.model.from;
  job.items.push_back({{"id", "export"}});
  job.resources = spec.train;
  job.resources.gpus = 0;
  job.resources.gpu_type.clear();
  job.expected_item_s = kExportSeconds;
  job.one_shard = true;
  return job;
}

Trained read_trained(const workflow::StageSpec& spec, const JobResult& result) {
  Trained out;
  for (const ItemResult& item : result.items) {
    if (item.record.is_null()) continue;
    Json point = item.record;
    for (const char* key : {"item", "index", "seconds", "checkpoint", "checkpoint_digest"}) point.erase(key);
    if (point.contains("loss")) out.curve.push_back(std::move(point));
    if (const std::string path = item.record.value("checkpoint", ""); !path.empty()) {
      out.checkpoint = {path, item.record.value("step", std::int64_t{0})};
      out.digest = item.record.value("checkpoint_digest", "");
    }
  }
  if (out.checkpoint.path.empty())
    throw Error(fmt::format("stage {}, round {}: training has left no checkpoint", spec.name, result.round),
                kExitFailed);
  return out;
}

Json last_loss(const std::vector<Json>& curve) {
  return curve.empty() ? Json() : curve.back().value("loss", Json());
}

}  // namespace warpsmith::stages

#include "endpoint.h"

#include <fmt/format.h>

#include <cctype>

#include "warpsmith/base/text.h"

namespace warpsmith::workflow {

namespace {

using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

// A key itself would end up in the run's folder, in its report and in somebody's repository.
void refuse_secrets(MapReader& map) {
  for (const char* secret : {"key", "api_key", "token"}) {
    if (!map.has(secret)) continue;
    map.expect(secret);
    map.mistake(secret, fmt::format("`{}`: secrets do not stand in a workflow file", secret),
                "name an environment variable: key_env: NAME");
  }
}

}  // namespace

const Table<EndpointSettings>& endpoint_keys() {
  using S = EndpointSettings;
  static const Table<S> table = {
      {.rule = {.name = "url",
                .form = Form::kString,
                .meaning = "Where the server's API begins, such as http://localhost:8000/v1.",
                .hashed = false},
       .member = &S::url},
      {.rule = {.name = "service",
                .form = Form::kString,
                .meaning = "In place of `url`: the stage of kind `service` that starts the server.",
                .hashed = false},
       .member = &S::service},
      {{"model", Form::kString, "The model, as the server calls it."}, &S::model},
      {.rule = {.name = "key_env",
                .form = Form::kString,
                .meaning = "Environment variable that holds the key, where the server wants one.",
                .hashed = false},
       .member = &S::key_env},
      {.rule = {.name = "ca_file",
                .form = Form::kString,
                .meaning = "PEM file of the certificates that are trusted, relative to the folder of this "
                           "file. Default: the system's.",
                .hashed = false},
       .member = &S::ca_file},
      {.rule = {.name = "proxy",
                .form = Form::kString,
                .meaning = "Proxy, such as http://proxy:3128. Default: as https_proxy and no_proxy say.",
                .hashed = false},
       .member = &S::proxy},
      {{"chat", Form::kBoolean,
        "Prompts are sent as a chat; false: to be continued, for a model without a chat template."},
       &S::chat},
      {.rule = {.name = "timeout",
                .form = Form::kSeconds,
                .meaning = "The longest to wait for an answer.",
                .high = kDay,
                .above_low = true,
                .hashed = false},
       .member = &S::timeout_s},
      {.rule =
           {.name = "tries",
            .form = Form::kInteger,
            .meaning =
                "How often a request is sent. Without an answer then, the shard fails; the next run goes on.",
            .low = 1,
            .high = 1000,
            .hashed = false},
       .member = &S::tries},
      {.rule = {.name = "in_flight",
                .form = Form::kInteger,
                .meaning = "Requests that are open at a time.",
                .low = 1,
                .high = 10000,
                .hashed = false},
       .member = &S::in_flight},
      {.rule = {.name = "requests_a_minute",
                .form = Form::kNumber,
                .meaning = "Requests a minute, at most; 0: no limit.",
                .high = 1e7,
                .hashed = false},
       .member = &S::requests_a_minute},
      {.rule = {.name = "tokens_a_minute",
                .form = Form::kNumber,
                .meaning = "Tokens a minute, of prompts and answers, at most; 0: no limit.",
                .high = 1e12,
                .hashed = false},
       .member = &S::tokens_a_minute},
  };
  return table;
}

const Table<EndpointSettings::Spending>& spending_keys() {
  using S = EndpointSettings::Spending;
  static const Table<S> table = {
      {{"tokens", Form::kInteger, "Tokens of prompts and answers, over all rounds; 0: no bound.", 0, 2e9},
       &S::tokens},
      {{"money", Form::kNumber,
        "The same in money, by `prices` of the site file and in their currency; 0: no bound.", 0, 1e9},
       &S::money},
  };
  return table;
}

void read_endpoint(MapReader& map, EndpointSettings& endpoint, Diagnostics& mistakes) {
  const std::size_t mistakes_before = mistakes.size();
  read_keys(endpoint_keys(), map, endpoint, mistakes);
  if (const auto budget = map.value("budget"))
    read_map(spending_keys(), *budget, "`budget`", endpoint.budget, mistakes);
  refuse_secrets(map);
  if (mistakes.size() > mistakes_before || !map.usable()) return;
  if (!endpoint.service.empty() && !endpoint.url.empty())
    map.mistake("service", "`service` and `url` stand together", "keep one of them");
  if (endpoint.service.empty() && !endpoint.url.starts_with("http://") &&
      !endpoint.url.starts_with("https://"))
    map.mistake("url",
                endpoint.url.empty() ? "key `url` is missing"
                                     : fmt::format("`url`: {} is no address of a server", endpoint.url),
                "such as http://localhost:8000/v1");
  if (endpoint.model == "{model}" && endpoint.service.empty())
    map.mistake("model", "`{model}` is the folder that a service was started with, and no `service` is named",
                "service: NAME; or the model, as the server calls it");
  if (endpoint.model.empty())
    map.mistake("model", "key `model` is missing", "`warpsmith doctor --endpoint URL` lists the server's");
  if (!endpoint.key_env.empty() && !is_identifier(endpoint.key_env))
    map.mistake("key_env", "`key_env` holds the name of an environment variable, never the key itself",
                "such as OPENAI_API_KEY");
}

const Table<StageSpec>& policy_keys() {
  using S = StageSpec;
  static const Table<S> table = {
      {.rule = {.name = "weights",
                .form = Form::kWord,
                .meaning =
                    "How the server gets the weights that the stage trains. sglang: it reads a folder. "
                    "vllm_lora: it loads adapters. restart: the service is started again. none: it "
                    "keeps its own, and nothing is trained.",
                .words = {"none", "sglang", "vllm_lora", "restart"},
                .hashed = false},  // whether it is trained is
       .member = &S::policy_weights},
  };
  return table;
}

void read_policy(const Node& node, StageSpec& spec, Diagnostics& mistakes) {
  MapReader map(node, "`policy`", mistakes);
  spec.policy.emplace();
  if (const auto endpoint = map.value("endpoint", {.required = true})) {
    MapReader keys(*endpoint, "`endpoint`", mistakes);
    read_endpoint(keys, *spec.policy, mistakes);
    keys.finish();
  }
  read_keys(policy_keys(), map, spec, mistakes);
  map.finish();
}

const Table<TeacherSettings>& teacher_keys() {
  using S = TeacherSettings;
  static const Table<S> table = {
      {{"name", Form::kString, "Who wrote it, in results. Default: made of `model`."}, &S::name},
      {{"trials", Form::kInteger, "Answers that it is asked for, of a task, at most; published: 20.", 1,
        10000},
       &S::trials},
      {{"successes", Form::kInteger, "Distinct right programs of a task, with which it stops; published: 2.",
        1, 10000},
       &S::successes},
      {{"temperature", Form::kNumber, "Divides the logits.", 0, 100}, &S::temperature},
      {{"top_p", Form::kNumber, "Smallest set of tokens with this probability together.", 0, 1, true},
       &S::top_p},
      {{"max_tokens", Form::kInteger, "Longest answer.", 1, 1000000}, &S::max_tokens},
  };
  return table;
}

TeacherSettings read_teacher(const Node& node, Diagnostics& mistakes) {
  TeacherSettings teacher;
  MapReader map(node, "teacher", mistakes);
  read_endpoint(map, teacher.endpoint, mistakes);
  read_keys(teacher_keys(), map, teacher, mistakes);
  map.finish();
  if (teacher.name.empty())
    for (const char c : teacher.endpoint.model)
      teacher.name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  if (teacher.name.size() > 64) teacher.name.resize(64);
  if (map.has("name") && !is_identifier(teacher.name))
    map.mistake("name", fmt::format("`{}` is no name", teacher.name),
                "a letter, then letters, digits, _ and -");
  return teacher;
}

// A stage does not depend on them: what is said changes nothing of it.
const Table<CheckerSettings>& checker_keys() {
  using S = CheckerSettings;
  static const Table<S> table = {
      {{"jump", Form::kNumber,
        "It is asked about right programs with a score of so many times the task's best before, or of the "
        "reference.",
        1, 1e6},
       &S::jump},
      {.rule = {.name = "hacks",
                .form = Form::kString,
                .meaning = "Folder of known hacks, relative to the folder of this file. Default: those that "
                           "the run has confirmed.",
                .hashed = false},  // the cases themselves are
       .member = &S::hacks},
      {{"cases", Form::kInteger, "Known hacks that a question quotes: those whose code is most alike.", 0,
        16},
       &S::cases},
      {{"temperature", Form::kNumber, "Divides the logits.", 0, 100}, &S::temperature},
      {{"max_tokens", Form::kInteger, "Longest answer.", 1, 1000000}, &S::max_tokens},
  };
  return table;
}

void read_checker(const Node& node, StageSpec& spec, Diagnostics& mistakes) {
  MapReader map(node, "`checker`", mistakes);
  CheckerSettings& checker = spec.checker.emplace();
  if (const auto endpoint = map.value("endpoint", {.required = true})) {
    MapReader keys(*endpoint, "`endpoint`", mistakes);
    read_endpoint(keys, checker.endpoint, mistakes);
    keys.finish();
  }
  read_keys(checker_keys(), map, checker, mistakes);
  map.finish();
}

std::vector<EndpointSettings*> endpoints_of(StageSpec& stage) {
  std::vector<EndpointSettings*> out;
  if (stage.policy) out.push_back(&*stage.policy);
  if (stage.checker) out.push_back(&stage.checker->endpoint);
  if (auto* collect = std::get_if<CollectSettings>(&stage.settings))
    for (TeacherSettings& teacher : collect->teachers) out.push_back(&teacher.endpoint);
  return out;
}

Json hashed_teacher(const TeacherSettings& teacher) {
  Json json = hashed_json(teacher_keys(), teacher);
  json.update(hashed_endpoint(teacher.endpoint));
  return json;
}

// Whether a prompt's place in a chat is known to the trainer: by the template of the model's folder.
static void check_served_training(MapReader& map, StageSpec& spec, Diagnostics& mistakes) {
  const Node& policy = *map.node().find("policy");
  const auto mistake = [&](const std::string& message, const char* hint) {
    const Node* weights = policy.find("weights");
    mistakes.push_back(mistake_at((weights != nullptr ? *weights : policy).place(), message, hint));
  };
  const std::string what = fmt::format("`weights: {}`", spec.policy_weights);
  if (spec.kind == "measure")
    mistake(what + ": a stage of kind measure trains nothing", "leave it out");
  else if (!spec.policy->chat)
    mistake(what + " wants `chat: true`: training and server put prompts into the model's chat template",
            "leave `chat` out");
  else if (spec.policy_weights == "restart" && spec.policy->service.empty())
    mistake(what + " is for a server that the run starts", "endpoint: {service: NAME}");
  else if (spec.model.export_as == "none")
    mistake(what + ": the server reads what the stage exports, and `model: {export: none}`",
            "model: {export: bfloat16}");
  else if (spec.policy_weights == "vllm_lora" && spec.lora.rank == 0)
    mistake(what + " loads adapters, and the stage trains none", "lora: {rank: 16}");
}

void check_policy(MapReader& map, StageSpec& spec, Diagnostics& mistakes) {
  if (!spec.policy) return;
  const bool trains = has_own_model(spec);
  if (trains) check_served_training(map, spec, mistakes);
  const auto refuse = [&](const char* key, const char* hint) {
    if (const Node* value = map.node().find(key); value != nullptr && !trains)
      mistakes.push_back(
          mistake_at(value->place(),
                     fmt::format("`{}`: `policy` names a server, whose model is not trained", key), hint));
  };
  for (const char* block : {"optimizer", "lora"}) refuse(block, "leave it out");
  if (const Node* sample = map.node().find("sample"); sample != nullptr && sample->is_map())
    for (const char* key : kOfOwnSamplers)
      if (const Node* value = sample->find(key))
        mistakes.push_back(mistake_at(value->place(),
                                      fmt::format("`sample`: `{}` is for models that are sampled here", key),
                                      "`policy` names a server: leave it out"));
  if (spec.policy->chat && spec.prompt.style == "compact" && !trains) {
    const Node* prompt = map.node().find("prompt");
    mistakes.push_back(mistake_at(
        (prompt != nullptr ? *prompt : *map.node().find("policy")).place(),
        "`style: compact` takes the whole answer for a program, and in a chat models say more than that",
        "prompt: {style: full}; or `chat: false`, for a model that was trained on such prompts"));
  }
  if (spec.kind == "self_supervised")
    for (const char* key : {"steps", "distinct", "fastest", "replay"}) refuse(key, "leave it out");
  if (auto* contrastive = std::get_if<ContrastiveSettings>(&spec.settings);
      contrastive != nullptr && !trains) {
    for (const char* key : {"clip_ratio", "kl", "kl_clamp", "epochs"}) refuse(key, "leave it out");
    const Node* update = map.node().find("update");
    if (update != nullptr && contrastive->update) refuse("update", "update: none");
    contrastive->update = false;
  }
  if (spec.sample.top_k > 0)
    mistakes.push_back(mistake_at(
        map.node().find("policy")->place(),
        fmt::format("`sample`: `top_k` is {}, which OpenAI's protocol does not know", spec.sample.top_k),
        "sample: {top_k: 0} in this stage; `top_p` is known"));
}

Json hashed_endpoint(const EndpointSettings& endpoint) { return hashed_json(endpoint_keys(), endpoint); }

}  // namespace warpsmith::workflow

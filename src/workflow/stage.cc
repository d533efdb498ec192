#include "stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "endpoint.h"
#include "substitute.h"
#include "warpsmith/base/text.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

const std::vector<std::string> kJobNames = {"generate", "compile", "measure", "train", "service"};

Resources& resources_of(StageSpec& spec, std::string_view job) {
  if (job == "generate") return spec.generate;
  if (job == "compile") return spec.compile;
  if (job == "measure") return spec.measure;
  if (job == "service") return spec.service;
  return spec.train;
}

void read_resources(const Node& node, StageSpec& spec, Diagnostics& mistakes, Diagnostics& idle) {
  MapReader map(node, "`resources`", mistakes);
  for (const Key<Resources>& key : resource_keys()) {
    const auto value = map.value(key.rule.name);
    if (!value) continue;
    const auto read = read_value(key.rule, *value, mistakes);
    if (!read) continue;
    const bool of_gpus = std::string_view(key.rule.name).starts_with("gpu");
    for (const std::string& job : kJobNames) {
      if (of_gpus && most_gpus_unnamed(spec, job) == 0) continue;
      if (key.rule.name == std::string_view(kShardsAGpu) && job != "measure") continue;
      assign(key, resources_of(spec, job), KeyValue(*read));
    }
  }
  int most = 0;
  for (const std::string& job : kJobNames) most = std::max(most, most_gpus_unnamed(spec, job));
  refuse_gpus(node, "`resources`: jobs of a stage of kind " + spec.kind, most, idle,
              most == 0 && most_gpus(spec, "train") > 0
                  ? "train: {gpus: 1}: GPUs of training are asked for by name"
                  : "");
  for (const std::string& job : kJobNames) {
    const auto value = map.value(job);
    if (!value) continue;
    if (spec.kind == "service" && job != "service") {
      mistakes.push_back(mistake_at(value->place(), fmt::format("`resources`: a service has no {} jobs", job),
                                    "service: {gpus: 1}"));
      continue;
    }
    read_map(resource_keys(), *value, "`resources: " + job + "`", resources_of(spec, job), mistakes);
    refuse_gpus(*value, "`resources`: " + job + " jobs", most_gpus(spec, job), idle,
                job == "service" ? "a stage of kind service has them" : "");
    if (const Node* shares = value->find(kShardsAGpu); shares != nullptr && job != "measure")
      mistakes.push_back(mistake_at(shares->place(),
                                    fmt::format("`resources`: {} jobs do not share a GPU", job),
                                    "measure: {shards_a_gpu: 4}: those take turns at its clock"));
    if (job == "train" && (value->find("gpus") != nullptr || value->find("gpu_type") != nullptr))
      spec.train_gpus_named = true;
  }
  map.finish();
}

void read_retry(const Node& node, RetryRule& retry, Diagnostics& mistakes) {
  MapReader map(node, "`retry`", mistakes);
  for (const CauseRule& rule : cause_rules()) {
    const std::string cause(to_string(rule.cause));
    if (const auto times = map.integer(cause, {.low = 0, .high = 1000}))
      retry.times[rule.cause] = static_cast<int>(*times);
  }
  if (const auto factor = map.number("memory_factor", {.low = 1, .high = 100})) retry.memory_factor = *factor;
  for (const EndCause never :
       {EndCause::kUserError, EndCause::kCancelled, EndCause::kFinished, EndCause::kStopped}) {
    const std::string cause(to_string(never));
    if (!map.has(cause)) continue;
    map.expect(cause);
    map.mistake(cause, fmt::format("`retry`: `{}` is never retried", cause));
  }
  map.finish();
}

// Of a model that a Hugging Face folder describes.
void check_folder_model(const Node& node, const ModelSettings& model, Diagnostics& mistakes) {
  if (!model.from.empty() && !model.shape_of.empty())
    mistakes.push_back(mistake_at(node.place(), "`from` and `shape_of` stand together", "keep one of them"));
  for (const Entry& entry : node.entries()) {
    const std::string& key = entry.key;
    const bool applies = key == "from" || key == "shape_of" || key == "context" || key == "export" ||
                         (key == "init_deviation" && model.from.empty());
    const auto& keys = model_keys();
    if (!applies && std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return k.rule.name == key; }))
      mistakes.push_back(mistake_at(
          entry.place,
          fmt::format("`{}`: the folder says it: {}", key, model.from.empty() ? model.shape_of : model.from),
          "leave it out"));
  }
}

void read_block(const std::string& block, const Node& node, StageSpec& spec, Diagnostics& mistakes) {
  const std::string what = "`" + block + "`";
  if (block == "model") read_map(model_keys(), node, what, spec.model, mistakes);
  if (block == "sample") read_map(sample_keys(), node, what, spec.sample, mistakes);
  if (block == "optimizer") read_map(optimizer_keys(), node, what, spec.optimizer, mistakes);
  if (block == "lora") read_map(lora_keys(), node, what, spec.lora, mistakes);
  if (block == "lora" && spec.lora.rank > 0 && spec.lora.targets.empty())
    mistakes.push_back(mistake_at(node.place(), "`lora`: `targets` is empty", "targets: [q_proj, v_proj]"));
  if (block == "compile") read_map(compile_keys(), node, what, spec.compiler, mistakes);
  if (block == "measure") read_map(protocol_keys(), node, what, spec.protocol, mistakes);
  if (block == "prompt") read_map(prompt_keys(), node, what, spec.prompt, mistakes);
  if (block == "policy") read_policy(node, spec, mistakes);
  if (block != "model") return;
  ModelSettings& m = spec.model;
  m.context_given = m.context_given || node.find("context") != nullptr;
  if (!m.from.empty() || !m.shape_of.empty()) {
    check_folder_model(node, m, mistakes);
    return;
  }
  if (m.width % m.heads != 0 || m.width / m.heads % 2 != 0)
    mistakes.push_back(mistake_at(node.place(),
                                  fmt::format("`width` {} cannot be shared by {} heads", m.width, m.heads),
                                  "width / heads must be a whole, even number"));
  if (m.heads % m.kv_heads != 0)
    mistakes.push_back(mistake_at(
        node.place(), fmt::format("`kv_heads` {} does not divide `heads` {}", m.kv_heads, m.heads)));
}

// A name or a list of names.
std::vector<NamedPlace> read_names(MapReader& map, const std::string& key, Diagnostics& mistakes) {
  std::vector<NamedPlace> names;
  const auto node = map.value(key);
  if (!node || node->is_null()) return names;
  const std::vector<Node> one = {*node};
  for (const Node& item : node->is_sequence() ? node->items() : one) {
    if (!item.is_scalar())
      mistakes.push_back(mistake_at(item.place(), fmt::format("`{}`: expected the name of a stage, found {}",
                                                              key, yaml::describe(item))));
    else
      names.push_back({item.text(), item.place()});
  }
  return names;
}

CollectSettings read_collect(MapReader& map, Diagnostics& mistakes) {
  CollectSettings settings;
  if (const auto node = map.value("augment"))
    read_map(augment_keys(), *node, "`augment`", settings.augment, mistakes);
  std::set<std::string> names;
  for (const Node& node : map.sequence("teachers")) {
    TeacherSettings teacher = read_teacher(node, mistakes);
    if (!names.insert(teacher.name).second)
      mistakes.push_back(mistake_at(node.place(), fmt::format("two teachers are named `{}`", teacher.name),
                                    "name: SOMETHING"));
    settings.teachers.push_back(std::move(teacher));
  }
  return settings;
}

template <typename S>
S read_settings(const Table<S>& table, MapReader& map, Diagnostics& mistakes) {
  S settings;
  read_keys(table, map, settings, mistakes);
  return settings;
}

ContrastiveSettings read_contrastive(MapReader& map, Draft& draft, Diagnostics& mistakes,
                                     Diagnostics& notes) {
  auto settings = read_settings(contrastive_keys(), map, mistakes);
  if (settings.plain_share > 0 && settings.exemplars == Exemplars::kNone)
    map.mistake("plain_share", "`plain_share` needs exemplars to leave out",
                "exemplars: bucket, island or random");
  if (settings.reward == "milestones")
    for (const char* key : {"smoothing_clip", "smoothing_window", "failure_margin"})
      if (map.has(key))
        map.mistake(key,
                    fmt::format("`{}` is of smoothed rewards, and `reward: milestones` has fixed ones", key),
                    "leave it out");
  if (const Node* turns = map.node().find("turns");
      map.has("turn_discount") && (turns == nullptr || (turns->is_scalar() && turns->text() == "1")))
    map.mistake("turn_discount", "`turn_discount` is of rewards of later turns, and `turns` is 1",
                "turns: 4; or leave it out");
  if (settings.hacks.empty()) return settings;
  draft.hacks = map.node().find("hacks")->place();
  if (!map.has("quote_hacks"))
    notes.push_back(mistake_at(*draft.hacks, "`hacks` names known hacks, and none of them is quoted",
                               "say how many at most: quote_hacks: 3"));
  return settings;
}

MeasureSettings read_measure(MapReader& map, Draft& draft, Diagnostics& mistakes) {
  auto settings = read_settings(measure_keys(), map, mistakes);
  if (!settings.checkpoint_of.empty())
    draft.checkpoint_of = {{settings.checkpoint_of, map.node().find("checkpoint_of")->place()}};
  for (std::size_t i = 0; i < settings.candidates_of.size(); ++i)
    draft.candidates_of.push_back(
        {settings.candidates_of[i], map.node().find("candidates_of")->items()[i].place()});
  const std::pair<const char*, bool> sources[] = {{"checkpoint_of", !draft.checkpoint_of.empty()},
                                                  {"candidates_of", !draft.candidates_of.empty()},
                                                  {"candidates_of_run", !settings.candidates_of_run.empty()},
                                                  {"candidates", !settings.candidates.empty()},
                                                  {"policy", map.has("policy")}};
  for (std::size_t i = 1; i < std::size(sources); ++i)
    for (std::size_t other = 0; other < i; ++other)
      if (sources[i].second && sources[other].second)
        map.mistake(sources[i].first,
                    fmt::format("`{}` and `{}` stand together", sources[i].first, sources[other].first),
                    "a stage measures one or the other");
  return settings;
}

constexpr const char* kServiceHint = "argv: [vllm, serve, MODEL, --host, \"{host}\", --port, \"{port}\"]";

// `table` holds `argv`.
template <typename S>
S read_program(const Table<S>& table, MapReader& map, Draft& draft, Diagnostics& mistakes) {
  auto settings = read_settings(table, map, mistakes);
  if (!map.has("argv"))
    map.mistake("", fmt::format("a stage of kind {} needs `argv`", draft.spec.kind),
                draft.spec.kind == "service" ? kServiceHint : "argv: [python3, train.py]");
  else if (map.node().find("argv")->items().empty() || (!settings.argv.empty() && settings.argv[0].empty()))
    map.mistake("argv", "`argv` names no program");
  if (map.has("argv"))
    for (const Node& word : map.node().find("argv")->items()) draft.argv.push_back(word.place());
  return settings;
}

ServiceSettings read_service(MapReader& map, Draft& draft, Diagnostics& mistakes) {
  auto settings = read_program(service_keys(), map, draft, mistakes);
  const std::pair<const char*, const std::string&> paths[] = {{"health", settings.health},
                                                              {"api", settings.api}};
  for (const auto& [key, path] : paths)
    if (map.has(key) && !path.starts_with('/'))
      map.mistake(key, fmt::format("`{}`: a path begins with /", key));
  const auto holds = [](const std::string& word) { return word.find("{port}") != std::string::npos; };
  if (!settings.argv.empty() && std::none_of(settings.argv.begin(), settings.argv.end(), holds))
    map.mistake("argv", "`argv` does not say {port}: each server is given a free one", kServiceHint);
  return settings;
}

StageSettings read_kind(const std::string& kind, MapReader& map, Draft& draft, Diagnostics& mistakes,
                        Diagnostics& notes) {
  if (kind == "collect") return read_collect(map, mistakes);
  if (kind == "sft") return read_settings(sft_keys(), map, mistakes);
  if (kind == "self_supervised") return read_settings(self_supervised_keys(), map, mistakes);
  if (kind == "contrastive") return read_contrastive(map, draft, mistakes, notes);
  if (kind == "measure") return read_measure(map, draft, mistakes);
  if (kind == "service") return read_service(map, draft, mistakes);
  return read_program(command_keys(), map, draft, mistakes);
}

// `ahead` of stages that have it.
void check_ahead(MapReader& map, const StageSpec& spec) {
  const auto check = [&](const auto& settings) {
    if constexpr (requires { settings.ahead; }) {
      if (settings.ahead == 0) return;
      if (settings.rounds == 1)
        map.mistake("ahead", "`ahead` samples the next round, and `rounds` is 1",
                    "rounds: 2; or leave `ahead` out");
      if (settings.turns > 1 && spec.policy)
        map.mistake("ahead",
                    "`ahead` with several `turns`: two rounds would ask the server of `policy` at a time, "
                    "which has one budget, one pace and the weights of one of them",
                    "turns: 1; or leave `ahead` out");
    }
  };
  std::visit(check, spec.settings);
}

// `auto` is not known before the place is: resolve_devices() (devices.h) goes on with it.
void check_device(StageSpec& spec, const MapReader& map, Diagnostics& mistakes) {
  const auto mistake = [&](const char* key, std::string message, std::string hint) {
    const Node* at = map.node().find(key);
    mistakes.push_back(
        mistake_at(at != nullptr ? at->place() : map.node().place(), std::move(message), std::move(hint)));
  };
  if (spec.device == "cpu") {
    if (spec.protocol.baseline != "eager")
      mistake("measure",
              fmt::format("`baseline: {}` is not to be had on device `cpu`", spec.protocol.baseline),
              "baseline: eager");
    for (const std::string& name : spec.protocol.baselines)
      if (name != "all" && name != "eager")
        mistake("measure", fmt::format("`baselines`: `{}` is not to be had on device `cpu`", name),
                "baselines: [eager]");
    return;
  }
  if (spec.device == "auto") {
    if (!spec.measure.gpu_type.empty())
      mistake("resources",
              fmt::format("measure jobs ask for a GPU of type `{}`, and `device: auto` chooses the type",
                          spec.measure.gpu_type),
              fmt::format("device: {}", spec.measure.gpu_type));
    return;
  }
  spec.measure.gpus = std::max(1, spec.measure.gpus);
  if (spec.measure.gpu_type.empty()) spec.measure.gpu_type = spec.device;
  if (spec.measure.gpu_type != spec.device)
    mistake("resources",
            fmt::format("measure jobs ask for a GPU of type `{}`, the stage's device is `{}`",
                        spec.measure.gpu_type, spec.device),
            "set `device`; `gpu_type` follows");
}

// "cpu" where the text is `CPU`, `Cpu`, …; likewise "auto".
std::optional<std::string> device_word(const std::string& text) {
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == text || (lower != "cpu" && lower != "auto")) return std::nullopt;
  return lower;
}

const std::vector<std::string> kBlocks = {"model",   "sample",  "optimizer", "lora",
                                          "compile", "measure", "prompt",    "policy"};

// What stages of all kinds have.
void read_common(MapReader& map, const std::vector<std::string>& blocks, StageSpec& spec,
                 Diagnostics& mistakes, Diagnostics& idle) {
  for (const char* known : {"name", "kind", "matrix"}) map.expect(known);
  if (const auto seed = map.integer("seed", {.low = 0})) spec.seed = static_cast<std::uint64_t>(*seed);
  if (const auto notify = map.value("notify"))
    read_map(notify_keys(), *notify, "`notify`", spec.notify, mistakes);
  read_shared(map, blocks, spec, mistakes, idle);
}

// A stage of no known kind, for its other mistakes: a key that some kind has is none.
void read_without_kind(const Node& node, StageSpec spec, Diagnostics& mistakes) {
  MapReader map(node, "stage", mistakes);
  Diagnostics idle;  // whether its programs can use a GPU depends on the kind
  read_common(map, kBlocks, spec, mistakes, idle);
  (void)read_names(map, "needs", mistakes);
  const auto expect = [&map](const auto& table) {
    for (const auto& key : table) map.expect(key.rule.name);
  };
  expect(sft_keys());
  expect(self_supervised_keys());
  expect(contrastive_keys());
  expect(measure_keys());
  expect(command_keys());
  expect(service_keys());
  for (const char* other : {"augment", "teachers", "checker"}) map.expect(other);
  map.finish();
}

// One instance: `node` with all references replaced.
Draft read_instance(const Node& node, const KindRule& kind, Draft draft, Diagnostics& mistakes,
                    Diagnostics& notes, Diagnostics& idle) {
  StageSpec& spec = draft.spec;
  MapReader map(node, fmt::format("stage `{}`", spec.base_name), mistakes);
  read_common(map, kind.blocks, spec, mistakes, idle);
  if (const Node* model = map.node().find("model")) draft.model = model->place();
  if (!spec.train_gpus_named && !runs_program(spec.kind)) {
    spec.train.gpus = 0;
    spec.train.gpu_type.clear();
  }
  for (const std::string& job : kJobNames)  // the file says it for all stages: not all can use them
    resources_of(spec, job).gpus = std::min(resources_of(spec, job).gpus, most_gpus(spec, job));
  spec.generate_shards = std::max(1, spec.generate.gpus);
  spec.generate.gpus = std::min(spec.generate.gpus, 1);
  if (most_gpus(spec, "generate") == 0) spec.generate.gpu_type.clear();  // it is of our own model
  const auto holds = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (const Entry& entry : map.node().entries()) {
    if (!holds(kBlocks, entry.key) || holds(kind.blocks, entry.key)) continue;
    map.expect(entry.key);
    mistakes.push_back(mistake_at(
        entry.place, fmt::format("`{}` does not apply to a stage of kind {}", entry.key, kind.name)));
  }
  draft.needs = read_names(map, "needs", mistakes);
  spec.settings = read_kind(spec.kind, map, draft, mistakes, notes);
  if (kind.checks) {
    if (const auto checker = map.value("checker")) {
      read_checker(*checker, spec, mistakes);
      if (!spec.checker->hacks.empty()) draft.checker_hacks = checker->find("hacks")->place();
    }
  }
  check_policy(map, spec, mistakes);
  check_ahead(map, spec);
  map.finish();
  check_device(spec, map, mistakes);
  return draft;
}

}  // namespace

void refuse_gpus(const Node& resources, const std::string& who, int most, Diagnostics& idle,
                 const std::string& other_hint) {
  const auto refuse = [&](const Node& at, const std::string& what, const std::string& hint) {
    Diagnostic mistake = mistake_at(at.place(), who + " cannot use " + what, hint);
    const bool told = std::any_of(idle.begin(), idle.end(), [&](const Diagnostic& d) {
      return d.file == mistake.file && d.line == mistake.line && d.column == mistake.column &&
             d.message.ends_with(" " + what);
    });
    if (!told) idle.push_back(std::move(mistake));
  };
  const auto value_of = [&](const char* key) {
    const Node* node = resources.is_map() ? resources.find(key) : nullptr;
    return node != nullptr && node->is_scalar() ? node : nullptr;
  };
  if (const Node* gpus = value_of("gpus"))
    if (const int count = std::atoi(gpus->text().c_str()); count > most && count <= kMostGpus)
      refuse(*gpus, fmt::format("{} GPU{}", count, count == 1 ? "" : "s"),
             !other_hint.empty() ? other_hint
             : most == 0         ? "they run on the CPU: leave `gpus` out"
                                 : "gpus: 1; `max_jobs` says how many run at a time");
  if (const Node* type = value_of("gpu_type"); type != nullptr && most == 0 && !type->text().empty())
    refuse(*type, fmt::format("a GPU of type `{}`", type->text()),
           "they run on the CPU: leave `gpu_type` out");
}

int most_gpus(const StageSpec& spec, std::string_view job) {
  if (job == "measure" || job == "service") return most_gpus_unnamed(spec, job);
  if (spec.policy && !(job == "train" && has_own_model(spec))) return 0;  // the server has them
  const std::string& kind = spec.kind;
  if (kind.empty() || kind == "command")
    return job == "train" || (job == "generate" && kind.empty()) ? kMostGpus : 0;
  const KindRule* const rule = find_kind(kind);
  const bool runs =
      rule != nullptr && std::find(rule->jobs.begin(), rule->jobs.end(), job) != rule->jobs.end();
  if (!runs) return 0;
  return job == "train" || job == "generate" ? kMostGpus : 0;
}

int most_gpus_unnamed(const StageSpec& spec, std::string_view job) {
  if (job == "train") return spec.kind.empty() || spec.kind == "command" ? kMostGpus : 0;
  if (job == "service") return spec.kind.empty() || spec.kind == "service" ? kMostGpus : 0;
  if (job != "measure" || runs_program(spec.kind) || spec.kind == "sft") return 0;
  return spec.kind.empty() || spec.device != "cpu" ? 1 : 0;
}

void read_shared(MapReader& map, const std::vector<std::string>& blocks, StageSpec& spec,
                 Diagnostics& mistakes, Diagnostics& idle) {
  for (const std::string& block : blocks)
    if (const auto node = map.value(block)) read_block(block, *node, spec, mistakes);
  read_keys(stage_keys(), map, spec, mistakes);
  // `CPU` would be the name of a GPU type.
  const auto word = device_word(spec.device);
  if (map.has("device") && (!is_identifier(spec.device) || word))
    map.mistake("device", fmt::format("`{}` is no device kind", spec.device),
                word ? "did you mean `" + *word + "`?" : "cpu, a GPU type such as H100, or auto");
  if (const auto node = map.value("resources")) read_resources(*node, spec, mistakes, idle);
  if (const auto node = map.value("retry")) read_retry(*node, spec.retry, mistakes);
}

std::vector<Draft> read_stage(const Node& node, const StageSpec& defaults, const References& outside,
                              Diagnostics& mistakes, Diagnostics& notes, Diagnostics& idle) {
  const std::size_t mistakes_before = mistakes.size();
  const Node* name = node.find("name");
  const Node* kind_node = node.find("kind");
  const KindRule* kind = kind_node == nullptr ? nullptr : find_kind(kind_node->text());
  if (kind_node == nullptr) {
    mistakes.push_back(mistake_at(node.place(), fmt::format("stage `{}` has no `kind`", name->text())));
  } else if (kind == nullptr) {
    std::vector<std::string> words;
    for (const KindRule& rule : kind_rules()) words.push_back(rule.name);
    yaml::read_word(*kind_node, "`kind`", words, mistakes);
    // The rest is read as a stage of the kind that was meant, so that its mistakes are told as well.
    if (const auto meant = nearest_word(kind_node->text(), words)) kind = find_kind(*meant);
  }
  const Node* matrix_node = node.find("matrix");
  const Matrix matrix = read_matrix(
      matrix_node == nullptr ? Node() : substitute(*matrix_node, outside, mistakes), name->text(), mistakes);
  // `name`, `kind` and `matrix` have been read; what is left may refer to the matrix.
  std::vector<Entry> rest = node.entries();
  std::erase_if(rest, [](const Entry& entry) { return entry.key == "matrix"; });
  const Node body = Node::map(node.place(), std::move(rest));
  if (kind == nullptr && !matrix.points.empty()) {
    References inside = outside;
    if (!matrix.axes.empty()) inside.matrix = &matrix.points.front();
    read_without_kind(substitute(body, inside, mistakes), defaults, mistakes);
  }
  if (kind == nullptr || matrix.points.empty()) return {};

  std::vector<Draft> drafts;
  for (const MatrixPoint& point : matrix.points) {
    Draft draft{.spec = defaults,
                .place = node.place(),
                .needs = {},
                .checkpoint_of = {},
                .candidates_of = {},
                .argv = {},
                .hacks = {},
                .checker_hacks = {},
                .model = {}};
    draft.spec.base_name = name->text();
    draft.spec.name = instance_name(name->text(), matrix, point);
    draft.spec.kind = kind->name;
    draft.spec.line = node.place().line;
    for (const auto& [axis, value] : point) draft.spec.point[axis] = value.text();
    References inside = outside;
    if (!matrix.axes.empty()) inside.matrix = &point;
    const Node instance = substitute(body, inside, mistakes);
    drafts.push_back(read_instance(instance, *kind, std::move(draft), mistakes, notes, idle));
    if (mistakes.size() > mistakes_before + 100) break;  // the other instances have the same
  }
  return drafts;
}

std::string export_type(const StageSpec& stage) {
  const ModelSettings& model = stage.model;
  if (stage.policy && has_own_model(stage) && model.export_as == "auto") return "float32";
  if (model.export_as == "none") return "";
  if (model.export_as != "auto") return model.export_as;
  return model.from.empty() && model.shape_of.empty() ? "" : "float32";
}

std::set<std::string> DatasetSettings::ids() const {
  std::set<std::string> all;
  for (const auto& [name, ids] : groups()) all.insert(ids->begin(), ids->end());
  return all;
}

namespace {

// Of a folder's model the folder's digest stands for the sizes: plan/inputs.h.
Json hashed_model(const ModelSettings& model) {
  Json json = hashed_json(model_keys(), model);
  if (model.from.empty() && model.shape_of.empty()) return json;
  Json kept = {{"context", json["context"]}, {"weights", model.from.empty() ? "random" : "folder"}};
  if (model.from.empty()) kept["init_deviation"] = json["init_deviation"];
  return kept;
}

}  // namespace

Json resolved_parameters(const StageSpec& spec) {
  const KindRule* kind = find_kind(spec.kind);
  Json json = {{"kind", spec.kind}};
  const std::set<std::string> of_own_models = {"model", "optimizer", "lora"};
  for (const std::string& block : kind->blocks) {
    if (!has_own_model(spec) && of_own_models.contains(block)) continue;
    if (block == "model") json[block] = hashed_model(spec.model);
    if (block == "sample") json[block] = hashed_json(sample_keys(), spec.sample);
    if (block == "optimizer") json[block] = hashed_json(optimizer_keys(), spec.optimizer);
    if (block == "lora" && spec.lora.rank > 0) json[block] = hashed_json(lora_keys(), spec.lora);
    if (block == "compile") json[block] = hashed_json(compile_keys(), spec.compiler);
    if (block == "measure") json[block] = hashed_json(protocol_keys(), spec.protocol);
    if (block == "prompt") json[block] = hashed_json(prompt_keys(), spec.prompt);
    if (block == "policy" && spec.policy) {
      json[block] = hashed_endpoint(*spec.policy);
      if (has_own_model(spec)) json[block]["trained"] = true;
    }
    if (block == "sample" && spec.policy)
      for (const char* key : kOfOwnSamplers) json[block].erase(key);
  }
  if (spec.kind == "collect" && spec.prompt.answer != "plan") json["answer"] = spec.prompt.answer;
  struct Visitor {
    Json operator()(const CollectSettings& s) const {
      Json teachers = Json::array();
      for (const TeacherSettings& teacher : s.teachers) teachers.push_back(hashed_teacher(teacher));
      return {{"augment", hashed_json(augment_keys(), s.augment)}, {"teachers", std::move(teachers)}};
    }
    Json operator()(const SftSettings& s) const { return hashed_json(sft_keys(), s); }
    Json operator()(const SelfSupervisedSettings& s) const { return hashed_json(self_supervised_keys(), s); }
    Json operator()(const ContrastiveSettings& s) const { return hashed_json(contrastive_keys(), s); }
    Json operator()(const MeasureSettings& s) const { return hashed_json(measure_keys(), s); }
    Json operator()(const CommandSettings& s) const { return hashed_json(command_keys(), s); }
    Json operator()(const ServiceSettings& s) const { return hashed_json(service_keys(), s); }
  };
  json.update(std::visit(Visitor{}, spec.settings));
  if (spec.kind == "command" && !spec.point.empty()) json["point"] = spec.point;  // the program is told
  const auto* command = std::get_if<CommandSettings>(&spec.settings);
  if (spec.kind != "service" && (command == nullptr || command->items != "none"))
    for (const auto& [name, tasks] : spec.dataset.groups())
      // Stages of older runs have no such groups.
      if (!tasks->empty() || tasks == &spec.dataset.train || tasks == &spec.dataset.heldout_combination ||
          tasks == &spec.dataset.heldout_operation)
        json["dataset"][name] = *tasks;
  return json;
}

}  // namespace warpsmith::workflow

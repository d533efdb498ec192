// The format as a JSON Schema, from the tables that the reader uses.
#include <algorithm>

#include "endpoint.h"
#include "tables.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::workflow {

namespace {

Json closed_map(Json properties, const char* meaning, Json required = Json::array()) {
  Json schema = {{"type", "object"},
                 {"description", meaning},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json list_of(Json item, const char* meaning, int at_least = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(item)}, {"description", meaning}};
  if (at_least > 0) schema["minItems"] = at_least;
  return schema;
}

Json reference() { return {{"$ref", "#/$defs/reference"}}; }

Json or_reference(Json schema) { return {{"anyOf", {std::move(schema), reference()}}}; }

Json resources_schema() {
  const Json keys = properties_schema(resource_keys(), Resources{});
  Json properties = keys;
  for (const char* job : {"generate", "compile", "measure", "train", "service"})
    properties[job] = closed_map(keys, "For these jobs alone.");
  return closed_map(std::move(properties), "What a shard may use, for all jobs and by job.");
}

Json retry_schema() {
  Json properties = {
      {"memory_factor",
       {{"description", "Memory of each retry after out_of_memory, as a multiple of the one before."},
        {"anyOf", {{{"type", "number"}, {"minimum", 1}, {"maximum", 100}}, reference()}},
        {"default", RetryRule{}.memory_factor}}}};
  for (const CauseRule& rule : cause_rules())
    properties[std::string(to_string(rule.cause))] = {
        {"description", rule.meaning},
        {"anyOf", {{{"type", "integer"}, {"minimum", 0}, {"maximum", 1000}}, reference()}},
        {"default", rule.standard}};
  return closed_map(std::move(properties), "How often a shard is started again, by the cause of its end.");
}

Json matrix_schema() {
  const Json scalar = {{"type", {"string", "number", "boolean"}}};
  const Json point = {{"type", "object"}, {"minProperties", 1}, {"additionalProperties", scalar}};
  Json points = or_reference(list_of(point, "Points of the matrix."));
  return {{"type", "object"},
          {"description", "An instance of the stage for each point of the product of the axes."},
          {"properties", {{"include", points}, {"exclude", points}}},
          {"additionalProperties", or_reference(list_of(scalar, "Values of an axis.", 1))}};
}

Json names_schema(const char* meaning) {
  return {{"description", meaning},
          {"anyOf", {{{"type", "string"}}, list_of({{"type", "string"}}, meaning)}}};
}

Json endpoint_properties() {
  Json properties = properties_schema(endpoint_keys(), EndpointSettings{});
  properties["budget"] = closed_map(properties_schema(spending_keys(), EndpointSettings::Spending{}),
                                    "What a stage may spend there; it stops before.");
  return properties;
}

Json endpoint_schema() {
  return closed_map(endpoint_properties(), "A server that speaks OpenAI's protocol.", {"model"});
}

Json checker_schema() {
  Json properties = properties_schema(checker_keys(), CheckerSettings{});
  properties["endpoint"] = endpoint_schema();
  return closed_map(std::move(properties),
                    "A served model that is asked about programs whose score jumped; its answers are advice.",
                    {"endpoint"});
}

Json teacher_schema() {
  Json properties = endpoint_properties();
  properties.update(properties_schema(teacher_keys(), TeacherSettings{}));
  return closed_map(std::move(properties), "A served model that writes candidates.", {"model"});
}

Json policy_schema() {
  Json properties = properties_schema(policy_keys(), StageSpec{});
  properties["endpoint"] = endpoint_schema();
  return properties;
}

// Keys of the blocks that the file and its stages share.
Json block_properties() {
  return {{"model", closed_map(properties_schema(model_keys(), ModelSettings{}),
                               "The model: a decoder of the Qwen2/Llama family.")},
          {"sample",
           closed_map(properties_schema(sample_keys(), SampleSettings{}), "How completions are drawn.")},
          {"optimizer", closed_map(properties_schema(optimizer_keys(), OptimizerSettings{}),
                                   "AdamW with warm-up and cosine.")},
          {"lora", closed_map(properties_schema(lora_keys(), LoraSettings{}),
                              "Low-rank adapters: the model's own weights stay as they are.")},
          {"compile",
           closed_map(properties_schema(compile_keys(), CompileSettings{}), "Limits of a compilation.")},
          {"measure",
           closed_map(properties_schema(protocol_keys(), ProtocolSettings{}), "The measurement protocol.")},
          {"prompt", closed_map(properties_schema(prompt_keys(), PromptSettings{}), "The form of prompts.")},
          {"policy",
           closed_map(policy_schema(), "Whose answers are taken, where that is no model of this workflow.",
                      {"endpoint"})}};
}

Json shared_properties() {
  Json properties = properties_schema(stage_keys(), StageSpec{});
  properties["resources"] = resources_schema();
  properties["retry"] = retry_schema();
  properties["notify"] =
      closed_map(properties_schema(notify_keys(), Notify{}), "Commands that are run at the end.");
  properties["seed"] = or_reference({{"type", "integer"}, {"minimum", 0}});
  return properties;
}

Json kind_properties(std::string_view kind) {
  if (kind == "collect")
    return {{"augment", closed_map(properties_schema(augment_keys(), AugmentSettings{}),
                                   "Variants of the dataset's successes.")},
            {"teachers", list_of(teacher_schema(), "Served models that write candidates.")}};
  if (kind == "sft") return properties_schema(sft_keys(), SftSettings{});
  if (kind == "self_supervised") return properties_schema(self_supervised_keys(), SelfSupervisedSettings{});
  if (kind == "contrastive") return properties_schema(contrastive_keys(), ContrastiveSettings{});
  if (kind == "measure") return properties_schema(measure_keys(), MeasureSettings{});
  if (kind == "service") return properties_schema(service_keys(), ServiceSettings{});
  return properties_schema(command_keys(), CommandSettings{});
}

Json stage_schema(const KindRule& rule) {
  Json properties = kind_properties(rule.name);
  if (rule.checks) properties["checker"] = {{"$ref", "#/$defs/checker"}};
  properties.update(shared_properties());
  for (const std::string& block : rule.blocks) properties[block] = {{"$ref", "#/$defs/" + block}};
  properties["name"] = {{"type", "string"}, {"description", "Name of the stage; of its folder in the run."}};
  properties["kind"] = {{"const", rule.name}, {"description", rule.meaning}};
  properties["needs"] = names_schema("Stages that must have ended before.");
  properties["matrix"] = matrix_schema();
  Json required = {"name", "kind"};
  if (runs_program(rule.name)) required.push_back("argv");
  return closed_map(std::move(properties), rule.meaning, std::move(required));
}

Json dataset_schema() {
  const Json ids = or_reference(list_of({{"type", "string"}}, "Task ids."));
  Json dataset = closed_map(
      {{"folder",
        {{"type", "string"}, {"description", "Folder of the tasks, relative to the folder of this file."}}},
       {"kernelbench",
        {{"type", "string"},
         {"description", "A checkout of KernelBench instead of `folder`: its modules become tasks."}}},
       {"synthesize", closed_map(properties_schema(synthesize_keys(), SynthesizeSettings{}),
                                 "Tasks from a grammar; with `folder`, beside the tasks there.")},
       {"levels", list_of({{"type", "integer"}, {"minimum", 1}, {"maximum", 3}}, "Levels of KernelBench.")},
       {"train",
        {{"description",
          "Tasks to train on; all: every one that is not held out. split: each task where its file says."},
         {"anyOf", {{{"enum", {"all", "split"}}}, ids}}}},
       {"heldout_combination", ids},
       {"heldout_operation", ids},
       {"heldout_length", ids},
       {"heldout_people",
        {{"description",
          "The same of tasks that people wrote; all: every task of `folder` that no list names."},
         {"anyOf", {{{"enum", {"all"}}}, ids}}}},
       {"sft_only", ids}},
      "The tasks.", Json::array());
  dataset["oneOf"] = {{{"required", {"folder", "train"}}, {"not", {{"required", {"synthesize"}}}}},
                      {{"required", {"kernelbench", "train"}}, {"not", {{"required", {"synthesize"}}}}},
                      {{"required", {"synthesize"}}}};
  return dataset;
}

}  // namespace

Json to_json(const SynthesizeSettings& settings) { return hashed_json(synthesize_keys(), settings); }

std::vector<SettingKey> synthesize_setting_keys() {
  std::vector<SettingKey> out;
  for (const auto& key : synthesize_keys())
    out.push_back({key.rule.name, key.rule.meaning, value_json(key, SynthesizeSettings{})});
  return out;
}

void set_at_key(SynthesizeSettings& settings, const std::string& name, const std::string& value) {
  Diagnostics mistakes;
  const yaml::Node node = yaml::load_text(value, "", mistakes);
  const auto key =
      std::ranges::find_if(synthesize_keys(), [&](const auto& k) { return k.rule.name == name; });
  if (key == synthesize_keys().end()) throw Error("`synthesize` has no key `" + name + "`", kExitUsage);
  if (auto read = read_value(key->rule, node, mistakes)) assign(*key, settings, std::move(*read));
  if (mistakes.empty()) return;
  const Diagnostic& first = mistakes.front();
  throw Error(first.message + (first.hint.empty() ? "" : " (" + first.hint + ")"), kExitUsage);
}

Json workflow_json_schema() {
  Json properties = shared_properties();
  for (const char* block : {"model", "sample", "optimizer", "lora", "compile", "measure", "prompt"})
    properties[block] = {{"$ref", std::string("#/$defs/") + block}};
  properties["schema"] = {{"const", "warpsmith.workflow/1"}, {"description", "Version of the format."}};
  properties["name"] = {{"type", "string"},
                        {"description", "Name of the workflow; default name of its run."}};
  properties["budget"] = closed_map(properties_schema(budget_keys(), Budget{}), "What the run may use up.");
  properties["params"] = {{"type", "object"}, {"description", "Values for ${params.NAME}."}};
  properties["dataset"] = dataset_schema();
  Json kinds = Json::array();
  Json defs = block_properties();
  defs["checker"] = checker_schema();
  for (const KindRule& rule : kind_rules()) {
    const std::string name = std::string("stage_") + rule.name;
    defs[name] = stage_schema(rule);
    kinds.push_back({{"if", {{"properties", {{"kind", {{"const", rule.name}}}}}, {"required", {"kind"}}}},
                     {"then", {{"$ref", "#/$defs/" + name}}}});
  }
  Json names = Json::array();
  for (const KindRule& rule : kind_rules()) names.push_back(rule.name);
  defs["stage"] = {{"type", "object"},
                   {"required", {"name", "kind"}},
                   {"properties", {{"kind", {{"enum", names}}}}},
                   {"allOf", kinds}};
  defs["reference"] = {
      {"type", "string"}, {"pattern", "\\$\\{"}, {"description", "${params.NAME} or ${matrix.AXIS}"}};
  properties["stages"] = list_of({{"$ref", "#/$defs/stage"}}, "The stages.", 1);
  Json schema = closed_map(std::move(properties), "A Warpsmith workflow; see workflows/README.md.",
                           {"schema", "name", "stages"});
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Warpsmith workflow";
  schema["$defs"] = std::move(defs);
  return schema;
}

}  // namespace warpsmith::workflow

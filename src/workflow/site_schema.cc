// The site format as a JSON Schema, from the tables that the reader uses.
#include "site_tables.h"

namespace warpsmith::workflow {

namespace {

Json closed_or_empty_map(Json properties, const char* meaning, Json required = Json::array()) {
  Json schema = {{"type", {"object", "null"}},
                 {"description", meaning},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

// A workflow's key may be a reference as well; a site's may not.
Json without_reference(const Json& schema) {
  Json plain = schema.at("anyOf").at(0);
  for (const char* key : {"description", "default"})
    if (schema.contains(key)) plain[key] = schema.at(key);
  return plain;
}

template <typename T>
Json plain_properties(const Table<T>& table, const T& standard) {
  Json properties = properties_schema(table, standard);
  for (auto& [name, schema] : properties.items()) schema = without_reference(schema);
  return properties;
}

Json place_properties(PlaceKind kind) {
  Json properties = Json::object();
  for (const PlaceKey& key : place_keys()) {
    if (!key.applies(kind)) continue;
    Json schema = without_reference(rule_schema(key.key.rule, value_json(key.key, SitePlace{})));
    if (key.text != nullptr && key.key.rule.form == Form::kStrings)
      schema["items"]["pattern"] = key.text->pattern;
    if (key.text != nullptr && key.key.rule.form == Form::kString)  // the empty string unsets it
      schema["anyOf"] = {{{"const", ""}}, {{"pattern", key.text->pattern}}};
    if (std::string_view(key.key.rule.name) == "names") schema["minItems"] = 1;
    properties[key.key.rule.name] = std::move(schema);
  }
  properties["environment"] = {
      {"type", {"object", "null"}},
      {"description", kEnvironmentMeaning},
      {"propertyNames",
       {{"pattern", variable_name_rule().pattern},
        {"not",
         {{"pattern", "^(SLURM_|SBATCH_|WARPSMITH_|TMPDIR$|OMP_NUM_THREADS$|CUDA_VISIBLE_DEVICES$)"}}}}},
      {"additionalProperties", {{"type", {"string", "number", "boolean"}}, {"pattern", R"(^[^\n]*$)"}}}};
  return properties;
}

}  // namespace

Json site_json_schema() {
  Json controller = place_properties(kController);
  controller.update(plain_properties(controller_keys(), SiteSpec{}));
  Json properties = plain_properties(site_keys(), SiteSpec{});
  properties["schema"] = {{"const", kSiteSchema}, {"description", "Version of the format."}};
  properties["name"] = {{"type", "string"},
                        {"pattern", "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"},
                        {"description", "Name of the site."}};
  properties["slurm"] = closed_or_empty_map(plain_properties(slurm_keys(), SlurmKeys{}),
                                            "How the cluster is reached, and how often.");
  properties["defaults"] =
      closed_or_empty_map(place_properties(kDefaults), "For `cpu`, `controller` and every GPU type.");
  properties["cpu"] = closed_or_empty_map(place_properties(kCpu), "Where shards without a GPU go.");
  properties["gpus"] = {
      {"type", {"object", "null"}},
      {"description", "Where shards with a GPU go, by GPU type as workflows name it."},
      {"propertyNames", {{"pattern", "^(?!([cC][pP][uU]|[aA][uU][tT][oO])$)[A-Za-z_][A-Za-z0-9_-]{0,63}$"}}},
      {"additionalProperties", closed_or_empty_map(place_properties(kGpu), "A GPU type.")}};
  properties["controller"] = closed_or_empty_map(std::move(controller), "The controller's own job.");
  Json prices = plain_properties(price_keys(), Prices{});
  prices["gpu_hours"] = {{"type", {"object", "null"}},
                         {"description", "Of an hour of a GPU, by type as `gpus` names it."},
                         {"additionalProperties", {{"type", "number"}, {"minimum", 0}, {"maximum", 1e6}}}};
  prices["tokens"] = {{"type", {"object", "null"}},
                      {"description", "Of a million tokens, by model as its server calls it."},
                      {"additionalProperties",
                       closed_or_empty_map(plain_properties(token_price_keys(), TokenPrices{}), "A model.")}};
  properties["prices"] =
      closed_or_empty_map(std::move(prices), "What GPUs and servers cost, all in one currency.");
  Json schema = closed_or_empty_map(std::move(properties), "A Warpsmith site; see slurm/README.md.",
                                    {"schema", "name"});
  schema["type"] = "object";
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Warpsmith site";
  return schema;
}

}  // namespace warpsmith::workflow

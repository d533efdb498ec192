#include "warpsmith/model/settings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <type_traits>
#include <utility>
#include <variant>

#include "warpsmith/base/error.h"

namespace warpsmith::model {

namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw Error("model settings: " + message, kExitUsage);
}

constexpr std::pair<RopeScaling::Kind, const char*> kRopeKinds[] = {{RopeScaling::Kind::kNone, "none"},
                                                                    {RopeScaling::Kind::kLinear, "linear"},
                                                                    {RopeScaling::Kind::kLlama3, "llama3"},
                                                                    {RopeScaling::Kind::kYarn, "yarn"}};

Json to_json(const RopeScaling& r) {
  const auto kind = std::find_if(std::begin(kRopeKinds), std::end(kRopeKinds),
                                 [&](const auto& one) { return one.first == r.kind; });
  return {{"kind", kind->second},
          {"factor", r.factor},
          {"original_context", r.original_context},
          {"low_frequency", r.low_frequency},
          {"high_frequency", r.high_frequency},
          {"beta_fast", r.beta_fast},
          {"beta_slow", r.beta_slow},
          {"attention_factor", r.attention_factor},
          {"truncate", r.truncate}};
}

RopeScaling rope_scaling_from_json(const Json& json) {
  constexpr const char* kWhat = "model settings: rope_scaling";
  RopeScaling r;
  const auto name = json_at<std::string>(json, "kind", kWhat);
  const auto kind = std::find_if(std::begin(kRopeKinds), std::end(kRopeKinds),
                                 [&](const auto& one) { return one.second == name; });
  require(kind != std::end(kRopeKinds), "rope_scaling: `" + name + "` is not known");
  r.kind = kind->first;
  r.factor = json_at<double>(json, "factor", kWhat);
  r.original_context = json_at<double>(json, "original_context", kWhat);
  r.low_frequency = json_at<double>(json, "low_frequency", kWhat);
  r.high_frequency = json_at<double>(json, "high_frequency", kWhat);
  r.beta_fast = json_at<double>(json, "beta_fast", kWhat);
  r.beta_slow = json_at<double>(json, "beta_slow", kWhat);
  r.attention_factor = json_at<double>(json, "attention_factor", kWhat);
  r.truncate = json_at<bool>(json, "truncate", kWhat);
  require(r.factor > 0 && r.attention_factor > 0, "rope_scaling: factors must be positive");
  return r;
}

// Parts by key: numbers and flags.
template <typename T>
using Member = std::variant<std::int64_t T::*, double T::*, bool T::*>;
template <typename T>
using Members = std::vector<std::pair<const char*, Member<T>>>;

const Members<ExpertSettings> kOfExperts = {
    {"experts", &ExpertSettings::experts},         {"chosen", &ExpertSettings::chosen},
    {"hidden", &ExpertSettings::hidden},           {"shared", &ExpertSettings::shared},
    {"first_layer", &ExpertSettings::first_layer}, {"sigmoid", &ExpertSettings::sigmoid},
    {"normalised", &ExpertSettings::normalised},   {"scaling", &ExpertSettings::scaling},
    {"groups", &ExpertSettings::groups},           {"chosen_groups", &ExpertSettings::chosen_groups}};
const Members<LatentSettings> kOfLatent = {
    {"kv_rank", &LatentSettings::kv_rank},          {"q_rank", &LatentSettings::q_rank},
    {"plain_size", &LatentSettings::plain_size},    {"rope_size", &LatentSettings::rope_size},
    {"value_size", &LatentSettings::value_size},    {"interleaved", &LatentSettings::interleaved},
    {"score_factor", &LatentSettings::score_factor}};

constexpr std::pair<const char*, bool DecoderSettings::*> kFlags[] = {
    {"layer_norm", &DecoderSettings::layer_norm},
    {"biases", &DecoderSettings::biases},
    {"gelu", &DecoderSettings::gelu}};

template <typename T>
Json part_to_json(const Members<T>& members, const T& part) {
  Json json = Json::object();
  for (const auto& [key, member] : members) std::visit([&](auto at) { json[key] = part.*at; }, member);
  return json;
}
Json to_json(const ExpertSettings& experts) { return part_to_json(kOfExperts, experts); }
Json to_json(const LatentSettings& latent) { return part_to_json(kOfLatent, latent); }

template <typename T>
T part_from_json(const Members<T>& members, const Json& json, const std::string& name) {
  T part;
  for (const auto& [key, member] : members)
    std::visit(
        [&](auto at) {
          part.*at = json_at<std::decay_t<decltype(part.*at)>>(json, key, "model settings: " + name);
        },
        member);
  return part;
}

LoraSettings lora_from_json(const Json& json) {
  constexpr const char* kWhat = "model settings: lora";
  LoraSettings lora;
  lora.rank = json_at<std::int64_t>(json, "rank", kWhat);
  lora.alpha = json_at<double>(json, "alpha", kWhat);
  const auto names = json_at<std::vector<std::string>>(json, "targets", kWhat);
  for (const char* target : kLoraTargets)
    if (std::find(names.begin(), names.end(), target) != names.end()) lora.targets.emplace_back(target);
  require(lora.targets.size() == names.size(), "lora: a target is not known or stands twice");
  require(lora.rank > 0 && !lora.targets.empty(), "lora: rank must be positive, and there must be targets");
  return lora;
}

}  // namespace

std::vector<double> rotary_frequencies(const DecoderSettings& s) {
  const RopeScaling& r = s.rope_scaling;
  const std::int64_t half = s.rope_dim() / 2;
  const auto dim = static_cast<double>(s.rope_dim());
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i)
    frequencies.push_back(std::pow(s.rope_base, -static_cast<double>(2 * i) / dim));
  // The element whose wave turns so often within the original context.
  const auto element_of = [&](double turns) {
    return dim * std::log(r.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(s.rope_base));
  };
  double low = 0, high = 0;
  if (r.kind == RopeScaling::Kind::kYarn) {
    low = element_of(r.beta_fast);
    high = element_of(r.beta_slow);
    if (r.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
  }
  for (std::int64_t i = 0; i < half; ++i) {
    double& own = frequencies[static_cast<std::size_t>(i)];
    const double slower = own / r.factor;
    switch (r.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        own = slower;
        break;
      case RopeScaling::Kind::kLlama3: {
        const double turns = r.original_context * own / (2 * std::numbers::pi);
        const double share =
            std::clamp((turns - r.low_frequency) / (r.high_frequency - r.low_frequency), 0.0, 1.0);
        own = share * own + (1 - share) * slower;
        break;
      }
      case RopeScaling::Kind::kYarn: {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        own = ramp * slower + (1 - ramp) * own;
        break;
      }
    }
  }
  return frequencies;
}

Json to_json(const DecoderSettings& s) {
  Json json = {{"layers", s.layers},
               {"width", s.width},
               {"heads", s.heads},
               {"kv_heads", s.kv_heads},
               {"hidden", s.hidden},
               {"context", s.context},
               {"vocabulary", s.vocabulary},
               {"rope_base", s.rope_base},
               {"norm_epsilon", s.norm_epsilon},
               {"qkv_bias", s.qkv_bias},
               {"init_deviation", s.init_deviation}};
  // Only where they are not what every model had before they came.
  const DecoderSettings plain;
  if (s.tied != plain.tied) json["tied"] = s.tied;
  if (s.qk_norm != plain.qk_norm) json["qk_norm"] = s.qk_norm;
  if (s.head_size != plain.head_size) json["head_size"] = s.head_size;
  if (s.rope_scaling != plain.rope_scaling) json["rope_scaling"] = to_json(s.rope_scaling);
  if (s.lora != plain.lora)
    json["lora"] = {{"rank", s.lora.rank}, {"alpha", s.lora.alpha}, {"targets", s.lora.targets}};
  for (const auto& [key, member] : kFlags)
    if (s.*member) json[key] = true;
  if (s.experts != plain.experts) json["experts"] = to_json(s.experts);
  if (s.latent != plain.latent) json["latent"] = to_json(s.latent);
  return json;
}

DecoderSettings decoder_settings_from_json(const Json& json) {
  DecoderSettings s;
  const auto take = [&](const char* key, auto& value) {
    if (json.contains(key)) value = json_at<std::decay_t<decltype(value)>>(json, key, "model settings");
  };
  take("layers", s.layers);
  take("width", s.width);
  take("heads", s.heads);
  take("kv_heads", s.kv_heads);
  take("hidden", s.hidden);
  take("context", s.context);
  take("vocabulary", s.vocabulary);
  take("rope_base", s.rope_base);
  take("norm_epsilon", s.norm_epsilon);
  take("init_deviation", s.init_deviation);
  take("qkv_bias", s.qkv_bias);
  take("tied", s.tied);
  take("qk_norm", s.qk_norm);
  take("head_size", s.head_size);
  if (json.contains("rope_scaling")) s.rope_scaling = rope_scaling_from_json(json["rope_scaling"]);
  if (json.contains("lora")) s.lora = lora_from_json(json["lora"]);
  for (const auto& [key, member] : kFlags) take(key, s.*member);
  if (json.contains("experts"))
    s.experts = part_from_json<ExpertSettings>(kOfExperts, json["experts"], "experts");
  if (json.contains("latent")) s.latent = part_from_json<LatentSettings>(kOfLatent, json["latent"], "latent");
  require(s.lora.rank == 0 || s.is_plain(), "lora: not for models of this family");
  const ExpertSettings& e = s.experts;
  require(e.experts == 0 || (e.chosen > 0 && e.chosen <= e.experts && e.hidden > 0 && e.groups > 0 &&
                             e.experts % e.groups == 0 && e.chosen_groups > 0 && e.chosen_groups <= e.groups),
          "experts: sizes do not fit together");
  require(s.latent.kv_rank == 0 ||
              (s.latent.rope_size > 0 && s.latent.rope_size % 2 == 0 && s.latent.value_size > 0),
          "latent: sizes do not fit together");
  require(s.layers > 0 && s.width > 0 && s.heads > 0 && s.kv_heads > 0 && s.hidden > 0 && s.context > 1,
          "sizes must be positive");
  require(s.head_size > 0 || s.width % s.heads == 0, "width must be an even multiple of heads");
  require(s.head_size >= 0 && s.head_dim() % 2 == 0, "width must be an even multiple of heads");
  require(s.heads % s.kv_heads == 0, "heads must be a multiple of kv_heads");
  require(s.vocabulary > 0, "vocabulary must be positive");
  return s;
}

std::vector<ParameterShape> parameters_of(const DecoderSettings& s) {
  std::vector<ParameterShape> all = {{"embedding", {s.vocabulary, s.width}}};
  std::string prefix;
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns, bool bias = false) {
    all.push_back({prefix + name, {rows, columns}});
    if (bias) all.push_back({prefix + name + "_bias", {rows}});
  };
  const auto norm = [&](const char* name, std::int64_t width, bool bias = false) {
    all.push_back({prefix + name, {width}});
    if (bias) all.push_back({prefix + name + "_bias", {width}});
  };
  for (std::int64_t l = 0; l < s.layers; ++l) {
    prefix = "layers." + std::to_string(l) + ".";
    norm("attention_norm", s.width, s.layer_norm);
    if (s.latent.kv_rank > 0) {
      const LatentSettings& latent = s.latent;
      if (latent.q_rank > 0) {
        matrix("query_down", latent.q_rank, s.width);
        norm("query_norm", latent.q_rank);
      }
      matrix("query", s.heads * s.head_dim(), latent.q_rank > 0 ? latent.q_rank : s.width);
      matrix("kv_down", latent.kv_rank + latent.rope_size, s.width);
      norm("kv_norm", latent.kv_rank);
      matrix("kv_up", s.heads * (latent.plain_size + latent.value_size), latent.kv_rank);
    } else {
      matrix("qkv", s.qkv_width(), s.width, s.qkv_bias);
    }
    if (s.qk_norm) {
      norm("q_norm", s.head_dim());
      norm("k_norm", s.head_dim());
    }
    matrix("attention_out", s.width, s.attention_width(), s.biases);
    norm("mlp_norm", s.width, s.layer_norm);
    if (s.has_experts(l)) {
      const ExpertSettings& e = s.experts;
      matrix("router", e.experts, s.width, e.sigmoid);
      matrix("experts_gate_up", e.experts * 2 * e.hidden, s.width);
      matrix("experts_down", e.experts * s.width, e.hidden);
      if (e.shared > 0) {
        matrix("shared_gate_up", 2 * e.shared * e.hidden, s.width);
        matrix("shared_down", s.width, e.shared * e.hidden);
      }
      continue;
    }
    if (s.gelu)
      matrix("up", s.hidden, s.width, s.biases);
    else
      matrix("gate_up", 2 * s.hidden, s.width);
    matrix("down", s.width, s.hidden, s.biases);
  }
  prefix.clear();
  norm("final_norm", s.width, s.layer_norm);
  if (!s.tied) matrix("head", s.vocabulary, s.width);
  return all;
}

namespace {

std::int64_t numbers_in(const std::vector<ParameterShape>& parameters) {
  std::int64_t count = 0;
  for (const ParameterShape& parameter : parameters) {
    std::int64_t elements = 1;
    for (const std::int64_t size : parameter.shape) elements *= size;
    count += elements;
  }
  return count;
}

// The rows of a decoder's matrix that a target is.
AdapterPlace place_of_target(const std::string& target, const DecoderSettings& s) {
  const std::int64_t queries = s.heads * s.head_dim(), keys = s.kv_heads * s.head_dim();
  const auto place = [&](const char* matrix, std::int64_t first, std::int64_t rows, std::int64_t columns) {
    return AdapterPlace{0, target, matrix, first, rows, columns, false};
  };
  if (target == "q_proj") return place("qkv", 0, queries, s.width);
  if (target == "k_proj") return place("qkv", queries, keys, s.width);
  if (target == "v_proj") return place("qkv", queries + keys, keys, s.width);
  if (target == "o_proj") return place("attention_out", 0, s.width, queries);
  if (target == "gate_proj") return place("gate_up", 0, s.hidden, s.width);
  if (target == "up_proj") return place("gate_up", s.hidden, s.hidden, s.width);
  if (target == "down_proj") return place("down", 0, s.width, s.hidden);
  throw Error("model settings: lora: there is no target `" + target + "`", kExitUsage);
}

}  // namespace

std::int64_t parameter_count(const DecoderSettings& settings) { return numbers_in(parameters_of(settings)); }

std::vector<ParameterShape> adapters_of(const DecoderSettings& settings) {
  std::vector<ParameterShape> all;
  for (std::int64_t l = 0; l < settings.layers; ++l)
    for (const std::string& target : settings.lora.targets) {
      const AdapterPlace place = place_of_target(target, settings);
      const std::string name = "layers." + std::to_string(l) + "." + target;
      all.push_back({name + ".a", {settings.lora.rank, place.columns}});
      all.push_back({name + ".b", {place.rows, settings.lora.rank}});
    }
  return all;
}

std::int64_t adapter_count(const DecoderSettings& settings) { return numbers_in(adapters_of(settings)); }

AdapterPlace place_of_adapter(const std::string& name, const DecoderSettings& settings) {
  const std::size_t number = name.find('.') + 1, target = name.find('.', number) + 1, end = name.rfind('.');
  AdapterPlace place = place_of_target(name.substr(target, end - target), settings);
  place.layer = std::stoll(name.substr(number));
  place.is_a = name.ends_with(".a");
  return place;
}

}  // namespace warpsmith::model

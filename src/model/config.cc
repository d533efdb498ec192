#include "warpsmith/model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "warpsmith/base/error.h"

namespace warpsmith::model {

namespace {

// What differs between the families.
struct Family {
  const char* type;  // `model_type`
  const char* architecture;
  bool qkv_bias, qk_norm;
  double norm_epsilon;           // where the file does not say
  std::int64_t sliding_window;   // the same; 0: none
  bool window_wants_permission;  // it counts only with `use_sliding_window`
};
constexpr Family kFamilies[] = {{"qwen2", "Qwen2ForCausalLM", true, false, 1e-6, 4096, true},
                                {"qwen3", "Qwen3ForCausalLM", false, true, 1e-6, 4096, true},
                                {"llama", "LlamaForCausalLM", false, false, 1e-6, 0, false},
                                {"mistral", "MistralForCausalLM", false, false, 1e-6, 4096, false}};

std::string known_families() {
  std::string names;
  for (const Family& family : kFamilies) names += std::string(names.empty() ? "" : ", ") + family.type;
  return names;
}

const Family* find_family(const std::string& type) {
  const Family* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                     [&](const Family& f) { return type == f.type; });
  return found == std::end(kFamilies) ? nullptr : found;
}

// A config.json, key by key.
class Config {
 public:
  Config(const Json& json, std::string name) : json_(json), name_(std::move(name)) {
    if (!json.is_object()) throw Error(name_ + ": an object was expected", kExitUsage);
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw Error(fmt::format("{}: {}: {}", name_, key, why), kExitUsage);
  }
  bool has(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
  }
  template <typename T>
  T get(const char* key) const {
    if (!has(key)) refuse(key, "it is not there");
    try {
      return json_at<T>(json_, key, name_);
    } catch (const Error& e) {
      throw Error(e.what(), kExitUsage);
    }
  }
  template <typename T>
  T get(const char* key, T otherwise) const {
    return has(key) ? get<T>(key) : otherwise;
  }
  std::int64_t size(const char* key) const {
    const auto value = get<std::int64_t>(key);
    constexpr std::int64_t kMost = 1 << 30;
    if (value < 1 || value > kMost) refuse(key, fmt::format("{} is no size", value));
    return value;
  }
  Config part(const char* key) const {
    if (!json_.at(key).is_object()) refuse(key, "an object was expected");
    return {json_.at(key), name_ + ": " + key};
  }

 private:
  const Json& json_;
  std::string name_;
};

void read_rope(const Config& config, DecoderSettings& s) {
  s.rope_base = config.get("rope_theta", 10000.0);
  const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!config.has(key)) return;
  const Config rope = config.part(key);
  s.rope_base = rope.get("rope_theta", s.rope_base);
  const auto type = rope.get<std::string>(rope.has("rope_type") ? "rope_type" : "type", "default");
  if (rope.get("partial_rotary_factor", 1.0) != 1.0)
    rope.refuse("partial_rotary_factor", "it is not supported");
  if (type == "default") return;
  RopeScaling& r = s.rope_scaling;
  r.factor = rope.get<double>("factor");
  if (r.factor <= 0) rope.refuse("factor", "it must be positive");
  const double original = rope.get("original_max_position_embeddings",
                                   static_cast<double>(config.size("max_position_embeddings")));
  if (type == "linear") {
    r.kind = RopeScaling::Kind::kLinear;
  } else if (type == "llama3") {
    r.kind = RopeScaling::Kind::kLlama3;
    r.original_context = original;
    r.low_frequency = rope.get<double>("low_freq_factor");
    r.high_frequency = rope.get<double>("high_freq_factor");
    if (r.low_frequency == r.high_frequency) rope.refuse("high_freq_factor", "it equals low_freq_factor");
  } else if (type == "yarn") {
    r.kind = RopeScaling::Kind::kYarn;
    r.original_context = original;
    r.beta_fast = rope.get("beta_fast", r.beta_fast);
    r.beta_slow = rope.get("beta_slow", r.beta_slow);
    r.truncate = rope.get("truncate", true);
    const auto mscale = [&](double of) { return r.factor <= 1 ? 1.0 : 0.1 * of * std::log(r.factor) + 1; };
    const double all = rope.get("mscale_all_dim", 0.0), own = rope.get("mscale", 0.0);
    r.attention_factor = rope.has("attention_factor") ? rope.get<double>("attention_factor")
                         : own != 0 && all != 0       ? mscale(own) / mscale(all)
                                                      : mscale(1);
  } else {
    rope.refuse("rope_type",
                fmt::format("`{}` is not supported; default, linear, llama3 and yarn are", type));
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return Json(shape).dump(); }

// What older files hold beside the parameters.
bool may_be_left(const std::string& name, const DecoderSettings& s) {
  return name.ends_with(".rotary_emb.inv_freq") || (s.tied && name == "lm_head.weight");
}

}  // namespace

DecoderSettings settings_of_config(const Json& json, const std::string& name, std::int64_t context) {
  const Config config(json, name);
  const auto type = config.get<std::string>("model_type");
  const Family* family = find_family(type);
  if (family == nullptr)
    config.refuse("model_type", fmt::format("`{}` is not supported; {} are", type, known_families()));
  DecoderSettings s;
  s.layers = config.size("num_hidden_layers");
  s.width = config.size("hidden_size");
  s.heads = config.size("num_attention_heads");
  s.kv_heads = config.has("num_key_value_heads") ? config.size("num_key_value_heads") : s.heads;
  s.hidden = config.size("intermediate_size");
  s.vocabulary = config.size("vocab_size");
  s.context = config.size("max_position_embeddings");
  s.norm_epsilon = config.get("rms_norm_eps", family->norm_epsilon);
  s.tied = config.get("tie_word_embeddings", false);
  s.qkv_bias = family->qkv_bias;
  s.qk_norm = family->qk_norm;
  if (config.has("head_dim")) {
    const std::int64_t size = config.size("head_dim");
    if (size * s.heads != s.width) s.head_size = size;
  }
  if (s.heads % s.kv_heads != 0)
    config.refuse("num_key_value_heads", "it does not divide num_attention_heads");
  if (s.head_size == 0 && s.width % s.heads != 0)
    config.refuse("num_attention_heads", "it does not divide hidden_size, and there is no head_dim");
  if (s.head_dim() % 2 != 0) config.refuse("head_dim", "it must be even");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.get(key, false)) config.refuse(key, "it is not supported");
  if (const auto act = config.get<std::string>("hidden_act", "silu"); act != "silu")
    config.refuse("hidden_act", fmt::format("`{}` is not supported, silu is", act));
  read_rope(config, s);
  // Within its window a token sees all that is before it: a context of that size has no other.
  const bool windowed = family->window_wants_permission
                            ? config.get("use_sliding_window", false)
                            : !json.contains("sliding_window") || config.has("sliding_window");
  if (windowed && family->sliding_window > 0)
    s.context = std::min(s.context, config.get("sliding_window", family->sliding_window));
  if (context > 0) s.context = std::min(s.context, context);
  return s;
}

std::string family_of_settings(const DecoderSettings& s) {
  for (const Family& family : kFamilies)
    if (family.qkv_bias == s.qkv_bias && family.qk_norm == s.qk_norm) return family.type;
  throw Error("no family of Hugging Face has such a model");
}

Json config_of_settings(const DecoderSettings& s, const std::string& type) {
  const Family* family = find_family(type);
  if (family == nullptr)
    throw Error(fmt::format("family `{}` is not known; {} are", type, known_families()), kExitUsage);
  if (family->qkv_bias != s.qkv_bias || family->qk_norm != s.qk_norm)
    throw Error(
        fmt::format("family `{}` cannot have these weights: its queries and keys are of another kind", type),
        kExitUsage);
  Json rope = {{"rope_type", "default"}, {"rope_theta", s.rope_base}};
  const RopeScaling& r = s.rope_scaling;
  if (r.kind != RopeScaling::Kind::kNone) rope["factor"] = r.factor;
  if (r.kind == RopeScaling::Kind::kLinear) rope["rope_type"] = "linear";
  if (r.kind == RopeScaling::Kind::kLlama3)
    rope.update({{"rope_type", "llama3"},
                 {"low_freq_factor", r.low_frequency},
                 {"high_freq_factor", r.high_frequency},
                 {"original_max_position_embeddings", static_cast<std::int64_t>(r.original_context)}});
  if (r.kind == RopeScaling::Kind::kYarn)
    rope.update({{"rope_type", "yarn"},
                 {"beta_fast", r.beta_fast},
                 {"beta_slow", r.beta_slow},
                 {"truncate", r.truncate},
                 {"attention_factor", r.attention_factor},
                 {"original_max_position_embeddings", static_cast<std::int64_t>(r.original_context)}});
  Json config = {{"architectures", {family->architecture}},
                 {"model_type", family->type},
                 {"hidden_size", s.width},
                 {"num_hidden_layers", s.layers},
                 {"num_attention_heads", s.heads},
                 {"num_key_value_heads", s.kv_heads},
                 {"head_dim", s.head_dim()},
                 {"intermediate_size", s.hidden},
                 {"vocab_size", s.vocabulary},
                 {"max_position_embeddings", s.context},
                 {"rms_norm_eps", s.norm_epsilon},
                 {"tie_word_embeddings", s.tied},
                 {"hidden_act", "silu"},
                 {"sliding_window", nullptr},
                 {"rope_theta", s.rope_base},
                 {"rope_parameters", rope},
                 {"torch_dtype", "float32"},
                 {"dtype", "float32"}};
  if (r.kind != RopeScaling::Kind::kNone) config["rope_scaling"] = rope;
  return config;
}

// Of the decoder's parameter `name`, in the order of its rows.
std::vector<Source> sources_of(const std::string& name, const DecoderSettings& s) {
  const std::int64_t d = s.head_dim();
  if (name == "embedding") return {{"model.embed_tokens.weight", s.vocabulary}};
  if (name == "final_norm") return {{"model.norm.weight", s.width}};
  if (name == "head") return {{"lm_head.weight", s.vocabulary}};
  const std::size_t dot = name.rfind('.');
  const std::string layer = "model." + name.substr(0, dot + 1), part = name.substr(dot + 1);
  const auto projections = [&](const char* what) -> std::vector<Source> {
    return {{layer + "self_attn.q_proj." + what, s.heads * d},
            {layer + "self_attn.k_proj." + what, s.kv_heads * d},
            {layer + "self_attn.v_proj." + what, s.kv_heads * d}};
  };
  if (part == "attention_norm") return {{layer + "input_layernorm.weight", s.width}};
  if (part == "qkv") return projections("weight");
  if (part == "qkv_bias") return projections("bias");
  if (part == "q_norm") return {{layer + "self_attn.q_norm.weight", d}};
  if (part == "k_norm") return {{layer + "self_attn.k_norm.weight", d}};
  if (part == "attention_out") return {{layer + "self_attn.o_proj.weight", s.width}};
  if (part == "mlp_norm") return {{layer + "post_attention_layernorm.weight", s.width}};
  if (part == "gate_up")
    return {{layer + "mlp.gate_proj.weight", s.hidden}, {layer + "mlp.up_proj.weight", s.hidden}};
  if (part == "down") return {{layer + "mlp.down_proj.weight", s.width}};
  throw Error("parameter " + name + " has no name in a Hugging Face folder");
}

void check_weights(const StoredTensors& stored, const DecoderSettings& settings,
                   const std::filesystem::path& folder) {
  std::set<std::string> used;
  for (const ParameterShape& parameter : parameters_of(settings)) {
    std::vector<std::int64_t> shape = parameter.shape;
    for (const Source& source : sources_of(parameter.name, settings)) {
      const auto found = stored.all().find(source.name);
      if (found == stored.all().end())
        throw Error(fmt::format("{}: there is no tensor {}", folder.string(), source.name), kExitUsage);
      const StoredTensor& tensor = found->second;
      const auto refuse = [&](const std::string& why) {
        throw Error(fmt::format("{}: tensor {}: {}", tensor.file.string(), source.name, why), kExitUsage);
      };
      if (tensor.dtype != "F32" && tensor.dtype != "BF16" && tensor.dtype != "F16")
        refuse(fmt::format("its dtype is {}; F32, BF16 and F16 are supported", tensor.dtype));
      shape[0] = source.rows;
      if (tensor.shape != shape)
        refuse(fmt::format("its shape is {}, and config.json says {}", shape_text(tensor.shape),
                           shape_text(shape)));
      used.insert(source.name);
    }
  }
  for (const auto& [name, tensor] : stored.all())
    if (!used.contains(name) && !may_be_left(name, settings))
      throw Error(fmt::format("{}: tensor {}: such a model has none: config.json is of another one",
                              tensor.file.string(), name),
                  kExitUsage);
}

}  // namespace warpsmith::model

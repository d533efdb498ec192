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
  enum Kind { kPlain, kStarCoder, kExperts, kLatent, kLatentSigmoid } kind = kPlain;
};
constexpr Family kFamilies[] = {
    {"qwen2", "Qwen2ForCausalLM", true, false, 1e-6, 4096, true},
    {"qwen3", "Qwen3ForCausalLM", false, true, 1e-6, 4096, true},
    {"llama", "LlamaForCausalLM", false, false, 1e-6, 0, false},
    {"mistral", "MistralForCausalLM", false, false, 1e-6, 4096, false},
    {"starcoder2", "Starcoder2ForCausalLM", true, false, 1e-5, 4096, false, Family::kStarCoder},
    {"qwen3_moe", "Qwen3MoeForCausalLM", false, true, 1e-6, 4096, true, Family::kExperts},
    {"deepseek_v2", "DeepseekV2ForCausalLM", false, false, 1e-6, 0, false, Family::kLatent},
    {"deepseek_v3", "DeepseekV3ForCausalLM", false, false, 1e-6, 0, false, Family::kLatentSigmoid}};

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

void refuse_unless(const Config& config, const char* key, const Json& wanted) {
  if (config.has(key) && config.get<Json>(key) != wanted)
    config.refuse(key,
                  fmt::format("{} is not supported, {} is", config.get<Json>(key).dump(), wanted.dump()));
}

void read_experts(const Config& config, const Family& family, DecoderSettings& s) {
  ExpertSettings& e = s.experts;
  const bool deepseek = family.kind != Family::kExperts;
  const char* count = deepseek                          ? "n_routed_experts"
                      : config.has("num_local_experts") ? "num_local_experts"
                                                        : "num_experts";
  if (deepseek && !config.has(count)) return;  // without experts
  e.experts = config.size(count);
  e.chosen = config.size("num_experts_per_tok");
  e.hidden = config.size("moe_intermediate_size");
  e.normalised = config.get("norm_topk_prob", family.kind == Family::kLatentSigmoid);
  if (e.chosen > e.experts) config.refuse("num_experts_per_tok", fmt::format("there are {}", e.experts));
  if (!deepseek) {
    refuse_unless(config, "decoder_sparse_step", 1);
    refuse_unless(config, "mlp_only_layers", Json::array());
    return;
  }
  refuse_unless(config, "moe_layer_freq", 1);
  e.sigmoid = family.kind == Family::kLatentSigmoid;
  refuse_unless(config, "scoring_func", e.sigmoid ? "sigmoid" : "softmax");
  e.shared = config.get("n_shared_experts", std::int64_t{0});
  e.first_layer = config.get("first_k_dense_replace", std::int64_t{0});
  e.scaling = config.get("routed_scaling_factor", 1.0);
  if (!e.sigmoid) refuse_unless(config, "norm_topk_prob", false);
  const bool grouped =
      e.sigmoid || config.get<std::string>("topk_method", "greedy") == "group_limited_greedy";
  if (!e.sigmoid && !grouped) refuse_unless(config, "topk_method", "greedy");
  if (!grouped) return;
  e.groups = config.get("n_group", std::int64_t{1});
  e.chosen_groups = config.get("topk_group", std::int64_t{1});
  if (e.groups < 1 || e.experts % e.groups != 0 || (e.sigmoid && e.groups > 1 && e.experts / e.groups < 2))
    config.refuse("n_group", fmt::format("{} experts cannot be cut into {} groups", e.experts, e.groups));
  if (e.chosen_groups < 1 || e.chosen_groups > e.groups ||
      e.chosen > e.chosen_groups * (e.experts / e.groups))
    config.refuse("topk_group", "it does not fit with n_group and num_experts_per_tok");
}

void read_latent(const Config& config, DecoderSettings& s) {
  LatentSettings& latent = s.latent;
  latent.kv_rank = config.size("kv_lora_rank");
  latent.q_rank = config.has("q_lora_rank") ? config.size("q_lora_rank") : 0;
  latent.plain_size = config.size("qk_nope_head_dim");
  latent.rope_size = config.size("qk_rope_head_dim");
  latent.value_size = config.size("v_head_dim");
  latent.interleaved = config.get("rope_interleave", true);
  s.head_size = 0;
  s.kv_heads = s.heads;
  if (latent.rope_size % 2 != 0) config.refuse("qk_rope_head_dim", "it must be even");
  const RopeScaling& r = s.rope_scaling;
  if (r.kind == RopeScaling::Kind::kNone || r.factor <= 1) return;
  const Config rope = config.part(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const double mscale = 0.1 * rope.get("mscale_all_dim", 0.0) * std::log(r.factor) + 1;
  latent.score_factor = mscale * mscale;
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return Json(shape).dump(); }

// What older files hold beside the parameters.
bool may_be_left(const std::string& name, const DecoderSettings& s) {
  // DeepSeek V3 has layers behind the last one that guess further tokens.
  const std::string further = "model.layers." + std::to_string(s.layers) + ".";
  return name.ends_with(".rotary_emb.inv_freq") || (s.tied && name == "lm_head.weight") ||
         (s.latent.kv_rank > 0 && name.starts_with(further));
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
  const bool starcoder = family->kind == Family::kStarCoder;
  s.norm_epsilon = config.get(starcoder ? "norm_epsilon" : "rms_norm_eps", family->norm_epsilon);
  s.tied = config.get("tie_word_embeddings", starcoder);
  s.qkv_bias = family->qkv_bias;
  s.qk_norm = family->qk_norm;
  if (config.has("head_dim") && family->kind != Family::kLatent && family->kind != Family::kLatentSigmoid) {
    const std::int64_t size = config.size("head_dim");
    if (size * s.heads != s.width) s.head_size = size;
  }
  if (starcoder) {
    s.layer_norm = s.biases = s.gelu = true;
    refuse_unless(config, "use_bias", true);
    refuse_unless(config, "mlp_type", "default");
    refuse_unless(config, "norm_type", "layer_norm");
  }
  if (s.heads % s.kv_heads != 0)
    config.refuse("num_key_value_heads", "it does not divide num_attention_heads");
  if (s.head_size == 0 && s.width % s.heads != 0)
    config.refuse("num_attention_heads", "it does not divide hidden_size, and there is no head_dim");
  if (s.head_dim() % 2 != 0) config.refuse("head_dim", "it must be even");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.get(key, false)) config.refuse(key, "it is not supported");
  const char* const known = starcoder ? "gelu_pytorch_tanh" : "silu";
  if (const auto act = config.get<std::string>("hidden_act", known); act != known)
    config.refuse("hidden_act", fmt::format("`{}` is not supported, {} is", act, known));
  read_rope(config, s);
  if (family->kind == Family::kLatent || family->kind == Family::kLatentSigmoid) read_latent(config, s);
  if (family->kind != Family::kPlain && !starcoder) read_experts(config, *family, s);
  // Within its window a token sees all that is before it: a context of that size has no other.
  const bool windowed = family->window_wants_permission
                            ? config.get("use_sliding_window", false)
                            : !json.contains("sliding_window") || config.has("sliding_window");
  if (windowed && family->sliding_window > 0)
    s.context = std::min(s.context, config.get("sliding_window", family->sliding_window));
  if (context > 0) s.context = std::min(s.context, context);
  return s;
}

namespace {

bool fits(const Family& family, const DecoderSettings& s) {
  const auto kind = s.latent.kv_rank > 0    ? (s.experts.sigmoid ? Family::kLatentSigmoid : Family::kLatent)
                    : s.experts.experts > 0 ? Family::kExperts
                    : s.gelu                ? Family::kStarCoder
                                            : Family::kPlain;
  return family.kind == kind && family.qkv_bias == s.qkv_bias && family.qk_norm == s.qk_norm;
}

void add_experts(Json& config, const ExpertSettings& e, bool deepseek) {
  config.update({{"num_experts_per_tok", e.chosen},
                 {"moe_intermediate_size", e.hidden},
                 {"norm_topk_prob", e.normalised}});
  if (!deepseek) {
    config.update(
        {{"num_experts", e.experts}, {"decoder_sparse_step", 1}, {"mlp_only_layers", Json::array()}});
    return;
  }
  config.update({{"n_routed_experts", e.experts},
                 {"n_shared_experts", e.shared},
                 {"first_k_dense_replace", e.first_layer},
                 {"routed_scaling_factor", e.scaling},
                 {"n_group", e.groups},
                 {"topk_group", e.chosen_groups},
                 {"scoring_func", e.sigmoid ? "sigmoid" : "softmax"},
                 {"topk_method", e.sigmoid      ? "noaux_tc"
                                 : e.groups > 1 ? "group_limited_greedy"
                                                : "greedy"}});
}

void add_latent(Json& config, const LatentSettings& latent) {
  config.update({{"kv_lora_rank", latent.kv_rank},
                 {"q_lora_rank", latent.q_rank > 0 ? Json(latent.q_rank) : Json()},
                 {"qk_nope_head_dim", latent.plain_size},
                 {"qk_rope_head_dim", latent.rope_size},
                 {"v_head_dim", latent.value_size},
                 {"head_dim", latent.rope_size},
                 {"rope_interleave", latent.interleaved}});
}

}  // namespace

std::string family_of_settings(const DecoderSettings& s) {
  for (const Family& family : kFamilies)
    if (fits(family, s)) return family.type;
  throw Error("no family of Hugging Face has such a model");
}

Json config_of_settings(const DecoderSettings& s, const std::string& type) {
  const Family* family = find_family(type);
  if (family == nullptr)
    throw Error(fmt::format("family `{}` is not known; {} are", type, known_families()), kExitUsage);
  if (!fits(*family, s))
    throw Error(fmt::format("family `{}` cannot have these weights: its parts are of another kind", type),
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
  if (s.latent.score_factor != 1)
    rope["mscale_all_dim"] = (std::sqrt(s.latent.score_factor) - 1) / (0.1 * std::log(r.factor));
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
  if (s.gelu) {
    config.update(
        {{"hidden_act", "gelu_pytorch_tanh"}, {"norm_epsilon", s.norm_epsilon}, {"use_bias", true}});
    config.erase("rms_norm_eps");
  }
  if (s.experts.experts > 0) add_experts(config, s.experts, s.latent.kv_rank > 0);
  if (s.latent.kv_rank > 0) add_latent(config, s.latent);
  return config;
}

// Of all experts of a layer, one behind the other.
std::vector<Source> expert_sources(const std::string& layer, bool down, const DecoderSettings& s) {
  std::vector<Source> all;
  for (std::int64_t i = 0; i < s.experts.experts; ++i) {
    const std::string expert = layer + "mlp.experts." + std::to_string(i) + ".";
    if (down) {
      all.push_back({expert + "down_proj.weight", s.width});
      continue;
    }
    all.push_back({expert + "gate_proj.weight", s.experts.hidden});
    all.push_back({expert + "up_proj.weight", s.experts.hidden});
  }
  return all;
}

// Of the decoder's parameter `name`, in the order of its rows.
std::vector<Source> sources_of(const std::string& name, const DecoderSettings& s) {
  const std::int64_t d = s.head_dim();
  if (name == "embedding") return {{"model.embed_tokens.weight", s.vocabulary}};
  if (name == "final_norm") return {{"model.norm.weight", s.width}};
  if (name == "final_norm_bias") return {{"model.norm.bias", s.width}};
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
  if (part == "down") return {{layer + (s.gelu ? "mlp.c_proj.weight" : "mlp.down_proj.weight"), s.width}};
  if (part == "attention_norm_bias") return {{layer + "input_layernorm.bias", s.width}};
  if (part == "attention_out_bias") return {{layer + "self_attn.o_proj.bias", s.width}};
  if (part == "mlp_norm_bias") return {{layer + "post_attention_layernorm.bias", s.width}};
  if (part == "up") return {{layer + "mlp.c_fc.weight", s.hidden}};
  if (part == "up_bias") return {{layer + "mlp.c_fc.bias", s.hidden}};
  if (part == "down_bias") return {{layer + "mlp.c_proj.bias", s.width}};
  const LatentSettings& latent = s.latent;
  const std::string attention = layer + "self_attn.";
  if (part == "query_down") return {{attention + "q_a_proj.weight", latent.q_rank}};
  if (part == "query_norm") return {{attention + "q_a_layernorm.weight", latent.q_rank}};
  if (part == "query")
    return {{attention + (latent.q_rank > 0 ? "q_b_proj.weight" : "q_proj.weight"), s.heads * d}};
  if (part == "kv_down")
    return {{attention + "kv_a_proj_with_mqa.weight", latent.kv_rank + latent.rope_size}};
  if (part == "kv_norm") return {{attention + "kv_a_layernorm.weight", latent.kv_rank}};
  if (part == "kv_up")
    return {{attention + "kv_b_proj.weight", s.heads * (latent.plain_size + latent.value_size)}};
  const ExpertSettings& e = s.experts;
  if (part == "router") return {{layer + "mlp.gate.weight", e.experts}};
  if (part == "router_bias") return {{layer + "mlp.gate.e_score_correction_bias", e.experts}};
  const std::int64_t shared = e.shared * e.hidden;
  if (part == "shared_gate_up")
    return {{layer + "mlp.shared_experts.gate_proj.weight", shared},
            {layer + "mlp.shared_experts.up_proj.weight", shared}};
  if (part == "shared_down") return {{layer + "mlp.shared_experts.down_proj.weight", s.width}};
  if (part == "experts_gate_up" || part == "experts_down")
    return expert_sources(layer, part == "experts_down", s);
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

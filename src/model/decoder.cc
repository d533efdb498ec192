#include "warpsmith/model/decoder.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "functions.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::model {

namespace {

constexpr std::pair<const char*, at::Tensor LayerWeights::*> kOfLayer[] = {
    {"attention_norm", &LayerWeights::attention_norm},
    {"qkv", &LayerWeights::qkv},
    {"qkv_bias", &LayerWeights::qkv_bias},
    {"q_norm", &LayerWeights::q_norm},
    {"k_norm", &LayerWeights::k_norm},
    {"attention_out", &LayerWeights::attention_out},
    {"mlp_norm", &LayerWeights::mlp_norm},
    {"gate_up", &LayerWeights::gate_up},
    {"down", &LayerWeights::down},
    {"attention_norm_bias", &LayerWeights::attention_norm_bias},
    {"attention_out_bias", &LayerWeights::attention_out_bias},
    {"mlp_norm_bias", &LayerWeights::mlp_norm_bias},
    {"up", &LayerWeights::up},
    {"up_bias", &LayerWeights::up_bias},
    {"down_bias", &LayerWeights::down_bias},
    {"router", &LayerWeights::router},
    {"router_bias", &LayerWeights::router_bias},
    {"experts_gate_up", &LayerWeights::experts_gate_up},
    {"experts_down", &LayerWeights::experts_down},
    {"shared_gate_up", &LayerWeights::shared_gate_up},
    {"shared_down", &LayerWeights::shared_down},
    {"query_down", &LayerWeights::query_down},
    {"query_norm", &LayerWeights::query_norm},
    {"query", &LayerWeights::query},
    {"kv_down", &LayerWeights::kv_down},
    {"kv_norm", &LayerWeights::kv_norm},
    {"kv_up", &LayerWeights::kv_up}};

constexpr std::pair<const char*, std::vector<Adapter> LayerWeights::*> kAdaptersOfLayer[] = {
    {"qkv", &LayerWeights::qkv_adapters},
    {"attention_out", &LayerWeights::attention_out_adapters},
    {"gate_up", &LayerWeights::gate_up_adapters},
    {"down", &LayerWeights::down_adapters}};

template <typename Table>
auto member_named(const Table& table, std::string_view name) {
  return std::find_if(std::begin(table), std::end(table), [&](const auto& one) { return name == one.first; })
      ->second;
}

// One buffer for `parameters`, each of which gets its view; where `gradient` is given, one for their
// gradients as well.
at::Tensor lay_out(const std::vector<ParameterShape>& parameters, const at::TensorOptions& options,
                   at::Tensor* gradient, const std::function<void(const ParameterShape&, at::Tensor)>& take) {
  const auto padded = [](std::int64_t n) { return (n + 15) / 16 * 16; };
  std::int64_t total = 0, offset = 0;
  for (const ParameterShape& one : parameters) total += padded(c10::multiply_integers(one.shape));
  at::Tensor flat = at::zeros({total}, options);
  if (gradient) *gradient = at::zeros({total}, options);
  for (const ParameterShape& one : parameters) {
    const std::int64_t n = c10::multiply_integers(one.shape);
    at::Tensor tensor = flat.narrow(0, offset, n).view(one.shape).detach();
    if (gradient) {
      tensor.requires_grad_(true);
      tensor.mutable_grad() = gradient->narrow(0, offset, n).view(one.shape).detach();
    }
    take(one, std::move(tensor));
    offset += padded(n);
  }
  return flat;
}

// One layer, but for the last, whose rows are chosen in between.
struct LayerOf : torch::CustomClassHolder {
  LayerOf(const Decoder& d, Packing p) : decoder(d), packing(std::move(p)) {}
  const Decoder& decoder;
  const Packing packing;
  at::Tensor operator()(std::size_t l, const at::Tensor& x) const {
    const LayerWeights& w = decoder.layers()[l];
    const DecoderSettings& s = decoder.settings();
    const Backend backend = decoder.backend();
    const auto [same, attended] = attention_of(x, w, s, decoder.cosine(), decoder.sine(), packing, backend);
    if (l + 1 < decoder.layers().size()) return behind_attention(same, attended, w, s, backend);
    // Behind the last attention only the rows that are asked for matter.
    return behind_attention(same.index_select(0, packing.rows), attended.index_select(0, packing.rows), w, s,
                            backend);
  }
};

// A layer that keeps its input alone. Its weights get their gradients while it is computed again.
struct RecomputedLayer : torch::autograd::Function<RecomputedLayer> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<LayerOf>& layer, std::int64_t l) {
    context->save_for_backward({x});
    context->saved_data["layer"] = c10::IValue::make_capsule(layer);
    context->saved_data["number"] = l;
    return (*layer)(static_cast<std::size_t>(l), x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto layer = c10::static_intrusive_pointer_cast<LayerOf>(context->saved_data["layer"].toCapsule());
    const at::AutoGradMode on(true);
    at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const at::Tensor y = (*layer)(static_cast<std::size_t>(context->saved_data["number"].toInt()), x);
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Backend backend_for(const at::TensorOptions& options, const DecoderSettings& settings) {
  const at::ScalarType type = options.dtype().toScalarType();
  const bool can = options.device().is_cpu() && (type == at::kFloat || type == at::kDouble);
  return can && settings.is_plain() ? Backend::kLoops : Backend::kOperators;
}

Decoder::Decoder(const DecoderSettings& settings, at::TensorOptions options)
    : Decoder(settings, options, backend_for(options, settings)) {}

Decoder::Decoder(const DecoderSettings& settings, at::TensorOptions options, Backend backend)
    : settings_(settings), backend_(backend) {
  const DecoderSettings& s = settings_;
  if (backend == Backend::kLoops && backend_for(options, s) != Backend::kLoops)
    throw Error("the loops compute plain decoders, on the CPU in float32 and float64");
  layers_.resize(static_cast<std::size_t>(s.layers));
  flat_ = lay_out(parameters_of(s), options, s.lora.rank > 0 ? nullptr : &gradient_,
                  [&](const ParameterShape& one, at::Tensor tensor) {
                    slot(one.name) = tensor;
                    named_.push_back({one.name, std::move(tensor), one.shape.size() > 1});
                  });
  if (s.lora.rank > 0) add_adapters(options);

  const std::int64_t half = s.rope_dim() / 2;
  at::Tensor cosine = at::empty({s.context, half}, at::kDouble), sine = at::empty_like(cosine);
  const std::vector<double> frequencies = rotary_frequencies(s);
  const double factor = s.rope_scaling.attention_factor;
  for (std::int64_t position = 0; position < s.context; ++position)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<std::size_t>(i)];
      cosine.mutable_data_ptr<double>()[position * half + i] = factor * std::cos(angle);
      sine.mutable_data_ptr<double>()[position * half + i] = factor * std::sin(angle);
    }
  cosine_ = cosine.to(options.device(), options.dtype().toScalarType());
  sine_ = sine.to(options.device(), options.dtype().toScalarType());
}

void Decoder::add_adapters(const at::TensorOptions& options) {
  flat_adapters_ =
      lay_out(adapters_of(settings_), options, &gradient_, [&](const ParameterShape& one, at::Tensor tensor) {
        const AdapterPlace place = place_of_adapter(one.name, settings_);
        std::vector<Adapter>& adapters =
            layers_[static_cast<std::size_t>(place.layer)].*member_named(kAdaptersOfLayer, place.matrix);
        if (place.is_a)
          adapters.push_back({place.first_row, tensor, {}});
        else
          adapters.back().b = tensor;
        named_adapters_.push_back({one.name, std::move(tensor), true});
      });
}

Decoder Decoder::copied(at::TensorOptions options, Backend backend) const {
  Decoder result(settings_, options, backend);
  const at::NoGradGuard guard;
  result.flat_.copy_(flat_);
  if (flat_adapters_.defined()) result.flat_adapters_.copy_(flat_adapters_);
  result.recompute_ = recompute_;
  return result;
}

Decoder Decoder::beside() const {
  Decoder result(*this);
  for (LayerWeights& layer : result.layers_)
    for (const auto& [name, adapters] : kAdaptersOfLayer) (layer.*adapters).clear();
  result.named_adapters_.clear();
  result.add_adapters(options());
  return result;
}

Decoder Decoder::merged() const {
  DecoderSettings settings = settings_;
  settings.lora = {};
  Decoder result(settings);
  const at::NoGradGuard guard;
  result.flat_.copy_(flat_);
  const auto matrix_of = [&](std::size_t l, const char* name) {
    return result.layers_[l].*member_named(kOfLayer, name);
  };
  for (std::size_t l = 0; l < layers_.size(); ++l)
    for (const auto& [name, adapters] : kAdaptersOfLayer)
      for (const Adapter& one : layers_[l].*adapters)
        matrix_of(l, name)
            .narrow(0, one.first_row, one.b.size(0))
            .add_(at::mm(one.b.to(at::kCPU, at::kFloat), one.a.to(at::kCPU, at::kFloat)),
                  settings_.lora.scale());
  return result;
}

at::Tensor& Decoder::slot(const std::string& name) {
  if (name == "embedding") return embedding_;
  if (name == "final_norm") return final_norm_;
  if (name == "final_norm_bias") return final_norm_bias_;
  if (name == "head") return head_;
  const std::size_t dot = name.rfind('.');
  LayerWeights& layer = layers_[std::stoul(name.substr(name.find('.') + 1))];
  return layer.*member_named(kOfLayer, std::string_view(name).substr(dot + 1));
}

void Decoder::initialise(std::uint64_t seed) {
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(settings_.layers));
  for (const NamedTensor& parameter : named_) {
    const bool norm = parameter.name.ends_with("norm"), bias = parameter.name.ends_with("bias");
    double deviation = norm || bias ? 0 : settings_.init_deviation;
    if (parameter.name.ends_with("attention_out") || parameter.name.ends_with(".down")) deviation *= residual;
    Random random(random_key({seed, name_key("initialise"), name_key(parameter.name)}));
    AT_DISPATCH_FLOATING_TYPES(flat_.scalar_type(), "initialise", [&] {
      scalar_t* out = parameter.tensor.mutable_data_ptr<scalar_t>();
      for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i)
        out[i] = static_cast<scalar_t>(norm ? 1.0 : deviation > 0 ? deviation * random.normal() : 0.0);
    });
  }
}

void Decoder::initialise_adapters(std::uint64_t seed) {
  for (const NamedTensor& parameter : named_adapters_) {
    if (parameter.name.ends_with(".b")) {
      at::NoGradGuard guard;
      parameter.tensor.zero_();
      continue;
    }
    const double bound = 1 / std::sqrt(static_cast<double>(parameter.tensor.size(1)));
    Random random(random_key({seed, name_key("initialise"), name_key(parameter.name)}));
    AT_DISPATCH_FLOATING_TYPES(flat_adapters_.scalar_type(), "initialise_adapters", [&] {
      scalar_t* out = parameter.tensor.mutable_data_ptr<scalar_t>();
      for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i)
        out[i] = static_cast<scalar_t>(bound * (2 * random.uniform() - 1));
    });
  }
}

void Decoder::zero_gradient() { gradient_.zero_(); }

at::Tensor Decoder::behind_layers(const Packing& packing) const {
  at::Tensor x = at::embedding(embedding_, packing.tokens);  // [tokens, width]
  const auto layer = c10::make_intrusive<LayerOf>(*this, packing);
  const bool again = recompute_ && at::GradMode::is_enabled();
  // What is computed again gets its gradients by way of x.
  if (again && !x.requires_grad()) x.requires_grad_(true);
  for (std::size_t l = 0; l < layers_.size(); ++l)
    x = again ? RecomputedLayer::apply(x, layer, static_cast<std::int64_t>(l)) : (*layer)(l, x);
  return normed(x);
}

at::Tensor Decoder::normed(const at::Tensor& x) const {
  return norm(x, final_norm_, final_norm_bias_, settings_, backend_);
}

at::Tensor Decoder::logits(const PackedBatch& batch) const {
  const Packing packing = make_packing(batch, settings_, flat_.device());
  return at::linear(behind_layers(packing), head());
}

at::Tensor Decoder::log_probabilities(const PackedBatch& batch, const at::Tensor& known) const {
  const Packing packing = make_packing(batch, settings_, flat_.device());
  return head_log_probabilities(behind_layers(packing), head(), packing.targets, known);
}

}  // namespace warpsmith::model

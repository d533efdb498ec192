// The operators of the grammar. The CUDA forms are what a person would write; the torch forms are the
// reference.
#include <algorithm>
#include <cmath>

#include "warpsmith/base/error.h"
#include "warpsmith/synthesis/chain.h"

namespace warpsmith::synthesis {

namespace {

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
double clamp(double v, double low, double high) { return std::min(std::max(v, low), high); }

Operator element(const char* name, const char* torch, const char* cuda, double (*value)(double, double),
                 int flops = 1, const char* hard_values = "") {
  return {.name = name,
          .place = Place::kElement,
          .torch = torch,
          .cuda = cuda,
          .value = value,
          .flops = flops,
          .hard_values = hard_values};
}

Operator operand(const char* name, Operand kind, const char* operand_name, const char* values,
                 const char* torch, const char* cuda, double (*value)(double, double)) {
  return {.name = name,
          .place = Place::kOperand,
          .torch = torch,
          .cuda = cuda,
          .value = value,
          .operand = kind,
          .operand_name = operand_name,
          .operand_values = values};
}

Operator row(const char* name, const char* torch, const char* cuda, std::vector<Pass> passes, int flops,
             const char* hard_values = "", const char* scalar = "", const char* scalar_value = "") {
  return {.name = name,
          .place = Place::kRow,
          .torch = torch,
          .cuda = cuda,
          .flops = flops,
          .operand = *scalar == '\0' ? Operand::kNone : Operand::kScalar,
          .operand_name = scalar,
          .operand_values = scalar_value,
          .passes = std::move(passes),
          .hard_values = hard_values};
}

Operator end(const char* name, Place place, const char* torch, std::vector<Pass> passes,
             const char* hard_values = "") {
  return {.name = name,
          .place = place,
          .torch = torch,
          .flops = static_cast<int>(2 * std::max<std::size_t>(1, passes.size())),
          .passes = std::move(passes),
          .hard_values = hard_values};
}

Operator window(const char* name, Windows windows, int rank, const char* torch) {
  return {.name = name, .place = Place::kStart, .torch = torch, .windows = windows, .rank = rank};
}

// Two branches meet: the chain's own, and a function of another matrix or of what the chain began with.
Operator meeting(const char* name, Operand kind, const char* torch, const char* cuda,
                 double (*value)(double, double), int flops = 1) {
  const bool is_start = kind == Operand::kStart;
  Operator one =
      operand(name, kind, is_start ? "x" : "g", is_start ? "" : "normal(0, 1)", torch, cuda, value);
  one.flops = flops;
  one.branches = true;
  return one;
}

Operator in_modules(Operator one, const char* module) {
  one.module = module;
  return one;
}

Operator dividing(Operator one) {
  one.divides = true;
  return one;
}

std::vector<Operator> make() {
  const char* const kLarge = "normal(0, 300)";
  const char* const kShifted = "normal(2, 1)";
  const char* const kSmall = "normal(0, 0.001)";
  return {
      {.name = "x", .place = Place::kStart, .flops = 0},
      {.name = "gather_rows", .place = Place::kStart, .flops = 0},
      {.name = "matmul", .place = Place::kStart},

      element("relu", "torch.relu({v})", "fmaxf(v, 0.f)", [](double v, double) { return std::max(v, 0.0); }),
      element("square", "{v} * {v}", "v * v", [](double v, double) { return v * v; }),
      element("abs", "torch.abs({v})", "fabsf(v)", [](double v, double) { return std::fabs(v); }),
      element("negate", "-{v}", "-v", [](double v, double) { return -v; }),
      element(
          "sigmoid", "torch.sigmoid({v})", "1.f / (1.f + expf(-v))",
          [](double v, double) { return sigmoid(v); }, 4, kLarge),
      element(
          "tanh", "torch.tanh({v})", "tanhf(v)", [](double v, double) { return std::tanh(v); }, 4, kLarge),
      element(
          "silu", "{v} * torch.sigmoid({v})", "v / (1.f + expf(-v))",
          [](double v, double) { return v * sigmoid(v); }, 5),
      in_modules(element(
                     "gelu", "{v}.gelu()", "0.5f * v * (1.f + erff(v * 0.70710678f))",
                     [](double v, double) { return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5))); }, 6),
                 "torch.nn.functional.gelu({v})"),
      element(
          "clamp", "torch.clamp({v}, -1.0, 1.0)", "fminf(fmaxf(v, -1.f), 1.f)",
          [](double v, double) { return clamp(v, -1, 1); }, 2),
      element(
          "leaky_relu", "torch.where({v} > 0, {v}, {v} * 0.01)", "v > 0.f ? v : 0.01f * v",
          [](double v, double) { return v > 0 ? v : 0.01 * v; }, 2),
      element(
          "elu", "torch.celu({v})", "v > 0.f ? v : expm1f(v)",
          [](double v, double) { return v > 0 ? v : std::expm1(v); }, 3),
      element(
          "softsign", "{v} / (1.0 + torch.abs({v}))", "v / (1.f + fabsf(v))",
          [](double v, double) { return v / (1 + std::fabs(v)); }, 3),
      element(
          "hardswish", "{v} * torch.clamp({v} + 3.0, 0.0, 6.0) / 6.0",
          "v * fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f",
          [](double v, double) { return v * clamp(v + 3, 0, 6) / 6; }, 5),
      element(
          "selu", "torch.selu({v})", "1.0507010f * (v > 0.f ? v : 1.6732632f * expm1f(v))",
          [](double v, double) {
            return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v));
          },
          5),
      element(
          "hardsigmoid", "torch.clamp({v} + 3.0, 0.0, 6.0) / 6.0", "fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f",
          [](double v, double) { return clamp(v + 3, 0, 6) / 6; }, 4),
      in_modules(element(
                     "softplus", "torch.softplus({v})", "v > 20.f ? v : log1pf(expf(v))",
                     [](double v, double) { return v > 20 ? v : std::log1p(std::exp(v)); }, 5, kLarge),
                 "torch.nn.functional.softplus({v})"),
      element(
          "new_gelu",
          "0.5 * {v} * (1.0 + torch.tanh(0.7978845608028654 * ({v} + 0.044715 * {v} * {v} * {v})))",
          "0.5f * v * (1.f + tanhf(0.7978846f * (v + 0.044715f * v * v * v)))",
          [](double v, double) {
            return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
          },
          10),

      operand("scale", Operand::kScalar, "s", "0.5", "{v} * {o}", "v * {o}",
              [](double v, double o) { return v * o; }),
      operand("bias", Operand::kRowVector, "b", "normal(0, 1)", "{v} + {o}", "v + {o}",
              [](double v, double o) { return v + o; }),
      operand("weight", Operand::kRowVector, "w", "normal(0, 1)", "{v} * {o}", "v * {o}",
              [](double v, double o) { return v * o; }),
      operand("row_scale", Operand::kColumnVector, "u", "normal(0, 1)", "{v} * {o}", "v * {o}",
              [](double v, double o) { return v * o; }),
      operand("residual", Operand::kMatrix, "r", "normal(0, 1)", "{v} + {o}", "v + {o}",
              [](double v, double o) { return v + o; }),
      operand("gate", Operand::kMatrix, "g", "normal(0, 1)", "{v} * {o}", "v * {o}",
              [](double v, double o) { return v * o; }),
      operand("difference", Operand::kMatrix, "d", "normal(0, 1)", "{v} - {o}", "v - {o}",
              [](double v, double o) { return v - o; }),
      operand("maximum", Operand::kMatrix, "q", "normal(0, 1)", "torch.maximum({v}, {o})", "fmaxf(v, {o})",
              [](double v, double o) { return std::max(v, o); }),

      row("center", "{v} - {v}.mean(1, keepdim=True)", "v - {0}", {{Fold::kSum, "v", "{a} / N"}}, 2,
          kShifted),
      row("subtract_max", "{v} - {v}.amax(1, keepdim=True)", "v - {0}", {{Fold::kMax}}, 2),
      row("rms_norm", "{v} * torch.rsqrt(({v} * {v}).mean(1, keepdim=True) + {o})", "v * {0}",
          {{Fold::kSum, "v * v", "rsqrtf({a} / N + {o})"}}, 4, kSmall, "eps", "1.0e-05"),
      row("l2_norm", "{v} * torch.rsqrt(({v} * {v}).sum(1, keepdim=True) + {o})", "v * {0}",
          {{Fold::kSum, "v * v", "rsqrtf({a} + {o})"}}, 4, kSmall, "eps", "1.0e-05"),
      row("row_softmax", "torch.softmax({v}, 1)", "expf(v - {0}) * {1}",
          {{Fold::kMax}, {Fold::kSum, "expf(v - {0})", "1.f / {a}"}}, 6, kLarge),
      row("log_softmax", "torch.log_softmax({v}, 1)", "v - {0} - {1}",
          {{Fold::kMax}, {Fold::kSum, "expf(v - {0})", "logf({a})"}}, 6, kLarge),
      dividing(row("l1_norm", "{v} / torch.abs({v}).mean(1, keepdim=True)", "v / {0}",
                   {{Fold::kSum, "fabsf(v)", "{a} / N"}}, 3)),
      dividing(row("unit_norm", "{v} / torch.sqrt(({v} * {v}).sum(1, keepdim=True))", "v / {0}",
                   {{Fold::kSum, "v * v", "sqrtf({a})"}}, 3)),
      row("standardize",
          "({v} - {v}.mean(1, keepdim=True)) * torch.rsqrt({v}.var(1, unbiased=False, keepdim=True) + {o})",
          "(v - {0}) * {1}",
          {{Fold::kSum, "v", "{a} / N"}, {Fold::kSum, "(v - {0}) * (v - {0})", "rsqrtf({a} / N + {o})"}}, 7,
          kShifted, "eps", "1.0e-05"),

      end("row_sum", Place::kRowEnd, "{v}.sum(1)", {{Fold::kSum}}),
      end("row_mean", Place::kRowEnd, "{v}.mean(1)", {{Fold::kSum, "v", "{a} / N"}}),
      end("row_max", Place::kRowEnd, "{v}.amax(1)", {{Fold::kMax}}),
      end("row_min", Place::kRowEnd, "{v}.amin(1)", {{Fold::kMin}}),
      end("row_norm", Place::kRowEnd, "torch.sqrt(({v} * {v}).sum(1))",
          {{Fold::kSum, "v * v", "sqrtf({a})"}}),
      end("logsumexp", Place::kRowEnd, "torch.logsumexp({v}, 1)",
          {{Fold::kMax}, {Fold::kSum, "expf(v - {0})", "logf({a}) + {0}"}}, kLarge),
      end("column_sum", Place::kColumnEnd, "{v}.sum(0)", {{Fold::kSum}}),
      end("column_mean", Place::kColumnEnd, "{v}.mean(0)", {{Fold::kSum, "v", "{a} / M"}}),
      end("column_max", Place::kColumnEnd, "{v}.amax(0)", {{Fold::kMax}}),
      end("all_sum", Place::kAllEnd, "{v}.sum()", {{Fold::kSum}}),
      end("all_mean", Place::kAllEnd, "{v}.mean()", {{Fold::kSum, "v", "{a} / (M * N)"}}),
      end("row_cumsum", Place::kScan, "torch.cumsum({v}, 1)", {}),
      end("transpose", Place::kTranspose, "{v}.t().contiguous()", {}),

      // As torch's tracer writes them; {p}: the window's numbers.
      window("max_pool1d", Windows::kMax, 1, "max_pool1d({v}{p})"),
      window("max_pool2d", Windows::kMax, 2, "max_pool2d({v}{p})"),
      window("max_pool3d", Windows::kMax, 3, "max_pool3d({v}{p})"),
      window("avg_pool1d", Windows::kMean, 1, "avg_pool1d({v}{p})"),
      window("avg_pool2d", Windows::kMean, 2, "avg_pool2d({v}{p})"),
      window("avg_pool3d", Windows::kMean, 3, "avg_pool3d({v}{p})"),
      window("conv1d", Windows::kFull, 1, "conv1d({v}, {o}{p})"),
      window("conv2d", Windows::kFull, 2, "conv2d({v}, {o}{p})"),
      window("depthwise_conv1d", Windows::kDepthwise, 1, "conv1d({v}, {o}{p})"),
      window("depthwise_conv2d", Windows::kDepthwise, 2, "conv2d({v}, {o}{p})"),
      window("pointwise_conv1d", Windows::kPointwise, 1, "conv1d({v}, {o}{p})"),
      window("pointwise_conv2d", Windows::kPointwise, 2, "conv2d({v}, {o}{p})"),

      meeting("skip", Operand::kStart, "{v} + {o}", "v + {o}", [](double v, double o) { return v + o; }),
      meeting("self_gate", Operand::kStart, "{v} * {o}", "v * {o}", [](double v, double o) { return v * o; }),
      meeting(
          "self_sigmoid_gate", Operand::kStart, "{v} * torch.sigmoid({o})", "v / (1.f + expf(-{o}))",
          [](double v, double o) { return v * sigmoid(o); }, 5),
      meeting(
          "sigmoid_gate", Operand::kMatrix, "{v} * torch.sigmoid({o})", "v / (1.f + expf(-{o}))",
          [](double v, double o) { return v * sigmoid(o); }, 5),
      meeting(
          "silu_gate", Operand::kMatrix, "{v} * ({o} * torch.sigmoid({o}))", "v * ({o} / (1.f + expf(-{o})))",
          [](double v, double o) { return v * o * sigmoid(o); }, 6),
      in_modules(meeting(
                     "gelu_gate", Operand::kMatrix, "{v} * {o}.gelu()",
                     "v * (0.5f * {o} * (1.f + erff({o} * 0.70710678f)))",
                     [](double v, double o) { return v * 0.5 * o * (1 + std::erf(o * std::sqrt(0.5))); }, 7),
                 "{v} * torch.nn.functional.gelu({o})"),
      meeting(
          "relu_residual", Operand::kMatrix, "{v} + torch.relu({o})", "v + fmaxf({o}, 0.f)",
          [](double v, double o) { return v + std::max(o, 0.0); }, 2),
  };
}

}  // namespace

bool is_end(const Operator& one) {
  return one.place == Place::kRowEnd || one.place == Place::kColumnEnd || one.place == Place::kAllEnd ||
         one.place == Place::kScan || one.place == Place::kTranspose;
}

bool is_convolution(const Operator& one) {
  return one.windows == Windows::kFull || one.windows == Windows::kDepthwise ||
         one.windows == Windows::kPointwise;
}

std::string_view family_of(const Operator& start) {
  return is_convolution(start) ? "convolution" : start.windows == Windows::kNone ? "chains" : "pooling";
}

bool has_input(const Operator& one) {
  return one.operand != Operand::kNone && one.operand != Operand::kScalar && one.operand != Operand::kStart;
}

bool takes(const Operator& start, const Operator& one) {
  if (one.place == Place::kStart) return false;
  // What a product or windows make is not kept: it would be made twice.
  if (one.operand == Operand::kStart)
    return start.windows == Windows::kNone && start.name != std::string_view("matmul");
  return start.windows == Windows::kNone || one.place == Place::kElement || one.place == Place::kAllEnd ||
         (one.place == Place::kOperand && one.operand != Operand::kColumnVector);
}

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all = make();
  return all;
}

const Operator& operator_named(std::string_view name) {
  for (const Operator& one : operators())
    if (one.name == name) return one;
  throw Error("there is no operator `" + std::string(name) + "`", kExitUsage);
}

}  // namespace warpsmith::synthesis

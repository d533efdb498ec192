#include "read_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "warpsmith/base/text.h"

namespace warpsmith::task {

namespace {

constexpr int kMaxValueDepth = 8;  // of values within values

// `arguments` numbers (at most `most`), then `parts` values.
struct ValueKind {
  std::string_view name;
  std::size_t arguments, most, parts;
  bool only_in_distributions;  // a GPU does not draw them for timed calls
  std::string_view usage;
};
constexpr std::array<ValueKind, 12> kValueKinds = {{
    {"normal", 2, 2, 0, false, "normal(mean, deviation)"},
    {"uniform", 2, 2, 0, false, "uniform(low, high)"},
    {"integers", 2, 2, 0, false, "integers(low, high)"},
    {"zeros", 0, 0, 0, false, "zeros"},
    {"ones", 0, 0, 0, false, "ones"},
    {"permutation", 0, 0, 0, false, "permutation"},
    {"bernoulli", 1, 1, 0, false, "bernoulli(p)"},
    {"choice", 1, 16, 0, false, "choice(a, b, …), 1 to 16 numbers"},
    {"mix", 1, 1, 2, true, "mix(p, values, other values)"},
    {"sorted", 0, 0, 1, true, "sorted(values)"},
    {"descending", 0, 0, 1, true, "descending(values)"},
    {"by_row", 0, 0, 1, true, "by_row(values)"},
}};

const ValueKind* kind_of(std::string_view name) {
  const auto found = std::find_if(kValueKinds.begin(), kValueKinds.end(),
                                  [&](const ValueKind& kind) { return kind.name == name; });
  return found == kValueKinds.end() ? nullptr : &*found;
}

struct Range {
  double low, high;
};
Range range_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return {-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    case Dtype::kFloat32:
      return {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    case Dtype::kBfloat16:
      return {-0x1.FEp127, 0x1.FEp127};
    case Dtype::kFloat16:
      return {-65504, 65504};
    case Dtype::kFloat8E4m3:
      return {-448, 448};
    case Dtype::kFloat8E5m2:
      return {-57344, 57344};
    case Dtype::kInt64:
      return {-0x1p53, 0x1p53};  // as far as doubles are exact
    case Dtype::kInt32:
      return {-0x1p31, 0x1p31 - 1};
    case Dtype::kInt16:
      return {-32768, 32767};
    case Dtype::kInt8:
      return {-128, 127};
    case Dtype::kUint8:
      return {0, 255};
    case Dtype::kBool:
      break;
  }
  return {0, 1};
}

bool holds(Dtype dtype, double number) {
  if (std::isnan(number)) return is_floating(dtype);
  if (std::isinf(number)) return is_floating(dtype) && dtype != Dtype::kFloat8E4m3;
  const Range range = range_of(dtype);
  return number >= range.low && number <= range.high && (is_floating(dtype) || number == std::floor(number));
}

}  // namespace

ValueReader::ValueReader(const yaml::Node& node, const TensorSpec& tensor, bool in_distribution,
                         ReadArgument argument, Diagnostics& diagnostics)
    : node_(node),
      tensor_(tensor),
      in_distribution_(in_distribution),
      argument_(std::move(argument)),
      diagnostics_(diagnostics) {}

std::optional<ValueSpec> ValueReader::read(const std::string& text) {
  return read_part(trim_piece({text, 0}), 1);
}

bool ValueReader::mistake(std::string message, std::string hint) {
  diagnostics_.push_back(yaml::mistake_at(node_.place(), std::move(message), std::move(hint)));
  return false;
}

std::optional<ValueSpec> ValueReader::read_part(const Piece& piece, int depth) {
  const std::string_view text = piece.text;
  const std::size_t open = text.find('(');
  ValueSpec spec;
  spec.kind = trim(text.substr(0, open));
  const ValueKind* kind = kind_of(spec.kind);
  if (kind == nullptr) {
    std::vector<std::string> names;
    for (const ValueKind& known : kValueKinds) names.emplace_back(known.name);
    mistake("unknown kind of values `" + spec.kind + "`", yaml::suggest(spec.kind, names));
    return std::nullopt;
  }
  if (kind->only_in_distributions && !in_distribution_) {
    mistake("`" + spec.kind + "` is for `distributions` alone: timed calls have values that a GPU draws");
    return std::nullopt;
  }
  if (depth > kMaxValueDepth) {
    mistake("values within values more than " + std::to_string(kMaxValueDepth) + " deep");
    return std::nullopt;
  }
  std::vector<Piece> pieces;
  if (open != std::string_view::npos) {
    if (text.back() != ')') {
      mistake("`" + std::string(text) + "`: `)` is missing");
      return std::nullopt;
    }
    pieces = split_pieces(
        {text.substr(open + 1, text.size() - open - 2), piece.column + static_cast<int>(open) + 1});
  }
  const std::size_t numbers = pieces.size() - std::min(pieces.size(), kind->parts);
  if (pieces.size() < kind->parts || numbers < kind->arguments || numbers > kind->most) {
    mistake("wrong number of arguments of `" + spec.kind + "`", std::string(kind->usage));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i < numbers) {
      auto argument = argument_(pieces[i].text, pieces[i].column);
      if (!argument) return std::nullopt;
      spec.arguments.push_back(std::move(*argument));
    } else {
      auto part = read_part(pieces[i], depth + 1);
      if (!part) return std::nullopt;
      spec.parts.push_back(std::move(*part));
    }
  }
  if (!fits(spec)) return std::nullopt;
  return spec;
}

bool ValueReader::fits(const ValueSpec& spec) {
  const bool real = spec.kind == "normal" || spec.kind == "uniform";
  if (real != is_floating(tensor_.dtype) && (real || spec.kind == "permutation"))
    return mistake("`" + spec.kind + "` does not make values of type " +
                   std::string(to_string(tensor_.dtype)));
  if (tensor_.strides.empty()) return true;
  if (spec.kind == "permutation")
    return mistake("a permutation has no gaps, and `" + tensor_.name + "` has `strides`");
  if (spec.kind == "sorted" || spec.kind == "descending" || spec.kind == "by_row")
    return mistake("`" + spec.kind + "` goes by rows without gaps, and `" + tensor_.name + "` has `strides`");
  return true;
}

void check_values(const ValueSpec& values, Dtype dtype, const Dims& dims, bool in_distribution) {
  if (values.kind == "choice" && !in_distribution && !even_choice(values, dims))
    throw Error(
        "values `choice`: its numbers are not evenly spaced; such a choice is for `distributions` alone");
  std::vector<double> arguments;
  for (std::size_t i = 0; i < values.arguments.size(); ++i) {
    arguments.push_back(value_argument(values, i, dims));
    const std::string said = "values `" + values.kind + "`: `" + values.arguments[i].text() + "`";
    if (values.kind == "choice" && !holds(dtype, arguments.back()))
      throw Error(said + " is not a number of type " + std::string(to_string(dtype)));
    if (values.kind != "choice" && !std::isfinite(arguments.back())) throw Error(said + " is not finite");
  }
  const bool range = values.kind == "uniform" || values.kind == "integers";
  if (range && !(arguments[0] < arguments[1]))
    throw Error("values `" + values.kind + "`: the range is empty");
  if (values.kind == "normal" && !(arguments[1] >= 0))
    throw Error("values `normal`: the deviation is negative");
  const bool probability = values.kind == "bernoulli" || values.kind == "mix";
  if (probability && !(arguments[0] >= 0 && arguments[0] <= 1))
    throw Error("values `" + values.kind + "`: p is not between 0 and 1");
  for (const ValueSpec& part : values.parts) check_values(part, dtype, dims, in_distribution);
}

}  // namespace warpsmith::task

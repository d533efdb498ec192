#include "warpsmith/synthesis/traced.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "warpsmith/base/random.h"
#include "warpsmith/base/text.h"
#include "windows.h"

namespace warpsmith::synthesis {

namespace {

// A line each: `{v}` is what came before the operator, `{o}` its operand, `{0}`, `{1}` … what these lines
// have made, `{a}` the axis, `{k}` ", True" where it is kept, `{s}` a number. "[0]": the first of a pair.
const std::vector<const char*>* lines_of(const std::string_view name) {
  using Table = std::map<std::string_view, std::vector<const char*>>;
  static const Table kWindows = [] {
    Table lines;
    for (const Operator& one : operators())
      if (one.windows != Windows::kNone) lines[one.name] = {one.torch};
    return lines;
  }();
  if (const auto it = kWindows.find(name); it != kWindows.end()) return &it->second;
  static const Table kLines = {
      {"matmul", {"matmul({v}, {o})"}},
      {"relu", {"relu({v})"}},
      {"square", {"pow({v}, 2)"}},
      {"abs", {"abs({v})"}},
      {"negate", {"neg({v})"}},
      {"sigmoid", {"sigmoid({v})"}},
      {"tanh", {"tanh({v})"}},
      {"silu", {"sigmoid({v})", "mul({v}, {0})"}},
      {"gelu", {"gelu({v})"}},
      {"clamp", {"hardtanh({v}, -1.0, 1.0)"}},
      {"leaky_relu", {"leaky_relu({v})"}},
      {"elu", {"elu({v}, 1.0)"}},
      {"softsign", {"abs({v})", "add({0}, 1)", "div({v}, {1})"}},
      {"hardswish", {"hardswish({v})"}},
      {"selu", {"selu({v})"}},
      {"hardsigmoid", {"hardsigmoid({v})"}},
      {"softplus", {"softplus({v})"}},
      {"new_gelu",
       {"mul({v}, 0.5)", "pow({v}, 3.0)", "mul({1}, 0.044715)", "add({v}, {2})",
        "mul({3}, 0.7978845608028654)", "tanh({4})", "add({5}, 1.0)", "mul({0}, {6})"}},
      {"scale", {"mul({v}, {s})"}},
      {"bias", {"add({v}, {o})"}},
      {"weight", {"mul({v}, {o})"}},
      {"row_scale", {"unsqueeze({o}, 1)", "mul({v}, {0})"}},
      {"residual", {"add({v}, {o})"}},
      {"gate", {"mul({v}, {o})"}},
      {"difference", {"sub({v}, {o})"}},
      {"maximum", {"maximum({v}, {o})"}},
      {"skip", {"add({v}, {o})"}},
      {"self_gate", {"mul({v}, {o})"}},
      {"self_sigmoid_gate", {"sigmoid({o})", "mul({v}, {0})"}},
      {"sigmoid_gate", {"sigmoid({o})", "mul({v}, {0})"}},
      {"silu_gate", {"sigmoid({o})", "mul({o}, {0})", "mul({v}, {1})"}},
      {"gelu_gate", {"gelu({o})", "mul({v}, {0})"}},
      {"relu_residual", {"relu({o})", "add({v}, {0})"}},
      {"center", {"mean({v}, [{a}], True)", "sub({v}, {0})"}},
      {"rms_norm",
       {"pow({v}, 2)", "mean({0}, [{a}], True)", "add({1}, 1e-05)", "sqrt({2})", "div({v}, {3})"}},
      {"l1_norm", {"abs({v})", "mean({0}, [{a}], True)", "div({v}, {1})"}},
      {"unit_norm", {"linalg_vector_norm({v}, 2, [{a}], True)", "div({v}, {0})"}},
      {"row_softmax", {"softmax({v}, {a})"}},
      {"log_softmax", {"log_softmax({v}, {a})"}},
      {"row_sum", {"sum({v}, [{a}]{k})"}},
      {"row_mean", {"mean({v}, [{a}]{k})"}},
      {"row_max", {"max({v}, {a}{k})", "[0]"}},
      {"row_min", {"min({v}, {a}{k})", "[0]"}},
      {"row_norm", {"linalg_vector_norm({v}, 2, [{a}]{k})"}},
      {"all_sum", {"sum({v})"}},
      {"all_mean", {"mean({v})"}},
      {"row_cumsum", {"cumsum({v}, {a})"}}};
  const auto it = kLines.find(name);
  return it == kLines.end() ? nullptr : &it->second;
}

// What torch's tracer calls a value: names of Python's own functions get a number at once.
class Values {
 public:
  std::string fresh(const std::string& function) {
    static const std::set<std::string_view> kPythons = {"abs", "pow", "sum", "max", "min"};
    int& seen = seen_[function];
    const int number = seen++ + (kPythons.contains(function) ? 1 : 0);
    return "v_" + function + (number == 0 ? "" : "_" + std::to_string(number));
  }

 private:
  std::map<std::string, int> seen_;
};

// "2.0", "0.25"
std::string number(double value) {
  return value == static_cast<int>(value) ? fmt::format("{:.1f}", value) : fmt::format("{}", value);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Each word of the text as `names` has it; what stands behind a point is a part of something.
std::string renamed(const std::string& text, const std::map<std::string, std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    const auto it = i > 0 && text[i - 1] == '.' ? names.end() : names.find(word);
    out += it == names.end() ? word : it->second;
    i = end;
  }
  return out;
}

// How the task's tensor lies: as M rows of N elements, which stand `inner` apart.
struct Layout {
  std::string rows, row, inner;  // expressions: M, N; inner: empty where a row is contiguous
  std::string all;               // M * N
};

using Dims = std::vector<std::string>;

bool has_rows(const Chain& chain) {
  const auto is_row = [](std::size_t number) { return op(number).place == Place::kRow; };
  return std::any_of(chain.steps.begin(), chain.steps.end(), is_row) ||
         (chain.has_end() && op(chain.end).place != Place::kAllEnd);
}
bool is_product(const Chain& chain) { return op(chain.start).name == std::string_view("matmul"); }
// Operands of a row's or a column's length.
bool has_vectors(const Chain& chain) {
  return std::any_of(chain.steps.begin(), chain.steps.end(), [](std::size_t number) {
    return op(number).operand == Operand::kRowVector || op(number).operand == Operand::kColumnVector;
  });
}

// Of a product: the dimensions of both factors and of what they make, and K.
struct Factors {
  Dims left, right, out;
  std::string inner;
  bool left_transposed = false, right_transposed = false;
};

Factors factors_of(const Traced& traced) {
  const std::string batch = "BATCH";
  const auto size = [&](std::size_t i) { return std::to_string(traced.sizes.at(i)); };
  switch (traced.product) {
    case ProductForm::kBatchOfRows:
      return {{batch, size(0), size(1)}, {size(1), size(2)}, {batch, size(0), size(2)}, size(1)};
    case ProductForm::kSquare:
      return {{batch, batch}, {batch, batch}, {batch, batch}, batch};
    case ProductForm::kLeftTransposed:
      return {{batch, size(0)}, {batch, size(1)}, {size(0), size(1)}, batch, true};
    case ProductForm::kRightTransposed:
      return {{batch, size(0)}, {size(1), size(0)}, {batch, size(1)}, size(0), false, true};
    case ProductForm::kBothTransposed:
      return {{batch, size(0)}, {size(1), batch}, {size(0), size(1)}, batch, true, true};
    case ProductForm::kRows:
      break;
  }
  return {{batch, size(0)}, {size(0), size(1)}, {batch, size(1)}, size(0)};
}

Layout layout_of(const Chain& chain, const Traced& traced) {
  const std::vector<int>& sizes = traced.sizes;
  if (has_windows(chain)) {
    const std::vector<int> made = made_sizes(traced);
    return {"", "", "", "BATCH * " + product(made, 0, made.size())};
  }
  if (is_product(chain)) {
    const Dims out = factors_of(traced).out;
    const Dims rows(out.begin(), out.end() - 1);
    const std::string all_rows = fmt::format("{}", fmt::join(rows, " * "));
    return {all_rows, out.back(), "", all_rows + " * " + out.back()};
  }
  const std::string every = product(sizes, 0, sizes.size());
  Layout layout{"BATCH", in_brackets(every), "", "BATCH * " + every};
  if (!has_rows(chain) || sizes.size() == 1) return layout;
  const std::size_t at = traced.axis - 1;
  layout.row = std::to_string(sizes[at]);
  if (traced.axis == sizes.size()) {
    layout.rows = "BATCH * " + product(sizes, 0, at);
  } else {
    layout.inner = in_brackets(product(sizes, at + 1, sizes.size()));
    layout.rows = "BATCH * " + product(sizes, at + 1, sizes.size());
  }
  return layout;
}

// Whether the input of this number is the bias of the convolution itself.
bool is_own_bias(const Traced& traced, std::size_t number) { return traced.window.has_bias && number == 2; }

std::map<std::string, std::string> names_of(const Chain& chain, const Traced& traced) {
  std::map<std::string, std::string> names;
  for (const Input& input : inputs_of(chain)) {
    std::string name = names.empty()                          ? traced.first
                       : is_own_bias(traced, names.size())    ? "conv_bias"
                       : has_windows(chain) && input.is_table ? "conv_weight"
                       : input.operand == Operand::kMatrix    ? traced.second
                       : input.operand == Operand::kRowVector ? (input.name[0] == 'b' ? "bias" : "weight")
                                                              : "alpha";
    for (int i = 2; std::any_of(names.begin(), names.end(), [&](const auto& n) { return n.second == name; });
         ++i)
      name = name.substr(0, name.find('_')) + "_" + std::to_string(i);
    names[input.name] = name;
  }
  return names;
}

// Of what the steps work on.
Dims dims_of(const Chain& chain, const Traced& traced) {
  if (is_product(chain)) return factors_of(traced).out;
  Dims dims = {"BATCH"};
  for (const int size : has_windows(chain) ? made_sizes(traced) : traced.sizes)
    dims.push_back(std::to_string(size));
  return dims;
}

// Of an input of a chain with windows: a parameter of the module.
bool is_parameter(const Input& input, std::size_t number) {
  return input.operand == Operand::kRowVector || (number == 1 && input.is_table);
}
// The order in which a module has its inputs, by their numbers: its own parameters stand behind what it is
// given, and a convolution's behind these.
std::vector<std::size_t> order_of(const Chain& chain, const Traced& traced) {
  const std::vector<Input> inputs = inputs_of(chain);
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), 0);
  if (!has_windows(chain)) return order;
  const auto place = [&](std::size_t number) {
    return !is_parameter(inputs[number], number) ? 0
           : inputs[number].is_table             ? 2
           : is_own_bias(traced, number)         ? 3
                                                 : 1;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return order;
}

std::string shape_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

std::string out_shape(const Chain& chain, const Traced& traced) {
  Dims dims = dims_of(chain, traced);
  const Place place = chain.has_end() ? op(chain.end).place : Place::kElement;
  if (place == Place::kAllEnd) return "[]";
  if (place == Place::kRowEnd) {
    if (traced.keep)
      dims[traced.axis] = "1";
    else
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(traced.axis));
  }
  return shape_text(dims);
}

std::string input_shape(const Chain& chain, const Traced& traced, const Input& input, std::size_t number) {
  if (is_product(chain) && number < 2) {
    const Factors factors = factors_of(traced);
    return shape_text(number == 0 ? factors.left : factors.right);
  }
  const auto listed = [](const std::vector<int>& sizes, const char* first) {
    return fmt::format("[{}{}]", first, fmt::join(sizes, ", "));
  };
  if (has_windows(chain) && number == 0) return listed(traced.sizes, "BATCH, ");
  if (has_windows(chain) && input.is_table) return listed(weight_sizes(chain, traced), "");
  if (has_windows(chain) && input.operand == Operand::kRowVector) {
    std::vector<int> sizes = {traced.window.channels};
    if (!is_own_bias(traced, number)) sizes.resize(traced.sizes.size(), 1);
    return listed(sizes, "");
  }
  const Dims dims = dims_of(chain, traced);
  if (input.operand == Operand::kRowVector) return shape_text({dims.back()});
  if (input.operand == Operand::kColumnVector) return shape_text({dims.front()});
  return shape_text(dims);
}

// Elements of a row: never 0.
std::int64_t row_of(const Chain& chain, const Traced& traced) {
  if (is_product(chain)) return traced.product == ProductForm::kSquare ? 1 << 30 : traced.sizes.back();
  if (has_rows(chain) && traced.sizes.size() > 1) return traced.sizes[traced.axis - 1];
  return product_of(traced.sizes);
}

void draw_product(const Chain& chain, Random& random, const SizeDraw& size, bool runs, Traced& traced) {
  const bool by_rows = std::any_of(chain.steps.begin(), chain.steps.end(), [](std::size_t number) {
    return op(number).operand == Operand::kColumnVector;
  });
  const double form = random.uniform();
  traced.product = form < 0.4                ? ProductForm::kRows
                   : form < 0.55 && !by_rows ? ProductForm::kBatchOfRows
                   : form < 0.7              ? ProductForm::kSquare
                   : form < 0.8              ? ProductForm::kLeftTransposed
                   : form < 0.9              ? ProductForm::kRightTransposed
                                             : ProductForm::kBothTransposed;
  if (traced.product == ProductForm::kSquare) return;
  const int most = runs ? 1024 : 32768;
  const bool is_long = !runs && random.uniform() < 0.2,
             is_vector = !has_rows(chain) && random.uniform() < 0.06;
  traced.sizes = {size(16, is_long ? 1 << 20 : most), is_vector ? 1 : size(16, most)};
  if (traced.product == ProductForm::kBatchOfRows)
    traced.sizes.insert(traced.sizes.begin(), size(8, runs ? 64 : 2048));
}

// Sizes of the batch that a task is timed and checked at, and elements of its tensors on a GPU, at most.
struct Batches {
  int cpu = 0, gpu = 0, hidden = 0;
  std::int64_t elements = 0;
};

Batches batches_of(const Chain& chain, const Traced& traced) {
  const std::int64_t an_item = product_of(traced.sizes);
  const auto tensors = static_cast<std::int64_t>(inputs_of(chain).size()) + 1;
  if (has_windows(chain)) {
    const WindowCosts costs = window_costs(chain, traced);
    const std::int64_t largest = std::max(costs.seen, costs.made);
    const auto batch = [&](std::int64_t elements, std::int64_t sums, std::int64_t most) {
      return static_cast<int>(
          std::max<std::int64_t>(4, std::min({elements / largest, sums / costs.sums, most}) / 4 * 4));
    };
    const int gpu = batch(1 << 24, std::int64_t{1} << 34, 1 << 16);
    return {batch(1 << 17, 1 << 21, 256), gpu, costs.sums < (1 << 15) ? 37 : 5, tensors * largest * gpu};
  }
  const auto in_fours = [](std::int64_t fits, std::int64_t least) {
    return static_cast<int>(std::max(least, fits / 4 * 4));
  };
  if (!is_product(chain)) {
    const int gpu = in_fours(std::min<std::int64_t>((1 << 25) / an_item, 1 << 16), 8);
    return {in_fours(std::min<std::int64_t>((1 << 17) / an_item, 1024), 4), gpu, an_item < 8192 ? 37 : 5,
            tensors * an_item * gpu};
  }
  if (traced.product == ProductForm::kSquare) return {256, 2048, 37, tensors << 22};
  const bool is_inner = factors_of(traced).inner == "BATCH";
  // Of an item: elements of a factor and of the result.
  const std::int64_t last = traced.sizes.back(), before = *(traced.sizes.end() - 2),
                     elements = is_inner ? before + last : an_item / before + an_item / last;
  const auto batch = [&](std::int64_t sums, std::int64_t room, std::int64_t most, std::int64_t least) {
    return in_fours(std::min({sums / an_item, room / elements, most}), least);
  };
  // A long sum one after the other is less exact than another order's.
  const int gpu = batch(std::int64_t{1} << 35, 1 << 25, is_inner ? 4096 : 1 << 16, 8);
  return {batch(1 << 27, 1 << 18, 1024, 4), gpu, an_item < (1 << 20) ? 37 : 5,
          tensors * (an_item + elements * gpu)};
}

// A program of chains at the task's sizes, with its names.
std::string sized(std::string text, const Chain& chain, const Traced& traced) {
  const Layout layout = layout_of(chain, traced);
  if (!layout.inner.empty())
    text = replaced(text, "int i = m * N + c;",
                    fmt::format("int i = m / {0} * N * {0} + m % {0} + c * {0};", layout.inner));
  std::string inner;
  if (is_product(chain)) {
    const Factors factors = factors_of(traced);
    inner = factors.inner;
    for (const char* const l : {"l", "l + threadIdx.x"})
      if (factors.left_transposed)
        text = replaced(text, fmt::format("x[m * K + {}]", l), fmt::format("x[{} * M + m]", in_brackets(l)));
    for (const char* const l : {"l", "(l + threadIdx.y)"})
      if (factors.right_transposed)
        text = replaced(text, fmt::format("[{} * N + c]", l),
                        fmt::format("[c * K + {}]", l[0] == '(' ? "l + threadIdx.y" : l));
  }
  text = replaced(replaced(text, "int M, int N, int K", "int BATCH"), "int M, int N", "int BATCH");
  text = replaced(replaced(text, ", M, N, K)", ", BATCH)"), ", M, N, G)", ", BATCH, G)");
  text = replaced(replaced(text, ", M, N)", ", BATCH)"), "M * N", layout.all);
  std::map<std::string, std::string> names = names_of(chain, traced);
  for (const auto& [name, value] : scalars_of(chain)) {
    const std::string argument = ", " + name;
    text = replaced(replaced(text, ", float " + name, ""), argument + ",", ",");
    names[name] = name == "s" ? number(traced.scale) + "f" : "1e-05f";
  }
  names.insert({{"M", layout.rows}, {"N", layout.row}, {"K", inner}});
  return renamed(text, names);
}

}  // namespace

bool can_be_traced(const Chain& chain) {
  const std::string_view start = op(chain.start).name;
  // A convolution with its bias is one operator.
  const bool has_bias = is_convolution(op(chain.start)) && !chain.steps.empty() &&
                        op(chain.steps.front()).name == std::string_view("bias");
  if (chain.names().size() < (has_bias ? 3u : 2u)) return false;
  if (start != "x" && start != "matmul" && !has_windows(chain)) return false;
  if (chain.has_end() && !takes(op(chain.start), op(chain.end))) return false;
  if (chain.has_end() && lines_of(op(chain.end).name) == nullptr) return false;
  return std::all_of(chain.steps.begin(), chain.steps.end(), [&](std::size_t number) {
    return takes(op(chain.start), op(number)) && lines_of(op(number).name) != nullptr;
  });
}

std::vector<std::set<std::string>> torch_operators_of(const Chain& chain) {
  const auto operators_of = [](const std::vector<std::string>& names) {
    std::set<std::string> out;
    for (const std::string& name : names) {
      if (name == "l2_norm") {  // but for its eps
        out.insert({"linalg_vector_norm", "div"});
        continue;
      }
      const auto* lines = lines_of(name);
      if (lines == nullptr) return std::set<std::string>();
      for (const std::string line : *lines)
        if (const std::string function = line.substr(0, line.find('(')); function != "[0]")
          out.insert(function);
    }
    return out;
  };
  std::vector<std::string> names = chain.names();
  std::vector<std::set<std::string>> out;
  if (std::set<std::string> all = operators_of(names); !all.empty()) out.push_back(std::move(all));
  const bool windows = is_convolution(op(chain.start));
  const auto start = std::find(names.begin(), names.end(), windows ? op(chain.start).name : "matmul");
  if (out.empty() || start == names.end() || start + 1 == names.end() || *(start + 1) != "bias") return out;
  names.erase(windows ? start + 1 : start, start + 2);
  std::set<std::string> with_bias = operators_of(names);
  if (!windows) with_bias.insert("linear");
  out.push_back(std::move(with_bias));
  return out;
}

Traced draw_traced(const Chain& chain, std::uint64_t key, bool runs) {
  Random random(key);
  const auto size = [&](int least, int most) {  // a power of two more often than not
    if (random.uniform() < 0.4)
      return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least)));
    int two = 1;
    while (two < least) two *= 2;
    int powers = 1;
    while (two << powers <= most) ++powers;
    return two << random.below(static_cast<std::uint64_t>(powers));
  };
  const auto one_of = [&](const std::vector<std::string>& words) {
    return words[random.below(words.size())];
  };
  const auto factor = [&] {
    const char* const kScales[] = {"0.5", "2.0", "3.14", "0.1", "1.5", "0.25"};
    return std::stod(kScales[random.below(std::size(kScales))]);
  };
  Traced traced;
  if (has_windows(chain)) {
    draw_windows(chain, random, size, runs, traced);
    traced.scale = factor();
    return traced;
  }
  // In some programs more than one kernel reads the rows: these are contiguous.
  const Place end = chain.has_end() ? op(chain.end).place : Place::kElement;
  const bool flat = has_vectors(chain) || end == Place::kScan || (end == Place::kAllEnd && has_rows(chain));
  const std::uint64_t rank = is_product(chain)                           ? 0
                             : flat                                      ? 1
                             : has_rows(chain) && random.uniform() < 0.5 ? 2 + random.below(2)
                                                                         : 1 + random.below(3);
  if (rank == 0) draw_product(chain, random, size, runs, traced);
  // Tasks that nobody runs may have any size; KernelBench's are large.
  if (rank == 1) traced.sizes = {size(100, !runs ? 1 << 20 : has_rows(chain) ? 8192 : 65536)};
  if (rank == 2) traced.sizes = {size(8, runs ? 512 : 8192), size(16, runs ? 512 : 8192)};
  if (rank == 3) {
    const int side = runs ? 48 : 1024;
    traced.sizes = {size(4, runs ? 128 : 512), size(6, side), size(6, side)};
    if (random.uniform() < 0.5) traced.sizes[2] = traced.sizes[1];
  }
  // A batch of five must be counted by an int.
  while (product_of(traced.sizes) > (std::int64_t{1} << 24))
    *std::max_element(traced.sizes.begin(), traced.sizes.end()) /= 2;
  traced.axis = rank == 0                             ? dims_of(chain, traced).size() - 1
                : rank >= 2 && random.uniform() < 0.3 ? traced.sizes.size()
                                                      : 1;
  traced.keep = random.uniform() < 0.4;
  traced.scale = factor();
  traced.first = is_product(chain) ? "A" : one_of({"x", "x", "x", "A", "predictions"});
  traced.second = traced.first == "A" ? "B" : traced.first == "x" ? "other" : "targets";
  return traced;
}

std::string reference_of(const Chain& chain, const Traced& traced) {
  const std::map<std::string, std::string> names = names_of(chain, traced);
  const std::vector<Input> inputs = inputs_of(chain);
  std::vector<std::string> parameters;
  for (const std::size_t number : order_of(chain, traced))
    parameters.push_back(names.at(inputs[number].name) + ": Tensor");
  std::string text = fmt::format("def forward({}) -> Tensor:\n", fmt::join(parameters, ", ")),
              value = traced.first;
  Values values;
  std::size_t next = 1, first_step = 0;
  std::string window;
  const auto apply = [&](const Operator& one, const std::string& operand) {
    std::vector<std::string> made;
    for (const std::string line : *lines_of(one.name)) {
      if (line == "[0]") {
        const std::string fresh = values.fresh("getitem");
        text += fmt::format("  {} = {}[0]\n", fresh, made.back());
        made.push_back(fresh);
        continue;
      }
      std::string call = replaced(replaced(line, "{v}", value), "{o}", operand);
      call = replaced(replaced(call, "{a}", std::to_string(traced.axis)), "{k}", traced.keep ? ", True" : "");
      call = replaced(replaced(call, "{s}", number(traced.scale)), "{p}", window);
      for (std::size_t i = 0; i < made.size(); ++i) call = replaced(call, fmt::format("{{{}}}", i), made[i]);
      made.push_back(values.fresh(line.substr(0, line.find('('))));
      text += fmt::format("  {} = torch.{}\n", made.back(), call);
    }
    value = made.back();
  };
  for (const std::size_t number : chain.before) apply(op(number), "");
  if (is_product(chain)) {
    const Factors factors = factors_of(traced);
    std::string right = names.at(inputs[next++].name);
    for (const auto& [is_transposed, factor] :
         {std::pair{factors.left_transposed, &value}, std::pair{factors.right_transposed, &right}}) {
      if (!is_transposed) continue;
      const std::string fresh = values.fresh("numpy_t");
      text += fmt::format("  {} = torch.numpy_T({})\n", fresh, *factor);
      *factor = fresh;
    }
    apply(op(chain.start), right);
  }
  if (has_windows(chain)) {
    const bool has_bias = traced.window.has_bias;
    window = window_arguments(chain, traced, has_bias ? names.at(inputs[2].name) : "");
    apply(op(chain.start), is_convolution(op(chain.start)) ? names.at(inputs[next++].name) : "");
    first_step = has_bias ? 1 : 0;
    next += first_step;
  }
  for (std::size_t i = first_step; i < chain.steps.size(); ++i) {
    const Operator& one = op(chain.steps[i]);
    apply(one, has_input(one) ? names.at(inputs[next++].name) : traced.first);
  }
  if (chain.has_end()) apply(op(chain.end), "");
  return text + "  return " + value + "\n";
}

std::string task_file(const Chain& chain, const Traced& traced, const TaskLabel& label) {
  const std::map<std::string, std::string> names = names_of(chain, traced);
  const std::vector<Input> inputs = inputs_of(chain);
  std::string text = "# Format: datasets/README.md\nschema: warpsmith.task/1\n";
  text += fmt::format("title: {}\nlevel: 2\nsplit: {}\nops: [{}]\ndims: [BATCH]\ninputs:\n", title_of(chain),
                      label.split, fmt::join(chain.names(), ", "));
  const std::string inner = is_product(chain) ? factors_of(traced).inner : "";
  for (const std::size_t i : order_of(chain, traced)) {
    const bool is_state = has_windows(chain) && is_parameter(inputs[i], i);
    const bool is_of_convolution = is_state && (inputs[i].is_table || is_own_bias(traced, i));
    text += fmt::format(
        "  {}: {{{}shape: {}, values: \"{}\"}}\n", names.at(inputs[i].name),
        is_state ? "role: parameter, " : "", input_shape(chain, traced, inputs[i], i),
        is_of_convolution ? weight_values(chain, traced) : replaced(inputs[i].values, "K", inner));
  }
  text += fmt::format("outputs:\n  out: {{shape: {}}}\nreference: |\n", out_shape(chain, traced));
  for (const std::string& line : split_lines(reference_of(chain, traced))) text += "  " + line + "\n";
  const Batches batches = batches_of(chain, traced);
  text += fmt::format("timing:\n  cpu: [{{BATCH: {}}}]\n  gpu: [{{BATCH: {}}}]\n", batches.cpu, batches.gpu);
  if (const std::int64_t bytes = 4 * batches.elements; bytes > (1 << 30))
    text += fmt::format("memory: {}GiB\n", (bytes >> 30) + 1);
  text += fmt::format("hidden: [{{BATCH: 3}}, {{BATCH: 1}}, {{BATCH: 2}}, {{BATCH: {}}}]\n", batches.hidden);
  text += fmt::format("distributions: [{{{0}: \"uniform(0, 1)\"}}, {{{0}: \"uniform(-10, 10)\"}}]\n",
                      traced.first);
  const Layout layout = layout_of(chain, traced);
  const auto at_sizes = [&](const std::string& expression) {
    return renamed(expression, {{"M", layout.rows}, {"N", layout.row}, {"K", inner}});
  };
  std::string flops = at_sizes(flops_of(chain)), bytes = at_sizes(bytes_of(chain));
  if (has_windows(chain)) {
    const WindowCosts costs = window_costs(chain, traced);
    flops = fmt::format("{} * BATCH", costs.flops);
    bytes = fmt::format("{} * BATCH", costs.bytes);
    if (costs.bytes_once > 0) bytes += fmt::format(" + {}", costs.bytes_once);
  }
  return text + fmt::format("flops: {}\nbytes: {}\nimported: {}\n", flops, bytes, label.origin);
}

std::string kernelbench_module(const Chain& chain, const Traced& traced) {
  const std::map<std::string, std::string> names = names_of(chain, traced);
  const std::vector<Input> inputs = inputs_of(chain);
  const std::string torch = op(chain.start).torch, call = "torch." + torch.substr(0, torch.find('(') + 1),
                    member = is_convolution(op(chain.start)) ? "self.conv" : "self.pool";
  std::map<std::string, std::string> members;
  std::vector<std::string> arguments, given;
  std::string text = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n";
  text += fmt::format("    \"\"\"{}.\"\"\"\n\n    def __init__(self):\n        super().__init__()\n",
                      title_of(chain));
  text += fmt::format("        {} = {}\n", member, window_module(chain, traced));
  for (const std::size_t i : order_of(chain, traced)) {
    const std::string name = names.at(inputs[i].name), shape = input_shape(chain, traced, inputs[i], i);
    if (!is_parameter(inputs[i], i)) {
      arguments.push_back(name);
      given.push_back("torch.randn(" + shape.substr(1, shape.size() - 2) + ")");
    } else if (!inputs[i].is_table && !is_own_bias(traced, i)) {
      members[name] = "self." + name;
      text += fmt::format("        self.{} = nn.Parameter(torch.randn({}))\n", name, shape);
    }
  }
  text += fmt::format("\n    def forward(self, {}):\n", fmt::join(arguments, ", "));
  const std::vector<std::string> lines = split_lines(reference_of(chain, traced));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::string line = renamed(lines[i], members);
    if (const std::size_t at = line.find(call); at != std::string::npos) {
      const std::size_t begin = at + call.size();
      line = line.substr(0, at) + member + "(" + line.substr(begin, line.find(',', begin) - begin) + ")";
    }
    for (const char* function :
         {"gelu", "hardtanh", "leaky_relu", "elu", "hardswish", "hardsigmoid", "softplus"})
      line = replaced(line, fmt::format("torch.{}(", function), fmt::format("nn.functional.{}(", function));
    text += "      " + line + "\n";
  }
  return text + fmt::format(
                    "\n\nBATCH = {}\n\n\ndef get_inputs():\n    return [{}]\n\n\ndef get_init_inputs():\n    "
                    "return []\n",
                    batches_of(chain, traced).gpu, fmt::join(given, ", "));
}

double gain_of(const Chain& chain, const Traced& traced) {
  const WindowCosts costs = window_costs(chain, traced);
  const double batch = batches_of(chain, traced).gpu, bytes = 4 * batch,
               once = static_cast<double>(costs.bytes_once);
  const double seen = bytes * static_cast<double>(costs.seen), made = bytes * static_cast<double>(costs.made);
  // Bytes that take as long: of each kernel that eager starts.
  double eager = 2 * seen * static_cast<double>(chain.before.size());
  eager += std::max(seen + made + once, static_cast<double>(costs.window_flops) * batch / kFlopsAByte);
  for (std::size_t i = traced.window.has_bias ? 1 : 0; i < chain.steps.size(); ++i) {
    const Operator& one = op(chain.steps[i]);
    eager += made * (eager_kernels(one) * 2 + (one.operand == Operand::kMatrix ? 1 : 0));
  }
  if (chain.has_end()) eager += made;
  return eager / std::max(static_cast<double>(costs.bytes) * batch + once,
                          static_cast<double>(costs.flops) * batch / kFlopsAByte);
}

std::vector<Program> programs_of(const Chain& chain, const Traced& traced) {
  const bool is_inner = !layout_of(chain, traced).inner.empty();
  std::vector<Program> out;
  if (has_windows(chain)) {
    const Opening opening = opening_of(chain, traced);
    out = programs_of(chain, 0, &opening);
    for (Program& program : window_programs(chain, traced)) out.push_back(std::move(program));
    for (Program& program : out) program.source = sized(program.source, chain, traced);
    return out;
  }
  for (const Program& program : programs_of(chain, row_of(chain, traced))) {
    // A thread would be at a long row for long, and its sum less exact than the others'.
    const bool is_alone = has_rows(chain) && !is_product(chain) &&
                          program.name.starts_with("thread_per_row") && traced.sizes[traced.axis - 1] > 4096;
    if (!is_inner) {
      if (is_alone) continue;
      out.push_back({program.name, sized(program.source, chain, traced)});
    } else if (program.name == "thread_per_row") {
      // Neighbours in a warp read neighbours in memory.
      for (const char* block : {"64", "256"})
        out.push_back({fmt::format("thread_per_column_{}", block),
                       sized(replaced(replaced(program.source, "* 64 +", fmt::format("* {} +", block)),
                                      "64), 64>>>", fmt::format("{0}), {0}>>>", block)),
                             chain, traced)});
    }
  }
  return out;
}

}  // namespace warpsmith::synthesis

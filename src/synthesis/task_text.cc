#include "warpsmith/synthesis/task_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "warpsmith/base/text.h"

namespace warpsmith::synthesis {

namespace {

bool names_twice(const std::string& torch) { return torch.find("{v}") != torch.rfind("{v}"); }

// Whether the expression needs brackets inside another one.
bool is_open(const std::string& torch) {
  int depth = 0;
  for (const char c : torch) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth == 0 && c == ' ') return true;
  }
  return torch.starts_with('-');
}
// Whether `{v}` stands where brackets already are: "torch.relu({v})".
bool has_brackets(const std::string& torch) { return torch.find("({v}") != std::string::npos; }

// The chain as lines of Python: one expression where that can be read, else a line a step. `name`: how an
// input beside the first is written; `start`: the first value.
class ReferenceLines {
 public:
  ReferenceLines(const Chain& chain, const std::string& prefix) : is_module_(!prefix.empty()) {
    const std::string begin = op(chain.start).name;
    const std::vector<Input> inputs = inputs_of(chain);
    std::size_t next = start_inputs(chain);
    bool lines = chain.steps.size() > 3;
    for (const std::size_t number : chain.steps) lines = lines || names_twice(op(number).torch);
    value_ = begin == "gather_rows" ? "torch.index_select(t, 0, idx)" : "x";
    const bool meets = std::any_of(chain.steps.begin(), chain.steps.end(),
                                   [](std::size_t step) { return op(step).operand == Operand::kStart; });
    if (meets && value_ != "x") lines_.push_back("x = " + std::exchange(value_, "x"));
    for (const std::size_t number : chain.before) apply(op(number), "", false);
    if (begin == "matmul") value_ = fmt::format("torch.mm({}, {}{})", value_, prefix, inputs[1].name);
    for (const std::size_t number : chain.steps) {
      const Operator& one = op(number);
      std::string operand = has_input(one) ? inputs[next++].name : one.operand_name;
      const bool is_parameter = one.operand == Operand::kRowVector || one.operand == Operand::kScalar;
      if (is_parameter && !operand.empty()) operand = prefix + operand;
      apply(one, operand, lines);
    }
    if (chain.has_end()) apply(op(chain.end), "", false);
    lines_.push_back("return " + value_);
  }
  std::string text(const std::string& indent) const {
    std::string out;
    for (const std::string& line : lines_) out += indent + line + "\n";
    return out;
  }

 private:
  void apply(const Operator& one, const std::string& operand, bool as_line) {
    const std::string torch = is_module_ && one.module != nullptr ? one.module : one.torch;
    const bool simple = std::all_of(value_.begin(), value_.end(),
                                    [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
    if (names_twice(torch) && !simple) take_line();
    const bool brackets = is_open(value_) && !has_brackets(torch);
    value_ = replaced(replaced(torch, "{o}", operand), "{v}", brackets ? "(" + value_ + ")" : value_);
    if (as_line) take_line();
  }
  void take_line() {
    lines_.push_back("y = " + value_);
    value_ = "y";
  }

  const bool is_module_;
  std::vector<std::string> lines_;
  std::string value_;
};

// Matrices that a call reads and writes, each M x N, and what else.
struct Traffic {
  int matrices = 0;           // of inputs
  bool writes_matrix = true;  // else a vector
};

Traffic traffic_of(const Chain& chain) {
  Traffic traffic;
  for (const Input& input : inputs_of(chain))
    traffic.matrices += input.operand == Operand::kMatrix && !input.is_table;
  const Place place = chain.has_end() ? op(chain.end).place : Place::kElement;
  traffic.writes_matrix = place != Place::kRowEnd && place != Place::kColumnEnd && place != Place::kAllEnd;
  return traffic;
}

std::string shape_of(const Input& input, const std::string& start, std::size_t number) {
  if (input.is_index) return "[M]";
  if (input.is_table) return start == "gather_rows" ? "[V, N]" : number == 0 ? "[M, K]" : "[K, N]";
  switch (input.operand) {
    case Operand::kRowVector:
      return "[N]";
    case Operand::kColumnVector:
      return "[M, 1]";
    default:
      return "[M, N]";
  }
}

std::string out_shape(const Chain& chain) {
  if (!chain.has_end()) return "[M, N]";
  switch (op(chain.end).place) {
    case Place::kRowEnd:
      return "[M]";
    case Place::kColumnEnd:
      return "[N]";
    case Place::kAllEnd:
      return "[]";
    case Place::kTranspose:
      return "[N, M]";
    default:
      return "[M, N]";
  }
}

// A row of equal elements less their mean or maximum is 0, up to what a compiler fuses: that tells nothing of
// a program. So is one of a single element. And no row may be divided by 0.
bool wants_rows_that_differ(const Chain& chain) {
  return std::any_of(chain.steps.begin(), chain.steps.end(), [](std::size_t number) {
    const std::string_view name = op(number).name;
    return op(number).divides || name == "center" || name == "standardize" || name == "subtract_max" ||
           name == "log_softmax";
  });
}

const char* strides_text(Storage storage) {
  return storage == Storage::kWider     ? "strides: [2 * N, 1], "
         : storage == Storage::kColumns ? "strides: [1, M], "
                                        : "";
}

std::string inputs_text(const Chain& chain) {
  const std::string start = op(chain.start).name;
  std::string text = "inputs:\n";
  const std::vector<Input> inputs = inputs_of(chain);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const bool parameter = input.operand == Operand::kRowVector || (i == 1 && start == "matmul") ||
                           (i == 0 && start == "gather_rows");
    text +=
        fmt::format("  {}: {{role: {}, dtype: {}, shape: {}, {}values: \"{}\"}}\n", input.name,
                    parameter ? "parameter" : "data", input.is_index ? "int64" : dtype_of(chain.precision),
                    shape_of(input, start, i), i == 0 ? strides_text(chain.storage) : "", input.values);
  }
  if (const auto scalars = scalars_of(chain); !scalars.empty()) {
    std::vector<std::string> list;
    for (const auto& [name, value] : scalars)
      list.push_back(fmt::format("{}: {}", name,
                                 value < 0.01 ? fmt::format("{:.1e}", value) : fmt::format("{}", value)));
    text += fmt::format("scalars: {{{}}}\n", fmt::join(list, ", "));
  }
  return text;
}

// `timing` and `hidden`.
std::string shapes_text(const Chain& chain) {
  const std::string start = op(chain.start).name;
  const std::string extra = start == "matmul" ? ", K: {}" : start == "gather_rows" ? ", V: {}" : "";
  const auto shape = [&](int m, int n, int more) {
    return fmt::format("{{M: {}, N: {}{}}}", m, n,
                       extra.empty() ? "" : replaced(extra, "{}", std::to_string(more)));
  };
  const bool product = start == "matmul";
  std::string text = fmt::format(
      "timing:\n  cpu: [{}]\n  gpu: [{}]\nhidden:\n", product ? shape(64, 128, 64) : shape(256, 512, 1000),
      product ? shape(gpu_rows(chain), 512, 512) : shape(gpu_rows(chain), 512, 50000));
  const int sizes[][3] = {{3, 1000, 7}, {1, 1, 1},     {33, 65, 17}, {130, 31, 33},
                          {66, 66, 66}, {20, 1031, 5}, {97, 1, 129}};
  for (const auto& [m, n, more] : sizes)
    if (n > 1 || !wants_rows_that_differ(chain)) text += fmt::format("  - {}\n", shape(m, n, more));
  return text;
}

std::string distributions_text(const Chain& chain) {
  const bool differ = wants_rows_that_differ(chain);
  const std::string first = inputs_of(chain).front().name;
  std::string text = "distributions:\n";
  std::vector<std::string> values = {"uniform(-10, 10)"};
  if (differ)
    values.emplace_back("uniform(0, 1)");
  else
    values.insert(values.end(), {"zeros", "ones"});
  for (const auto* steps : {&chain.before, &chain.steps})
    for (const std::size_t number : *steps)
      if (*op(number).hard_values != '\0') values.emplace_back(op(number).hard_values);
  if (chain.has_end() && *op(chain.end).hard_values != '\0') values.emplace_back(op(chain.end).hard_values);
  // They are chosen for float32: beyond what 16 bits hold, or where they tell nothing apart.
  if (chain.precision != Precision::kFloat32) values.resize(differ ? 2 : 3);
  std::vector<std::string> seen;
  for (const std::string& one : values) {
    if (std::find(seen.begin(), seen.end(), one) != seen.end()) continue;
    seen.push_back(one);
    text += fmt::format("  - {{{}: \"{}\"}}\n", first, one);
  }
  if (op(chain.start).name == std::string_view("gather_rows")) text += "  - {idx: \"choice(0, V - 1)\"}\n";
  return text;
}

}  // namespace

std::string title_of(const Chain& chain) {
  std::string text;
  for (std::string name : chain.names()) {
    std::replace(name.begin(), name.end(), '_', ' ');
    text += (text.empty() ? "" : ", ") + name;
  }
  if (chain.precision != Precision::kFloat32) text += fmt::format(", in {}", dtype_of(chain.precision));
  if (chain.storage == Storage::kWider) text += ", of a wider matrix";
  if (chain.storage == Storage::kColumns) text += ", stored by columns";
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string reference_of(const Chain& chain) {
  std::vector<std::string> parameters;
  for (const Input& input : inputs_of(chain)) parameters.push_back(input.name + ": Tensor");
  for (const auto& [name, value] : scalars_of(chain)) parameters.push_back(name + ": float");
  return fmt::format("def forward({}) -> Tensor:\n{}", fmt::join(parameters, ", "),
                     ReferenceLines(chain, "").text("  "));
}

int gpu_rows(const Chain& chain) {
  if (op(chain.start).name == std::string("matmul")) return 8192;
  const Traffic traffic = traffic_of(chain);
  const int matrices = std::max(1, traffic.matrices + traffic.writes_matrix);
  return (128 << 20) / (512 * bytes_of(chain.precision) * matrices) / 1024 * 1024;
}

std::string flops_of(const Chain& chain) {
  int an_element = 0;
  for (const std::size_t number : chain.steps) an_element += op(number).flops;
  if (chain.has_end()) an_element += op(chain.end).place == Place::kTranspose ? 0 : op(chain.end).flops;
  const bool product = op(chain.start).name == std::string("matmul");
  const std::string elements = an_element == 0 ? "" : fmt::format("{} * M * N", an_element);
  int before = 0;
  for (const std::size_t number : chain.before) before += op(number).flops;
  const std::string first = before == 0 ? "" : fmt::format("{} * M * K + ", before);
  if (product) return first + "2 * M * N * K" + (elements.empty() ? "" : " + " + elements);
  return elements.empty() ? "0" : elements;
}

std::string bytes_of(const Chain& chain) {
  const Traffic traffic = traffic_of(chain);
  const std::string start = op(chain.start).name;
  const int size = bytes_of(chain.precision);
  std::vector<std::string> parts;
  if (const int matrices = traffic.matrices + traffic.writes_matrix; matrices > 0)
    parts.push_back(fmt::format("{} * M * N", size * matrices));
  if (start == "matmul") parts.emplace_back("4 * (M * K + K * N)");
  if (start == "gather_rows") parts.emplace_back("8 * M");  // rows may repeat: none is sure to be read
  for (const Input& input : inputs_of(chain)) {
    if (input.operand == Operand::kRowVector) parts.push_back(fmt::format("{} * N", size));
    if (input.operand == Operand::kColumnVector && !input.is_index)
      parts.push_back(fmt::format("{} * M", size));
  }
  if (!traffic.writes_matrix) {
    const Place place = op(chain.end).place;
    const char* const each = place == Place::kRowEnd ? " * M" : place == Place::kAllEnd ? "" : " * N";
    parts.push_back(std::to_string(size) + each);
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string task_file(const Chain& chain, const TaskLabel& label) {
  const std::string start = op(chain.start).name;
  std::string text = "# Format: datasets/README.md\nschema: warpsmith.task/1\n";
  text += fmt::format("title: {}\nlevel: {}\nsplit: {}\n", title_of(chain), chain.names().size() > 1 ? 2 : 1,
                      label.split);
  text += fmt::format("ops: [{}]\n", fmt::join(chain.names(), ", "));
  text += fmt::format("dims: [M, N{}]\n", start == "matmul" ? ", K" : start == "gather_rows" ? ", V" : "");
  text += inputs_text(chain);
  text += fmt::format("outputs:\n  out: {{dtype: {}, shape: {}}}\nreference: |\n", dtype_of(chain.precision),
                      out_shape(chain));
  for (const std::string& line : split(reference_of(chain), '\n'))
    if (!line.empty()) text += "  " + line + "\n";
  text += shapes_text(chain) + distributions_text(chain);
  text += fmt::format("flops: {}\nbytes: {}\nimported: {}\n", flops_of(chain), bytes_of(chain), label.origin);
  return text;
}

std::string kernelbench_module(const Chain& chain) {
  const std::string start = op(chain.start).name;
  const std::vector<Input> inputs = inputs_of(chain);
  std::vector<std::string> arguments, members, given;
  const int rows = gpu_rows(chain);
  const std::string dtype = chain.precision == Precision::kFloat32
                                ? ""
                                : fmt::format(", dtype=torch.{}", dtype_of(chain.precision));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    if (input.operand == Operand::kRowVector || (i == 1 && start == "matmul")) {
      members.push_back(fmt::format("self.{0} = nn.Parameter(torch.randn({1}{2}))", input.name,
                                    i == 1 && start == "matmul" ? "inner, columns" : "columns", dtype));
      continue;
    }
    arguments.push_back(input.name);
    const std::string size = input.is_index   ? "(rows,)"
                             : input.is_table ? (start == "matmul" ? "rows, inner" : "table, columns")
                             : input.operand == Operand::kColumnVector ? "rows, 1"
                                                                       : "rows, columns";
    const Storage storage = i == 0 ? chain.storage : Storage::kRows;
    given.push_back(input.is_index ? "torch.randint(0, table, (rows,))"
                    : storage == Storage::kWider
                        ? fmt::format("torch.randn(rows, 2 * columns{})[:, :columns]", dtype)
                    : storage == Storage::kColumns ? fmt::format("torch.randn(columns, rows{}).t()", dtype)
                                                   : fmt::format("torch.randn({}{})", size, dtype));
  }
  for (const auto& [name, value] : scalars_of(chain))
    members.push_back(fmt::format("self.{} = {}", name, value));
  std::string text = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n";
  text += fmt::format("    \"\"\"{}.\"\"\"\n\n    def __init__(self):\n        super().__init__()\n",
                      title_of(chain));
  for (const std::string& member : members) text += "        " + member + "\n";
  text += fmt::format("\n    def forward(self, {}):\n{}\n\n", fmt::join(arguments, ", "),
                      ReferenceLines(chain, "self.").text("        "));
  text += fmt::format("rows = {}\ncolumns = 512\n", rows);
  if (start == "matmul") text += "inner = 512\n";
  if (start == "gather_rows") text += "table = 50000\n";
  return text +
         fmt::format("\n\ndef get_inputs():\n    return [{}]\n\n\ndef get_init_inputs():\n    return []\n",
                     fmt::join(given, ", "));
}

double eager_kernels(const Operator& step) {
  const bool whole = step.place == Place::kElement && !names_twice(step.torch);
  const bool softmax = std::string(step.name).ends_with("softmax");
  if (step.place == Place::kOperand) return step.flops > 1 ? 2 : 1;  // a function of the operand first
  return whole || softmax ? 1 : 2.5;
}

double gain_of(const Chain& chain) {
  constexpr double kInner = 512, kRow = 512;
  const bool product = op(chain.start).name == std::string("matmul");
  // Of an element: bytes and operations of each kernel that eager starts.
  double eager = 0, flops = product ? 2 * kInner : 0;
  if (product) eager += std::max(4 + 4 * kInner / kRow, 2 * kInner / kFlopsAByte);
  if (op(chain.start).name == std::string("gather_rows")) eager += 8;
  eager += 8 * static_cast<double>(chain.before.size()) * kInner / kRow;
  for (const std::size_t number : chain.steps) {
    const Operator& one = op(number);
    const bool two = one.operand == Operand::kMatrix || one.operand == Operand::kStart;
    eager += eager_kernels(one) * 8 + (two ? 4 : 0);
    flops += one.flops;
  }
  if (chain.has_end()) {
    eager += traffic_of(chain).writes_matrix ? 8 : 4;
    flops += op(chain.end).flops;
  }
  const Traffic traffic = traffic_of(chain);
  const double bytes = 4.0 * (traffic.matrices + traffic.writes_matrix) + (product ? 4 * kInner / kRow : 0) +
                       (op(chain.start).name == std::string("gather_rows") ? 4 : 0);
  return eager / std::max({bytes, flops / kFlopsAByte, 0.001});
}

}  // namespace warpsmith::synthesis

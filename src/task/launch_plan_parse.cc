#include <algorithm>
#include <map>
#include <set>

#include "launch_plan_names.h"
#include "plan_statement.h"
#include "plan_text.h"
#include "warpsmith/base/text.h"
#include "warpsmith/task/launch_plan.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::task {

namespace {

constexpr std::size_t kMaxNesting = 16;
constexpr std::size_t kMostMistakes = 50;  // of one plan that are told
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class NameKind { kInteger, kReal, kInput, kOutput, kTemp, kTensorMap };

bool is_tensor(NameKind kind) {
  return kind == NameKind::kInput || kind == NameKind::kOutput || kind == NameKind::kTemp;
}

class PlanParser {
 public:
  PlanParser(const Task& task, std::string_view file, Diagnostics& diagnostics)
      : task_(task), file_(file), diagnostics_(diagnostics) {
    for (const std::string& dim : task.dims) names_[dim] = NameKind::kInteger;
    for (const char* name : {"SMS", "SMEM_MAX", "ON_CPU"}) names_[name] = NameKind::kInteger;
    for (const ScalarSpec& scalar : task.scalars)
      names_[scalar.name] = scalar.is_float ? NameKind::kReal : NameKind::kInteger;
    for (const TensorSpec& tensor : task.inputs) names_[tensor.name] = NameKind::kInput;
    for (const TensorSpec& tensor : task.outputs) names_[tensor.name] = NameKind::kOutput;
    for (const auto& [name, kind] : names_) reserved_.insert(name);
    blocks_.push_back({&statements_, 0, {}, false, true});
  }

  std::vector<PlanStatement> parse(std::string_view source) {
    int number = 0;
    if (source.starts_with(kByteOrderMark)) source.remove_prefix(kByteOrderMark.size());
    for (const std::string& line : split_lines(source)) {
      ++number;
      const auto plan = plan_line(line);
      if (!plan) continue;
      line_ = number;
      const Piece statement = trim_piece({plan->text, plan->column});
      if (first_line_ == 0) first_line_ = number, first_column_ = statement.column;
      try {
        parse_line(statement);
      } catch (const Mistake& mistake) {
        report(line_, mistake);
      }
    }
    while (blocks_.size() > 1) {
      report(blocks_.back().line, {"this `" + blocks_.back().word + "` has no `end`", 1, ""});
      leave_block();
    }
    for (const auto& [kernel, where] : asked_) {
      if (kernels_.count(kernel) != 0 || passed_over_) continue;
      const std::vector<std::string> known(kernels_.begin(), kernels_.end());
      report(where.first, {"blocks_per_sm: no launch of kernel `" + kernel + "`", where.second,
                           suggestion(kernel, known)});
    }
    if (untold_ > 0)
      diagnostics_.push_back({std::string(file_), 0, 0, "and " + std::to_string(untold_) + " more", ""});
    if (!launches_ && diagnostics_.size() == reported_before_)
      report(std::max(first_line_, 1),
             {"the launch plan launches nothing", first_column_,
              "a line such as `// plan: launch kernel<<<cdiv(N, 256), 256>>>(x, out, N)`"});
    if (diagnostics_.size() != reported_before_) statements_.clear();  // half a plan must not run
    return std::move(statements_);
  }

 private:
  struct Block {
    std::vector<PlanStatement>* into = nullptr;
    int line = 0;
    std::string word;
    bool in_loop = false;
    bool outermost = false;
    std::vector<std::string> defined;  // names that end with the block
  };

  bool told_enough() const { return diagnostics_.size() - reported_before_ >= kMostMistakes; }

  void report(int line, const Mistake& mistake) {
    if (told_enough()) {
      ++untold_;
      return;
    }
    diagnostics_.push_back(yaml::mistake_at(
        {std::make_shared<const std::string>(file_), line, mistake.column}, mistake.message, mistake.hint));
  }

  std::string suggestion(std::string_view word, const std::vector<std::string>& known) const {
    return told_enough() ? "" : suggest_name(word, known);
  }

  // ---- names

  [[noreturn]] void fail_unknown(const std::string& name, int column, bool tensor) const {
    throw Mistake{std::string("unknown ") + (tensor ? "tensor" : "name") + " `" + name + "`", column,
                  suggestion(name, known_names([&](NameKind kind) { return is_tensor(kind) == tensor; }))};
  }

  template <typename Fits>
  std::vector<std::string> known_names(Fits fits) const {
    std::vector<std::string> known;
    if (told_enough()) return known;
    for (const auto& [name, kind] : names_)
      if (fits(kind)) known.push_back(name);
    return known;
  }

  const TensorSpec* find_tensor(const std::string& name) const {
    for (const auto* list : {&task_.inputs, &task_.outputs})
      for (const TensorSpec& tensor : *list)
        if (tensor.name == name) return &tensor;
    return nullptr;
  }

  void check_stride(const std::string& name, int column) const {
    const std::size_t dot = name.find('.');
    const std::string tensor = name.substr(0, dot), part = name.substr(dot + 1);
    const TensorSpec* const spec = find_tensor(tensor);
    if (spec == nullptr) fail_unknown(tensor, column, true);
    const bool digits = part.size() == 2 && part[0] == 's' && part[1] >= '0' && part[1] <= '9';
    if (!digits || static_cast<std::size_t>(part[1] - '0') >= spec->shape.size()) {
      throw Mistake{"`" + tensor + "` has no `" + part + "`", column,
                    spec->shape.empty() ? "it has no dimensions"
                                        : "its strides are `" + tensor + ".s0` to `" + tensor + ".s" +
                                              std::to_string(spec->shape.size() - 1) + "`"};
    }
  }

  void check_use(const NameUse& use, bool real, int offset) {
    const int column = use.column + offset;
    if (use.function == "blocks_per_sm") {
      asked_.try_emplace(use.name, line_, column);
      return;
    }
    if (!use.function.empty()) {
      const auto found = names_.find(use.name);
      if (found == names_.end() || !is_tensor(found->second)) fail_unknown(use.name, column, true);
      return;
    }
    if (use.name.find('.') != std::string::npos) return check_stride(use.name, column);
    if (use.name == "inf" && real) return;
    const auto found = names_.find(use.name);
    if (found == names_.end()) fail_unknown(use.name, column, false);
    if (is_tensor(found->second) || found->second == NameKind::kTensorMap)
      throw Mistake{"`" + use.name + "` is a tensor where a number is expected", column, ""};
    if (found->second == NameKind::kReal && !real)
      throw Mistake{"`" + use.name + "` is a real number where an integer is expected", column, ""};
  }

  Expression parse_expression(const Piece& piece, bool real = false) {
    const int offset = piece.column - 1;
    Expression expression;
    try {
      expression = Expression::parse(piece.text);
    } catch (const ExpressionError& error) {
      throw Mistake{error.message, error.column + offset, ""};
    }
    for (const NameUse& use : expression.uses()) check_use(use, real, offset);
    if (!real && expression.has_reals())
      throw Mistake{"a real number where an integer is expected", piece.column,
                    "reals stand in f32(…), f64(…), f16(…)"};
    return expression;
  }

  void define(const Piece& name, NameKind kind) {
    const std::string text(name.text);
    if (!is_name(name.text)) throw Mistake{"a name is expected here", name.column, ""};
    if (reserved_.count(text) != 0 || is_reserved(text))
      throw Mistake{"`" + text + "` already has a meaning", name.column, ""};
    if (names_.count(text) != 0) throw Mistake{"`" + text + "` is defined twice", name.column, ""};
    names_[text] = kind;
    blocks_.back().defined.push_back(text);
  }

  std::string tensor_name(const Piece& piece, bool written) const {
    const std::string name(piece.text);
    const auto found = names_.find(name);
    if (found == names_.end() || !is_tensor(found->second)) fail_unknown(name, piece.column, true);
    if (written && found->second == NameKind::kInput)
      throw Mistake{"`" + name + "` is an input: it must not be written", piece.column, ""};
    return name;
  }

  // ---- blocks

  void enter_block(std::vector<PlanStatement>* into, std::string word) {
    const bool in_loop = blocks_.back().in_loop || word == "for";
    blocks_.push_back({into, line_, std::move(word), in_loop, false, {}});
  }

  void leave_block() {
    for (const std::string& name : blocks_.back().defined) names_.erase(name);
    blocks_.pop_back();
  }

  PlanStatement& add(PlanStatement::Kind kind) {
    PlanStatement& statement = blocks_.back().into->emplace_back();
    statement.kind = kind;
    statement.line = line_;
    return statement;
  }

  // ---- statements

  // Within a block that is nested too deeply nothing is read but where it ends.
  bool pass_over(std::string_view word) {
    if (too_deep_ == 0) return false;
    if (word == "if" || word == "for") ++too_deep_;
    if (word == "end") --too_deep_;
    return true;
  }

  void parse_line(const Piece& line) {
    std::size_t n = 0;
    while (n < line.text.size() && is_word(line.text[n])) ++n;
    const std::string word(line.text.substr(0, n));
    if (pass_over(word)) return;
    const Piece rest = trim_piece({line.text.substr(n), line.column + static_cast<int>(n)});
    using Parse = void (PlanParser::*)(const Piece&);
    static const std::map<std::string, Parse> kStatements = {{"let", &PlanParser::parse_let},
                                                             {"if", &PlanParser::parse_if},
                                                             {"else", &PlanParser::parse_else},
                                                             {"end", &PlanParser::parse_end},
                                                             {"for", &PlanParser::parse_for},
                                                             {"temp", &PlanParser::parse_temp},
                                                             {"fill", &PlanParser::parse_fill},
                                                             {"copy", &PlanParser::parse_copy},
                                                             {"const", &PlanParser::parse_const},
                                                             {"launch", &PlanParser::parse_launch},
                                                             {"tensormap", &PlanParser::parse_tensormap}};
    const auto found = kStatements.find(word);
    if (found == kStatements.end()) {
      std::vector<std::string> known;
      for (const auto& [name, parse] : kStatements) known.push_back(name);
      throw Mistake{word.empty() ? "a statement is expected here" : "unknown statement `" + word + "`",
                    line.column, suggestion(word, known)};
    }
    (this->*found->second)(rest);
  }

  void parse_let(const Piece& rest) {
    const auto [name, value] = cut(rest, "=");
    Expression expression;
    try {
      expression = parse_expression(value);
    } catch (const Mistake&) {
      names_.try_emplace(std::string(name.text), NameKind::kInteger);  // its uses are no further mistakes
      throw;
    }
    define(name, NameKind::kInteger);
    PlanStatement& statement = add(PlanStatement::Kind::kLet);
    statement.name = name.text;
    statement.expressions.push_back(std::move(expression));
  }

  void check_nesting(const Piece& at) {
    if (blocks_.size() <= kMaxNesting) return;
    too_deep_ = 1;
    passed_over_ = true;
    throw Mistake{"blocks are nested too deeply", at.column, ""};
  }

  // A block is entered even where its head is wrong, so that its `end` is no further mistake.
  void parse_if(const Piece& rest) {
    check_nesting(rest);
    PlanStatement& statement = add(PlanStatement::Kind::kIf);
    PlanStatement* const pointer = &statement;
    enter_block(&pointer->body, "if");
    pointer->expressions.push_back(parse_expression(rest));
  }

  void parse_else(const Piece& rest) {
    if (blocks_.back().word != "if") throw Mistake{"`else` without `if`", rest.column, ""};
    expect_nothing(rest);
    leave_block();
    enter_block(&blocks_.back().into->back().otherwise, "else");
  }

  void parse_end(const Piece& rest) {
    if (blocks_.back().outermost) throw Mistake{"`end` without `if` or `for`", rest.column, ""};
    leave_block();
    expect_nothing(rest);
  }

  void parse_for(const Piece& rest) {
    check_nesting(rest);
    PlanStatement& statement = add(PlanStatement::Kind::kFor);
    enter_block(&statement.body, "for");
    const auto [name, range] = cut(rest, " in ");
    const auto [begin, end] = cut(range, "..");
    statement.expressions.push_back(parse_expression(begin));
    statement.expressions.push_back(parse_expression(end));
    statement.name = name.text;
    define(name, NameKind::kInteger);
  }

  void parse_temp(const Piece& rest) {
    const auto [name, type] = cut(rest, " ");
    define(name, NameKind::kTemp);  // even where the rest is wrong: its uses are no further mistakes
    if (blocks_.back().in_loop)
      throw Mistake{"`temp` inside `for`", rest.column, "define it before the loop"};
    const auto [dtype_name, shape] = bracketed(type);
    const auto dtype = parse_dtype(dtype_name.text);
    if (!dtype) {
      throw Mistake{"unknown type `" + std::string(dtype_name.text) + "`", dtype_name.column,
                    suggestion(dtype_name.text, dtype_names())};
    }
    if (shape.empty())
      throw Mistake{"a size is expected in the brackets", type.column,
                    "`" + std::string(name.text) + " float32[M, 32]`"};
    PlanStatement statement;
    for (const Piece& size : shape) statement.expressions.push_back(parse_expression(size));
    PlanStatement& added = add(PlanStatement::Kind::kTemp);
    added.expressions = std::move(statement.expressions);
    added.name = name.text;
    added.dtype = *dtype;
  }

  void parse_fill(const Piece& rest) {
    const auto [name, value] = cut(rest, " ");
    const std::string tensor = tensor_name(name, true);
    Expression expression = parse_expression(value, true);
    PlanStatement& statement = add(PlanStatement::Kind::kFill);
    statement.name = tensor;
    statement.expressions.push_back(std::move(expression));
  }

  void parse_copy(const Piece& rest) {
    const auto [to, from] = cut(rest, "<-");
    const std::string destination = tensor_name(to, true), source = tensor_name(from, false);
    PlanStatement& statement = add(PlanStatement::Kind::kCopy);
    statement.name = destination;
    statement.source = source;
  }

  void parse_const(const Piece& rest) {
    const auto [symbol, from] = cut(rest, "<-");
    if (!is_name(symbol.text))
      throw Mistake{"the name of a __constant__ or __device__ variable is expected here", symbol.column, ""};
    check_name_of_source(symbol);
    const std::string source = tensor_name(from, false);
    PlanStatement& statement = add(PlanStatement::Kind::kConst);
    statement.name = symbol.text;
    statement.column = symbol.column;
    statement.source = source;
  }

  void parse_tensormap(const Piece& rest) {
    const auto [name, definition] = cut(rest, "=");
    define(name, NameKind::kTensorMap);
    const auto [tensor, tile_text] = cut(definition, " tile");
    const std::string source = tensor_name(tensor, false);
    const auto [tile, after] = cut({tile_text.text, tile_text.column}, "]");
    const auto [nothing, sizes] =
        bracketed({tile_text.text.substr(0, tile.text.size() + 1), tile_text.column});
    expect_nothing(nothing);
    PlanStatement statement;
    for (const Piece& size : sizes) statement.expressions.push_back(parse_expression(size));
    const TensorSpec* const spec = find_tensor(source);
    if (spec != nullptr && sizes.size() != spec->shape.size())
      throw Mistake{"the tile has " + std::to_string(sizes.size()) + " sizes, `" + source + "` has " +
                        std::to_string(spec->shape.size()),
                    tile_text.column, ""};
    const int swizzle = read_swizzle(after);
    PlanStatement& added = add(PlanStatement::Kind::kTensorMap);
    added.name = name.text;
    added.source = source;
    added.expressions = std::move(statement.expressions);
    added.swizzle = swizzle;
  }

  // An integer, or dim3(x, y, z).
  std::array<Expression, 3> parse_dim3(const Piece& piece) {
    std::array<Expression, 3> sizes = {Expression::constant(1), Expression::constant(1),
                                       Expression::constant(1)};
    std::vector<Piece> parts = {piece};
    const bool dim3 = piece.text.starts_with("dim3(") && piece.text.ends_with(")");
    if (dim3) parts = split_pieces({piece.text.substr(5, piece.text.size() - 6), piece.column + 5});
    if (parts.empty() || parts.size() > 3) throw Mistake{"dim3 takes one to three sizes", piece.column, ""};
    for (std::size_t i = 0; i < parts.size(); ++i) sizes[i] = parse_expression(parts[i]);
    return sizes;
  }

  PlanArg parse_arg(const Piece& piece) {
    PlanArg arg;
    if (piece.text.empty()) throw Mistake{"an argument is expected here", piece.column, ""};
    const auto found = names_.find(std::string(piece.text));
    if (found != names_.end() && (is_tensor(found->second) || found->second == NameKind::kTensorMap)) {
      arg.kind = is_tensor(found->second) ? ArgKind::kPointer : ArgKind::kTensorMap;
      arg.name = piece.text;
      return arg;
    }
    static const std::map<std::string, ArgKind, std::less<>> kConversions = {
        {"i64", ArgKind::kI64}, {"f64", ArgKind::kF64}, {"f32", ArgKind::kF32}, {"f16", ArgKind::kF16}};
    const auto conversion = kConversions.find(piece.text.substr(0, 3));
    if (conversion != kConversions.end() && piece.text.size() > 4 && piece.text[3] == '(' &&
        piece.text.back() == ')') {
      arg.kind = conversion->second;
      arg.value = parse_expression({piece.text.substr(4, piece.text.size() - 5), piece.column + 4},
                                   arg.kind != ArgKind::kI64);
      return arg;
    }
    if (found != names_.end() && found->second == NameKind::kReal) {
      arg.kind = ArgKind::kF32;
      arg.value = parse_expression(piece, true);
      return arg;
    }
    if (is_name(piece.text) && found == names_.end())  // a tensor or a number: suggest from all
      throw Mistake{"unknown name `" + std::string(piece.text) + "`", piece.column,
                    suggestion(piece.text, known_names([](NameKind) { return true; }))};
    arg.value = parse_expression(piece);
    return arg;
  }

  void parse_launch(const Piece& rest) {
    launches_ = true;  // it was meant to: no second message that there is none
    const auto [kernel, after_kernel] = cut(rest, "<<<");
    if (kernel.text.empty() || !is_letter(kernel.text[0]))
      throw Mistake{"a kernel is expected here", kernel.column, ""};
    kernels_.insert(std::string(kernel.text));
    check_kernel_name(kernel);
    const auto [configuration, after] = cut(after_kernel, ">>>");
    const std::vector<Piece> sizes = split_pieces(configuration);
    if (sizes.size() < 2 || sizes.size() > 3)
      throw Mistake{"<<<grid, block>>> or <<<grid, block, shared memory>>> is expected", configuration.column,
                    ""};
    PlanStatement statement;
    statement.kind = PlanStatement::Kind::kLaunch;
    statement.line = line_;
    statement.name = kernel.text;
    statement.column = kernel.column;
    statement.cluster = {Expression::constant(1), Expression::constant(1), Expression::constant(1)};
    statement.grid = parse_dim3(sizes[0]);
    statement.block = parse_dim3(sizes[1]);
    if (sizes.size() == 3) statement.smem = parse_expression(sizes[2]);
    if (after.text.empty() || after.text[0] != '(') throw Mistake{"`(` is missing", after.column, ""};
    const std::size_t close = closing(after);
    for (const Piece& piece : split_pieces({after.text.substr(1, close - 1), after.column + 1}))
      statement.args.push_back(parse_arg(piece));
    parse_flags(trim_piece({after.text.substr(close + 1), after.column + static_cast<int>(close) + 1}),
                statement);
    blocks_.back().into->push_back(std::move(statement));
  }

  void parse_flags(Piece rest, PlanStatement& statement) {
    while (!rest.text.empty()) {
      std::size_t n = 0;
      while (n < rest.text.size() && is_word(rest.text[n])) ++n;
      const std::string_view word = rest.text.substr(0, n);
      if (word == "cluster" && n < rest.text.size() && rest.text[n] == '(') {
        const Piece list{rest.text.substr(n), rest.column + static_cast<int>(n)};
        const std::size_t close = closing(list);
        const std::vector<Piece> sizes = split_pieces({list.text.substr(1, close - 1), list.column + 1});
        if (sizes.empty() || sizes.size() > 3)
          throw Mistake{"cluster takes one to three sizes", rest.column, ""};
        for (std::size_t i = 0; i < sizes.size(); ++i) statement.cluster[i] = parse_expression(sizes[i]);
        n += close + 1;
      } else if (word == "cooperative") {
        statement.cooperative = true;
      } else if (word == "pdl") {
        statement.pdl = true;
      } else {
        throw Mistake{"unexpected `" + std::string(rest.text) + "` after the launch", rest.column,
                      "cooperative, cluster(x, y, z) or pdl"};
      }
      rest = trim_piece({rest.text.substr(n), rest.column + static_cast<int>(n)});
    }
  }

  const Task& task_;
  std::string_view file_;
  Diagnostics& diagnostics_;
  std::size_t reported_before_ = diagnostics_.size();
  std::size_t untold_ = 0;  // further mistakes
  std::map<std::string, NameKind> names_;
  std::set<std::string> reserved_;  // names that the task and the device bring
  std::set<std::string> kernels_;
  std::map<std::string, std::pair<int, int>> asked_;  // kernels in blocks_per_sm, with line and column
  std::vector<PlanStatement> statements_;
  std::vector<Block> blocks_;
  int line_ = 0;
  int first_line_ = 0, first_column_ = 1;  // of the plan; line 0: there is none
  bool launches_ = false;
  int too_deep_ = 0;  // blocks that are open and were not entered
  bool passed_over_ = false;
};

}  // namespace

LaunchPlan LaunchPlan::parse(std::string_view source, const Task& task, std::string_view file,
                             Diagnostics& diagnostics) {
  LaunchPlan plan;
  plan.statements_ =
      std::make_shared<const std::vector<PlanStatement>>(PlanParser(task, file, diagnostics).parse(source));
  plan.memory_bytes_ = task.memory_bytes;
  return plan;
}

}  // namespace warpsmith::task

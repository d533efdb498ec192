#include "warpsmith/task/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "plan_text.h"

namespace warpsmith::task {

enum class Op {
  kInteger,
  kReal,
  kName,
  kCall,
  kNegate,
  kNot,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr
};

struct ExpressionNode {
  Op op = Op::kInteger;
  int column = 1;
  std::int64_t integer = 0;
  double real = 0;
  std::string name;     // kName: the name; kCall: the function
  std::string subject;  // kCall of aligned, contiguous, blocks_per_sm: the tensor or kernel
  int subject_column = 1;
  std::vector<ExpressionNode> children;
};

namespace {

constexpr int kMaxDepth = 64;  // nesting: hostile text must not exhaust the stack
constexpr std::size_t kMaxText = 4096;

bool takes_subject(std::string_view function) {
  return function == "aligned" || function == "contiguous" || function == "blocks_per_sm";
}

struct Arity {
  std::string_view function;
  std::size_t least, most;  // expressions, the subject not counted
  std::string_view usage;
};
constexpr std::array<Arity, 8> kFunctions = {{{"cdiv", 2, 2, "cdiv(a, b)"},
                                              {"min", 2, 8, "min(a, b, …)"},
                                              {"max", 2, 8, "max(a, b, …)"},
                                              {"clog2", 1, 1, "clog2(a)"},
                                              {"sqrt", 1, 1, "sqrt(a)"},
                                              {"aligned", 1, 1, "aligned(tensor, bytes)"},
                                              {"contiguous", 0, 0, "contiguous(tensor)"},
                                              {"blocks_per_sm", 2, 2, "blocks_per_sm(kernel, block, smem)"}}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ExpressionNode parse_all() {
    if (text_.size() > kMaxText) fail("the expression is longer than 4,096 characters", 1);
    ExpressionNode root = parse_binary(0);
    skip_blanks();
    if (at_ < text_.size()) fail(std::string("unexpected `") + text_[at_] + "`", column());
    return root;
  }

 private:
  struct Binary {
    std::string_view token;
    int level;
    Op op;
  };
  // Longer tokens first where one begins another.
  static constexpr std::array<Binary, 13> kBinary = {{{"||", 0, Op::kOr},
                                                      {"&&", 1, Op::kAnd},
                                                      {"==", 2, Op::kEqual},
                                                      {"!=", 2, Op::kNotEqual},
                                                      {"<=", 3, Op::kLessEqual},
                                                      {">=", 3, Op::kGreaterEqual},
                                                      {"<", 3, Op::kLess},
                                                      {">", 3, Op::kGreater},
                                                      {"+", 4, Op::kAdd},
                                                      {"-", 4, Op::kSubtract},
                                                      {"*", 5, Op::kMultiply},
                                                      {"/", 5, Op::kDivide},
                                                      {"%", 5, Op::kRemainder}}};
  static constexpr int kLevels = 6;

  [[noreturn]] static void fail(std::string message, int at_column) {
    throw ExpressionError{std::move(message), at_column};
  }
  int column() const { return static_cast<int>(at_) + 1; }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  ExpressionNode parse_binary(int level) {
    if (level == kLevels) return parse_unary();
    ExpressionNode left = parse_binary(level + 1);
    for (int chain = 0;; ++chain) {
      skip_blanks();
      const Binary* found = nullptr;
      for (const Binary& binary : kBinary) {
        if (text_.substr(at_, binary.token.size()) == binary.token) {
          found = &binary;
          break;
        }
      }
      if (found == nullptr || found->level != level) return left;
      if (chain == kMaxDepth)
        fail("the expression is too long", column());  // the tree leans left: depth is chain
      ExpressionNode node;
      node.op = found->op;
      node.column = column();
      at_ += found->token.size();
      node.children.push_back(std::move(left));
      node.children.push_back(parse_binary(level + 1));
      left = std::move(node);
    }
  }

  ExpressionNode parse_unary() {
    skip_blanks();
    if (++depth_ > kMaxDepth) fail("the expression is nested too deeply", column());
    ExpressionNode node = parse_prefix();
    --depth_;
    return node;
  }

  ExpressionNode parse_prefix() {
    if (at_ == text_.size()) fail("the expression ends too early", column());
    ExpressionNode node;
    node.column = column();
    const char c = text_[at_];
    if (c == '-' || c == '!') {
      ++at_;
      node.op = c == '-' ? Op::kNegate : Op::kNot;
      node.children.push_back(parse_unary());
      return node;
    }
    if (c == '(') {
      ++at_;
      node = parse_binary(0);
      expect(')');
      return node;
    }
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return parse_number();
    if (is_letter(c)) return parse_word();
    fail(std::string("unexpected `") + c + "`", column());
  }

  ExpressionNode parse_number() {
    ExpressionNode node;
    node.column = column();
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const auto [after, error] = std::from_chars(begin, end, node.integer);
    // `0..N` is a range, not the real number `0.`
    const bool range = after + 1 < end && after[0] == '.' && after[1] == '.';
    if (after != end && !range && (*after == '.' || *after == 'e' || *after == 'E')) {
      node.op = Op::kReal;
      const auto [real_after, real_error] = std::from_chars(begin, end, node.real);
      if (real_error != std::errc()) fail("this number is out of range", column());
      at_ += static_cast<std::size_t>(real_after - begin);
    } else {
      if (error != std::errc()) fail("this number does not fit 64 bits", column());
      at_ += static_cast<std::size_t>(after - begin);
    }
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      fail(std::string("unexpected `") + text_[at_] + "` after a number", column());
    }
    return node;
  }

  std::string take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  ExpressionNode parse_word() {
    ExpressionNode node;
    node.column = column();
    node.name = take_word();
    if (at_ < text_.size() && text_[at_] == '.') {  // x.s0
      ++at_;
      node.name += "." + take_word();
    }
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      parse_call(node);
      return node;
    }
    node.op = Op::kName;
    return node;
  }

  void parse_call(ExpressionNode& node) {
    const auto known = std::find_if(kFunctions.begin(), kFunctions.end(),
                                    [&](const Arity& arity) { return arity.function == node.name; });
    if (known == kFunctions.end()) fail("unknown function `" + node.name + "`", node.column);
    node.op = Op::kCall;
    bool more = true;
    if (takes_subject(node.name)) {
      take_subject(node);
      skip_blanks();
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    skip_blanks();
    if (more && at_ < text_.size() && text_[at_] == ')') more = false;
    while (more) {
      node.children.push_back(parse_binary(0));
      skip_blanks();
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    expect(')');
    if (node.children.size() < known->least || node.children.size() > known->most) {
      fail("wrong number of arguments: " + std::string(known->usage), node.column);
    }
  }

  // The tensor's name or the kernel's name expression, up to a comma or parenthesis outside of <>.
  void take_subject(ExpressionNode& node) {
    skip_blanks();
    node.subject_column = column();
    int angles = 0;
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '<') ++angles;
      if (c == '>') --angles;
      if (c == ')' || c == '(' || (c == ',' && angles <= 0)) break;
      ++at_;
    }
    node.subject = text_.substr(begin, at_ - begin);
    while (!node.subject.empty() && node.subject.back() == ' ') node.subject.pop_back();
    if (node.subject.empty() || !is_letter(node.subject[0]))
      fail("a name is expected here", node.subject_column);
  }

  void expect(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) fail(std::string("`") + c + "` is missing", column());
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

[[noreturn]] void fail(std::string message, const ExpressionNode& node) {
  throw ExpressionError{std::move(message), node.column};
}

std::int64_t evaluate_node(const ExpressionNode& node, const Scope& scope);

std::int64_t checked(bool overflow, std::int64_t value, const ExpressionNode& node) {
  if (overflow) fail("the result does not fit 64 bits", node);
  return value;
}

// Quotient and remainder share their two traps.
void check_division(std::int64_t a, std::int64_t b, const ExpressionNode& node) {
  if (b == 0) fail("division by zero", node);
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) fail("the result does not fit 64 bits", node);
}

std::int64_t evaluate_call(const ExpressionNode& node, const Scope& scope) {
  if (node.name == "sqrt") fail("`sqrt` gives a real number where an integer is expected", node);
  std::vector<std::int64_t> values;
  values.reserve(node.children.size());
  for (const ExpressionNode& child : node.children) values.push_back(evaluate_node(child, scope));
  if (node.name == "min") return *std::min_element(values.begin(), values.end());
  if (node.name == "max") return *std::max_element(values.begin(), values.end());
  if (node.name == "cdiv") {
    check_division(values[0], values[1], node);
    const std::int64_t quotient = values[0] / values[1];
    const bool up = values[0] % values[1] != 0 && (values[0] < 0) == (values[1] < 0);
    return quotient + (up ? 1 : 0);
  }
  if (node.name == "clog2") {
    if (values[0] <= 0) fail("clog2 of a number that is not positive", node);
    std::int64_t bits = 0;
    while (bits < 63 && (std::int64_t{1} << bits) < values[0]) ++bits;
    return bits;
  }
  if (scope.call) {
    if (const auto value = scope.call(node.name, {node.subject}, values)) return *value;
  }
  fail("`" + node.name + "(" + node.subject + ")` is not known here", node);
}

std::int64_t evaluate_name(const ExpressionNode& node, const Scope& scope) {
  if (scope.name) {
    if (const auto value = scope.name(node.name)) return *value;
  }
  fail("unknown name `" + node.name + "`", node);
}

std::int64_t evaluate_node(const ExpressionNode& node, const Scope& scope) {
  switch (node.op) {
    case Op::kInteger:
      return node.integer;
    case Op::kReal:
      fail("an integer is expected here", node);
    case Op::kName:
      return evaluate_name(node, scope);
    case Op::kCall:
      return evaluate_call(node, scope);
    case Op::kNegate: {
      std::int64_t result = 0;
      const bool overflow =
          __builtin_sub_overflow(std::int64_t{0}, evaluate_node(node.children[0], scope), &result);
      return checked(overflow, result, node);
    }
    case Op::kNot:
      return evaluate_node(node.children[0], scope) == 0 ? 1 : 0;
    default:
      break;
  }
  const std::int64_t a = evaluate_node(node.children[0], scope);
  if (node.op == Op::kAnd && a == 0) return 0;
  if (node.op == Op::kOr && a != 0) return 1;
  const std::int64_t b = evaluate_node(node.children[1], scope);
  std::int64_t result = 0;
  bool overflow = false;
  switch (node.op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::kDivide:
      check_division(a, b, node);
      return a / b;
    case Op::kRemainder:
      check_division(a, b, node);
      return a % b;
    case Op::kEqual:
      return a == b ? 1 : 0;
    case Op::kNotEqual:
      return a != b ? 1 : 0;
    case Op::kLess:
      return a < b ? 1 : 0;
    case Op::kLessEqual:
      return a <= b ? 1 : 0;
    case Op::kGreater:
      return a > b ? 1 : 0;
    case Op::kGreaterEqual:
      return a >= b ? 1 : 0;
    default:
      return b != 0 ? 1 : 0;  // && and ||
  }
  return checked(overflow, result, node);
}

double evaluate_real_node(const ExpressionNode& node, const Scope& scope) {
  const auto child = [&](std::size_t i) { return evaluate_real_node(node.children[i], scope); };
  switch (node.op) {
    case Op::kReal:
      return node.real;
    case Op::kName: {
      if (scope.real) {
        if (const auto value = scope.real(node.name)) return *value;
      }
      if (node.name == "inf") return std::numeric_limits<double>::infinity();
      if (node.name == "nan") return std::numeric_limits<double>::quiet_NaN();
      return static_cast<double>(evaluate_node(node, scope));
    }
    case Op::kNegate:
      return -child(0);
    case Op::kAdd:
      return child(0) + child(1);
    case Op::kSubtract:
      return child(0) - child(1);
    case Op::kMultiply:
      return child(0) * child(1);
    case Op::kDivide: {
      const double divisor = child(1);
      if (divisor == 0) fail("division by zero", node);
      return child(0) / divisor;
    }
    case Op::kCall: {
      if (node.name == "sqrt") return std::sqrt(child(0));
      if (node.name == "min" || node.name == "max") {
        double best = child(0);
        for (std::size_t i = 1; i < node.children.size(); ++i)
          best = node.name == "min" ? std::min(best, child(i)) : std::max(best, child(i));
        return best;
      }
      return static_cast<double>(evaluate_node(node, scope));
    }
    default:
      return static_cast<double>(evaluate_node(node, scope));
  }
}

void collect_uses(const ExpressionNode& node, std::vector<NameUse>& uses) {
  if (node.op == Op::kName) uses.push_back({node.name, "", node.column});
  if (node.op == Op::kCall && !node.subject.empty())
    uses.push_back({node.subject, node.name, node.subject_column});
  for (const ExpressionNode& child : node.children) collect_uses(child, uses);
}

bool contains_real(const ExpressionNode& node) {
  return node.op == Op::kReal || (node.op == Op::kCall && node.name == "sqrt") ||
         (node.op == Op::kName && (node.name == "inf" || node.name == "nan")) ||
         std::any_of(node.children.begin(), node.children.end(), contains_real);
}

}  // namespace

Expression Expression::parse(std::string_view text) {
  Expression expression;
  expression.root_ = std::make_shared<const ExpressionNode>(Parser(text).parse_all());
  expression.text_ = text;
  return expression;
}

Expression Expression::constant(std::int64_t value) {
  Expression expression;
  ExpressionNode node;
  node.integer = value;
  expression.root_ = std::make_shared<const ExpressionNode>(std::move(node));
  expression.text_ = std::to_string(value);
  return expression;
}

std::int64_t Expression::evaluate(const Scope& scope) const {
  return root_ ? evaluate_node(*root_, scope) : 0;
}

double Expression::evaluate_real(const Scope& scope) const {
  return root_ ? evaluate_real_node(*root_, scope) : 0.0;
}

std::vector<NameUse> Expression::uses() const {
  std::vector<NameUse> uses;
  if (root_) collect_uses(*root_, uses);
  return uses;
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const NameUse& use : uses()) {
    if (use.function.empty() && std::find(names.begin(), names.end(), use.name) == names.end())
      names.push_back(use.name);
  }
  return names;
}

bool Expression::has_reals() const { return root_ && contains_real(*root_); }

}  // namespace warpsmith::task

// Integer expressions over shape symbols, as task files and launch plans use them. Checked 64-bit arithmetic.
//   e := e || e | e && e | e == e … (!= < <= > >=) | e + e | e - e | e * e | e / e | e % e | -e | !e | (e)
//        | integer | real | name | name.sK | function(e, …)
//   functions cdiv(a, b)  min(a, b, …)  max(a, b, …)  clog2(a), in reals also sqrt(a)
//             aligned(tensor, bytes)  contiguous(tensor)  blocks_per_sm(kernel, block, smem)
// `/` truncates like C++. Predicates are 0 or 1; && and || do not look at their right side when the left
// decides. evaluate_real() reads the same text as arithmetic of doubles, where 1 / 2 is 0.5.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::task {

struct ExpressionNode;  // src/task/expression.cc

// Names what an expression may refer to. Returns nothing for an unknown name.
// Function calls that are not built in (aligned, blocks_per_sm, contiguous) are asked for by `call`.
struct Scope {
  std::function<std::optional<std::int64_t>(std::string_view name)> name;
  std::function<std::optional<std::int64_t>(std::string_view function, const std::vector<std::string>& names,
                                            const std::vector<std::int64_t>& values)>
      call;
  std::function<std::optional<double>(std::string_view name)> real;  // evaluate_real() asks it first
};

// A name in an expression. `function` is set where it is the first argument of aligned, contiguous or
// blocks_per_sm.
struct NameUse {
  std::string name;
  std::string function;
  int column = 1;
};

// Immutable; cheap to copy; may be evaluated by several threads at once.
class Expression {
 public:
  Expression() = default;  // 0
  // Throws ExpressionError with the column (from 1) in `text`.
  static Expression parse(std::string_view text);
  static Expression constant(std::int64_t value);
  // Throws ExpressionError: unknown name, overflow, division by zero, a number that is no integer.
  std::int64_t evaluate(const Scope& scope) const;
  // In doubles; infinite and NaN results are allowed. Throws ExpressionError for unknown names.
  double evaluate_real(const Scope& scope) const;
  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  // free names, each once
  std::vector<NameUse> uses() const;       // every name, in order
  bool has_reals() const;                  // a decimal number or sqrt occurs: evaluate() would throw

 private:
  std::string text_ = "0";
  std::shared_ptr<const ExpressionNode> root_;
};

struct ExpressionError {
  std::string message;
  int column = 1;
};

}  // namespace warpsmith::task

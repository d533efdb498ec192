// Integer expressions over shape symbols, as task files and launch plans use them. Checked 64-bit arithmetic.
//   e := e ?: … no ternary;  || && == != < <= > >= + - * / % unary - ! ( ) integer  name  name.sK  f(e, …)
//   functions cdiv(a,b) min(a,b,…) max(a,b,…) clog2(a)
// `/` truncates like C++. Predicates are 0 or 1.
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
};

// Immutable; cheap to copy.
class Expression {
 public:
  Expression() = default;  // 0
  // Throws ExpressionError with the column (from 1) in `text`.
  static Expression parse(std::string_view text);
  static Expression constant(std::int64_t value);
  // Throws ExpressionError: unknown name, overflow, division by zero.
  std::int64_t evaluate(const Scope& scope) const;
  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  // free names, each once

 private:
  std::string text_ = "0";
  std::shared_ptr<const ExpressionNode> root_;
};

struct ExpressionError {
  std::string message;
  int column = 1;
};

}  // namespace warpsmith::task

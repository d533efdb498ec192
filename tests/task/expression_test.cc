#include "warpsmith/task/expression.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace warpsmith::task {
namespace {

// Names: M = 7, N = 1000, x.s0 = 64; aligned(x, 16) is 1, everything else unknown.
Scope test_scope() {
  Scope scope;
  scope.name = [](std::string_view name) -> std::optional<std::int64_t> {
    static const std::map<std::string, std::int64_t, std::less<>> kNames = {
        {"M", 7}, {"N", 1000}, {"x.s0", 64}, {"BIG", std::numeric_limits<std::int64_t>::max()}, {"ZERO", 0}};
    const auto found = kNames.find(name);
    return found == kNames.end() ? std::nullopt : std::optional(found->second);
  };
  scope.call = [](std::string_view function, const std::vector<std::string>& names,
                  const std::vector<std::int64_t>& values) -> std::optional<std::int64_t> {
    if (function == "aligned" && names[0] == "x") return values[0] <= 16 ? 1 : 0;
    if (function == "blocks_per_sm" && names[0] == "row<float, 256>") return values[0] + values[1];
    return std::nullopt;
  };
  scope.real = [](std::string_view name) { return name == "eps" ? std::optional(1e-5) : std::nullopt; };
  return scope;
}

struct Good {
  const char* text;
  std::int64_t value;
};
class GoodExpression : public testing::TestWithParam<Good> {};
TEST_P(GoodExpression, HasItsValue) {
  EXPECT_EQ(Expression::parse(GetParam().text).evaluate(test_scope()), GetParam().value) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, GoodExpression,
    testing::Values(Good{"1", 1}, Good{" 1 + 2 * 3 ", 7}, Good{"(1 + 2) * 3", 9}, Good{"-7 / 2", -3},
                    Good{"-7 % 3", -1}, Good{"10 - 3 - 2", 5}, Good{"M*N", 7000}, Good{"cdiv(N, 256)", 4},
                    Good{"cdiv(0, 4)", 0}, Good{"cdiv(-5, 2)", -2}, Good{"cdiv(5, -2)", -2},
                    Good{"min(M, 3, N)", 3}, Good{"max(M, N)", 1000}, Good{"clog2(1)", 0},
                    Good{"clog2(2)", 1}, Good{"clog2(N)", 10}, Good{"clog2(1024)", 10},
                    Good{"clog2(1025)", 11}, Good{"clog2(BIG)", 63}, Good{"x.s0 == 64", 1},
                    Good{"M < N && N % 8 == 0", 1}, Good{"!(M != 7)", 1}, Good{"!M", 0},
                    Good{"M >= 8 || N <= 1000", 1}, Good{"1 > 2", 0},
                    Good{"ZERO != 0 && 1 / ZERO == 0", 0},  // the right side is not looked at
                    Good{"ZERO == 0 || 1 / ZERO == 0", 1}, Good{"aligned(x, 16)", 1},
                    Good{"aligned(x, 32)", 0}, Good{"blocks_per_sm(row<float, 256>, 128, 2 * M)", 142},
                    Good{"9223372036854775807", 9223372036854775807}, Good{"- - 3", 3},
                    Good{"-9223372036854775807 - 1", std::numeric_limits<std::int64_t>::min()}));

struct Bad {
  const char* text;
  const char* message;
  int column;
};
class BadExpression : public testing::TestWithParam<Bad> {};
TEST_P(BadExpression, SaysWhatAndWhere) {
  try {
    const std::int64_t value = Expression::parse(GetParam().text).evaluate(test_scope());
    FAIL() << GetParam().text << " is " << value;
  } catch (const ExpressionError& error) {
    EXPECT_EQ(error.message, GetParam().message) << GetParam().text;
    EXPECT_EQ(error.column, GetParam().column) << GetParam().text;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Rows, BadExpression,
    testing::Values(
        Bad{"", "the expression ends too early", 1}, Bad{"1 +", "the expression ends too early", 4},
        Bad{"1 2", "unexpected `2`", 3}, Bad{"(1", "`)` is missing", 3}, Bad{"1 ? 2", "unexpected `?`", 3},
        Bad{"M / (N - 1000)", "division by zero", 3}, Bad{"M % ZERO", "division by zero", 3},
        Bad{"cdiv(M, ZERO)", "division by zero", 1}, Bad{"BIG + 1", "the result does not fit 64 bits", 5},
        Bad{"BIG * 2", "the result does not fit 64 bits", 5},
        Bad{"-BIG - 2", "the result does not fit 64 bits", 6},
        Bad{"(-BIG - 1) / -1", "the result does not fit 64 bits", 12},
        Bad{"-(-BIG - 1)", "the result does not fit 64 bits", 1},
        Bad{"9223372036854775808", "this number does not fit 64 bits", 1},
        Bad{"M + K", "unknown name `K`", 5}, Bad{"clog2(0)", "clog2 of a number that is not positive", 1},
        Bad{"cdiv(1)", "wrong number of arguments: cdiv(a, b)", 1},
        Bad{"ceil(1)", "unknown function `ceil`", 1}, Bad{"1.5", "an integer is expected here", 1},
        Bad{"3x", "unexpected `x` after a number", 2},
        Bad{"aligned(y, 16)", "`aligned(y)` is not known here", 1},
        Bad{"aligned(16, 16)", "a name is expected here", 9},
        Bad{"sqrt(4)", "`sqrt` gives a real number where an integer is expected", 1}));

TEST(Expression, RealArithmetic) {
  const auto value = [](const char* text) { return Expression::parse(text).evaluate_real(test_scope()); };
  EXPECT_EQ(value("1 / 2"), 0.5);
  EXPECT_EQ(value("1.0 / N"), 1.0 / 1000);
  EXPECT_EQ(value("eps * 2"), 2e-5);
  EXPECT_EQ(value("1 / sqrt(x.s0)"), 0.125);
  EXPECT_EQ(value("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(value("1e-3"), 1e-3);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("max(eps, 2, 0.5)"), 2.0);
  EXPECT_EQ(value("cdiv(N, 256)"), 4.0);
  EXPECT_THROW(value("1 / ZERO"), ExpressionError);
}

TEST(Expression, NamesEachOnceInOrder) {
  const Expression e = Expression::parse("N * cdiv(M, N) + x.s1 + aligned(y, K)");
  EXPECT_EQ(e.names(), (std::vector<std::string>{"N", "M", "x.s1", "K"}));
  ASSERT_EQ(e.uses().size(), 6u);
  EXPECT_EQ(e.uses()[4].name, "y");
  EXPECT_EQ(e.uses()[4].function, "aligned");
  EXPECT_EQ(e.uses()[4].column, 33);
}

TEST(Expression, HostileNestingIsAMistakeAndNoCrash) {
  EXPECT_THROW(Expression::parse(std::string(3000, '(')), ExpressionError);
  EXPECT_THROW(Expression::parse(std::string(3000, '-') + "1"), ExpressionError);
  std::string sum = "1";
  for (int i = 0; i < 1000; ++i) sum += "+1";
  EXPECT_THROW(Expression::parse(sum), ExpressionError);
  EXPECT_THROW(Expression::parse(std::string(100'000, '1')), ExpressionError);
}

TEST(Expression, DefaultIsZero) {
  EXPECT_EQ(Expression().evaluate({}), 0);
  EXPECT_EQ(Expression::constant(-4).evaluate({}), -4);
  EXPECT_EQ(Expression::constant(-4).text(), "-4");
}

}  // namespace
}  // namespace warpsmith::task

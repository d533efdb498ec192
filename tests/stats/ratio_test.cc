#include "warpsmith/stats/ratio.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warpsmith::stats {
namespace {

Ratio around(double value, double half) { return {value, value * std::exp(-half), value * std::exp(half)}; }

TEST(Ratio, HalfWidthsOfAQuotientAddAsSquares) {
  const Ratio quotient = divided(around(3, 0.03), around(1.5, 0.04));
  EXPECT_NEAR(quotient.value, 2, 1e-12);
  EXPECT_NEAR(std::log(quotient.high / quotient.value), 0.05, 1e-12);
  EXPECT_NEAR(std::log(quotient.value / quotient.low), 0.05, 1e-12);
}

TEST(Ratio, DividingByAnExactOneChangesNothing) {
  const Ratio a = around(1.7, 0.01), same = divided(a, {});
  EXPECT_DOUBLE_EQ(same.value, a.value);
  EXPECT_NEAR(same.low, a.low, 1e-12);
  EXPECT_NEAR(same.high, a.high, 1e-12);
}

TEST(Ratio, UndividedIsWhatWasDivided) {
  const Ratio a = around(3, 0.03), b = around(0.8, 0.01), back = undivided(divided(a, b), b);
  EXPECT_NEAR(back.value, a.value, 1e-12);
  EXPECT_NEAR(back.low, a.low, 1e-9);
  EXPECT_NEAR(back.high, a.high, 1e-9);
}

TEST(Ratio, AnIntervalIsNeverTurnedInsideOut) {
  const Ratio back = undivided(around(2, 0.01), around(1, 0.02));
  EXPECT_EQ(back.low, back.value);
  EXPECT_EQ(back.high, back.value);
}

}  // namespace
}  // namespace warpsmith::stats

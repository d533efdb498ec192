// Moments in a byte each.
#include "warpsmith/learn/moments.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace warpsmith::learn {
namespace {

// Values of all sizes, some of them 0, and a block of nothing but 0.
at::Tensor values(std::int64_t n, bool has_sign) {
  at::manual_seed(3);
  at::Tensor x = at::randn({n}) * at::pow(10, at::rand({n}) * 6 - 8);
  if (n > 8) x.narrow(0, 5, 3).zero_();
  if (n > 768) x.narrow(0, 256, 256).zero_();
  return has_sign ? x : x.square();
}

TEST(Moments, InFloat32AreAView) {
  Moments m(values(100, true), false, true);
  m.read(10, 5).fill_(7);
  EXPECT_TRUE(at::equal(m.read(10, 5), at::full({5}, 7.f)));
  EXPECT_EQ(m.bytes(), 400);
}

TEST(Moments, InBytesAreNear) {
  for (const std::int64_t n : {1, 255, 256, 257, 5000, 256 * 20000 + 16})
    for (const bool has_sign : {true, false}) {
      const at::Tensor x = values(n, has_sign);
      const Moments m(x, true, has_sign);
      EXPECT_EQ(m.bytes(), n + 4 * ((n + 255) / 256));
      const at::Tensor back = m.all();
      if (!has_sign) {
        EXPECT_TRUE(at::equal(back == 0, x == 0)) << "a square that is not 0 stays so";
      }
      const at::Tensor most = x.narrow(0, 0, std::min<std::int64_t>(n, 256)).abs().max();
      // Half a step of the power's share, near the largest.
      EXPECT_LE((back - x).narrow(0, 0, std::min<std::int64_t>(n, 256)).abs().max().item<float>(),
                (has_sign ? 1.01f / 127 : 2.02f / 255) * most.item<float>())
          << n << has_sign;
    }
}

TEST(Moments, WhatWasReadAndIsPutBackKeepsItsByte) {
  for (const bool has_sign : {true, false}) {
    Moments m(values(5000, has_sign), true, has_sign);
    const at::Tensor once = m.all().clone();
    for (std::int64_t at = 0; at < 5000; at += 512)
      m.put(at, m.read(at, std::min<std::int64_t>(512, 5000 - at)));
    EXPECT_TRUE(at::equal(m.all(), once));
    const Moments again(once, true, has_sign);
    EXPECT_TRUE(at::equal(again.all(), once)) << "as a checkpoint holds them";
  }
}

TEST(Moments, InBytesArePutInWholeBlocks) {
  Moments m(values(1000, true), true, true);
  EXPECT_ANY_THROW(m.put(10, at::zeros({256})));
  EXPECT_ANY_THROW(m.put(0, at::zeros({100})));
  m.put(768, at::zeros({232}));
  EXPECT_EQ(m.read(768, 232).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace warpsmith::learn

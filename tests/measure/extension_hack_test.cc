// What clocks and threads say of a candidate of tier `extension`, on invented numbers.
#include <gtest/gtest.h>

#include "extension/measurer.h"

namespace warpsmith::measure {
namespace {

std::string kind(const ClockFacts& facts) {
  std::string detail;
  const std::string hack = hack_of(facts, &detail);
  EXPECT_EQ(hack.empty(), detail.empty());
  return hack;
}

TEST(ExtensionHack, HonestOnes) {
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false}), "");
  EXPECT_EQ(kind({1e6, 0.96e6, 20e3, 3, 3, false}), "");
  EXPECT_EQ(kind({1e6, 1.04e6, -10e3, 3, 3, false}), "");
  EXPECT_EQ(kind({10e3, 8.5e3, 0, 0, 0, false}),
            "");                                   // within the grain of short intervals; threads not known
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 8, true}), "");  // a library's threads
  EXPECT_EQ(kind({1e6, 1e6, 150e3, 3, 2, false}), "");  // the GPU takes its time to change hands
  EXPECT_EQ(kind({100e6, 100e6, 20e6, 3, 3, false}), "");
}

TEST(ExtensionHack, Cheats) {
  EXPECT_EQ(kind({1e6, 0.94e6, 0, 3, 3, false}), "clocks");  // work that the default stream does not hold
  EXPECT_EQ(kind({1e6, 0, 0, 3, 3, false}), "clocks");       // events that were not recorded, or forged
  EXPECT_EQ(kind({1e6, 1.1e6, 0, 3, 3, false}), "clocks");   // an answer before the work was done
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 4, false}), "threads");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 12, true}), "threads");
  EXPECT_EQ(kind({1e6, 1e6, 300e3, 3, 3, false}), "late_work");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, true}), "processors");
}

}  // namespace
}  // namespace warpsmith::measure

// What clocks and threads say of a candidate of tier `extension`, on invented numbers.
#include <gtest/gtest.h>

#include "extension/hack.h"
#include "extension/host_rows.h"
#include "extension/refused.h"

namespace warpsmith::measure {
namespace {

std::string kind(const ClockFacts& facts) {
  std::string detail;
  const std::string hack = hack_of(facts, &detail);
  EXPECT_EQ(hack.empty(), detail.empty());
  return hack;
}

TEST(HostCode, IsRefusedWhereNothingGuardsFiles) {
  using process::SandboxLevel;
  EXPECT_EQ(host_code_refused(SandboxLevel::kBubblewrap, false), "");
  EXPECT_NE(host_code_refused(SandboxLevel::kNone, false), "");
  EXPECT_EQ(host_code_refused(SandboxLevel::kNone, true), "");
  EXPECT_EQ(host_code_refused(SandboxLevel::kLandlock, false).empty(),
            process::guards_files(SandboxLevel::kLandlock));
}

TEST(ExtensionHack, HonestOnes) {
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false}), "");
  EXPECT_EQ(kind({1e6, 0.96e6, 20e3, 3, 3, false}), "");
  EXPECT_EQ(kind({1e6, 1.04e6, -10e3, 3, 3, false}), "");
  EXPECT_EQ(kind({10e3, 8.5e3, 0, 0, 0, false}),
            "");                                   // within the grain of short intervals; threads not known
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 8, true}), "");  // a library's threads
  EXPECT_EQ(kind({1e6, 1e6, 60e3, 3, 2, false}), "");  // the GPU takes its time to change hands
  EXPECT_EQ(kind({100e6, 100e6, 2.5e6, 3, 3, false}), "");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, false, 50e3, 180e3, 100e3}), "");
  EXPECT_EQ(kind({10e6, 10e6, 0, 3, 3, false, false, 250e3, 5.4e6, 5e6}), "");
  EXPECT_EQ(kind({10e6, 10e6, 0, 3, 3, false, false, 0, 5e6, 0}), "");  // not known without the candidate
}

TEST(ExtensionHack, Cheats) {
  EXPECT_EQ(kind({1e6, 0.94e6, 0, 3, 3, false}), "clocks");  // work that the default stream does not hold
  EXPECT_EQ(kind({1e6, 0, 0, 3, 3, false}), "clocks");       // events that were not recorded, or forged
  EXPECT_EQ(kind({1e6, 1.1e6, 0, 3, 3, false}), "clocks");   // an answer before the work was done
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 4, false}), "threads");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 12, true}), "threads");
  EXPECT_EQ(kind({1e6, 1e6, 110e3, 3, 3, false}), "late_work");
  EXPECT_EQ(kind({100e6, 100e6, 4e6, 3, 3, false}), "late_work");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, true}), "processors");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, false, 110e3, 100e3, 100e3}), "before_clock");
  EXPECT_EQ(kind({10e6, 10e6, 0, 3, 3, false, false, 310e3, 100e3, 100e3}), "before_clock");
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, false, 0, 210e3, 100e3}), "before_clock");  // its kernel is there
  EXPECT_EQ(kind({1e6, 1e6, 0, 3, 3, false, false, 0, 5.3e6, 5e6}), "before_clock");
  EXPECT_EQ(kind({2e6, 2e6, 0, 3, 3, false, false, 0, 410e3, 300e3}), "before_clock");
}

// Beside other work on the GPU an empty interval takes hundreds of microseconds, and one with work in it may
// take none more.
TEST(ExtensionHack, WhatWasTakenOffIsNoEvidence) {
  ClockFacts facts{.ours_ns = 4850e3, .events_ns = 5187e3, .outside_ns = 337e3};
  EXPECT_EQ(kind(facts), "");
  facts.outside_ns = 15e3;
  EXPECT_EQ(kind(facts), "clocks");
  facts = {.ours_ns = 2000e3, .events_ns = 0, .outside_ns = 337e3};
  EXPECT_EQ(kind(facts), "clocks");
}

TEST(ExtensionHack, WorkThatIsLeftOnTheGpuIsSeenWhenItIsGone) {
  EXPECT_EQ(busy_while_stopped(105e3, 104e3), "");
  EXPECT_EQ(busy_while_stopped(60e3, 35e3), "");  // some clock is slow to wake up
  EXPECT_EQ(busy_while_stopped(5.4e6, 5e6), "");
  EXPECT_EQ(busy_while_stopped(100e3, 2000e3), "");  // another one's work, later
  EXPECT_NE(busy_while_stopped(2000e3, 100e3), "");  // in turns with its kernel
  EXPECT_NE(busy_while_stopped(10e6, 5e6), "");
}

// Rows of which a candidate does the work beside the clock are none the shorter for it.
TEST(ExtensionHack, WorkBesideTheClockIsCharged) {
  EXPECT_EQ(charge_beside_clock(25e3, 1e6), 0);
  EXPECT_EQ(charge_beside_clock(-50e3, 1e6), 0);
  EXPECT_EQ(charge_beside_clock(900e3, 100e3), 870e3);
  EXPECT_EQ(charge_beside_clock(50e3, 1e6), 20e3);
  EXPECT_EQ(charge_beside_clock(0.2e6, 20e6), 0);
  EXPECT_EQ(charge_beside_clock(1e6, 20e6), 0.8e6);
  EXPECT_DOUBLE_EQ(values_beyond(1.03e6, 1e6), 0);
  EXPECT_EQ(charge_beside_clock(values_beyond(300e3, 300e3), 2e6), 0);
  EXPECT_DOUBLE_EQ(charge_beside_clock(values_beyond(400e3, 300e3), 2e6), 61e3);
}

// Of either side: the first call of a row takes longer than the others, so that one call against two would
// make a difference.
TEST(HostRows, TwoCallsAreTheLeast) {
  const auto calls = [](double call_ns, int most) {
    return HostRows::calls_a_row(kExtensionPace, call_ns, most);
  };
  EXPECT_EQ(calls(10e3, 2048), 200);
  EXPECT_EQ(calls(1.5e6, 2048), 2);
  EXPECT_EQ(calls(8e6, 2048), 2);
  EXPECT_EQ(calls(8e6, 1), 1) << "there is no room for more";
  EXPECT_EQ(calls(31e6, 2048), 1);
  EXPECT_EQ(calls(0, 7), 7);
  EXPECT_EQ(HostRows::calls_a_row(kPythonPace, 10e3, 2048), 400);
}

}  // namespace
}  // namespace warpsmith::measure

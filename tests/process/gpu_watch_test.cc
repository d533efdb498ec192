// A GPU under watch, with a library in place of NVML.
#include "warpsmith/process/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "with_variable.h"

namespace warpsmith::process {
namespace {

using testing::HasSubstr;

constexpr const char* kFakeNvml = WARPSMITH_BINARY_DIR "/tests/libfake_nvml.so";

TEST(GpuWatch, ReadsWhatTheGpuTells) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml),
      gpus("FAKE_GPUS", "NVIDIA L40 8.9;NVIDIA H200 9.0");
  std::string problem = "what was here";
  const auto watch = GpuWatch::open("GPU-fake-1", &problem);
  ASSERT_TRUE(watch) << problem;
  const WithVariable first("FAKE_READING", "1980 2619 45 312500 0x4");
  GpuReading reading = watch->read();
  EXPECT_EQ(reading.sm_clock_mhz, 1980);
  EXPECT_EQ(reading.memory_clock_mhz, 2619);
  EXPECT_EQ(reading.temperature_c, 45);
  EXPECT_EQ(reading.power_w, 312.5);
  EXPECT_EQ(reading.reasons, 0x4u);
  {
    const WithVariable later("FAKE_READING", "1200 - 88 - 0x48");
    reading = watch->read();
    EXPECT_EQ(reading.sm_clock_mhz, 1200);
    EXPECT_EQ(reading.memory_clock_mhz, std::nullopt) << "what it does not tell is not made up";
    EXPECT_EQ(reading.temperature_c, 88);
    EXPECT_EQ(reading.power_w, std::nullopt);
    EXPECT_EQ(watch->reasons(), 0x48u);
  }
  const WithVariable silent("FAKE_READING", "");
  EXPECT_EQ(watch->reasons(), std::nullopt);
  EXPECT_EQ(watch->read().sm_clock_mhz, std::nullopt);
}

TEST(GpuWatch, TellsHowTheGpuIsSetUp) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml), gpus("FAKE_GPUS", "NVIDIA H200 9.0 MIG");
  const auto watch = GpuWatch::open("GPU-fake-0");
  ASSERT_TRUE(watch);
  const std::map<std::string, std::string> expected = {{"driver", "570.86.15"},
                                                       {"persistence", "on"},
                                                       {"ecc", "on"},
                                                       {"mig", "on"},
                                                       {"power_limit_w", "700"},
                                                       {"compute_mode", "exclusive_process"},
                                                       {"sm_clock_max_mhz", "1980"},
                                                       {"memory_clock_max_mhz", "2619"}};
  EXPECT_EQ(watch->settings(), expected);
}

TEST(GpuWatch, WhereThereIsNoneItSaysWhy) {
  std::string problem;
  {
    const WithVariable library("WARPSMITH_NVML", kFakeNvml), gpus("FAKE_GPUS", "NVIDIA H200 9.0");
    EXPECT_FALSE(GpuWatch::open("GPU-of-somebody-else", &problem));
    EXPECT_EQ(problem, "NVML: GPU-of-somebody-else: some error");
  }
  {
    const WithVariable library("WARPSMITH_NVML", kFakeNvml), gpus("FAKE_GPUS", "broken");
    EXPECT_FALSE(GpuWatch::open("GPU-fake-0", &problem));
    EXPECT_EQ(problem, "NVML: Driver Not Loaded");
  }
  {
    const WithVariable library("WARPSMITH_NVML", "libc.so.6");
    EXPECT_FALSE(GpuWatch::open("GPU-fake-0", &problem));
    EXPECT_EQ(problem, "the NVML library lacks functions");
  }
  {
    const WithVariable library("WARPSMITH_NVML", "libwarpsmith-there-is-no-such.so.1");
    EXPECT_FALSE(GpuWatch::open("GPU-fake-0", &problem));
    EXPECT_THAT(problem, HasSubstr("cannot be loaded"));
  }
  for (const char* none : {"", "nvidia-smi"}) {
    const WithVariable library("WARPSMITH_NVML", none);
    EXPECT_FALSE(GpuWatch::open("GPU-fake-0", &problem)) << none;
    EXPECT_EQ(problem, "WARPSMITH_NVML names no library");
  }
}

TEST(ClockReasons, HaveWords) {
  EXPECT_EQ(clock_reason_words(0), "none");
  EXPECT_EQ(clock_reason_words(0x1), "gpu_idle");
  EXPECT_EQ(clock_reason_words(0x4 | 0x40 | 0x8), "sw_power_cap hw_slowdown hw_thermal_slowdown");
  EXPECT_EQ(clock_reason_words(0x102), "application_clocks display_clocks");
  EXPECT_EQ(clock_reason_words(0x1400), "0x1400") << "one that is not known yet is told all the same";
}

TEST(ClockReasons, OnlyProtectionSpoilsTimes) {
  for (const std::uint64_t harmless : {0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x117, 0x400})
    EXPECT_FALSE(is_slowed_down(harmless)) << harmless;
  for (const std::uint64_t slow : {0x8, 0x20, 0x40, 0x80, 0x45}) EXPECT_TRUE(is_slowed_down(slow)) << slow;
}

}  // namespace
}  // namespace warpsmith::process

#include "warpsmith/records/ceilings.h"

#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"

namespace warpsmith {
namespace {

Ceilings example() {
  Ceilings c;
  c.name = "NVIDIA H200";
  c.uuid = "GPU-1";
  c.driver = "13.0";
  c.host = "here";
  c.major = 9;
  c.sms = 132;
  c.l2_bytes = 60ull << 20;
  c.memory_bytes = 140ull << 30;
  c.date = "2026-05-01T12:00:00Z";
  c.seconds = 1.25;
  c.before = GpuState{.sm_clock_mhz = 1980, .clock_reasons = "gpu_idle"};
  c.settings = {{"ecc", "on"}};
  c.figures[kReadBandwidth] = {4.321e12, 4.3e12, 4.33e12, 7, "1024 MiB"};
  c.figures[kFloat32Rate] = {51.23e12, 51e12, 52e12, 5, "8192 x 8192"};
  return c;
}

TEST(Ceilings, AreKeptInAFile) {
  const Scratch scratch;
  const fs::path file = ceilings_path(scratch.path() / "cache/ceilings", "GPU-1");
  EXPECT_EQ(file.filename(), "GPU-1.json");
  std::string problem = "what was here";
  EXPECT_FALSE(read_ceilings(file, &problem));
  EXPECT_EQ(problem, "") << "that there is none is no problem";
  write_ceilings(file, example());
  const auto back = read_ceilings(file);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(example()));
  EXPECT_EQ(back->find(kReadBandwidth)->high, 4.33e12);
  EXPECT_EQ(back->find(kReadBandwidth)->how, "1024 MiB");
  EXPECT_EQ(back->find(kTf32Rate), nullptr);
  EXPECT_EQ(back->before->sm_clock_mhz, 1980);
  EXPECT_FALSE(back->after);
}

TEST(Ceilings, ADamagedFileIsNone) {
  const Scratch scratch;
  const fs::path file = scratch.path() / "c.json";
  Json no_figure = to_json(example());
  no_figure["figures"][kReadBandwidth]["median"] = 0;
  Json other = to_json(example());
  other["schema"] = "warpsmith.ceilings/9";
  Json short_of = to_json(example());
  short_of.erase("uuid");
  for (const std::string& text :
       {std::string("{\"schema\""), no_figure.dump(), other.dump(), short_of.dump()}) {
    write_file_atomic(file, text);
    std::string problem;
    EXPECT_FALSE(read_ceilings(file, &problem)) << text;
    EXPECT_NE(problem, "") << text;
  }
}

TEST(Ceilings, InALine) {
  EXPECT_EQ(ceilings_line(example()), "reads 4.32 TB/s, float32 51.2 TFLOP/s");
  Ceilings more = example();
  more.figures[kCopyBandwidth].median = 4e12;
  more.figures[kBfloat16Rate].median = 7.016e14;
  EXPECT_EQ(ceilings_line(more), "reads 4.32 TB/s, copies 4.00 TB/s, float32 51.2, bfloat16 702 TFLOP/s");
  EXPECT_EQ(ceilings_line({}), "");
}

TEST(Ceilings, ForPeople) {
  Ceilings c = example();
  c.figures[kLaunchQueued] = {1234, 1200, 1300, 5, "100 in a row"};
  c.after = GpuState{1755, 3201, 61, 512.25, "sw_power_cap"};
  EXPECT_EQ(ceilings_text(c),
            "NVIDIA H200, GPU-1, CUDA 13.0, capability 9.0, 132 SMs, L2 60.0 MiB, memory 140.0 GiB\n"
            "reading memory       4.32 TB/s     [4.30, 4.33] in 7 repeats; 1024 MiB\n"
            "float32 matrices     51.2 TFLOP/s  [51.0, 52.0] in 5 repeats; 8192 x 8192\n"
            "launch, queued       1.23 us       [1.20, 1.30] in 5 repeats; 100 in a row\n"
            "before: SMs at 1980 MHz, clocks kept down by: gpu_idle\n"
            "after:  SMs at 1755 MHz, memory at 3201 MHz, 61 C, 512 W, clocks kept down by: sw_power_cap\n"
            "ecc: on\n"
            "measured in 1.25 s on here, 2026-05-01T12:00:00Z\n");
}

}  // namespace
}  // namespace warpsmith

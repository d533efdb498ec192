// GPUs that are what their label says, and GPUs that are not: on fingerprints that nobody measured.
#include "warpsmith/records/gpu_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpsmith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Ceilings gpu(int sms, double memory_gib, double read_tb_s) {
  Ceilings c;
  c.major = 9;
  c.sms = sms;
  c.l2_bytes = 50ull << 20;
  c.memory_bytes = static_cast<std::uint64_t>(memory_gib * 1024 * 1024 * 1024);
  c.figures[kReadBandwidth] = {read_tb_s * 1e12, read_tb_s * 1e12, read_tb_s * 1e12, 5, ""};
  c.fingerprint = Fingerprint{"c0de",
                              {{"bfloat16_product", "aa"}, {"exp2", "bb"}},
                              {{kFloat64Share, 0.5}, {kSmClock, 1.98e9}, {kL2Edge, 40.0 * 1024 * 1024}}};
  return c;
}
Ceilings h100() { return gpu(132, 79.6, 3.05); }
Ceilings h200() { return gpu(132, 139.8, 4.32); }

TEST(GpuDoubts, AGpuThatFitsHasNone) {
  const std::vector<Ceilings> others = {h100(), h100()};
  EXPECT_THAT(gpu_doubts(h100(), "H100", others), IsEmpty());
  EXPECT_THAT(gpu_doubts(h200(), "H200", {}), IsEmpty());
  EXPECT_THAT(gpu_doubts(gpu(114, 79.6, 1.85), "H100", {}), IsEmpty()) << "the PCIe form";
  EXPECT_THAT(gpu_doubts(gpu(132, 93.6, 3.5), "H100", {}), IsEmpty()) << "the NVL form";
  EXPECT_THAT(gpu_doubts(Ceilings(), "H100", {}), IsEmpty()) << "nothing is known of it";
  EXPECT_THAT(gpu_doubts(h100(), "mystery", {}), IsEmpty()) << "nor of the label";
  EXPECT_TRUE(has_data_sheet("H100"));
  EXPECT_FALSE(has_data_sheet("mystery"));
}

TEST(GpuDoubts, AnotherTypeOfTheSameChipIsToldByItsMemory) {
  EXPECT_THAT(gpu_doubts(h200(), "H100", {}),
              ElementsAre("it has 139.8 GiB of memory, and an H100 has 94",
                          "it reads 4.32 TB/s, above the 3.90 of an H100; it looks like an H200"));
  EXPECT_THAT(gpu_doubts(h100(), "H200", {}),
              ElementsAre("it has 79.6 GiB of memory, and an H200 has 141",
                          "it reads 3.05 TB/s, far below the 4.80 of an H200; it looks like an H100"));
}

TEST(GpuDoubts, ThatTheBitsAreTheSameIsSaidOfAChipThatIs) {
  const std::vector<Ceilings> others = {h100()};
  const auto doubts = gpu_doubts(h200(), "H100", others);
  ASSERT_FALSE(doubts.empty());
  EXPECT_THAT(doubts.back(),
              HasSubstr("it computes the same bits as another probe of this kind: the chip may be "
                        "of the same design, as those of H100, H200 and H20 are"));
}

TEST(GpuDoubts, AnotherChipIsToldByItsCapabilityAndSms) {
  Ceilings l40 = gpu(142, 44.4, 0.75);
  l40.major = 8;
  l40.minor = 9;
  EXPECT_THAT(gpu_doubts(l40, "L40", {}), IsEmpty());
  const auto doubts = gpu_doubts(l40, "H100", {});
  ASSERT_THAT(doubts, SizeIs(4));
  EXPECT_EQ(doubts[0], "it has compute capability 8.9, and an H100 has 9.0");
  EXPECT_THAT(doubts[1], HasSubstr("it has 142 SMs, and an H100 has 1"));
  EXPECT_THAT(doubts[3], HasSubstr("; it looks like an L4"));
}

TEST(GpuDoubts, OtherBitsThanMostOthersAreTold) {
  Ceilings odd = h100();
  odd.fingerprint->patterns["exp2"] = "cc";
  const std::vector<Ceilings> others = {h100(), h100(), odd};
  EXPECT_THAT(gpu_doubts(odd, "H100", others),
              ElementsAre("it computes other bits than 3 other probes of this kind: exp2"));
  EXPECT_THAT(gpu_doubts(h100(), "H100", others), IsEmpty()) << "most are as it is";
  const std::vector<Ceilings> one = {odd};
  EXPECT_THAT(gpu_doubts(h100(), "H100", one), SizeIs(1)) << "one of the two is odd";
}

TEST(GpuDoubts, BitsOfOtherKernelsAreNoMatch) {
  Ceilings older = h100();
  older.fingerprint->code = "01d";
  older.fingerprint->patterns["exp2"] = "cc";
  const std::vector<Ceilings> others = {older};
  EXPECT_THAT(gpu_doubts(h100(), "H100", others), IsEmpty());
  Ceilings without = h100();
  without.fingerprint.reset();
  const std::vector<Ceilings> bare = {without};
  EXPECT_THAT(gpu_doubts(h100(), "H100", bare), IsEmpty());
  EXPECT_THAT(gpu_doubts(without, "H100", others), IsEmpty());
}

// A type that data sheets here do not know: its GPUs are held against one another.
TEST(GpuDoubts, AGpuIsHeldAgainstOthersOfItsLabel) {
  const std::vector<Ceilings> others = {h100(), h100(), h200()};
  EXPECT_THAT(gpu_doubts(h100(), "mystery", others), IsEmpty());
  Ceilings slow = h100();
  slow.figures[kReadBandwidth].median = 2e12;
  slow.fingerprint->figures[kSmClock] = 1.2e9;
  slow.fingerprint->figures[kFloat64Share] = 1 / 64.0;
  const auto doubts = gpu_doubts(slow, "mystery", others);
  ASSERT_THAT(doubts, SizeIs(4));
  EXPECT_EQ(doubts[0], "what it reads in TB/s is 2, and 3.05 of 3 other probes of this kind");
  EXPECT_EQ(doubts[1],
            "the clock of its SMs at work in MHz is 1200, and 1980 of 3 other probes of this kind");
  EXPECT_THAT(doubts[2], HasSubstr("the rate of float64 by that of float32 is 0.01562"));
  EXPECT_THAT(doubts[3], HasSubstr("the same bits"));
  Ceilings fewer = h100();
  fewer.sms = 114;
  EXPECT_THAT(gpu_doubts(fewer, "mystery", others)[0],
              HasSubstr("the number of its SMs is 114, and 132 of 3"));
}

}  // namespace
}  // namespace warpsmith

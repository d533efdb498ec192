// GPUs that are hardly what their kind says, from the folders of runs to what people see.
#include "warpsmith/controller/device_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "progress.h"
#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/report/report.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a shard of `run` found, on a GPU that it took for a `kind`.
void probed(const fs::path& run, const std::string& kind, const std::string& uuid, double memory_gib,
            const std::string& bits = "aa") {
  Ceilings c;
  c.name = "NVIDIA " + kind;
  c.kind = kind;
  c.uuid = uuid;
  c.host = "node7";
  c.date = "2026-05-01";
  c.memory_bytes = static_cast<std::uint64_t>(memory_gib * 1024 * 1024 * 1024);
  c.fingerprint = Fingerprint{"c0de", {{"exp2", bits}}, {}};
  c.figures[kReadBandwidth] = {3e12, 3e12, 3e12, 5, ""};
  write_ceilings(ceilings_path(run / "cache/ceilings", uuid), c);
}

TEST(DeviceDoubts, AreOfTheRunsOwnGpusAgainstThoseOfAllRuns) {
  const Scratch results;
  EXPECT_TRUE(controller::device_doubts(results / "nothing").empty());
  probed(results / "a", "H100", "GPU-1", 79.6);
  EXPECT_TRUE(controller::device_doubts(results / "a").empty());
  probed(results / "b", "H100", "GPU-2", 79.6, "bb");
  probed(results / "c", "H100", "GPU-3", 139.8);
  write_file_atomic(results / "c/cache/ceilings/GPU-4.json", "{");
  probed(results / "c", "H100", "GPU-3", 139.8);
  const auto doubts = controller::device_doubts(results / "c");
  ASSERT_EQ(doubts.size(), 1u);
  EXPECT_EQ(doubts[0].uuid, "GPU-3");
  EXPECT_THAT(to_string(doubts[0]),
              HasSubstr("H100 on node7 (NVIDIA H100, GPU-3) is doubted: it has 139.8 GiB of "
                        "memory, and an H100 has 94"));
  EXPECT_THAT(doubts[0].why.back(), HasSubstr("bits"));
  const auto other_bits = controller::device_doubts(results / "b");
  ASSERT_EQ(other_bits.size(), 1u);
  EXPECT_EQ(other_bits[0].why.back(), "it computes other bits than 2 other probes of this kind: exp2");
}

TEST(DeviceDoubts, AreShownWithTheRunAndInItsReport) {
  const Scratch results;
  probed(results / "a", "H100", "GPU-1", 139.8);
  const Json state = {{"stages", Json::array()},
                      {"doubted_gpus", controller::to_json(controller::device_doubts(results / "a"))}};
  EXPECT_THAT(state_table({}, state),
              HasSubstr("  warning: H100 on node7 (NVIDIA H100, GPU-1) is doubted: it has "));
  store::Results found;
  DeviceFacts device;
  device.kind = "H100";
  device.uuid = "GPU-1";
  device.host = "node7";
  found.devices = {device, device};
  EXPECT_THAT(report::html(found), Not(HasSubstr("is hardly what its kind says")));
  controller::note_doubts(results / "a", found);
  const std::string page = report::html(found);
  const std::size_t at = page.find("H100 on node7 (GPU-1) is hardly what its kind says: it has 139.8 GiB");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.find("is hardly what its kind says", at + 60), std::string::npos) << "once";
}

}  // namespace
}  // namespace warpsmith::cli

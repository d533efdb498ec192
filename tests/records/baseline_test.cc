#include "warpsmith/records/baseline.h"

#include <gtest/gtest.h>

#include "warpsmith/base/error.h"

namespace warpsmith {
namespace {

TEST(BaselineTiming, GoesThroughJsonWhole) {
  BaselineTiming t;
  t.task = "row_sum";
  t.name = "cuda_graph";
  t.math = "strict";
  t.state = BaselineState::kCovered;
  t.ratio = 1.25;
  t.low = 1.24;
  t.high = 1.26;
  t.eager_ns = 10000;
  t.baseline_ns = 8000;
  t.rounds = 35;
  t.batch = 16;
  t.shape = {{"M", 256}, {"N", 512}};
  t.flags = {{"tf32", "off"}};
  t.device_kind = "H200";
  t.device_name = "NVIDIA H200";
  t.device_uuid = "GPU-1";
  t.seconds = 1.5;
  const BaselineTiming back = baseline_timing_from_json(to_json(t));
  EXPECT_EQ(to_json(back), to_json(t));
  EXPECT_EQ(back.state, BaselineState::kCovered);
  EXPECT_EQ(back.shape, t.shape);
  EXPECT_EQ(back.device_uuid, "GPU-1");
}

TEST(BaselineTiming, WhatIsMissingHasAReasonAndNoNumbers) {
  BaselineTiming t;
  t.task = "row_sum";
  t.name = "torch_compile";
  t.reason = "there is no python3 here";
  const Json json = to_json(t);
  EXPECT_FALSE(json.contains("ratio"));
  const BaselineTiming back = baseline_timing_from_json(json);
  EXPECT_EQ(back.state, BaselineState::kMissing);
  EXPECT_EQ(back.reason, t.reason);
}

TEST(BaselineTiming, ADamagedRecordIsAnError) {
  EXPECT_THROW(baseline_timing_from_json({{"task", "a"}}), Error);
  EXPECT_THROW(baseline_timing_from_json({{"task", "a"}, {"baseline", "eager"}, {"state", "odd"}}), Error);
  EXPECT_THROW(baseline_timing_from_json({{"task", "a"}, {"baseline", "eager"}, {"state", "covered"}}),
               Error);
}

}  // namespace
}  // namespace warpsmith

// What an error of CUDA's says of a candidate, whatever its tier: the same table for the process that
// measures and for a child.
#include "outcome.h"

#include <gtest/gtest.h>

#include <map>

namespace warpsmith::device {
namespace {

TEST(GpuOutcome, OneVerdictForAnError) {
  const std::map<int, Verdict> wanted = {
      {1, Verdict::kLaunchError},    // INVALID_VALUE
      {2, Verdict::kOutOfMemory},    // OUT_OF_MEMORY
      {200, Verdict::kLaunchError},  // INVALID_IMAGE
      {209, Verdict::kLaunchError},  // NO_BINARY_FOR_GPU
      {500, Verdict::kLaunchError},  // NOT_FOUND
      {700, Verdict::kOutOfBounds},  // ILLEGAL_ADDRESS
      {701, Verdict::kLaunchError},  // LAUNCH_OUT_OF_RESOURCES
      {702, Verdict::kTimeout},      // LAUNCH_TIMEOUT
      {716, Verdict::kOutOfBounds},  // MISALIGNED_ADDRESS
      {717, Verdict::kOutOfBounds},  // INVALID_ADDRESS_SPACE
      {720, Verdict::kLaunchError},  // COOPERATIVE_LAUNCH_TOO_LARGE
      {801, Verdict::kLaunchError},  // NOT_SUPPORTED
      {912, Verdict::kLaunchError},  // INVALID_CLUSTER_SIZE
  };
  // A child may write any number.
  for (int error = -2; error < 2000; ++error) {
    const auto known = wanted.find(error);
    EXPECT_EQ(verdict_of(error), known != wanted.end() ? known->second : Verdict::kCrash) << error;
  }
}

TEST(GpuOutcome, WhatWasRefusedLosesNothing) {
  for (const Verdict verdict : {Verdict::kLaunchError, Verdict::kOutOfMemory})
    EXPECT_FALSE(loses_context(verdict));
  for (const Verdict verdict : {Verdict::kOutOfBounds, Verdict::kTimeout, Verdict::kCrash})
    EXPECT_TRUE(loses_context(verdict));
}

}  // namespace
}  // namespace warpsmith::device

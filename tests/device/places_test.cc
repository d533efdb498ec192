// Which of a candidate's allocations gets the place of an output.
#include "extension/places.h"

#include <gtest/gtest.h>

namespace warpsmith::device {
namespace {

class PlacesOfOneOutput : public ::testing::Test {
 protected:
  void SetUp() override { output_.bytes = 4; }
  void begin() { places_.begin({&place_}, {output_}); }
  // The place, or `otherwise` where it is not given.
  void* allocate(void* otherwise) {
    void* const given = places_.place_for(4, kAnyDtype);
    places_.note(given != nullptr ? given : otherwise);
    return given != nullptr ? given : otherwise;
  }
  void release(void* memory) { places_.note_release(memory); }
  void end(void* result) {
    places_.note_result(0, result);
    release(result);
    places_.learn();
  }

  Places places_;
  WireTensor output_{};
  char place_ = 0, first_ = 0, second_ = 0;
};

TEST_F(PlacesOfOneOutput, TheResultOfTheCallBeforeGetsIt) {
  begin();
  void* const before = allocate(&first_);
  EXPECT_EQ(before, &first_);
  end(before);
  begin();
  EXPECT_EQ(allocate(&first_), &place_);
}

// A reduction needs four bytes beside its result at large shapes alone. Given the same place twice, torch
// ended the process when it gave the second one back.
TEST_F(PlacesOfOneOutput, OneThatIsHeldIsNotGivenTwice) {
  begin();
  void* const once = allocate(&first_);
  release(once);
  void* const again = allocate(&first_);
  end(again);
  begin();
  void* const result = allocate(&first_);
  void* const beside = allocate(&second_);
  EXPECT_NE(result, beside);
  release(beside);
  release(result);
  void* const last = allocate(&first_);
  end(last);
}

TEST_F(PlacesOfOneOutput, OfSeveralWithOneMemoryTheLastWasTheResult) {
  begin();
  void* const scratch = allocate(&first_);
  release(scratch);
  void* const result = allocate(&first_);
  EXPECT_EQ(result, scratch);
  end(result);
  begin();
  EXPECT_EQ(allocate(&second_), &second_) << "scratch";
  EXPECT_EQ(allocate(&first_), &place_);
}

TEST_F(PlacesOfOneOutput, WhatACandidateKeepsHasNone) {
  begin();
  void* const kept = allocate(&first_);
  places_.note_result(0, kept);
  places_.learn();
  begin();
  EXPECT_EQ(allocate(&second_), &second_);
}

}  // namespace
}  // namespace warpsmith::device

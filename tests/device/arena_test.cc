// Memory that is kept and handed out again, host memory standing in for a GPU's.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "extension/arena.h"
#include "host_memory_gpu.h"

namespace warpsmith::device {
namespace {

// An arena goes with its process: nothing of it is given back before.
class Memory : public HostMemoryGpu {
 public:
  int allocate(std::uint64_t bytes, void** address) override {
    *address = blocks_.emplace_back(new char[bytes]).get();
    return 0;
  }
  int release(void*) override { return 0; }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
};

TEST(Arena, HandsOutAgainWhatWasGivenBack) {
  Memory gpu;
  Arena arena(gpu, 64 << 20);
  void* const first = arena.allocate(4000);
  void* const second = arena.allocate(4000);
  EXPECT_NE(first, second);
  arena.release(first);
  EXPECT_EQ(arena.allocate(3900), first);
  arena.release(second);
  EXPECT_NE(arena.allocate(1000), second) << "more than twice of what is asked for";
}

// Work that was enqueued on the one stream may still use it when the other's begins.
TEST(Arena, KeepsStreamsApart) {
  Memory gpu;
  Arena arena(gpu, 64 << 20);
  const int streams[2] = {};
  void* const memory = arena.allocate(4000, &streams[0]);
  arena.release(memory);
  EXPECT_NE(arena.allocate(4000, &streams[1]), memory);
  EXPECT_NE(arena.allocate(4000), memory);
  EXPECT_EQ(arena.allocate(4000, &streams[0]), memory);
}

// A CUDA graph works in what it was captured with, also when its tensors are gone.
TEST(Arena, WhatIsForEverIsNeverHandedOutAgain) {
  Memory gpu;
  Arena arena(gpu, 64 << 20);
  void* const captured = arena.allocate_for_ever(4000);
  ASSERT_NE(captured, nullptr);
  arena.release(captured);
  EXPECT_NE(arena.allocate(4000), captured);
  EXPECT_NE(arena.allocate_for_ever(4000), captured);
  EXPECT_EQ(arena.allocate_for_ever(65 << 20), nullptr);
}

TEST(Arena, TellsItsRoom) {
  Memory gpu;
  Arena arena(gpu, 64 << 20);
  EXPECT_EQ(arena.room(), 64u << 20);
  ASSERT_NE(arena.allocate(40 << 20), nullptr);
  EXPECT_EQ(arena.room(), 24u << 20);
}

// Of any stream: what is unused goes back before anything is refused.
TEST(Arena, MakesRoom) {
  Memory gpu;
  Arena arena(gpu, 64 << 20);
  const int stream = 0;
  void* const large = arena.allocate(40 << 20, &stream);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(arena.allocate(40 << 20), nullptr);
  arena.release(large);
  EXPECT_NE(arena.allocate(40 << 20), nullptr);
  EXPECT_EQ(arena.allocate(65 << 20), nullptr);
}

}  // namespace
}  // namespace warpsmith::device

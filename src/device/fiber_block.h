// One block whose threads are fibers: its shared memory, its threads, and where each of them waits.
#pragma once

#include <array>
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "block_runner.h"

namespace warpsmith::device {

inline constexpr std::size_t kStackBytes = 128 << 10;  // of a fiber

// Ends the process by the handler that was set.
[[noreturn]] void fail_launch(int failure, const char* message);
// wstw_runtime::place_shared.
void place_shared(unsigned* slot, unsigned bytes, unsigned align);

// Reserved address space; the pages in the middle can be used.
struct Mapping {
  char* base = nullptr;
  std::size_t bytes = 0;
  Mapping(std::size_t size, std::size_t guard);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

// Storage of one block's shared memory: static variables from the front, dynamic memory up to the guard page
// at the end.
struct Arena {
  Arena();
  char* shared() const;
  char* dynamic(std::uint32_t bytes) const;
  void poison(std::uint32_t dynamic_bytes) const;
  bool holds(std::uint64_t address) const {  // guards included
    const auto base = reinterpret_cast<std::uint64_t>(mapping.base);
    return address >= base && address < base + mapping.bytes;
  }
  Mapping mapping;
};

enum class Wait : std::uint8_t { kReady, kBarrier, kWarp, kActiveMask, kGrid, kDone };

struct FiberBlock;

// Memory that a thread has read.
struct Read {
  std::uint64_t begin = 0, end = 0;
};

struct Thread {
  wstw_ctx context;
  Wait wait = Wait::kDone;
  int op = 0;  // kWarp: which; kBarrier: its kind
  std::uint32_t mask = 0;
  std::uint64_t value = 0, argument = 0, result = 0;
  FiberBlock* block = nullptr;
  boost::context::fiber self;  // while it does not run
  std::uint64_t stack = 0;     // first address of kStackBytes
  std::array<Read, 8> reads;   // the last ones, in a ring
  std::uint32_t read_count = 0;
  std::uint64_t asked = 0;        // address that it has read last …
  std::uint32_t asked_again = 0;  // … and so often once more, with no other access between
};

struct FiberBlock {
  wstw_block block{};
  Arena arena;
  std::vector<std::unique_ptr<Thread>> threads;  // grows to the largest block so far
  std::uint32_t count = 0, alive = 0, at_barrier = 0;
  bool late_lanes = false;  // until the next barrier: Schedule::draw_laggards
};

}  // namespace warpsmith::device

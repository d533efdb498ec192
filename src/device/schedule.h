// Which thread goes on when another one stops, and which block begins when another one has ended.
//
// Programs run for their results and their times in ascending order, each thread until it waits. A program
// with a data race may well be right then. CUDA promises no order, and a right program is right in each: the
// other orders here are to show races (BlockRunner::run_mixed).
//
// In kReverse the highest block and thread come first. In the others the next one is drawn, several blocks
// run together, and a thread may let others go first right before it reads or writes memory. Beside that some
// threads stay behind until no other thread can go on:
//   kLateUpdates  those that write to global memory where they have just read. Were it a sum that others add
//   to
//                 without atomics, their parts would be lost.
//   kLateWarps    behind a barrier: one warp or thread, or all but one; or, until the next barrier, lanes
//   behind
//                 each operation of their warp.
//   kRandom       some of those that access memory, more of those that write where they have just read.
// In each, a thread that reads one place again and again stays behind, too: it waits for another one.
//
// One thing CUDA does not promise, but every GPU keeps: blocks begin in ascending order, so one that waits
// for an earlier one does not wait for ever. Where threads run for long and none ends (Turn::kStall), nothing
// is held back any more: threads that stay behind go on, and the lowest block that has not begun begins.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "warpsmith/base/random.h"

namespace warpsmith::device {

struct Thread;

enum class Order { kAscending, kReverse, kLateUpdates, kLateWarps, kRandom };

struct Access {
  enum Kind { kRead, kWrite, kAtomic } kind = kRead;
  std::uint64_t begin = 0, end = 0;
  bool shared = false;  // in the block's shared memory
};
// What a thread does before an access.
enum class Turn { kGoOn, kYield, kStayBehind, kStall };

// Of a group of threads that go on together, those that stay behind: numbers [first, last), or all others.
struct Laggards {
  std::uint32_t first = 0, last = 0;
  bool others = false;
  bool contain(std::uint32_t number) const { return (number >= first && number < last) != others; }
};

class Schedule {
 public:
  // Of a launch of `blocks` blocks.
  void begin(Order order, std::uint64_t key, std::uint64_t blocks);

  void add(Thread* ready) { ready_.push_back(ready); }
  // Behind all others.
  void add_last(Thread* ready);
  bool has_ready() const { return !ready_.empty(); }
  Thread* take();
  void stay_behind(Thread* thread) { behind_.push_back(thread); }
  // Those that stayed behind are ready; false where there are none.
  bool let_go_on();

  // Of `count` threads of a block that begin or go on behind a barrier, or of a warp.
  Laggards draw_laggards(std::uint32_t count);
  // Whether it is lanes of warps that stay behind in a block until its next barrier.
  bool draw_late_lanes() { return order_ == Order::kLateWarps && random_() % 4 == 0; }
  // Of `thread`, which is about to access memory.
  Turn before(Thread& thread, const Access& access);
  void thread_ended() { accesses_ = 0; }

  // Number of a block that has not begun; nothing when all have.
  std::optional<std::uint64_t> next_block();
  std::optional<std::uint64_t> lowest_block();

 private:
  bool is_drawn() const { return order_ != Order::kAscending && order_ != Order::kReverse; }

  Order order_ = Order::kAscending;
  Random random_{0};
  std::deque<Thread*> ready_;
  std::vector<Thread*> behind_;
  std::vector<std::uint64_t> drawn_from_;  // the lowest blocks that have not begun
  std::uint64_t low_ = 0, high_ = 0;       // the others that have not
  std::uint64_t accesses_ = 0;             // since a thread ended or the schedule gave way
};

}  // namespace warpsmith::device

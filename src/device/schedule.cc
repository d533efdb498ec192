#include "schedule.h"

#include <algorithm>

#include "fiber_block.h"

namespace warpsmith::device {

namespace {

// Accesses of all threads without an end of one. Threads with much to do also get here, and nothing is lost.
constexpr std::uint64_t kStall = 20000;
constexpr std::size_t kDrawnFrom = 16;

// Notes a read, and says of a write whether the thread has just read some of what it is about to write.
bool updates(Thread& t, const Access& a) {
  if (a.kind == Access::kRead) t.reads[t.read_count++ % t.reads.size()] = {a.begin, a.end};
  return a.kind == Access::kWrite && std::any_of(t.reads.begin(), t.reads.end(), [&](const Read& r) {
           return r.begin < a.end && a.begin < r.end;
         });
}

// Whether the thread reads one place again and again, waiting for another thread.
bool spins(Thread& t, const Access& a) {
  constexpr std::uint32_t kTurns = 4;
  const bool again = a.kind != Access::kWrite && a.begin == t.asked;
  t.asked = a.begin;
  t.asked_again = again ? t.asked_again + 1 : 0;
  return t.asked_again >= kTurns;
}

}  // namespace

void Schedule::begin(Order order, std::uint64_t key, std::uint64_t blocks) {
  order_ = order;
  random_ = Random(key);
  drawn_from_.clear();
  low_ = 0;
  high_ = blocks;
  accesses_ = 0;
}

Thread* Schedule::take() {
  if (is_drawn()) std::swap(ready_.back(), ready_[random_() % ready_.size()]);
  Thread* const next = order_ == Order::kAscending ? ready_.front() : ready_.back();
  if (order_ == Order::kAscending)
    ready_.pop_front();
  else
    ready_.pop_back();
  return next;
}

void Schedule::add_last(Thread* ready) {
  if (order_ == Order::kReverse)
    ready_.push_front(ready);
  else
    ready_.push_back(ready);
}

bool Schedule::let_go_on() {
  if (behind_.empty()) return false;
  ready_.insert(ready_.end(), behind_.begin(), behind_.end());
  behind_.clear();
  return true;
}

Laggards Schedule::draw_laggards(std::uint32_t count) {
  if (order_ != Order::kLateWarps) return {};
  const std::uint32_t unit = count > 32 && random_() % 4 != 0 ? 32 : 1;
  const auto first = static_cast<std::uint32_t>(random_() % count) / unit * unit;
  return {first, first + unit, random_() % 2 == 0};
}

Turn Schedule::before(Thread& thread, const Access& access) {
  if (++accesses_ >= kStall) {
    accesses_ = 0;
    if (order_ == Order::kReverse && low_ < high_) order_ = Order::kAscending;
    return Turn::kStall;
  }
  if (spins(thread, access)) return Turn::kStayBehind;
  if (!is_drawn()) return Turn::kGoOn;
  const bool update = updates(thread, access);
  const std::uint64_t draw = random_() % 32;
  if (order_ == Order::kLateUpdates && update && !access.shared && draw < 24) return Turn::kStayBehind;
  if (order_ == Order::kRandom && draw < (update ? 16u : 2u)) return Turn::kStayBehind;
  return draw < (access.kind == Access::kWrite ? 16u : 6u) ? Turn::kYield : Turn::kGoOn;
}

std::optional<std::uint64_t> Schedule::next_block() {
  if (order_ == Order::kAscending) return lowest_block();
  if (order_ == Order::kReverse) return low_ < high_ ? std::optional(--high_) : std::nullopt;
  while (drawn_from_.size() < kDrawnFrom && low_ < high_) drawn_from_.push_back(low_++);
  if (drawn_from_.empty()) return std::nullopt;
  std::swap(drawn_from_.back(), drawn_from_[random_() % drawn_from_.size()]);
  const std::uint64_t block = drawn_from_.back();
  drawn_from_.pop_back();
  return block;
}

std::optional<std::uint64_t> Schedule::lowest_block() {
  if (drawn_from_.empty()) return low_ < high_ ? std::optional(low_++) : std::nullopt;
  const auto lowest = std::min_element(drawn_from_.begin(), drawn_from_.end());
  const std::uint64_t block = *lowest;
  drawn_from_.erase(lowest);
  return block;
}

}  // namespace warpsmith::device

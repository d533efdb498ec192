// Work done side by side, its results taken in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace warpsmith::store {

// Calls make(0) … make(n - 1) on up to `threads` threads, and take(result) on this one, in the order of the
// numbers. Throws what make or take threw first, in that order; the threads have ended by then.
template <typename Make, typename Take>
void in_order(std::size_t n, std::size_t threads, const Make& make, const Take& take) {
  using Result = decltype(make(std::size_t{0}));
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::vector<Slot> slots(n);
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      Slot made;
      try {
        made.result.emplace(make(i));
      } catch (...) {
        made.error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      slots[i] = std::move(made);
      changed.notify_one();
    }
  };
  std::vector<std::jthread> workers;
  // Destroyed before the threads are joined: after an error they begin nothing more.
  struct Stop {
    std::atomic<std::size_t>& next;
    std::size_t end;
    ~Stop() { next = end; }
  } stop{next, n};
  for (std::size_t i = 0; i < std::min(threads, n); ++i) workers.emplace_back(work);
  for (std::size_t i = 0; i < n; ++i) {
    Slot slot;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return slots[i].result || slots[i].error; });
      slot = std::move(slots[i]);
    }
    if (slot.error) std::rethrow_exception(slot.error);
    take(std::move(*slot.result));
  }
}

}  // namespace warpsmith::store

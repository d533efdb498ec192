#include "launcher.h"

#include <algorithm>

#include "twin_protocol.h"

namespace warpsmith::device {

namespace {
constexpr int kSpins = 4000;  // some 20 to 50 µs
}

Launcher::Launcher(int threads, void (*thread_starts)()) {
  for (int i = 0; i < std::max(threads, 1); ++i) runners_.push_back(std::make_unique<BlockRunner>());
  for (std::size_t i = 1; i < runners_.size(); ++i)
    threads_.emplace_back([this, i, thread_starts] {
      thread_starts();
      work(i);
    });
}

Launcher::~Launcher() {
  stop_ = true;
  ++sequence_;
  wake_word(sequence_);
  for (std::thread& t : threads_) t.join();
}

void Launcher::work(std::size_t index) {
  std::uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; sequence_.load(std::memory_order_acquire) == seen; ++spins) {
      if (spins < kSpins) {
        pause_briefly();
      } else {
        ++sleepers_;
        wait_on_word(sequence_, seen, 3600);
        --sleepers_;
      }
    }
    seen = sequence_.load(std::memory_order_acquire);
    if (stop_) return;
    do_share(index);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void Launcher::do_share(std::size_t index) {
  BlockRunner& runner = *runners_[index];
  runner.begin(launch_);
  if (grid_) {
    runner.run_grid(index, runners_.size(), grid_.get());
    return;
  }
  const std::uint64_t total = launch_.blocks();
  for (;;) {
    // In order, so that a block may wait for what an earlier one writes.
    const std::uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (first >= total) return;
    runner.run(first, std::min(first + chunk_, total));
  }
}

void Launcher::run(const Launch& launch) {
  if (runners_.size() == 1 && !launch.is_one_grid()) {
    runners_[0]->begin(launch);
    runners_[0]->run(0, launch.blocks());
    return;
  }
  launch_ = launch;
  grid_ = launch.is_one_grid() ? std::make_unique<GridBarrier>() : nullptr;
  next_.store(0, std::memory_order_relaxed);
  chunk_ = std::max<std::uint64_t>(1, launch.blocks() / (runners_.size() * 8));
  if (threads_.empty() || (!grid_ && launch.blocks() == 1)) {
    do_share(0);
    return;
  }
  busy_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  sequence_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load() > 0) wake_word(sequence_);
  do_share(0);
  while (busy_.load(std::memory_order_acquire) != 0) pause_briefly();
}

void Launcher::run_mixed(const Launch& launch, Order order, std::uint64_t key) {
  runners_[0]->begin(launch);
  runners_[0]->run_mixed(order, key);
}

bool Launcher::in_stack_guard(std::uint64_t address) const {
  for (const auto& r : runners_)
    if (r->in_stack_guard(address)) return true;
  return false;
}

bool Launcher::in_shared_guard(std::uint64_t address) const {
  for (const auto& r : runners_)
    if (r->in_shared_guard(address)) return true;
  return false;
}

}  // namespace warpsmith::device

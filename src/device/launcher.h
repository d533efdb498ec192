// Runs launches: blocks spread over a fixed number of CPU threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "block_runner.h"

namespace warpsmith::device {

class Launcher {
 public:
  // Starts threads - 1 threads beside the calling one. `thread_starts` runs in each of them first (signal
  // stacks).
  Launcher(int threads, void (*thread_starts)());
  ~Launcher();
  void run(const Launch& launch);
  // On the calling thread alone (BlockRunner::run_mixed).
  void run_mixed(const Launch& launch, Order order, std::uint64_t key);
  bool in_stack_guard(std::uint64_t address) const;
  bool in_shared_guard(std::uint64_t address) const;

 private:
  void work(std::size_t index);
  void do_share(std::size_t index);

  std::vector<std::unique_ptr<BlockRunner>> runners_;
  std::vector<std::thread> threads_;
  Launch launch_;
  std::atomic<std::uint64_t> next_{0};
  std::uint64_t chunk_ = 1;
  std::unique_ptr<GridBarrier> grid_;
  std::atomic<std::uint32_t> sequence_{0}, sleepers_{0};
  std::atomic<std::uint32_t> busy_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace warpsmith::device

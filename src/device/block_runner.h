// Runs the blocks of a launch on one CPU thread: straight through where no thread waits, on fibers where
// threads of a block wait for one another. A CUDA thread that returns counts as arrived wherever the others
// wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedule.h"
#include "warpsmith/toolchain/twin_abi.h"

namespace warpsmith::device {

struct Launch {
  const wstw_kernel* kernel = nullptr;
  wstw_uint3 grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t dynamic_bytes = 0;
  bool cooperative = false;
  void* const* args = nullptr;
  std::uint64_t blocks() const { return std::uint64_t{grid.x} * grid.y * grid.z; }
  std::uint32_t threads() const { return block.x * block.y * block.z; }
  // All blocks must be alive together.
  bool is_one_grid() const { return cooperative && kernel->waits != 0; }
};

// Thrown nowhere: candidates' frames lie between. Ends the process by way of this function.
using FailHandler = void (*)(int failure, const char* message);
void set_fail_handler(FailHandler handler);

// What the CPU threads that run one cooperative grid share.
struct GridBarrier {
  std::atomic<std::uint64_t> arrived{0}, alive{0}, alive_before{0};
  std::atomic<std::uint32_t> phase{0};
};

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // Before the first block of a launch: storage of shared memory, filled with a pattern, so that nothing
  // carries over.
  void begin(const Launch& launch);
  void run(std::uint64_t first, std::uint64_t last);
  // This thread's share (`index` of `count` threads) of a grid whose blocks are all alive together.
  void run_grid(std::uint64_t index, std::uint64_t count, GridBarrier* barrier);
  // All blocks of a program in its checked form (twin_abi.h), several at a time, every thread a fiber; `key`
  // is what is drawn from.
  void run_mixed(Order order, std::uint64_t key);
  // Whether an address lies in a guard page of a fiber's stack, or beside the shared memory. Safe in a signal
  // handler.
  bool in_stack_guard(std::uint64_t address) const;
  bool in_shared_guard(std::uint64_t address) const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// wstw_module::access is set to this for a program in its checked form.
void before_access(const void* address, unsigned long bytes, int access);

}  // namespace warpsmith::device

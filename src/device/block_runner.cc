#include "block_runner.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstring>
#include <mutex>

#include "twin_protocol.h"

namespace warpsmith::device {

namespace ctx = boost::context;

namespace {

constexpr std::size_t kStaticBytes = 256 << 10;  // all static shared variables of one module
constexpr std::size_t kDynamicBytes = 256 << 10;
constexpr std::size_t kStackBytes = 128 << 10;  // of a fiber
constexpr std::size_t kSharedGuard = 64 << 10;

FailHandler fail_handler = nullptr;

[[noreturn]] void fail(int failure, const char* message) {
  if (fail_handler != nullptr) fail_handler(failure, message);
  std::abort();
}

std::atomic<std::uint32_t> static_used{0};

void place_shared(unsigned* slot, unsigned bytes, unsigned align) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != 0) return;
  const std::uint32_t at = (static_used.load() + align - 1) / align * align;
  if (at + bytes > kStaticBytes)
    fail(kWstwOutOfShared, "static shared memory of all kernels together is over 256 KiB");
  static_used.store(at + bytes);
  __atomic_store_n(slot, at + 1, __ATOMIC_RELEASE);
}

// Reserved address space; the pages in the middle can be used.
struct Mapping {
  char* base = nullptr;
  std::size_t bytes = 0;
  Mapping(std::size_t size, std::size_t guard) : bytes(size) {
    void* p = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED ||
        ::mprotect(static_cast<char*>(p) + guard, size - 2 * guard, PROT_READ | PROT_WRITE) != 0)
      fail(kWstwOutOfShared, "no memory for shared memory or stacks");
    base = static_cast<char*>(p);
  }
  ~Mapping() { ::munmap(base, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

// Storage of one block's shared memory: static variables from the front, dynamic memory up to the guard page
// at the end.
struct Arena {
  Mapping mapping{kStaticBytes + kDynamicBytes + 2 * kSharedGuard, kSharedGuard};
  Arena() { std::memset(shared(), 0xFF, kStaticBytes); }  // variables get their places later
  char* shared() const { return mapping.base + kSharedGuard; }
  char* dynamic(std::uint32_t bytes) const {
    return mapping.base + mapping.bytes - kSharedGuard - (bytes + 15) / 16 * 16;
  }
  void poison(std::uint32_t dynamic_bytes) const {
    std::memset(shared(), 0xFF, static_used.load());
    if (dynamic_bytes) std::memset(dynamic(dynamic_bytes), 0xFF, dynamic_bytes);
  }
};

enum class Wait : std::uint8_t { kReady, kBarrier, kWarp, kActiveMask, kGrid, kDone };

struct Thread {
  wstw_ctx context;
  Wait wait = Wait::kDone;
  int op = 0;  // kWarp: which; kBarrier: its kind
  std::uint32_t mask = 0;
  std::uint64_t value = 0, argument = 0, result = 0;
  ctx::fiber self, scheduler;
  const Launch* launch = nullptr;
};

// Stacks are pooled by their fibers; nothing is freed one by one.
struct NoAllocator {
  using traits_type = ctx::stack_traits;
  ctx::stack_context allocate() { return {}; }
  void deallocate(ctx::stack_context&) noexcept {}
};

// One block whose threads are fibers.
struct FiberBlock {
  wstw_block block{};
  std::unique_ptr<Arena> arena = std::make_unique<Arena>();
  std::vector<std::unique_ptr<Thread>> threads;  // grows to the largest block so far
  std::uint32_t count = 0, alive = 0, at_barrier = 0, at_grid = 0;
  Thread* current = nullptr;
};

}  // namespace

struct BlockRunner::State {
  Launch launch;
  wstw_block block{};
  Arena arena;
  FiberBlock fibers;                              // blocks one after the other
  std::vector<std::unique_ptr<FiberBlock>> grid;  // blocks alive together
  FiberBlock* active = nullptr;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      stack_guards;  // sorted by nothing; read by the signal handler

  void add_thread(FiberBlock& b);
  void start_block(FiberBlock& b, std::uint64_t number);
  void run_until_stuck(FiberBlock& b);
  void resume(FiberBlock& b, Thread& t);
  void suspend(FiberBlock& b);
  bool release_barrier(FiberBlock& b);
  bool release_warp(FiberBlock& b, std::uint32_t lane_thread);
  bool release_active_mask(FiberBlock& b);
  void ended(FiberBlock& b, std::uint32_t rank);
  int barrier(int kind, int predicate);
  std::uint64_t warp(std::uint32_t rank, int op, std::uint32_t mask, std::uint64_t value,
                     std::uint64_t argument);
  void grid_sync();
};

namespace {

BlockRunner::State* state_of(const wstw_ctx* thread) {
  return static_cast<BlockRunner::State*>(thread->block->worker);
}

const wstw_runtime kRuntime = {
    [](const wstw_ctx* t, int kind, int predicate) { return state_of(t)->barrier(kind, predicate); },
    [](const wstw_ctx* t, int op, unsigned mask, unsigned long long value, unsigned long long argument)
        -> unsigned long long { return state_of(t)->warp(t->rank, op, mask, value, argument); },
    [](const wstw_ctx* t) { state_of(t)->grid_sync(); },
    place_shared,
    [](int failure, const char* message) { fail(failure, message); },
};

}  // namespace

void set_fail_handler(FailHandler handler) { fail_handler = handler; }

BlockRunner::BlockRunner() : state_(std::make_unique<State>()) {
  state_->stack_guards.reserve(1 << 14);  // never moves while a signal handler may read it
}
BlockRunner::~BlockRunner() = default;

void BlockRunner::begin(const Launch& launch) {
  State& s = *state_;
  s.launch = launch;
  s.block.block_dim = launch.block;
  s.block.grid_dim = launch.grid;
  s.block.thread_count = launch.threads();
  s.block.dynamic_bytes = launch.dynamic_bytes;
  s.block.runtime = &kRuntime;
  s.block.worker = &s;
  s.block.shared = s.arena.shared();
  s.block.dynamic = s.arena.dynamic(launch.dynamic_bytes);
  if (launch.kernel->waits) {
    s.fibers.arena->poison(launch.dynamic_bytes);
  } else {
    s.arena.poison(launch.dynamic_bytes);
  }
}

void BlockRunner::run(std::uint64_t first, std::uint64_t last) {
  State& s = *state_;
  if (!s.launch.kernel->waits) {
    s.launch.kernel->blocks(&s.block, first, last, s.launch.args);
    return;
  }
  s.active = &s.fibers;
  for (std::uint64_t b = first; b < last; ++b) {
    s.start_block(s.fibers, b);
    s.run_until_stuck(s.fibers);
    if (s.fibers.at_grid > 0) fail(kWstwLaunch, "grid.sync() in a launch that is not `cooperative`");
  }
}

void BlockRunner::run_grid(std::uint64_t index, std::uint64_t count, GridBarrier* barrier) {
  State& s = *state_;
  std::size_t used = 0;
  for (std::uint64_t b = index; b < s.launch.blocks(); b += count) {
    if (used == s.grid.size()) s.grid.push_back(std::make_unique<FiberBlock>());
    s.grid[used]->arena->poison(s.launch.dynamic_bytes);
    s.start_block(*s.grid[used++], b);
  }
  for (;;) {
    std::uint64_t alive = 0;
    for (std::size_t i = 0; i < used; ++i) {
      FiberBlock& b = *s.grid[i];
      if (b.alive == 0) continue;
      s.active = &b;
      s.run_until_stuck(b);
      alive += b.alive;
    }
    // Everybody that is alive, everywhere, waits at grid.sync().
    barrier->alive += alive;
    const std::uint32_t phase = barrier->phase.load();
    if (barrier->arrived.fetch_add(1) + 1 == count) {
      barrier->alive_before = barrier->alive.exchange(0);
      barrier->arrived = 0;
      barrier->phase = phase + 1;
    } else {
      for (int spins = 0; barrier->phase.load() == phase; ++spins)
        if (spins < 2000)
          pause_briefly();
        else
          ::sched_yield();
    }
    if (barrier->alive_before.load() == 0) return;
    for (std::size_t i = 0; i < used; ++i) {
      FiberBlock& b = *s.grid[i];
      b.at_grid = 0;
      for (std::uint32_t t = 0; t < b.count; ++t)
        if (b.threads[t]->wait == Wait::kGrid) b.threads[t]->wait = Wait::kReady;
    }
  }
}

bool BlockRunner::in_stack_guard(std::uint64_t address) const {
  for (const auto& [begin, end] : state_->stack_guards)
    if (address >= begin && address < end) return true;
  return false;
}

bool BlockRunner::in_shared_guard(std::uint64_t address) const {
  const auto beside = [&](const Arena& arena) {
    const auto base = reinterpret_cast<std::uint64_t>(arena.mapping.base);
    return address >= base && address < base + arena.mapping.bytes;
  };
  if (beside(state_->arena) || beside(*state_->fibers.arena)) return true;
  for (const auto& b : state_->grid)
    if (beside(*b->arena)) return true;
  return false;
}

void BlockRunner::State::add_thread(FiberBlock& b) {
  // Guard pages below each stack.
  const std::size_t size = kStackBytes + 2 * kPageBytes;
  auto* const mapping = new Mapping(size, kPageBytes);  // lives as long as the process
  const auto low = reinterpret_cast<std::uint64_t>(mapping->base);
  if (stack_guards.size() < stack_guards.capacity()) stack_guards.emplace_back(low, low + kPageBytes);
  auto thread = std::make_unique<Thread>();
  Thread* const t = thread.get();
  ctx::stack_context stack;
  stack.size = kStackBytes;
  stack.sp = mapping->base + kPageBytes + kStackBytes;
  t->self = ctx::fiber(std::allocator_arg, ctx::preallocated(stack.sp, stack.size, stack), NoAllocator{},
                       [t](ctx::fiber&& scheduler) {
                         t->scheduler = std::move(scheduler);
                         for (;;) {
                           t->launch->kernel->thread(&t->context, t->launch->args);
                           t->wait = Wait::kDone;
                           t->scheduler = std::move(t->scheduler).resume();
                         }
                         return std::move(t->scheduler);
                       });
  b.threads.push_back(std::move(thread));
}

void BlockRunner::State::start_block(FiberBlock& b, std::uint64_t number) {
  const Launch& l = launch;
  b.block = block;
  b.block.shared = b.arena->shared();
  b.block.dynamic = b.arena->dynamic(l.dynamic_bytes);
  b.block.block_idx = {static_cast<unsigned>(number % l.grid.x),
                       static_cast<unsigned>(number / l.grid.x % l.grid.y),
                       static_cast<unsigned>(number / l.grid.x / l.grid.y)};
  b.count = b.alive = l.threads();
  b.at_barrier = b.at_grid = 0;
  while (b.threads.size() < b.count) add_thread(b);
  std::uint32_t rank = 0;
  for (unsigned z = 0; z < l.block.z; ++z)
    for (unsigned y = 0; y < l.block.y; ++y)
      for (unsigned x = 0; x < l.block.x; ++x, ++rank) {
        Thread& t = *b.threads[rank];
        t.context = {{x, y, z}, b.block.block_idx, l.block, l.grid, &b.block, rank, 0, nullptr};
        t.wait = Wait::kReady;
        t.launch = &launch;
      }
}

void BlockRunner::State::resume(FiberBlock& b, Thread& t) {
  b.current = &t;
  t.self = std::move(t.self).resume();
}

void BlockRunner::State::suspend(FiberBlock& b) {
  Thread& t = *b.current;
  t.scheduler = std::move(t.scheduler).resume();
}

// Until all are done or all wait at grid.sync().
void BlockRunner::State::run_until_stuck(FiberBlock& b) {
  while (b.alive > 0) {
    bool progress = false;
    for (std::uint32_t rank = 0; rank < b.count; ++rank) {
      Thread& t = *b.threads[rank];
      if (t.wait != Wait::kReady) continue;
      progress = true;
      resume(b, t);
      if (t.wait == Wait::kDone) ended(b, rank);
    }
    if (progress || release_active_mask(b)) continue;
    if (b.at_grid == b.alive) return;
    for (std::uint32_t rank = 0; rank < b.count; ++rank)
      if (b.threads[rank]->wait == Wait::kWarp)
        fail(kWstwUnsupported,
             "a warp-level operation in a divergent branch: lanes of its mask wait elsewhere");
    fail(kWstwUnsupported, "some threads of a block wait at a barrier that others never reach");
  }
}

// The thread has returned: that counts as arriving everywhere.
void BlockRunner::State::ended(FiberBlock& b, std::uint32_t rank) {
  --b.alive;
  release_barrier(b);
  const std::uint32_t first = rank / 32 * 32, last = std::min(first + 32, b.count);
  for (std::uint32_t i = first; i < last; ++i)
    if (b.threads[i]->wait == Wait::kWarp) release_warp(b, i);
}

bool BlockRunner::State::release_barrier(FiberBlock& b) {
  if (b.at_barrier == 0 || b.at_barrier != b.alive) return false;
  int true_count = 0;
  for (std::uint32_t i = 0; i < b.count; ++i)
    if (b.threads[i]->wait == Wait::kBarrier) true_count += b.threads[i]->value != 0;
  for (std::uint32_t i = 0; i < b.count; ++i) {
    Thread& t = *b.threads[i];
    if (t.wait != Wait::kBarrier) continue;
    t.result = t.op == kWstwCount ? static_cast<std::uint64_t>(true_count)
               : t.op == kWstwAnd ? static_cast<std::uint64_t>(true_count) == b.at_barrier
                                  : true_count > 0;
    t.wait = Wait::kReady;
  }
  b.at_barrier = 0;
  return true;
}

int BlockRunner::State::barrier(int kind, int predicate) {
  FiberBlock& b = *active;
  Thread& t = *b.current;
  t.wait = Wait::kBarrier;
  t.op = kind;
  t.value = predicate != 0;
  ++b.at_barrier;
  if (!release_barrier(b)) suspend(b);
  return static_cast<int>(t.result);
}

namespace {

std::uint64_t reduce_lanes(int op, std::uint32_t members, const std::uint64_t (&values)[32]) {
  bool first = true;
  std::uint32_t r = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!(members >> lane & 1u)) continue;
    const auto v = static_cast<std::uint32_t>(values[lane]);
    if (first)
      r = v;
    else
      switch (op) {
        case kWstwSum:
          r += v;
          break;
        case kWstwMinU:
          r = std::min(r, v);
          break;
        case kWstwMaxU:
          r = std::max(r, v);
          break;
        case kWstwMinS:
          r = static_cast<std::uint32_t>(
              std::min(static_cast<std::int32_t>(r), static_cast<std::int32_t>(v)));
          break;
        case kWstwMaxS:
          r = static_cast<std::uint32_t>(
              std::max(static_cast<std::int32_t>(r), static_cast<std::int32_t>(v)));
          break;
        case kWstwBitAnd:
          r &= v;
          break;
        case kWstwBitOr:
          r |= v;
          break;
        default:
          r ^= v;
          break;
      }
    first = false;
  }
  return r;
}

}  // namespace

// Lets the group that thread `i` waits in go on, if all of it is there.
bool BlockRunner::State::release_warp(FiberBlock& b, std::uint32_t i) {
  const Thread& asking = *b.threads[i];
  const std::uint32_t first = i / 32 * 32;
  std::uint32_t members = 0;
  std::uint64_t values[32] = {};
  for (std::uint32_t lane = 0; lane < 32 && first + lane < b.count; ++lane) {
    if (!(asking.mask >> lane & 1u)) continue;
    const Thread& t = *b.threads[first + lane];
    if (t.wait == Wait::kDone) continue;
    if (t.wait != Wait::kWarp || t.mask != asking.mask || t.op != asking.op) return false;
    members |= 1u << lane;
    values[lane] = t.value;
  }
  const int op = asking.op;
  std::uint32_t set = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if ((members >> lane & 1u) && values[lane] != 0) set |= 1u << lane;
  const bool reduces = op >= kWstwSum;
  const std::uint64_t reduced = reduces ? reduce_lanes(op, members, values) : 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!(members >> lane & 1u)) continue;
    Thread& t = *b.threads[first + lane];
    switch (op) {
      case kWstwGather: {
        const auto source = static_cast<std::uint32_t>(t.argument & 31u);
        t.result = (members >> source & 1u) ? values[source] : t.value;
        break;
      }
      case kWstwBallot:
        t.result = set;
        break;
      case kWstwAny:
        t.result = set != 0;
        break;
      case kWstwAll:
        t.result = set == members;
        break;
      case kWstwMatchAny: {
        std::uint32_t same = 0;
        for (std::uint32_t other = 0; other < 32; ++other)
          if ((members >> other & 1u) && values[other] == t.value) same |= 1u << other;
        t.result = same;
        break;
      }
      default:
        t.result = reduced;
        break;
    }
    t.wait = Wait::kReady;
  }
  return true;
}

// When nobody else can go on, the lanes of a warp that stand at one __activemask() are those that are active
// there.
bool BlockRunner::State::release_active_mask(FiberBlock& b) {
  for (std::uint32_t i = 0; i < b.count; ++i) {
    if (b.threads[i]->wait != Wait::kActiveMask) continue;
    const std::uint32_t first = i / 32 * 32;
    std::uint32_t members = 0;
    const std::uint64_t place = b.threads[i]->argument;
    for (std::uint32_t lane = 0; lane < 32 && first + lane < b.count; ++lane) {
      const Thread& t = *b.threads[first + lane];
      if (t.wait == Wait::kActiveMask && t.argument == place) members |= 1u << lane;
    }
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (members >> lane & 1u) {
        b.threads[first + lane]->result = members;
        b.threads[first + lane]->wait = Wait::kReady;
      }
    return true;
  }
  return false;
}

std::uint64_t BlockRunner::State::warp(std::uint32_t rank, int op, std::uint32_t mask, std::uint64_t value,
                                       std::uint64_t argument) {
  FiberBlock& b = *active;
  Thread& t = *b.current;
  t.op = op;
  t.value = value;
  t.argument = argument;
  if (op == kWstwActiveMask) {
    t.wait = Wait::kActiveMask;
    suspend(b);
    return t.result;
  }
  if (!(mask >> (rank & 31u) & 1u))
    fail(kWstwUnsupported, "a warp-level operation whose mask lacks the calling lane");
  t.mask = mask;
  t.wait = Wait::kWarp;
  if (!release_warp(b, rank)) suspend(b);
  return t.result;
}

void BlockRunner::State::grid_sync() {
  FiberBlock& b = *active;
  b.current->wait = Wait::kGrid;
  ++b.at_grid;
  suspend(b);
}

}  // namespace warpsmith::device

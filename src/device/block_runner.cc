#include "block_runner.h"

#include <sched.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>

#include "fiber_block.h"
#include "twin_protocol.h"
#include "warp_group.h"

namespace warpsmith::device {

namespace ctx = boost::context;

namespace {

// In a drawn order: so many threads are alive together, in 2 to 16 blocks. A launch whose blocks wait for
// others may get to `kMostThreads` in `kMostBlocks`.
constexpr std::uint64_t kTogether = 512, kMostThreads = 16384, kMostBlocks = 512;

// Stacks are pooled by their fibers; nothing is freed one by one.
struct NoAllocator {
  using traits_type = ctx::stack_traits;
  ctx::stack_context allocate() { return {}; }
  void deallocate(ctx::stack_context&) noexcept {}
};

}  // namespace

struct BlockRunner::State {
  Launch launch;
  wstw_block block{};
  Arena arena;                                      // of a kernel in which no thread waits
  std::vector<std::unique_ptr<FiberBlock>> blocks;  // blocks that are alive together
  std::size_t used = 0;                             // of them, by this launch
  std::uint64_t alive = 0, at_grid = 0;             // threads
  Schedule schedule;
  bool mixed = false;
  std::uint64_t undefined_reads = 0;
  // Where the CPU is, and where it has come from: who goes on puts away the context that it gets.
  Thread* current = nullptr;
  ctx::fiber self;  // outside of all fibers
  ctx::fiber* left = nullptr;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stack_guards;  // read by the signal handler

  void add_thread(FiberBlock& b);
  FiberBlock& unused_block();
  void start_block(FiberBlock& b, std::uint64_t number);
  void start_next(FiberBlock& b, bool lowest);
  void leave(ctx::fiber& here);
  void settle();
  void ready(Thread& t);
  void ready_or_behind(Thread& t, bool behind);
  bool release_barrier(FiberBlock& b);
  bool release_warp(FiberBlock& b, std::uint32_t rank);
  bool release_active_mask(FiberBlock& b);
  void release_grid();
  void ended(Thread& t);
  int barrier(int kind, int predicate);
  std::uint64_t warp(std::uint32_t rank, int op, std::uint32_t mask, std::uint64_t value,
                     std::uint64_t argument);
  void grid_sync();
  void access(const Access& access);
};

namespace {

BlockRunner::State* state_of(const wstw_ctx* thread) {
  return static_cast<BlockRunner::State*>(thread->block->worker);
}

// The runner whose launch is in another order: there is one CPU thread then.
BlockRunner::State* mixed_runner = nullptr;

const wstw_runtime kRuntime = {
    [](const wstw_ctx* t, int kind, int predicate) { return state_of(t)->barrier(kind, predicate); },
    [](const wstw_ctx* t, int op, unsigned mask, unsigned long long value, unsigned long long argument)
        -> unsigned long long { return state_of(t)->warp(t->rank, op, mask, value, argument); },
    [](const wstw_ctx* t) { state_of(t)->grid_sync(); },
    place_shared,
    [](int failure, const char* message) { fail_launch(failure, message); },
};

}  // namespace

void before_access(const void* address, unsigned long bytes, int access) {
  if (mixed_runner == nullptr || mixed_runner->current == nullptr) return;
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  mixed_runner->access({static_cast<Access::Kind>(access), begin, begin + bytes});
}

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
  s.used = 0;
  s.mixed = false;
  s.schedule.begin(Order::kAscending, 0, 0);
  if (!launch.kernel->waits) s.arena.poison(launch.dynamic_bytes);
}

void BlockRunner::run(std::uint64_t first, std::uint64_t last) {
  State& s = *state_;
  if (!s.launch.kernel->waits) {
    s.launch.kernel->blocks(&s.block, first, last, s.launch.args);
    return;
  }
  if (s.used == 0) s.unused_block().arena.poison(s.launch.dynamic_bytes);
  for (std::uint64_t b = first; b < last; ++b) {
    s.start_block(*s.blocks[0], b);
    s.settle();
    if (s.at_grid > 0) fail_launch(kWstwLaunch, "grid.sync() in a launch that is not `cooperative`");
  }
}

void BlockRunner::run_grid(std::uint64_t index, std::uint64_t count, GridBarrier* barrier) {
  State& s = *state_;
  for (std::uint64_t number = index; number < s.launch.blocks(); number += count) {
    FiberBlock& b = s.unused_block();
    b.arena.poison(s.launch.dynamic_bytes);
    s.start_block(b, number);
  }
  for (;;) {
    s.settle();
    // Everybody that is alive, everywhere, waits at grid.sync().
    barrier->alive += s.alive;
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
    s.release_grid();
  }
}

void BlockRunner::run_mixed(Order order, std::uint64_t key) {
  State& s = *state_;
  s.mixed = true;
  s.schedule.begin(order, key, s.launch.blocks());
  mixed_runner = &s;
  const std::uint64_t blocks = s.launch.is_one_grid() ? s.launch.blocks()
                               : order == Order::kReverse
                                   ? 1
                                   : std::clamp<std::uint64_t>(kTogether / s.launch.threads(), 2, 16);
  for (std::uint64_t i = 0; i < std::min(blocks, s.launch.blocks()); ++i)
    s.start_next(s.unused_block(), false);
  for (s.settle(); s.alive > 0; s.settle()) {
    if (!s.launch.cooperative) fail_launch(kWstwLaunch, "grid.sync() in a launch that is not `cooperative`");
    s.release_grid();
  }
  mixed_runner = nullptr;
}

bool BlockRunner::in_stack_guard(std::uint64_t address) const {
  for (const auto& [begin, end] : state_->stack_guards)
    if (address >= begin && address < end) return true;
  return false;
}

bool BlockRunner::in_shared_guard(std::uint64_t address) const {
  return state_->arena.holds(address) || std::any_of(state_->blocks.begin(), state_->blocks.end(),
                                                     [&](const auto& b) { return b->arena.holds(address); });
}

void BlockRunner::State::add_thread(FiberBlock& b) {
  // Guard pages below each stack.
  const std::size_t size = kStackBytes + 2 * kPageBytes;
  auto* const mapping = new Mapping(size, kPageBytes);  // lives as long as the process
  const auto low = reinterpret_cast<std::uint64_t>(mapping->base);
  if (stack_guards.size() < stack_guards.capacity()) stack_guards.emplace_back(low, low + kPageBytes);
  auto thread = std::make_unique<Thread>();
  Thread* const t = thread.get();
  t->block = &b;
  t->stack = low + kPageBytes;
  ctx::stack_context stack;
  // Stacks that began at the same place of a page would compete for the same lines of the cache.
  stack.size = kStackBytes - b.threads.size() % 32 * 128;
  stack.sp = mapping->base + kPageBytes + stack.size;
  t->self = ctx::fiber(std::allocator_arg, ctx::preallocated(stack.sp, stack.size, stack), NoAllocator{},
                       [this, t](ctx::fiber&& before) {
                         *left = std::move(before);
                         for (;;) {
                           launch.kernel->thread(&t->context, launch.args);
                           ended(*t);
                           leave(t->self);
                         }
                         return ctx::fiber();
                       });
  b.threads.push_back(std::move(thread));
}

FiberBlock& BlockRunner::State::unused_block() {
  if (used == blocks.size()) blocks.push_back(std::make_unique<FiberBlock>());
  return *blocks[used++];
}

void BlockRunner::State::start_block(FiberBlock& b, std::uint64_t number) {
  const Launch& l = launch;
  b.block = block;
  b.block.shared = b.arena.shared();
  b.block.dynamic = b.arena.dynamic(l.dynamic_bytes);
  b.block.block_idx = {static_cast<unsigned>(number % l.grid.x),
                       static_cast<unsigned>(number / l.grid.x % l.grid.y),
                       static_cast<unsigned>(number / l.grid.x / l.grid.y)};
  b.count = b.alive = l.threads();
  b.at_barrier = 0;
  alive += b.count;
  while (b.threads.size() < b.count) add_thread(b);
  b.late_lanes = schedule.draw_late_lanes();
  const Laggards laggards = b.late_lanes ? Laggards{} : schedule.draw_laggards(b.count);
  std::uint32_t rank = 0;
  for (unsigned z = 0; z < l.block.z; ++z)
    for (unsigned y = 0; y < l.block.y; ++y)
      for (unsigned x = 0; x < l.block.x; ++x, ++rank) {
        Thread& t = *b.threads[rank];
        t.context = {{x, y, z}, b.block.block_idx, l.block, l.grid, &b.block, rank, 0, nullptr};
        ready_or_behind(t, laggards.contain(t.context.rank));
      }
}

// The next block that the schedule has, if any.
void BlockRunner::State::start_next(FiberBlock& b, bool lowest) {
  const std::optional<std::uint64_t> number = lowest ? schedule.lowest_block() : schedule.next_block();
  if (!number) return;
  b.arena.poison(launch.dynamic_bytes);
  start_block(b, *number);
}

void BlockRunner::State::ready(Thread& t) {
  t.wait = Wait::kReady;
  schedule.add(&t);
}

void BlockRunner::State::ready_or_behind(Thread& t, bool behind) {
  if (!behind) return ready(t);
  t.wait = Wait::kReady;
  schedule.stay_behind(&t);
}

// From the context `here` to the next thread that can go on, or, where there is none, out of the fibers.
void BlockRunner::State::leave(ctx::fiber& here) {
  Thread* const next = schedule.has_ready() ? schedule.take() : nullptr;
  if (next != nullptr && next == current) return;
  left = &here;
  current = next;
  ctx::fiber before = std::move(next != nullptr ? next->self : self).resume();
  *left = std::move(before);
}

// Until all threads have ended or all wait at grid.sync().
void BlockRunner::State::settle() {
  for (;;) {
    if (schedule.has_ready()) leave(self);
    if (schedule.let_go_on()) continue;
    bool released = false;
    for (std::size_t i = 0; i < used && !released; ++i) released = release_active_mask(*blocks[i]);
    if (released) continue;
    if (alive == at_grid) return;
    for (std::size_t i = 0; i < used; ++i)
      for (const auto& t : blocks[i]->threads)
        if (t->wait == Wait::kWarp)
          fail_launch(kWstwUnsupported,
                      "a warp-level operation in a divergent branch: lanes of its mask wait elsewhere");
    fail_launch(kWstwUnsupported, "some threads of a block wait at a barrier that others never reach");
  }
}

// The thread has returned: that counts as arriving everywhere.
void BlockRunner::State::ended(Thread& t) {
  FiberBlock& b = *t.block;
  t.wait = Wait::kDone;
  --alive;
  --b.alive;
  release_barrier(b);
  const std::uint32_t first = t.context.rank / 32 * 32, last = std::min(first + 32, b.count);
  for (std::uint32_t i = first; i < last; ++i)
    if (b.threads[i]->wait == Wait::kWarp) release_warp(b, i);
  if (!mixed) return;
  schedule.thread_ended();
  if (b.alive == 0) start_next(b, false);
}

bool BlockRunner::State::release_barrier(FiberBlock& b) {
  if (b.at_barrier == 0 || b.at_barrier != b.alive) return false;
  b.late_lanes = schedule.draw_late_lanes();
  const Laggards laggards = b.late_lanes ? Laggards{} : schedule.draw_laggards(b.count);
  std::uint32_t true_count = 0;
  for (std::uint32_t i = 0; i < b.count; ++i)
    if (b.threads[i]->wait == Wait::kBarrier) true_count += b.threads[i]->value != 0;
  for (std::uint32_t i = 0; i < b.count; ++i) {
    Thread& t = *b.threads[i];
    if (t.wait != Wait::kBarrier) continue;
    t.result = t.op == kWstwCount ? true_count
               : t.op == kWstwAnd ? true_count == b.at_barrier
                                  : true_count > 0;
    ready_or_behind(t, laggards.contain(t.context.rank));
  }
  b.at_barrier = 0;
  return true;
}

int BlockRunner::State::barrier(int kind, int predicate) {
  Thread& t = *current;
  t.wait = Wait::kBarrier;
  t.op = kind;
  t.value = predicate != 0;
  ++t.block->at_barrier;
  release_barrier(*t.block);
  leave(t.self);
  return static_cast<int>(t.result);
}

// Lets the group that thread `i` waits in go on, if all of it is there.
bool BlockRunner::State::release_warp(FiberBlock& b, std::uint32_t i) {
  const Thread& asking = *b.threads[i];
  const std::uint32_t first = i / 32 * 32, mask = asking.mask;
  const int op = asking.op;
  WarpGroup group;
  for (std::uint32_t lane = 0; lane < 32 && first + lane < b.count; ++lane) {
    if (!(mask >> lane & 1u)) continue;
    const Thread& t = *b.threads[first + lane];
    if (t.wait == Wait::kDone) continue;
    if (t.wait != Wait::kWarp || t.mask != mask || t.op != op) return false;
    group.members |= 1u << lane;
    group.values[lane] = t.value;
    group.arguments[lane] = t.argument;
  }
  perform(op, group, &undefined_reads);
  const Laggards laggards = b.late_lanes ? schedule.draw_laggards(32) : Laggards{};
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!(group.members >> lane & 1u)) continue;
    b.threads[first + lane]->result = group.results[lane];
    ready_or_behind(*b.threads[first + lane], laggards.contain(lane));
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
        ready(*b.threads[first + lane]);
      }
    return true;
  }
  return false;
}

std::uint64_t BlockRunner::State::warp(std::uint32_t rank, int op, std::uint32_t mask, std::uint64_t value,
                                       std::uint64_t argument) {
  Thread& t = *current;
  t.op = op;
  t.value = value;
  t.argument = argument;
  if (op == kWstwActiveMask) {
    t.wait = Wait::kActiveMask;
    leave(t.self);
    return t.result;
  }
  if (!(mask >> (rank & 31u) & 1u))
    fail_launch(kWstwUnsupported, "a warp-level operation whose mask lacks the calling lane");
  t.mask = mask;
  t.wait = Wait::kWarp;
  release_warp(*t.block, rank);
  leave(t.self);
  return t.result;
}

void BlockRunner::State::grid_sync() {
  current->wait = Wait::kGrid;
  ++at_grid;
  leave(current->self);
}

void BlockRunner::State::release_grid() {
  at_grid = 0;
  for (std::size_t i = 0; i < used; ++i)
    for (std::uint32_t t = 0; t < blocks[i]->count; ++t)
      if (blocks[i]->threads[t]->wait == Wait::kGrid) ready(*blocks[i]->threads[t]);
}

void BlockRunner::State::access(const Access& access) {
  Thread& t = *current;
  const auto is_in = [&](const auto& object) {
    const auto first = reinterpret_cast<std::uint64_t>(&object);
    return access.begin >= first && access.begin < first + sizeof object;
  };
  const bool own = access.begin >= t.stack && access.begin < t.stack + kStackBytes;
  if (own || is_in(t) || is_in(*t.block) || is_in(kRuntime)) return;  // not the program's memory
  switch (schedule.before(t, {access.kind, access.begin, access.end, t.block->arena.holds(access.begin)})) {
    case Turn::kGoOn:
      return;
    case Turn::kYield:
      schedule.add_last(&t);
      break;
    case Turn::kStayBehind:
      schedule.stay_behind(&t);
      break;
    case Turn::kStall:
      schedule.add_last(&t);
      schedule.let_go_on();
      if (alive + launch.threads() <= kMostThreads && used < kMostBlocks) start_next(unused_block(), true);
      break;
  }
  leave(t.self);
}

}  // namespace warpsmith::device

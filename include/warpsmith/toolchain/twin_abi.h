// What a shared object made by the host toolchain and the program that runs it (`warpsmith-twin`) agree on.
//
// This file is compiled twice: here, and (its text) in front of every candidate, where no standard header
// exists. So it includes nothing. Raise kWstwAbi with every change. All memory belongs to the program that
// runs the object.
#pragma once

enum : unsigned { kWstwAbi = 3 };

struct wstw_uint3 {
  unsigned x, y, z;
};

struct wstw_block;

// One CUDA thread, as the code of a candidate sees it. Passed by reference through every device function that
// asks who it is.
struct wstw_ctx {
  wstw_uint3 thread_idx, block_idx, block_dim, grid_dim;
  wstw_block* block;
  unsigned rank;  // number of the thread in its block
  // How the guard of a kernel is read: 0 as it stands, 1 as passed, 2 to find out: *passes is cleared where
  // it fails, and the thread returns.
  unsigned guard;
  bool* passes;
};

enum wstw_barrier_kind : int { kWstwSync = 0, kWstwCount = 1, kWstwAnd = 2, kWstwOr = 3 };

// Warp-level operations. Each takes the mask of the lanes that take part, a value and an argument of the
// calling lane, and waits until the other lanes of the mask that have not returned are there too.
enum wstw_warp_op : int {
  kWstwGather,      // the value of lane `argument`; undefined where that lane takes no part
  kWstwBallot,      // lanes whose value is not 0
  kWstwAny,         // 1 where some value is not 0
  kWstwAll,         // 1 where no value is 0
  kWstwWarpSync,    // 0
  kWstwMatchAny,    // lanes whose value equals the own one
  kWstwActiveMask,  // lanes that have reached this place (`argument`: an id of the place) together; `mask` is
                    // not looked at
  kWstwSum,         // of the low 32 bits
  kWstwMinU,
  kWstwMaxU,
  kWstwMinS,
  kWstwMaxS,
  kWstwBitAnd,
  kWstwBitOr,
  kWstwBitXor,
};

// Accesses to memory of a program in its checked form (below).
enum wstw_access : int { kWstwRead, kWstwWrite, kWstwAtomic };

enum wstw_failure : int { kWstwUnsupported = 1, kWstwOutOfShared = 2, kWstwLaunch = 3 };

// Services of the program that runs the object.
struct wstw_runtime {
  int (*barrier)(const wstw_ctx* thread, int kind, int predicate);
  unsigned long long (*warp)(const wstw_ctx* thread, int op, unsigned mask, unsigned long long value,
                             unsigned long long argument);
  void (*grid_sync)(const wstw_ctx* thread);
  // Gives a static `__shared__` variable its place: sets *slot to offset + 1, the same for all threads of the
  // process.
  void (*place_shared)(unsigned* slot, unsigned bytes, unsigned align);
  void (*fail)(int failure, const char* message);  // does not return
};

// The block that a CPU thread works on.
struct wstw_block {
  wstw_uint3 block_idx, block_dim, grid_dim;
  unsigned thread_count;
  unsigned dynamic_bytes;
  char* shared;   // static __shared__ variables; 256-byte aligned
  char* dynamic;  // extern __shared__; 256-byte aligned where its size is a multiple of 256, else 16-byte
                  // aligned
  const wstw_runtime* runtime;
  void* worker;  // the CPU thread's own state
};

enum wstw_param_kind : unsigned { kWstwPointer, kWstwInteger, kWstwFloat, kWstwOther };
struct wstw_param {
  unsigned kind, bytes;
};

// One kernel, by the name expression that a launch plan uses. `args[i]` points at the bytes of parameter i.
struct wstw_kernel {
  const char* name;
  const char* param_names;  // "x,out,N"
  const wstw_param* params;
  unsigned param_count;
  unsigned waits;      // 1: threads wait for one another
  unsigned grid_sync;  // 1: may call grid.sync(), so all blocks must be alive together
  // Runs blocks first … last-1, numbered x fastest. `block` has all but block_idx set. Only where no thread
  // waits, and not in the checked form.
  void (*blocks)(wstw_block* block, unsigned long long first, unsigned long long last, void* const* args);
  // Runs one thread, on a fiber. Only where threads wait, or in the checked form.
  void (*thread)(const wstw_ctx* thread, void* const* args);
};

// A `__device__` or `__constant__` variable.
struct wstw_symbol {
  const char* name;
  void* address;
  unsigned long long bytes;
};

// An object holds the program twice. `wstw_module_table` has it for its results and times;
// `wstw_checked_table` has it in its checked form: before each access to memory that other threads may see it
// calls `*access`, which may let other threads run.
struct wstw_module {
  unsigned abi, kernel_count, symbol_count, reserved;
  const wstw_kernel* kernels;
  const wstw_symbol* symbols;
  void (**access)(const void* address, unsigned long bytes, int access);  // null in `wstw_module_table`
};

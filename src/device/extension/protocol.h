// How an ExtensionSession and its child speak: words in shared memory (as a TwinSession's), and a socket for
// the one thing that memory cannot carry, a descriptor of GPU memory.
//
//   parent                         child
//                ◄──────────────── loaded = 1
//   request = 1  ────────────────►                             it has loaded torch, and may go to the GPU now
//                ◄──────────────── has_context = 1             its socket says who it is
//   alone = 1    ────────────────►                             nothing else runs on the GPU
//                ◄──────────────── response = 1                it works there
//   request = n  ────────────────►                             command, sets
//                ◄──────────────── response = n                kLoad, kPrepare, kRun, kTrace: answer
//   of kTime:
//                ◄──────────────── ready = n                   the untimed call is done, the GPU idle
//   [new values, flushes; waits]
//   arm = n      ────────────────►                             what it takes here is looked at
//                ◄──────────────── armed = n                   it did something small: the GPU is back in
//                                                              its context
//   clock starts, go = n ────────►
//   [stop = m    ────────────────►
//                ◄──────────────── waits = n                   before the m-th call from then on, if any]
//   [stops it there, or somewhere
//   without a word; looks, renews;
//   stop = 0, lets it go on]
//   clock stops  ◄──────────────── response = n                calls, device-wide synchronisation
//
// From each of the child's words on, `armed` apart, it stands still (SIGSTOP) until the parent's next one.
// All of it can be written by the candidate at any time. The parent reads words that it waits for, bounded
// text, and numbers that it checks.
#pragma once

#include <atomic>
#include <cstdint>

#include "warpsmith/toolchain/extension_abi.h"

namespace warpsmith::device {

// Programs in tests/hacks/ that write here themselves know this number and the block as it is.
inline constexpr std::uint32_t kExtensionProtocol = 9;
inline constexpr std::uint64_t kExtensionControlBytes = 1 << 20;
inline constexpr std::size_t kExtensionMessageBytes = 512;

enum class ExtensionCommand : std::uint32_t { kLoad = 1, kPrepare, kRun, kTime, kForget, kTrace };

enum class ExtensionAnswer : std::uint32_t {
  kDone,
  kLaunchError,  // not loaded, wrong arguments, an exception
  kOutOfMemory,
  kWrongResult,  // number, shapes or dtypes of what forward() gave back
  kCudaError,    // `error`
};

inline constexpr std::size_t kExtensionMostOffsets = 64 << 10;
inline constexpr std::size_t kExtensionKernelBytes = 64 << 10;

struct WireTensor {
  std::uint64_t bytes;
  std::int64_t sizes[warpsmith_extension::kMostDims];
  std::int32_t dims;
  warpsmith_extension::Scalar dtype;
};

struct ExtensionControl {
  std::uint32_t protocol, spin;  // spin: there is a processor for each side
  std::atomic<std::uint32_t> request, ready, arm, armed, go, response;
  // Of kTime
  std::atomic<std::uint32_t> current;      // the set whose call was begun last; first_set - 1: none yet
  std::atomic<std::uint32_t> stop, waits;  // m: before the m-th call from now on the row waits for 0
  ExtensionCommand command;
  std::uint32_t first_set, sets;
  std::uint64_t arena_bytes;
  // kPrepare
  std::uint64_t share_bytes;
  std::uint32_t offset_count;
  std::uint32_t by_handle;
  unsigned char handle[64];
  std::int32_t input_count, output_count, scalar_count;
  WireTensor inputs[warpsmith_extension::kMostTensors], outputs[warpsmith_extension::kMostTensors];
  warpsmith_extension::PlainScalar scalars[warpsmith_extension::kMostTensors];
  std::uint64_t offsets[kExtensionMostOffsets];  // [set][inputs, then outputs]
  // Answers
  ExtensionAnswer answer;
  std::int32_t error;
  std::int64_t event_ns;
  char message[kExtensionMessageBytes];
  // Behind everything else, where programs in tests/hacks/ need not know of them.
  std::atomic<std::uint32_t> loaded;  // 1: what needs no GPU is loaded, and it waits for the first request
  // Of the first request: 1: it has a context, and its socket says who it is; then 1: nothing else runs on
  // the GPU, so it may choose another.
  std::atomic<std::uint32_t> has_context, alone;
  double least_launch_ns;  // ExtensionGpu::choose_context()
  double launch_ns;        // its answer
  std::uint32_t idle;      // of kTime: the row so many times with calls that do nothing
  std::int64_t drain_ns;   // of kTime: from the last call's return until the GPU was done
  // Of kTrace: ExtensionGpu::kernels_of(), whole lines, as many as there is room for.
  char kernels[kExtensionKernelBytes];
};
static_assert(sizeof(ExtensionControl) <= kExtensionControlBytes);

}  // namespace warpsmith::device

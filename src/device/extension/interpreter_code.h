// A candidate that an interpreter runs: tier `python`. The interpreter loads warpsmith-interpreted.so, which
// holds all that serves the parent, and is called back where the candidate is wanted. What follows is what it
// sees of it, as C; src/python/candidate.py is the other side.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "warpsmith/toolchain/extension_abi.h"

extern "C" {

// As ExtensionCode (code.h) has them. open(), load() and call() write to warpsmith_frame(); open() answers 0
// where it failed, rows where warpsmith_take() did.
struct WarpsmithHooks {
  std::int32_t (*open)();
  void (*load)();
  void (*prepare)();
  void (*call)(std::uint32_t set);
  void (*drop)();
  std::int32_t (*row)(std::uint32_t first, std::uint32_t count);
  std::int32_t (*idle_row)(std::uint32_t first, std::uint32_t count);
};

// `seccomp`: 1, or 0 where there is none, or 2 where programs may be started (Closing, child.h).
// Does not come back unless something is wrong before the sandbox is closed: why, in at most `bytes` of
// `problem`.
void warpsmith_serve(std::int32_t control_fd, std::int32_t socket_fd, std::int32_t seccomp,
                     const WarpsmithHooks* hooks, char* problem, std::size_t bytes);

// Of what was prepared. Those that name a set or a number expect one that there is.
std::uint32_t warpsmith_sets();
std::int32_t warpsmith_input_count();
std::int32_t warpsmith_output_count();
std::int32_t warpsmith_scalar_count();
void warpsmith_input(std::uint32_t set, std::int32_t number, warpsmith_extension::PlainTensor* tensor);
void* warpsmith_place(std::uint32_t set, std::int32_t output);
void warpsmith_scalar(std::int32_t number, warpsmith_extension::PlainScalar* scalar);

warpsmith_extension::Frame* warpsmith_frame();
// Takes the frame's results of a set; 0: they are not what they should be, and the parent has been told.
std::int32_t warpsmith_take(std::uint32_t set);
// Before each call row() looks at this word, and where it is not 0 calls this function, which may wait; then
// it writes here the set that it calls.
const std::uint32_t* warpsmith_stop();
void warpsmith_come_to_stop();
std::uint32_t* warpsmith_current();

// Memory for torch's CUDAPluggableAllocator. Throws std::bad_alloc, through torch, where there is no room.
void* warpsmith_allocate(ssize_t bytes, int device, void* stream);
void warpsmith_release(void* memory, ssize_t bytes, int device, void* stream);
// Bytes that it may still give.
std::uint64_t warpsmith_room();
// Whether memory is for a CUDA graph that is being captured.
void warpsmith_capture(std::int32_t on);
// Bytes for which there was no room, last; 0: there was room for all. Asking forgets it.
std::uint64_t warpsmith_refused();

}  // extern "C"

namespace warpsmith::device {

class ExtensionGpu;
// What warpsmith_serve() opens.
ExtensionGpu& interpreters_gpu();

}  // namespace warpsmith::device

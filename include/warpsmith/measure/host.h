// This host: what it is, its caches, its memory's speed, and the lock under which one timing at a time runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "warpsmith/records/measurement.h"

namespace warpsmith::measure {

// Facts of the CPU; load_after, threads, sandbox and extra are left to the caller.
DeviceFacts cpu_facts();
double load_average();  // of 1 minute; 0 where it is not known

// Writes back and drops the cache lines of `memory` from every cache of this host: clflushopt (clflush where
// it is lacking). On CPUs that have neither it does nothing, and can_flush() is false: then operands must
// rotate beyond the caches.
void flush(std::span<const std::byte> memory);
// Waits until the flushes are done.
void flush_fence();
bool can_flush();
std::string flush_method();  // "clflushopt", "clflush", "rotation"

// Bytes a second that no program on `threads` cores of this host can exceed in reading its inputs and writing
// its outputs: the fastest copy of a block that lies in the first-level cache, counted as read and written,
// times the threads. Memory is far slower, so nothing honest comes near; it is a bound on timers that were
// cheated, not on kernels. Takes about 5 ms.
double bandwidth_ceiling(int threads);

// The file of the host's timing lock: $WARPSMITH_TIMING_LOCK, or /tmp/warpsmith-timing.lock. To be taken as
// base's FileLock.
std::filesystem::path timing_lock_path();

}  // namespace warpsmith::measure

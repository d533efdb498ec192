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

// Drives what this core's private caches hold out into the cache that the cores share, by reading twice their
// size: so each arm finds its operands there, and never in the caches of the core that has just written them.
// Dropping them from every cache (clflush) was tried and is worse: on a host shared with others the time of a
// memory access varies by a third from second to second.
void evict_private_caches();
// Keeps this process and the children that it starts on one of the processors that it may use, counted from
// the last one. Baseline and candidate then run on one and the same core: what a neighbour on the host does
// to it, it does to both. Where it is refused, measuring goes on as before.
void stay_on_one_cpu(std::size_t number);
std::string
cache_state();  // for device facts: "operands in the shared cache (private caches evicted, 1024 KiB read)"

// Bytes a second that no program on `threads` cores of this host can exceed in reading its inputs and writing
// its outputs: the fastest copy of a block that lies in the first-level cache, counted as read and written,
// times the threads. Memory is far slower, so nothing honest comes near; it is a bound on timers that were
// cheated, not on kernels. Takes about 5 ms.
double bandwidth_ceiling(int threads);

// The file of the host's timing lock: $WARPSMITH_TIMING_LOCK, or /tmp/warpsmith-timing.lock. To be taken as
// base's FileLock.
std::filesystem::path timing_lock_path();
// The same of a GPU, beside it: whoever times on that GPU holds it.
std::filesystem::path gpu_lock_path(const std::string& uuid);

}  // namespace warpsmith::measure

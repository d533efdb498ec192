// What a call of a task must move and compute at least, and how long that takes on a device.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "warpsmith/records/ceilings.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// Bytes that any right answer must move at `dims`: inputs read and outputs written once, or what the task's
// `bytes` says where that is less.
double compulsory_bytes(const task::Task& task, const task::Dims& dims);
// Those of them that are read.
double compulsory_read_bytes(const task::Task& task, const task::Dims& dims);

// The least time of a call on a GPU that reads `read_bytes_s` from its memory, in nanoseconds: what is faster
// was not done, or not timed.
//
// It must never blame an honest program, so it counts less than a call costs:
// - Reads alone. L2 is flushed before a row of timed calls and each call has operands of its own, so every
// input byte comes from memory; but
//   what a call writes may still lie in L2 when the clock stops, and be written back in nobody's time.
//   Operands that fit into L2 change nothing of this: what the values' kernels have left there, the flush has
//   driven out.
// - Nine tenths of them. A few lines survive a flush (replacement in L2 is not strictly by age, one word in
// 64 KiB is touched on purpose,
//   and a task's `bytes` knows no repeated indices), and the bandwidth was measured by a kernel of ours: a
//   better one may read some per cent faster. `read_bytes_s` is to be the fastest of several repeats; where a
//   candidate falls below the floor it is measured again first.
// A program that skips its inputs, or whose time was not all in the clock, is far below: twice as fast as
// memory at least.
double read_floor_ns(const task::Task& task, const task::Dims& dims, double read_bytes_s);

// How fast a device is at best.
struct DeviceSpeeds {
  double bytes_s = 0;                    // of memory
  std::map<task::Dtype, double> flop_s;  // by type of the operands; without it there is no bound by FLOPs
};
// Of a GPU: memory as the faster of reading and copying; float32 as TF32 where `math` lets it be
// ("torch_default").
DeviceSpeeds speeds_of(const Ceilings& ceilings, const std::string& math);

struct Roofline {
  double ns = 0;
  std::string bound;  // "memory" or "compute": which of the two takes longer
};
// The larger of compulsory bytes / bandwidth and FLOPs / rate. The rate is the highest among those of the
// floating inputs; where one of them is not known, or the task has no FLOPs, memory alone counts. Nothing
// where nothing is known.
std::optional<Roofline> roofline_of(const task::Task& task, const task::Dims& dims,
                                    const DeviceSpeeds& speeds);
void write_roofline(const std::optional<Roofline>& roofline, Measurement& m);
// Whether a candidate needs less time than the task's FLOPs take: a better algorithm, or TF32 where float32
// was counted, or a clock that was cheated. No verdict, but a reason to measure it again.
bool beats_its_flops(const Measurement& m);

}  // namespace warpsmith::measure

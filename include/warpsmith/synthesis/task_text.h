// A chain as a task that others read: our task file, and a module in KernelBench's form.
#pragma once

#include <string>

#include "warpsmith/synthesis/chain.h"

namespace warpsmith::synthesis {

struct TaskLabel {
  std::string id, split = "train", origin;  // origin: as the task file's `imported` says it
};

// "Square, bias, relu"
std::string title_of(const Chain& chain);
// TorchScript with `forward`.
std::string reference_of(const Chain& chain);
// task.yaml.
std::string task_file(const Chain& chain, const TaskLabel& label);
// `Model`, `get_inputs` and `get_init_inputs`, at the shape that a GPU times.
std::string kernelbench_module(const Chain& chain);

// M at the shape that a GPU times, of a task in our form: it moves some 128 MiB at N = 512; fewer rows where
// products bind.
int gpu_rows(const Chain& chain);
// Floating-point operations and compulsory traffic of a call, over the task's dims.
std::string flops_of(const Chain& chain);
std::string bytes_of(const Chain& chain);

// How much longer eager takes than the roofline says, by traffic and operations alone (an operator a kernel,
// each reading and writing its matrices; a GPU with 20 FLOP for each byte): 1 has nothing to gain.
double gain_of(const Chain& chain);
constexpr double kFlopsAByte = 20;  // float32 of a GPU by its memory's bandwidth
// Kernels of eager: one, but for steps that torch has no operator for.
double eager_kernels(const Operator& step);

}  // namespace warpsmith::synthesis

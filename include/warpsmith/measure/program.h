// A candidate as a check sees it, wherever it runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/records/verdict.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// What a call, or a row of them, came to.
struct Ran {
  Verdict verdict = Verdict::kOk;
  std::string detail;
  std::int64_t elapsed_ns = 0;  // all calls together, without what starting and ending the clock takes
};

// In turn: prepare(), then for each check poison(), fill inputs(), run(), read outputs.
class Program {
 public:
  virtual ~Program() = default;
  // Operands for `sets` calls at `dims`.
  virtual Ran prepare(const task::Dims& dims, int sets) = 0;
  virtual const task::Dims& dims() const = 0;
  // In the order of the task's, where the candidate runs: on a GPU these are addresses on the device. To be
  // filled by the oracle of the same place before run().
  virtual std::vector<std::span<std::byte>> inputs(int set) = 0;
  // Outputs after run(), in the same place.
  virtual std::vector<std::span<const std::byte>> outputs(int set) = 0;
  // Fills outputs and temporaries of sets 0…sets-1 with what no right answer holds.
  virtual void poison(int sets) = 0;
  virtual Ran run(int sets) = 0;
  // False: run() would fail whatever the candidate does.
  virtual bool alive() const = 0;
};

}  // namespace warpsmith::measure

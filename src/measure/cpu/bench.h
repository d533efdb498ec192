// What the candidates of one task share on the CPU.
#pragma once

#include <memory>

#include "engine/bench.h"
#include "warpsmith/measure/arm.h"

namespace warpsmith::measure {

class CpuBench : public Bench {
 public:
  CpuBench(const task::Task& task, const ValueSource& source, const Settings& settings);
  const ValueSource& source() const { return source_; }
  // The baseline with operands for at least `calls` calls. A row has enough of them for 0.2 ms, bounded by
  // the memory of their operands: the baseline's time depends on it, for the more operands, the fewer of them
  // stay in the shared cache.
  BaselineArm& baseline(int calls);

 private:
  std::vector<double> rows_alone(int calls, std::uint64_t key) override;

  const ValueSource& source_;
  std::unique_ptr<BaselineArm> baseline_;
  int baseline_calls_ = 0;
};

}  // namespace warpsmith::measure

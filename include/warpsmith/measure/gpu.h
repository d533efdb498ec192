// Measures `plan` candidates on the GPU of this process: correct first, then timed in pairs with the
// baseline, by the protocol of results/measurement.md.
//
// A candidate may take the GPU's context with it (an illegal access, a kernel that never ends): its own
// measurement is whole then, and lost() says that this process has to end. GpuWorkers (gpu_workers.h) does
// this for a whole shard.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

// One a process. Not thread-safe.
class GpuMeasurer {
 public:
  // Opens the GPU. Throws Error where there is none, and with the reason where it is none of the type that
  // the settings ask for.
  GpuMeasurer(Settings settings, std::span<const std::byte> harness_cubin);
  ~GpuMeasurer();

  // As Measurer::measure(); `binary` is a cubin of toolchain::compile_for_gpu, its facts beside it.
  // `attempt`: how often this candidate was measured before in other processes; values and order differ from
  // one to the next. `checked`: what another process found, that it is right: of tier `plan` it is only timed
  // then.
  Measured measure(const task::Task& task, const Candidate& candidate, const std::filesystem::path& binary,
                   int attempt = 0, const Measurement* checked = nullptr);
  // What is measured once a run is measured now, not with the first candidate: the device's ceilings.
  void prepare();
  // The best speedup known of a task: what is far over it is measured again.
  void know_best(const std::string& task, double speedup);
  // Null tests: scores near 1 are expected.
  Measured measure_reference_against_itself(const task::Task& task);
  // The reference as a candidate of tier `python` that does its work `times` times a call: 1 / `times`.
  Measured measure_reference_as_python(const task::Task& task, int times);
  Measured measure_candidate_against_itself(const task::Task& task, const Candidate& candidate,
                                            const std::filesystem::path& binary);
  bool lost() const;
  // Whether over a quarter of the GPU's memory is taken: by other processes, too. Not where lost().
  bool crowded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

// Inside of the controller. controller.cc: the loop, and what the budget leaves room for;
// controller_report.cc: state.json; prometheus.cc: metrics.prom.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "services.h"
#include "stage_driver.h"

namespace warpsmith::controller {

// results.h5 and the report, while a run goes on: every two minutes, and after a stage as soon as the last
// time is a while ago; seldomer where it takes long. Whoever runs the controller does it once more at the
// end.
class Publisher {
 public:
  explicit Publisher(std::function<void()> publish) : publish_(std::move(publish)) {}
  void soon() { soon_ = true; }  // a stage has ended
  bool is_soon() const { return soon_; }
  void if_due();

 private:
  const std::function<void()> publish_;
  SteadyTime last_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration pause_ = std::chrono::minutes(2);
  bool soon_ = false;
};

struct Controller::State {
  explicit State(ControllerParts given);

  // controller.cc
  RunOutcome run();
  RunOutcome outcome(bool interrupted);
  void end_everything();
  void commit() { journal->commit(*core.parts.executor); }  // and hands over what waited for it
  std::size_t room();                                       // shards that may be in flight in all
  // What the budget counts: GPUs times wall time of attempts that have ended, in all lives of the run, and
  // what those in flight may come to by their time limits.
  double gpu_s_used() const { return core.usage.gpu_s() + unsaid_gpu_s; }
  double gpu_s_in_flight() const;

  // controller_report.cc
  Json state_json() const;
  Json stage_json(std::uint32_t number) const;
  Json job_json(std::uint32_t number) const;
  void report(bool now);

  // prometheus.cc
  std::string prometheus_text() const;
  void write_prometheus(bool now);

  RunCore core;
  ShardTracker shards{core};
  Publisher publisher;
  StageDriver stages;
  ServiceWatch services{core, stages};
  std::optional<JournalWriter> journal;
  SteadyTime last_report{}, last_prometheus{}, began = std::chrono::steady_clock::now();
  double unsaid_gpu_s = 0;
  bool over_budget = false;
  bool at_end = false;  // the last word is written in any case
  std::string run_state = "running";
  std::map<std::string, Json>
      earlier;  // stages in the state.json that was there, for those that need not run
};

}  // namespace warpsmith::controller

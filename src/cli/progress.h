// What people see of a run while it goes: from state.json's content to lines.
#pragma once

#include <chrono>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/cli/command.h"
#include "warpsmith/controller/controller.h"

namespace warpsmith::cli {

// How fast a job's items come, from the counts seen so far. Pure: the time is handed in.
class RateMeter {
 public:
  // `done` items at `now_s`; a smaller number than before (another job) begins anew.
  void see(double now_s, std::uint64_t done);
  double per_s() const { return rate_; }  // 0: not known yet

 private:
  bool any_ = false;
  double first_s_ = 0, rate_ = 0;
  std::uint64_t first_done_ = 0, last_done_ = 0;
};

// "sft  round 1/3  train 450/1200  3.2/s  3m40s left  best 2.31x  median 1.05x  valid 54%  loss 1.234", for a
// running stage of state.json; `rate` in items a second, 0 where unknown.
std::string stage_line(const Json& stage, double rate);

// The table of stages, the time by phase and the GPU-hours, for `status` and for the end of a run.
std::string state_table(const CommandContext& context, const Json& state);

// What the cluster's queue holds of the run: `executor` of state.json. `stage`: whose held jobs are named;
// empty: all.
std::string queue_text(const Json& queue, const std::string& stage = "");
// Local time, "2026-01-31 12:00".
std::string time_text(std::time_t time);

// On a terminal the lines of running stages, redrawn in place; else a line when a stage or job changes, and
// every half minute.
class ProgressPrinter : public controller::RunObserver {
 public:
  ProgressPrinter(bool terminal, bool quiet) : terminal_(terminal), quiet_(quiet) {}
  void on_state(const Json& state) override;
  void on_message(const std::string& message) override;
  void on_news(const std::string& message) override;
  void clear();  // what was drawn, before other output

 private:
  bool terminal_, quiet_;
  int drawn_ = 0;
  std::map<std::string, RateMeter> rates_;
  std::map<std::string, std::string> last_job_;
  std::map<std::string, std::chrono::steady_clock::time_point> last_line_;
};

}  // namespace warpsmith::cli

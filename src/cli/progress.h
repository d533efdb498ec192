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

// The rates of a run's stages, each begun anew with another job of the stage.
class StageRates {
 public:
  // The stage, of state.json, as it is at `now_s`. Whether its jobs are others than before.
  bool see(double now_s, const Json& stage);
  double per_s(const std::string& stage) const;
  const std::map<std::string, double>& all() const { return per_s_; }

 private:
  std::map<std::string, RateMeter> meters_;
  std::map<std::string, std::string> jobs_;
  std::map<std::string, double> per_s_;
};

// Parts of what is said of a stage of state.json, or of its `progress`; empty where nothing is known.
struct Done {
  std::uint64_t done = 0, items = 0;  // of its jobs that run
};
Done done_of(const Json& stage);
std::string jobs_text(const Json& stage);  // "generate 4/16 of round 3  measure 36/96"
std::string rate_text(double per_s);
std::string left_text(const Done& done, double per_s);
std::string best_text(const Json& progress);
std::string valid_text(const Json& progress);
std::string loss_text(const Json& progress);
std::string device_text(const Json& stage);  // where its numbers are not from the device that it is named for
std::string seconds_text(double seconds);
struct ShownState {
  std::string text, colour;
};
ShownState shown_state(const Json& stage, bool run_goes_on);
// Of state.json.
std::vector<std::string> doubt_lines(const Json& state);
std::string hours_line(const Json& state);

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

// On a terminal the lines of running stages with bars (bars.h), redrawn in place; else a line when a stage
// or job changes, and every half minute.
class ProgressPrinter : public controller::RunObserver {
 public:
  // `context`: whose colours are those of stdout; the lines go to stderr.
  ProgressPrinter(const CommandContext& context, bool terminal, bool quiet)
      : context_(context), terminal_(terminal), quiet_(quiet) {}
  void on_state(const Json& state) override;
  void on_message(const std::string& message) override;
  void on_news(const std::string& message) override;
  void clear();  // what was drawn, before other output

 private:
  const CommandContext& context_;
  bool terminal_, quiet_;
  int drawn_ = 0;
  StageRates rates_;
  std::map<std::string, std::chrono::steady_clock::time_point> last_line_;
};

}  // namespace warpsmith::cli

// Signals that ask this program to come to an orderly end.
#pragma once

#include <vector>

namespace warpsmith::process {

// While one lives, SIGINT, SIGTERM, SIGHUP and `more` ask for the end instead of ending the program. The same
// signal again takes its usual course, unless it comes within a second: `timeout` sends its signal twice, to
// the program and to its group, and so do some launchers.
class StopSignals {
 public:
  explicit StopSignals(std::vector<int> more = {});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool asked();  // by any of them
  static bool asked(int signal);

 private:
  struct Before;  // what the signals did
  std::vector<Before> before_;
};

}  // namespace warpsmith::process

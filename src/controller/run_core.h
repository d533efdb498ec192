// What the controller's pieces share: what it was given, the state of the run by its events, and where these
// go. controller.cc has the loop; the pieces are ShardTracker, StageDriver and the services.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "journal_writer.h"
#include "metrics.h"
#include "warpsmith/controller/controller.h"
#include "warpsmith/run/usage.h"

namespace warpsmith::controller {

using SteadyTime = std::chrono::steady_clock::time_point;

struct RunCore {
  explicit RunCore(ControllerParts given);

  ControllerParts parts;
  run::Reactor reactor;
  run::Usage usage;                       // of all lives of the run
  std::map<std::string, double> phase_s;  // wall time of shards by job name, all lives of the run
  RunLog* log = nullptr;                  // set before the first event
  Metrics metrics;

  void say(run::Event event);   // log and reactor
  void note(run::Event event);  // log alone
  void tell(const std::string& message) const { parts.observer->on_message(message); }
  void tell_news(const std::string& message) const { parts.observer->on_news(message); }
  std::string where(run::ShardKey key) const;  // "sft 0/train/3"
};

}  // namespace warpsmith::controller

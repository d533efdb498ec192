// Servers that a run starts: whether there is room beside them, and which of them answer.
#pragma once

#include "stage_driver.h"

namespace warpsmith::controller {

// What shards of a run may use, on this machine or as the cluster's limits say.
struct Room {
  int cpus = 1;
  std::uint64_t memory_bytes = 0;           // 0: not known
  std::map<std::string, std::size_t> gpus;  // by type
  std::size_t shards = 0;                   // at a time; 0: any number
};

// A service keeps what it has from the first who asks it to the last. What may run between them and finds no
// room beside it would wait for ever: throws Error (kExitUsage). `plans`: of the workflow's stages.
void refuse_without_room(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans,
                         const Room& room);

class ServiceWatch {
 public:
  // Keeps references.
  ServiceWatch(RunCore& core, const StageDriver& stages) : core_(core), stages_(stages) {}
  // A server writes where it can be asked as soon as it answers; some times a second that is looked for.
  void look(SteadyTime now);

 private:
  RunCore& core_;
  const StageDriver& stages_;
  SteadyTime next_{};
};

}  // namespace warpsmith::controller

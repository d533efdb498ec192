// What the journal says about a run's stages, jobs and shards, for people who ask why.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/run/event.h"

namespace warpsmith::controller {

struct ShardEnd {
  run::Event event;  // kShardEnded
  int attempts = 0;  // submissions so far
};

struct JobHistory {
  std::uint32_t execution = 0;
  int round = 0;
  std::string name;
  std::uint32_t shards = 0;
  std::map<std::uint32_t, ShardEnd> last_end;  // by shard
  std::map<std::uint32_t, int> submissions;
};

struct ExecutionHistory {
  std::string stage, hash;
  std::string failure;  // why it failed, where that was the last that happened
  bool finished = false, dropped = false;
  std::vector<std::uint32_t> jobs;
};

struct JournalView {
  std::vector<ExecutionHistory> executions;
  std::vector<JobHistory> jobs;
  // The stage's newest execution; nullptr: it never began.
  std::vector<std::string> stages() const;  // names of those that have begun
  const ExecutionHistory* newest(const std::string& stage) const;
};

JournalView view_journal(const std::filesystem::path& run);

}  // namespace warpsmith::controller

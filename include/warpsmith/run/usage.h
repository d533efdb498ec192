// What shards asked for and what their attempts took, from a journal's events: for what a run costs, and for
// how long further items may take. Pure; both classes take every event of a run, in the order of the journal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/records/job.h"
#include "warpsmith/run/event.h"
#include "warpsmith/run/packing.h"

namespace warpsmith::run {

// An attempt of a shard that has ended; how, and what it took, stands in the event.
struct Attempt {
  std::uint32_t number = 0;  // of the shard, counting from 1
  Resources asked;           // cpus 0: the journal does not say (one of an earlier version)
  std::uint32_t items = 0;   // that got their record in it
  std::string where;         // host and process, or Slurm job and node; empty: it had not started
};

class Attempts {
 public:
  struct Execution {
    std::string stage, hash;
    bool dropped = false;  // its results were set aside or removed
  };
  struct Job {
    std::uint32_t execution = 0;
    int round = 0;
    std::string name;
    std::uint64_t items = 0;  // 0: the journal does not say
    std::uint32_t shards = 0;
    std::uint64_t first = 0;  // of its shards in shards_
  };

  // The attempt that `event` ends; nothing where it ends none: ends that are said twice count once.
  std::optional<Attempt> take(const Event& event);

  const std::vector<Execution>& executions() const { return executions_; }
  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  struct Shard {  // there may be a million: keep it small
    std::uint32_t open = 0;
    std::uint32_t asked = 0;  // in asked_
    std::uint16_t attempts = 0;
    bool in_flight = false;
  };
  void on_submitted(const Event& event);
  std::uint32_t remember(Resources asked);

  std::vector<Execution> executions_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> by_hash_;
  std::vector<Job> jobs_;
  std::vector<Shard> shards_;
  std::vector<Resources> asked_;                                          // each once
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> where_;  // of shards in flight
};

// Jobs of one name in an execution, over all rounds.
struct JobUsage {
  std::uint64_t jobs = 0, shards = 0, attempts = 0;
  std::uint64_t items = 0;  // that have a record
  // Without attempts whose end nobody saw: the records of these have cost nobody knows what.
  TimedItems timed;
  std::map<std::string, TimedItems> by_gpu;  // of these, those of attempts that asked for GPUs of a type
  double cpu_s = 0;
  double gpu_s = 0;  // wall time of attempts times their GPUs
  std::uint64_t peak_memory_bytes = 0;
};

// All jobs of a round of an execution.
struct RoundUsage {
  double gpu_s = 0;            // wall time of attempts times their GPUs
  std::uint64_t ended_ms = 0;  // since 1970: the last end of an attempt; 0: none has ended
};

class Usage {
 public:
  void take(const Event& event);

  // By job name; empty where nothing is known of the execution.
  const std::map<std::string, JobUsage>& of(const std::string& stage, std::uint32_t execution) const;
  // By round; empty where nothing is known of the execution.
  const std::map<int, RoundUsage>& rounds(std::uint32_t execution) const;
  // What may be expected of an item of a job of `execution`: `guess_s`, what the stage's newest other
  // execution saw, and what this one has seen; see learnt_item_s().
  double expected_item_s(const std::string& stage, std::uint32_t execution, const std::string& job,
                         double guess_s, double start_s) const;
  double gpu_s() const { return gpu_s_; }  // of the whole run
  // Wall time of attempts of which the journal does not say what they asked for, by number of the job.
  const std::map<std::uint32_t, double>& unsaid_s() const { return unsaid_s_; }

 private:
  Attempts attempts_;
  std::map<std::string, std::map<std::uint32_t, std::map<std::string, JobUsage>>> stages_;
  std::map<std::uint32_t, std::map<int, RoundUsage>> rounds_;
  std::map<std::uint32_t, double> unsaid_s_;
  double gpu_s_ = 0;
};

}  // namespace warpsmith::run

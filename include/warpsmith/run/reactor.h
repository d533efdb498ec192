// Decides what runs next: from events to commands, with no clock, file or thread of its own.
//
// The caller applies events (journaled ones when it goes on with a run, then new ones as they happen) and
// asks for commands; each command is given once. What the reactor itself decides by asking, it has applied
// already: the caller journals `submitted` events for the ranges that it is given, and replaying those leads
// to the same state.
//
// Shards go to places, each of which has a queue of its own: the CPU nodes, the GPUs of a type. The scarcest
// place comes first. The room is shared out: as long as stages may still use a place, a part of the room
// stays free for it, so that shards that wait for one place for days don't keep out those of the others.
//
// A stage's life: waiting -> (all that it needs are finished) the caller is told to start it -> running ->
// finished, failed, or blocked (something that it needs failed). Stages that do not need a failed one go on.
//
// A service is a stage that others use while they run (`uses`). It is started when the first of them runs,
// and nothing of theirs is submitted unless all their services are up, as an event says. It is finished, and
// its shards are cancelled, when the last of them has come to an end; where it fails, they fail with it.
//
// A new `opened` event sets every stage back to waiting; the jobs of an execution take part again once the
// same (name, hash) is started again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/run/event.h"
#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::run {

// How often a shard is started again after ending for `cause` without having got any further; kFinished with
// items left counts as kFailed. A shard that got further has all its retries again.
int retries_after(const workflow::RetryRule& rule, EndCause cause);

// A service that was up is started again at least so often, until a shard of those who use it got further.
inline constexpr int kServiceRestarts = 3;

struct StageRules {
  std::string name;
  std::vector<std::uint32_t> needs;  // numbers of stages before this one
  workflow::RetryRule retry;
  double tolerate = 0;  // share of the stage's shards that may fail
  int max_jobs = 0;     // shards at a time; 0: no limit
  std::map<std::string, std::uint32_t> places =
      {};                                // where shards go, by name of the job; others go to place 0
  std::vector<std::uint32_t> uses = {};  // numbers of services before this one
  bool is_service = false;
};

enum class StageState : std::uint8_t { kWaiting, kRunning, kFinished, kFailed, kBlocked };

struct ShardRange {
  std::uint32_t job = 0, begin = 0, end = 0;
  int memory_retries =
      0;  // how often it ran out of memory: its limit is multiplied by memory_factor as often
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

struct Commands {
  std::vector<std::uint32_t> start;   // stages whose needs are all finished
  std::vector<ShardRange> submit;     // already applied; to be journaled, then handed to the executor
  std::vector<ShardKey> cancel;       // in flight, of stages that failed
  std::vector<std::uint32_t> done;    // jobs whose shards have all ended, in the order in which they did
  std::vector<std::uint32_t> failed;  // stages that failed because of their shards
  bool empty() const {
    return start.empty() && submit.empty() && cancel.empty() && done.empty() && failed.empty();
  }
};

struct JobView {
  std::uint32_t execution = 0;
  int round = 0;
  std::string name, digest;
  std::uint32_t shards = 0, done = 0, failed = 0, in_flight = 0;
  bool complete = false;  // all shards have ended for good, and the stage lives to be told
};

class Reactor {
 public:
  // `places`: how many GPUs or CPUs each has; the fewest are the scarcest, and of equal ones the first.
  explicit Reactor(std::vector<StageRules> stages, std::vector<std::size_t> places = {});

  // Throws Error for an event that fits no state (a journal of another program, or damaged beyond its
  // checksums).
  void apply(const Event& event);
  // What follows. `room`: shards that the executor would like to have in flight in all.
  Commands next(std::size_t room);

  // A stage that needs not run: its output is there already.
  void skip(std::uint32_t stage);
  // A service's shard answers, until it has ended.
  bool is_up(std::uint32_t service) const { return stages_[service].up; }
  std::size_t services_in_flight() const;  // shards
  // Submit and start nothing more.
  void stop() { stopped_ = true; }

  // All stages have come to an end (finished, failed, blocked) and nothing is in flight.
  bool at_end() const;
  StageState stage(std::uint32_t stage) const { return stages_[stage].state; }
  const std::string& stage_name(std::uint32_t stage) const { return stages_[stage].rules.name; }
  std::size_t stages() const { return stages_.size(); }
  std::size_t in_flight() const { return in_flight_; }
  // Shards that were submitted, by an earlier controller too, and have not ended.
  std::vector<ShardKey> unresolved() const;

  // The stage's execution; -1: none was started since the last `opened`.
  int execution_of(std::uint32_t stage) const { return stages_[stage].execution; }
  // The number that (name, hash) has or would get.
  std::uint32_t execution_number(const std::string& name, const std::string& hash) const;
  bool has_execution(const std::string& name, const std::string& hash) const {
    return execution_number(name, hash) < executions_.size();
  }
  std::pair<const std::string&, const std::string&> execution_key(std::uint32_t execution) const {
    return {executions_[execution].name, executions_[execution].hash};
  }
  std::size_t jobs() const { return jobs_.size(); }
  const JobView& job(std::uint32_t job) const { return jobs_[job].view; }
  std::vector<std::uint32_t> jobs_of(std::uint32_t execution) const;
  // Jobs of an execution that are complete, in the order in which they became so: what its stage has been
  // told.
  const std::vector<std::uint32_t>& completed_of(std::uint32_t execution) const {
    return executions_[execution].completed;
  }
  // Failed for good, in its job's present life.
  bool shard_failed(ShardKey key) const { return shard(key).state == ShardState::kFailed; }
  bool shard_done(ShardKey key) const { return shard(key).state == ShardState::kDone; }
  int attempts(ShardKey key) const { return shard(key).attempts; }
  EndCause last_cause(ShardKey key) const { return shard(key).cause; }

 private:
  enum class ShardState : std::uint8_t { kQueued, kInFlight, kDone, kFailed };
  struct Shard {  // there may be a million: keep it small
    ShardState state = ShardState::kQueued;
    EndCause cause = EndCause::kFinished;
    std::uint8_t used[kEndCauseNames.size()] = {};  // retries by cause since it last got further
    std::uint8_t downs = 0;                         // of its execution, when it was submitted
    std::uint16_t attempts = 0;
    std::uint32_t open = ~0u;  // items left at the last end
  };
  struct Job {
    JobView view;
    std::uint64_t first = 0;  // of its shards in shards_
    std::uint32_t place = 0;
    std::uint32_t cursor = 0;          // shards from here on were never submitted, or lie in `again`
    std::vector<std::uint32_t> again;  // below the cursor, queued again
  };
  struct Execution {
    std::string name, hash;
    int stage = -1;  // in this controller's workflow; -1: not taking part
    std::vector<std::uint32_t> jobs, completed;
    std::vector<std::set<std::uint32_t>> queued;  // by place: jobs with shards to submit
    std::uint32_t shards = 0, failed = 0, in_flight = 0;
    std::uint8_t downs = 0;  // how often a service that it uses went down, modulo 256
  };
  struct Stage {
    StageRules rules;
    StageState state = StageState::kWaiting;
    int execution = -1;
    std::vector<std::uint32_t> needed_by;
    std::uint32_t open_needs = 0;
    bool offered = false;  // start was given
    bool up = false;       // a service that answers
    std::vector<std::uint32_t> used_by;
    std::set<std::uint32_t> places;
  };

  Shard& shard(ShardKey key) { return shards_[jobs_[key.job].first + key.shard]; }
  const Shard& shard(ShardKey key) const { return shards_[jobs_[key.job].first + key.shard]; }
  void check_job(const Event& event) const;
  void on_opened();
  void on_stage_started(const Event& event);
  void on_job_added(const Event& event);
  void on_submitted(std::uint32_t job, std::uint32_t begin, std::uint32_t end);
  void on_shard_ended(const Event& event);
  bool is_beyond_tolerance(const Execution& execution, const Job& job, EndCause cause) const;
  void on_stage_dropped(const Event& event);
  void on_service_up(const Event& event);
  void requeue(ShardKey key);
  void complete_if_done(std::uint32_t job);
  void finish_stage(std::uint32_t stage, StageState state);
  void fail_stage(std::uint32_t stage);
  void refresh_ready(const Execution& execution);
  void refresh_users(const Stage& service);
  void go_down(Stage& service);
  void end_unused(const Stage& user);
  void renew_services(const Stage& user);
  bool may_submit(const Execution& execution) const;
  bool is_served(const Stage& stage) const;  // all that it uses are up
  void submit_at(std::uint32_t place, std::size_t room, std::vector<ShardRange>& out);
  std::size_t free_at(std::uint32_t place, std::size_t room) const;
  std::size_t scarcity(std::uint32_t stage) const;  // the fewest that a place of it has

  std::vector<Stage> stages_;
  std::map<std::string, std::uint32_t, std::less<>> stage_by_name_;
  std::vector<Execution> executions_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> execution_by_hash_;
  std::vector<Job> jobs_;
  std::vector<Shard> shards_;
  struct Place {
    std::size_t size = 0, in_flight = 0;
    std::size_t users = 0;          // stages that have not ended and may use it
    std::set<std::uint32_t> ready;  // executions that may_submit() a job there
  };
  std::vector<Place> places_;
  std::vector<std::uint32_t> by_scarcity_;  // numbers of places
  std::vector<std::uint32_t> to_start_;     // stages whose needs are finished, not offered yet
  std::vector<ShardKey> to_cancel_;
  std::vector<std::uint32_t> done_, failed_;
  std::size_t in_flight_ = 0, open_stages_ = 0;
  bool stopped_ = false;
};

}  // namespace warpsmith::run

// What becomes of shards: which are handed over, how each ends, which of its items are left, and those that
// an earlier controller left behind.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "open_items.h"
#include "run_core.h"
#include "warpsmith/controller/job_files.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::controller {

// A job with shards to run or to read.
struct LiveJob {
  std::uint32_t stage = 0;
  JobFile file;
  fs::path folder;
  fs::path program;
  std::vector<std::string> ids;
  Resources resources;
  double memory_factor = 1;      // of each retry that lacked memory
  std::set<std::uint32_t> done;  // shards, of a program that keeps no records

  ShardItems items_of(std::uint32_t shard) const {
    return {folder / std::to_string(shard), ids, file.shards.at(shard), has_extras(file)};
  }
  bool is_service() const { return file.program == "warpsmith-service"; }
};

class ShardTracker {
 public:
  using Clock = std::function<SteadyTime()>;
  // Keeps a reference.
  explicit ShardTracker(RunCore& core, Clock clock = std::chrono::steady_clock::now)
      : core_(core), clock_(std::move(clock)) {}

  // An event of an earlier life, in their order.
  void replay(const run::Event& event);
  // What earlier lives left in flight, behind replay(): here their processes have died with the controller,
  // or die now, and their records say how far they got; on a cluster they go on.
  void resolve_unfinished();
  // GPU seconds of attempts of which the journal does not say what they asked for: it is of an earlier
  // Warpsmith.
  double unsaid_gpu_s();

  // Jobs that stages have asked for and not been told yet.
  void add(std::uint32_t number, LiveJob job) { jobs_.insert_or_assign(number, std::move(job)); }
  std::optional<LiveJob> take(std::uint32_t number);
  const std::map<std::uint32_t, LiveJob>& jobs() const { return jobs_; }
  bool is_running(run::ShardKey key) const { return running_.contains(key); }

  // Shards that are to start, by the log.
  void submit(const std::vector<run::ShardRange>& ranges);
  void on_event(const run::ShardEvent& event);
  // Events of shards whose job no stage had asked for when they came.
  void look_at_early();
  // Shards that ended well without a record for every item: a shared file system may be behind.
  void look_at_late();
  // Once every stage that can begin has begun: what nobody asks for any more is cancelled.
  void cancel_orphans();
  // At an end of the run: nothing of what is in flight goes on.
  void end_all();

  // Why a stage has failed by its shards; empty: none of them has.
  std::string why_failed(std::uint32_t execution) const;
  bool disk_was_full() const { return disk_was_full_; }

 private:
  struct JobOnDisk {
    fs::path folder;
    JobFile file = {};
    std::set<std::uint32_t> done = {};  // shards, of a program that keeps no records
  };
  const JobOnDisk& job_on_disk(std::uint32_t job);
  std::string token_of(const JobFile& file, std::uint32_t submission) const;
  void end_unknown(run::ShardKey key);  // by what its records say
  void attach();                        // to shards that outlived the controller before this one
  std::uint32_t open_on_disk(run::ShardKey key);
  std::uint32_t open_items_of(run::ShardKey key) const;
  void on_started(const run::ShardEvent& event);
  void on_ended(run::ShardEvent end);
  // `open`: items without a record, where they were counted just now.
  void on_shard_end(run::ShardKey key, EndCause cause, const run::ShardEvent* event,
                    std::optional<std::uint32_t> open = std::nullopt);
  void tell_of_end(run::ShardKey key, const run::Event& end, const LiveJob& job);

  struct Submission {
    std::uint32_t begin = 0, end = 0, number = 0;
  };
  struct Late {
    run::ShardEvent event;
    SteadyTime until;
  };
  RunCore& core_;
  Clock clock_;
  std::map<std::uint32_t, LiveJob> jobs_;
  std::set<run::ShardKey> running_;
  std::uint32_t submissions_ = 0;                             // in the run so far
  std::map<std::uint32_t, std::vector<Submission>> earlier_;  // by job, oldest first; empty once resolved
  std::map<std::uint32_t, JobOnDisk> on_disk_;
  std::vector<run::ShardEvent> early_;
  std::vector<Late> late_;
  SteadyTime next_late_{};
  bool attached_ = false, disk_was_full_ = false;
  std::map<run::ShardKey, std::string> reasons_;  // what is known of why shards failed for good, in this life
};

}  // namespace warpsmith::controller

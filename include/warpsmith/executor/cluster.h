// The border to Slurm: what we ask of a cluster and what it tells, in our own types. The C API itself is
// called in one file (src/executor/slurm/libslurm.cc), which is built into a module of its own: the
// controller loads it when a site asks for it, and works where there is no Slurm at all.
//
// Every call may block for as long as the controller of the cluster (slurmctld) does not answer, up to its
// MessageTimeout: none belongs on a thread that must stay responsive. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"

namespace warpsmith::executor {

// The base states of a Slurm job (squeue(1), JOB STATE CODES).
enum class SlurmState : std::uint8_t {
  kPending,
  kRunning,
  kSuspended,
  kCompleted,
  kCancelled,
  kFailed,
  kTimeout,
  kNodeFail,
  kPreempted,
  kBootFail,
  kDeadline,
  kOutOfMemory,
  kOther,  // of a Slurm that knows more than we do
};
std::string_view to_string(SlurmState state);  // as squeue prints it: "PENDING", "NODE_FAIL", …
bool has_ended(SlurmState state);

// A job, or one task of an array; tasks of an array that have not started yet share one record.
struct SlurmTask {
  std::uint32_t job = 0;             // raw id; of a pending array the array's own
  std::uint32_t array = 0;           // id of the array it belongs to; of a plain job its own
  std::vector<std::uint32_t> tasks;  // indices in the array; empty: a plain job
  std::string name;                  // our token
  SlurmState state = SlurmState::kOther;
  bool settling = false;  // completing, or requeued and not yet pending again: the state is not the last word
  bool held = false;      // pending, until somebody releases it
  std::string reason;     // why it waits or why it ended, in Slurm's words ("Resources", "NonZeroExitCode")
  int exit_code = 0, signal = 0;
  std::string partition, nodes;
  std::int64_t submitted = 0, started = 0, ended = 0;  // seconds since 1970; 0: not yet. `started` of a
                                                       // pending one: when Slurm expects it to
  std::uint32_t restarts = 0;
  std::uint32_t cpus = 0;
  std::string
      allocated;     // trackable resources, "cpu=2,mem=4G,node=1,gres/gpu:h100=1"; empty where not tracked
  std::string gres;  // what it has got, as Slurm writes it: "gpu:h100:1(IDX:0)"
  friend bool operator==(const SlurmTask&, const SlurmTask&) = default;
};

// What sbatch would be told. Empty and 0: not said, the cluster's default holds.
struct SlurmJob {
  std::string name, script;
  std::filesystem::path folder;  // it works there; must exist on the node as well
  // What the batch script prints is appended to this file. Relative to `folder`: Slurm replaces % patterns in
  // it and removes every backslash, but takes `folder` literally.
  std::filesystem::path output;
  std::vector<std::string> environment;  // "NAME=value"; all that it gets, never empty
  std::string array;                     // "0-99,105"; empty: a plain job
  std::string partition, account, qos, reservation, constraint, exclude, dependency;
  std::string gpus;  // "gpu:h100:1" a node
  std::uint32_t minutes = 0, cpus = 1, nodes = 1, tasks = 1;
  std::uint64_t memory_mib = 0;  // a node
  bool requeue = true;
  int warn_signal = 0,
      warn_s = 0;  // sent to the script so long before the time limit (Slurm may be 60 s early)
};

// Why Slurm refused or did not answer; which of them it was decides what is done about it.
enum class SlurmTrouble : std::uint8_t {
  kLimit,    // the cluster's queue is full (MaxJobCount): later
  kPolicy,   // a limit of the account or the QOS: limit_may_clear() says whether later helps
  kArray,    // the array has too many tasks: a smaller one may be taken
  kClosed,   // a partition, node or reservation takes no jobs for now: later
  kAway,     // slurmctld, munge or the network did not answer, and it is certain that nothing was done: later
  kUnsure,   // no answer, and it may have been done all the same: look by name first
  kRefused,  // the request itself: partition, resources, account. Another try would end the same way
  kGone,     // there is no such job (any more), or it has ended
};

class SlurmError : public Error {
 public:
  SlurmError(SlurmTrouble trouble, int code, const std::string& message)
      : Error(message, kExitEnvironment), trouble_(trouble), code_(code) {}
  SlurmTrouble trouble() const { return trouble_; }
  int code() const { return code_; }  // Slurm's own

 private:
  SlurmTrouble trouble_;
  int code_;
};

// What an error code of Slurm's means (slurm/slurm_errno.h); kRefused where it says no more than no.
SlurmTrouble trouble_of(int code);

struct SlurmFacts {
  std::string cluster, version;       // "lab", "22.05.8"
  std::uint32_t max_array_size = 0;   // indices lie below it
  std::uint32_t max_array_tasks = 0;  // of SchedulerParameters: tasks of one array; 0: not said
  std::uint32_t max_jobs = 0;         // MaxJobCount, of all users
  std::uint32_t min_job_age_s = 0;    // how long it remembers an ended job
  bool accounting = false;            // slurmdbd
  bool requeue = true;                // JobRequeue
};

struct SlurmNode {
  std::string name, state;  // "IDLE", "MIXED+DRAIN", …
  std::vector<std::string> features, partitions;
  std::vector<std::pair<std::string, int>> gpus;  // type ("" where it has none) and count
  std::uint32_t cpus = 0;
  std::uint64_t memory_mib = 0;
  bool usable = true;  // not down, drained or failing
};

struct SlurmPartition {
  std::string name;
  std::vector<std::string> nodes;
  std::uint32_t max_minutes = 0;  // 0: no limit
  bool is_default = false, up = true;
};

// Limits of this user from accounting; 0: none, or not known.
struct SlurmLimits {
  std::uint32_t max_submit = 0, max_jobs = 0;
  std::string account;  // the default one
  std::vector<std::string> accounts, qos;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual SlurmFacts facts() = 0;
  virtual std::vector<SlurmNode> nodes() = 0;
  virtual std::vector<SlurmPartition> partitions() = 0;
  // Nothing where there is no accounting.
  virtual std::optional<SlurmLimits> limits() = 0;
  // The job's id. Throws SlurmError.
  virtual std::uint32_t submit(const SlurmJob& job) = 0;
  // When Slurm expects that such a job would start, in seconds since 1970; 0: not known. Nothing is
  // submitted. Throws SlurmError, as submit() would.
  virtual std::int64_t expected_start(const SlurmJob& /*job*/) { return 0; }
  // How many jobs in the queue may fill the limits of an account or QOS that `job` would come under: this
  // user's, and others' of the same account or QOS. The job that we run in does not count.
  virtual std::size_t rivals(const SlurmJob& job) = 0;
  // This user's jobs, ended ones for as long as slurmctld remembers them: one request, however many there
  // are.
  virtual std::vector<SlurmTask> jobs() = 0;
  // This user's ended jobs of these names from accounting, of those that ended after `since` (seconds since
  // 1970); empty where there is no accounting.
  virtual std::vector<SlurmTask> ended_jobs(const std::vector<std::string>& names, std::int64_t since) = 0;
  // Jobs ("17") or tasks ("17_[3-5,8]"), pending and running ones, in one request each.
  virtual void cancel(const std::string& job) = 0;
  virtual void requeue(std::uint32_t job) = 0;
  // How many requests were made of slurmctld and slurmdbd.
  virtual std::uint64_t requests() const = 0;
};

// Whether a job that was refused as kPolicy may be taken later. It never is where Slurm would take the
// smallest such job, as then the limit is on the size of one job, or where rivals() are none. Asks the
// cluster; true where it does not answer.
bool limit_may_clear(Cluster& cluster, const SlurmJob& job);

// Loads the module `warpsmith-slurm.so` from the folder of the programs and connects it with the cluster that
// `conf` describes (empty: SLURM_CONF, else where Slurm was built to look). Once a process. Throws Error with
// kExitEnvironment and a hint where the module, a library it needs, or the configuration is missing.
std::unique_ptr<Cluster> open_cluster(const std::filesystem::path& programs,
                                      const std::filesystem::path& conf);

// The value of max_array_tasks in Slurm's SchedulerParameters; 0 where it is not said.
std::uint32_t max_array_tasks(std::string_view scheduler_parameters);

// "0-3,7" and back: sorted indices. parse_indices() also takes Slurm's "[0-9%3]" and ignores what follows a
// %; throws Error for anything else.
std::string format_indices(const std::vector<std::uint32_t>& indices);
std::vector<std::uint32_t> parse_indices(std::string_view text);

}  // namespace warpsmith::executor

// What the Slurm executor knows, and the parts of its work:
//
//   submission.cc   shards become arrays, arrays are submitted, refused, cancelled
//   queue_watch.cc  what Slurm says: the queue, and accounting for what the queue has forgotten
//   endings.cc      what shards say as their last words, and what is made of those that say nothing
//   executor.cc     what is done next, and the interface
//
// Everything but the requests themselves (calls.h) runs on the caller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calls.h"
#include "token_bucket.h"
#include "warpsmith/base/json.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/executor/slurm.h"

namespace warpsmith::executor {

using Clock = std::chrono::steady_clock;
using run::ShardEvent;
using run::ShardKey;
using run::ShardStart;

// The name of an array whose task 0 is the shard `base` of its job.
inline std::string array_name(const std::string& token, std::uint32_t base) {
  return base == 0 ? token : token + "." + std::to_string(base);
}

// Shards of one range that are submitted as one array.
struct Batch {
  ShardStart model;
  const workflow::SitePlace* place = nullptr;
  std::uint32_t base = 0;             // of a submitted one: the shard that is task 0
  std::vector<std::uint32_t> shards;  // ascending; of a submitted one within [base, base + array_size)
  bool unsure = false;                // an answer was lost: it may be in the queue already
  bool anywhere = false;              // also on nodes that failed lately: there are no others
  Clock::time_point lost_at{};

  std::string name() const { return array_name(model.token, base); }
};

// A place whose jobs Slurm does not take for now.
struct ClosedPlace {
  Clock::time_point until{};  // the next try
  Clock::duration pause = std::chrono::seconds(1);
  bool full = true;  // by a limit of how many; else a partition, node or reservation is not available
  std::string why;   // for people
};

// A shard that is in the queue, or was when it was looked at last.
struct Live {
  std::string token;
  std::filesystem::path ends;
  std::uint32_t base = 0;              // first shard of its array
  std::uint32_t array = 0, index = 0;  // array 0: not found yet, after attach()
  std::uint32_t job = 0;
  Clock::time_point since;      // submitted, or attached
  std::int64_t attached_s = 0;  // seconds since 1970; 0: submitted in this life
  std::int64_t since_s = 0;     // likewise: not long after it was submitted
  std::optional<Clock::time_point> missing_since;
  std::optional<Clock::time_point> ended_since;  // Slurm says that it has ended
  SlurmTask last;
  int accounted = 0;                             // looks in accounting so far, while it is missing
  std::optional<Clock::time_point> alone_since;  // waits for jobs of ours to end, while none runs
  bool started = false, cancelling = false;
  std::optional<SlurmTask>
      judged;  // held or hopeless: we cancel it, and this, not CANCELLED, is why it ended

  std::string name() const { return array_name(token, base); }
  bool is_seen() const { return array != 0 && last.job != 0; }  // in the queue
  void place(const SlurmTask& task, std::uint32_t at) {
    array = task.array;
    index = at;
    job = task.job;
    last = task;
    last.tasks = {at};
  }
  std::string where() const {
    std::string text = array == 0 ? "?" : std::to_string(array) + "_" + std::to_string(index);
    if (!last.nodes.empty()) text += "@" + last.nodes;
    return text;
  }
};

// Last words of a job's shards, while any of them is live.
struct EndsFolder {
  explicit EndsFolder(const std::filesystem::path& path) : words(path) {}
  LastWords words;
  std::vector<LastWord> early;  // of shards whose submission has not been answered yet
  std::size_t live = 0;
};

struct SlurmExecutor::State {
  State(std::unique_ptr<Cluster> cluster, SlurmOptions given);

  // ---- submission.cc ----
  // Where a shard goes. What is measured on a twin has the device kind `cpu` on whatever node: a shard that
  // wants a GPU of no type takes the types in turn there.
  const workflow::SitePlace* place_of(const ShardStart& start) const;
  std::uint32_t base_of(std::uint32_t shard) const;  // of the array that a shard is in
  void enqueue(const std::vector<ShardStart>& given);
  SlurmJob job_for(const Batch& batch);
  // As many shards of `batch`, from its front, as one array may have; these are taken out of it.
  Batch take_array(Batch& batch) const;
  // When a waiting batch may be submitted: now, when its place is tried again, or never.
  Clock::time_point submit_at() const;
  void submit_next();
  void add_live(const ShardKey& key, const Batch& batch, std::uint32_t id);
  void taken(const Batch& batch, std::uint32_t id);
  void refused(Batch batch, const SlurmError& e, const std::optional<SlurmFacts>& now = {});
  void lower_array_limits(const SlurmFacts& now);
  // The array was too large for Slurm, whose limits are `now`, if they could be read. False: no smaller one
  // is possible.
  bool make_arrays_smaller(const Batch& batch, const std::optional<SlurmFacts>& now);
  // Waits, its place is tried again after a while.
  void put_off(Batch batch, const SlurmError& e);
  void give_up(const Batch& batch, const SlurmError& e);
  void cancel(const std::set<ShardKey>& keys);
  void cancel_next();

  // ---- queue_watch.cc ----
  // The job and the first shard of an array that is ours, by its name: "<token>" or "<token>.<base>".
  struct Ours {
    std::string token;
    std::uint32_t job = 0, base = 0;
  };
  std::optional<Ours> ours(const std::string& name) const;
  void ask_status();
  void take_status(const std::vector<SlurmTask>& tasks, Clock::time_point asked);
  // A submission whose answer was lost is in the queue.
  void adopt_lost(const SlurmTask& task, const Ours& found);
  void look_at(const ShardKey& key, Live& shard, const SlurmTask& task, std::uint32_t index);
  // Waits for something that will not come.
  bool is_hopeless(Live& shard) const;
  // Somebody waits for what the queue says: the pauses are short.
  bool in_a_hurry() const;
  bool any_unsure() const;  // a submission's answer was lost
  // How those ended that slurmctld has forgotten. A slurmdbd that does not answer holds nothing up.
  void ask_accounting();

  // ---- endings.cc ----
  void look_at_words();
  void take_words(const std::filesystem::path& folder, bool sure);
  std::map<ShardKey, Live>::iterator find_live(const LastWord& word);
  // Whether a submission with this token is under way, or its answer was lost.
  bool is_awaited(const std::string& token) const;
  void take_word(std::map<ShardKey, Live>::iterator it, const Json& told);
  // Those that Slurm says have ended, or no longer knows: for a while their last words may be under way.
  void look_at_the_silent();
  void conclude(const ShardKey& key, const Live& shard);
  void tell_end(const ShardKey& key, EndCause cause, std::string detail, const std::string& where,
                const Json* told = nullptr);
  std::map<ShardKey, Live>::iterator forget(std::map<ShardKey, Live>::iterator it);

  // ---- executor.cc ----
  void drive();
  Clock::time_point next_thing();
  void tell_started(const ShardKey& key, Live& shard, std::string detail);
  void away(const SlurmError& e);
  void answered();

  // Pauses that the options set.
  static Clock::duration to_duration(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }
  Clock::duration file_grace() const { return to_duration(options.file_grace_s); }
  Clock::duration first_status() const { return to_duration(options.first_status_s); }
  bool awaits_nothing() const {
    return live.empty() && waiting.empty() && submitting == nullptr && to_cancel.empty() && leftovers.empty();
  }
  // Before "not in the queue" is believed.
  Clock::duration second_look() const {
    return std::min<Clock::duration>(file_grace(), std::chrono::seconds(5));
  }

  SlurmOptions options;
  SlurmFacts facts;
  TokenBucket bucket;
  std::size_t limit = 0;
  // Limits of an array. An administrator may lower Slurm's own while we run; ours follow when Slurm refuses
  // an array.
  std::size_t most_tasks = ~std::size_t{0};
  std::uint32_t array_size = ~std::uint32_t{0};  // indices lie below it
  std::optional<Calls> calls;
  std::deque<Batch> waiting;
  std::shared_ptr<const Batch> submitting;  // the submission under way
  std::map<ShardKey, Live> live;
  std::map<std::string, std::uint32_t, std::less<>> job_of_token;
  std::map<std::filesystem::path, EndsFolder> ends;
  std::map<std::uint32_t, std::set<std::uint32_t>> to_cancel;  // array -> indices
  std::map<std::string, std::int64_t>
      to_account;  // names of arrays to be looked up in accounting, ended since when
  Clock::time_point next_account{};
  bool any_silent = false;      // one may have ended_since or missing_since
  std::set<ShardKey> unwanted;  // cancelled while it is not known whether they arrived
  bool any_submitted = false, status_taken = false;
  bool any_runs = false;                   // a job of this user's, at the last look
  bool ending = false, last_look = false;  // in shut_down()
  std::size_t strays = 0;             // at the last look: tasks that have not ended though their shards have
  std::set<std::uint32_t> leftovers;  // arrays of this run that nobody waits for
  std::map<std::string, Clock::time_point> avoid;  // node -> until
  std::vector<ShardEvent> events;
  std::uint64_t requests = 0;

  Clock::time_point next_status = Clock::time_point::max(), next_files{}, next_grace{};
  Clock::duration status_pause = first_status();  // doubles from look to look …
  Clock::duration status_cost{};                  // … and is no less than the last one's cost allows
  std::optional<Clock::time_point> away_since;
  Clock::time_point away_until{};
  Clock::duration away_pause = std::chrono::seconds(1);
  std::map<const workflow::SitePlace*, ClosedPlace> closed;
  std::string trouble;
};

}  // namespace warpsmith::executor

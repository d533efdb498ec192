#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>
#include <tuple>
#include <utility>

#include "../evidence.h"
#include "calls.h"
#include "token_bucket.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/batch.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/executor/slurm.h"

namespace warpsmith::executor {

namespace {

using Clock = std::chrono::steady_clock;
using run::ShardEvent;
using run::ShardKey;
using run::ShardStart;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kLookAtFiles = milliseconds(100);  // between looks at the ends folders …
constexpr int kLooks = 50;                        // … and this many times what a look took
constexpr auto kSlowestStatus = seconds(10);
constexpr int kStatuses =
    50;  // a request about many jobs costs slurmctld and us: this many times what it took …
constexpr auto kLongestStatus = seconds(60);  // … lie between two, and no more than this
constexpr auto kSecondLook = seconds(5);      // before "not in the queue" is believed
constexpr int kAccountLooks = 3;              // in accounting, which may lag behind the queue …
constexpr auto kBetweenAccountLooks = seconds(5);
constexpr auto kAvoidNode = std::chrono::minutes(30);
constexpr auto kShutDown = seconds(60);
constexpr auto kLastTasks = seconds(15);
constexpr std::size_t kQueuedByDefault = 10'000;
constexpr std::uint64_t kOwnMemory = 64ull << 20;  // of warpsmith-shard and its guard

// Reasons for which a job waits until somebody changes it, not until there is room.
bool never_starts(const std::string& reason) {
  static const std::set<std::string, std::less<>> kReasons = {
      "BadConstraints",   "InvalidAccount",     "InvalidQOS",         "AccountNotAllowed",
      "QOSNotAllowed",    "PartitionTimeLimit", "PartitionNodeLimit", "DependencyNeverSatisfied",
      "JobHoldMaxRequeue"};
  return kReasons.contains(reason);
}

bool failed_to_launch(const std::string& reason) {
  std::string lower = reason;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find("launch") != std::string::npos;  // JobLaunchFailure, "launch failed requeued held"
}

EndCause cause_of(const SlurmTask& task, bool by_us) {
  constexpr int kUnopenableOutput = 53;
  switch (task.state) {
    case SlurmState::kCompleted:
      return EndCause::kFinished;
    case SlurmState::kCancelled:
      return by_us ? EndCause::kCancelled : EndCause::kStopped;
    case SlurmState::kFailed:
      if (task.signal == kUnopenableOutput || failed_to_launch(task.reason)) return EndCause::kLaunchFailure;
      if (task.signal != 0) return EndCause::kCrash;
      return task.exit_code == kExitUsage ? EndCause::kUserError : EndCause::kFailed;
    case SlurmState::kTimeout:
    case SlurmState::kDeadline:
      return EndCause::kTimeout;
    case SlurmState::kNodeFail:
    case SlurmState::kBootFail:
      return EndCause::kNodeFailure;
    case SlurmState::kPreempted:
      return EndCause::kPreempted;
    case SlurmState::kOutOfMemory:
      return EndCause::kOutOfMemory;
    default:
      return EndCause::kUnknown;
  }
}

// Shards of one range that are submitted as one array.
struct Batch {
  ShardStart model;
  const workflow::SitePlace* place = nullptr;
  std::uint32_t base = 0;
  std::vector<std::uint32_t> shards;  // ascending, within [base, base + MaxArraySize)
  bool unsure = false;                // an answer was lost: it may be in the queue already
  bool anywhere = false;              // also on nodes that failed lately: there are no others
  Clock::time_point lost_at{};

  std::string name() const { return base == 0 ? model.token : model.token + "." + std::to_string(base); }
};

// A shard that is in the queue, or was when it was looked at last.
struct Live {
  std::string token;
  std::filesystem::path ends;
  std::uint32_t array = 0, index = 0;  // array 0: not found yet, after attach()
  std::uint32_t job = 0;
  Clock::time_point since;      // submitted, or attached
  std::int64_t attached_s = 0;  // seconds since 1970; 0: submitted in this life
  std::optional<Clock::time_point> missing_since;
  std::optional<Clock::time_point> ended_since;  // Slurm says that it has ended
  SlurmTask last;
  int accounted = 0;  // looks in accounting so far, while it is missing
  bool started = false, cancelling = false;
  std::optional<SlurmTask>
      judged;  // held or hopeless: we cancel it, and this, not CANCELLED, is why it ended

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

}  // namespace

struct SlurmExecutor::State {
  State(std::unique_ptr<Cluster> cluster, SlurmOptions given)
      : options(std::move(given)),
        facts(cluster->facts()),
        bucket(options.site.requests_per_minute, options.site.request_burst, Clock::now()) {
    limit = options.site.max_queued > 0 ? options.site.max_queued : kQueuedByDefault;
    if (facts.max_jobs > 0) limit = std::min<std::size_t>(limit, facts.max_jobs);
    try {
      if (const auto limits = cluster->limits(); limits && limits->max_submit > 0)
        limit = std::min<std::size_t>(limit, limits->max_submit);
    } catch (const SlurmError&) {  // accounting is not needed
    }
    calls.emplace(std::move(cluster));
  }

  SlurmOptions options;
  SlurmFacts facts;
  TokenBucket bucket;
  std::size_t limit = 0;
  std::optional<Calls> calls;
  std::deque<Batch> waiting;
  std::string submitting;  // token of the submission under way
  std::map<ShardKey, Live> live;
  std::map<std::string, std::uint32_t, std::less<>> job_of_token;
  std::map<std::filesystem::path, EndsFolder> ends;
  std::map<std::uint32_t, std::set<std::uint32_t>> to_cancel;  // array -> indices
  std::set<std::uint32_t> to_account;  // arrays that are to be looked up in accounting
  Clock::time_point next_account{};
  std::set<ShardKey> unwanted;  // cancelled while it is not known whether they arrived
  bool any_submitted = false, status_taken = false, last_look = false;
  std::size_t strays = 0;             // at the last look: tasks that have not ended though their shards have
  std::set<std::uint32_t> leftovers;  // arrays of this run that nobody waits for
  std::map<std::string, Clock::time_point> avoid;  // node -> until
  std::vector<ShardEvent> events;
  std::uint64_t requests = 0;

  Clock::time_point next_status = Clock::time_point::max(), next_files{}, next_grace{};
  Clock::duration status_pause = first_status();
  std::optional<Clock::time_point> away_since;
  Clock::time_point away_until{};
  Clock::duration away_pause = seconds(1);
  Clock::time_point limit_until{};
  Clock::duration limit_pause = seconds(1);
  std::string trouble;

  // ---- words for the caller ----

  void tell_end(const ShardKey& key, EndCause cause, std::string detail, const std::string& where,
                const Json* told = nullptr) {
    ShardEvent event;
    event.kind = ShardEvent::Kind::kEnded;
    event.key = key;
    event.cause = cause;
    event.where = where;
    event.detail = std::move(detail);
    if (told != nullptr) {
      event.exit_code = told->value("exit_code", 0);
      event.signal = told->value("signal", 0);
      event.wall_s = told->value("wall_s", 0.0);
      event.cpu_s = told->value("cpu_s", 0.0);
      event.peak_memory_bytes = told->value("memory", std::uint64_t{0});
    }
    events.push_back(std::move(event));
  }

  std::map<ShardKey, Live>::iterator forget(std::map<ShardKey, Live>::iterator it) {
    if (const auto folder = ends.find(it->second.ends); folder != ends.end() && --folder->second.live == 0)
      ends.erase(folder);
    return live.erase(it);
  }

  void tell_started(const ShardKey& key, Live& shard, std::string detail) {
    shard.started = true;
    ShardEvent event;
    event.kind = ShardEvent::Kind::kStarted;
    event.key = key;
    event.where = shard.where();
    event.detail = std::move(detail);
    events.push_back(std::move(event));
  }

  // ---- submission ----

  // Where a shard goes. What is measured on a twin has the device kind `cpu` on whatever node: a shard that
  // wants a GPU of no type takes the types in turn there.
  const workflow::SitePlace* place_of(const ShardStart& start) const {
    const workflow::SitePlace* place = workflow::place_for(options.site, start.resources);
    const auto& types = options.site.gpus;
    if (place != nullptr || !start.resources.gpu_type.empty() || types.empty()) return place;
    if (!std::all_of(types.begin(), types.end(), [](const auto& type) { return type.second.twin; }))
      return nullptr;
    return &std::next(types.begin(), static_cast<std::ptrdiff_t>(start.key.shard % types.size()))->second;
  }

  void enqueue(const std::vector<ShardStart>& given) {
    const std::uint32_t most = std::max<std::uint32_t>(facts.max_array_size, 2);
    // One array a token and place: those of a place side by side.
    std::vector<std::tuple<std::size_t, const workflow::SitePlace*, std::size_t>>
        order;  // range, place, shard
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool same = i > 0 && given[i].token == given[i - 1].token;
      const std::size_t range = i == 0 ? 0 : std::get<0>(order.back()) + (same ? 0 : 1);
      order.emplace_back(range, place_of(given[i]), i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [range, place, number] : order) {
      const ShardStart& start = given[number];
      if (place == nullptr || start.resources.ranks > 1 || start.resources.nodes > 1) {
        tell_end(start.key, EndCause::kUserError,
                 place == nullptr ? "the site " + options.site.name + " has no GPU of type `" +
                                        start.resources.gpu_type + "`"
                                  : "is a gang of several ranks, which are not built yet",
                 "");
        continue;
      }
      job_of_token[start.token] = start.key.job;
      const std::uint32_t base = start.key.shard / most * most;
      if (waiting.empty() || waiting.back().unsure || waiting.back().model.token != start.token ||
          waiting.back().base != base || waiting.back().place != place ||
          waiting.back().model.resources != start.resources) {
        waiting.push_back({.model = start, .place = place, .base = base, .shards = {}});
        make_folders(ends_folder(start.job_file));
      }
      waiting.back().shards.push_back(start.key.shard);
    }
  }

  SlurmJob job_for(const Batch& batch) {
    const Resources& r = batch.model.resources;
    const workflow::SitePlace& place = *batch.place;
    std::vector<std::uint32_t> indices = batch.shards;
    for (std::uint32_t& index : indices) index -= batch.base;
    SlurmJob job = job_at(place, r.gpus);
    job.name = batch.name();
    job.script = batch_script(batch.model, batch.base, place, options.programs);
    job.folder = options.run;
    job.output = batch.model.job_file.parent_path() / "slurm.log";
    job.array = format_indices(indices);
    job.cpus = static_cast<std::uint32_t>(std::max(1, r.cpus));
    std::erase_if(avoid, [](const auto& node) { return node.second < Clock::now(); });
    if (!batch.anywhere)
      for (const auto& [node, until] : avoid) job.exclude += (job.exclude.empty() ? "" : ",") + node;
    const std::uint64_t memory =
        r.memory_bytes > 0 ? r.memory_bytes : place.memory_per_cpu * static_cast<std::uint64_t>(r.cpus);
    double time_s = r.time_s;
    if (place.max_time_s > 0 && (time_s <= 0 || time_s > place.max_time_s)) time_s = place.max_time_s;
    // A minute more than ours, where the place allows it: the program's own limit strikes first, and says so.
    if (time_s > 0) job.minutes = static_cast<std::uint32_t>(std::ceil(time_s / 60)) + 1;
    if (place.max_time_s >= 60)
      job.minutes = std::min(job.minutes, static_cast<std::uint32_t>(place.max_time_s / 60));
    if (memory > 0) job.memory_mib = (memory + kOwnMemory + (1 << 20) - 1) >> 20;
    return job;
  }

  void submit_next() {
    auto batch = std::make_shared<Batch>(std::move(waiting.front()));
    waiting.pop_front();
    submitting = batch->model.token;
    auto job = std::make_shared<SlurmJob>(job_for(*batch));
    calls->post([this, batch, job](Cluster& cluster) -> Calls::Answer {
      try {
        const std::uint32_t id = cluster.submit(*job);
        return [this, batch, id, n = cluster.requests()] {
          requests = n;
          submitting.clear();
          answered();
          limit_pause = seconds(1);
          taken(*batch, id);
        };
      } catch (const SlurmError& e) {
        return [this, batch, e, n = cluster.requests()] {
          requests = n;
          submitting.clear();
          refused(std::move(*batch), e);
        };
      }
    });
  }

  void add_live(const ShardKey& key, const Batch& batch, std::uint32_t id) {
    Live shard{.token = batch.model.token,
               .ends = ends_folder(batch.model.job_file),
               .array = id,
               .index = key.shard - batch.base,
               .since = Clock::now(),
               .missing_since = {},
               .ended_since = {},
               .last = {}};
    if (unwanted.erase(key) > 0) {
      shard.cancelling = true;
      if (id != 0) to_cancel[id].insert(shard.index);
    }
    const std::filesystem::path folder = shard.ends;
    if (live.insert_or_assign(key, std::move(shard)).second)
      ++ends.try_emplace(folder, folder).first->second.live;
  }

  void taken(const Batch& batch, std::uint32_t id) {
    any_submitted = true;
    for (const std::uint32_t shard : batch.shards) add_live({batch.model.key.job, shard}, batch, id);
    status_pause = first_status();
    next_status = std::min(next_status, Clock::now() + status_pause);
  }

  void refused(Batch batch, const SlurmError& e) {
    switch (e.trouble()) {
      case SlurmTrouble::kLimit: {
        answered();
        // Half of it may fit: what the limit is cannot be read everywhere.
        if (batch.shards.size() > 1) {
          Batch rest = batch;
          const auto half = static_cast<std::ptrdiff_t>(batch.shards.size() / 2);
          rest.shards.erase(rest.shards.begin(), rest.shards.begin() + half);
          batch.shards.erase(batch.shards.begin() + half, batch.shards.end());
          waiting.push_front(std::move(rest));
        } else {
          limit_until = Clock::now() + limit_pause;
          limit_pause = std::min<Clock::duration>(limit_pause * 2, seconds(10));
          trouble = std::string("the queue is full: ") + e.what();
          // The limit may be that of its place alone: another place's turn.
          if (std::any_of(waiting.begin(), waiting.end(),
                          [&](const Batch& other) { return other.place != batch.place; })) {
            waiting.push_back(std::move(batch));
            return;
          }
        }
        waiting.push_front(std::move(batch));
        return;
      }
      case SlurmTrouble::kUnsure:
        batch.unsure = true;
        batch.lost_at = Clock::now();
        next_status = Clock::now();
        [[fallthrough]];
      case SlurmTrouble::kAway:
        waiting.push_front(std::move(batch));
        away(e);
        return;
      case SlurmTrouble::kGone:
      case SlurmTrouble::kRefused:
        answered();
        if (!avoid.empty() && !std::exchange(batch.anywhere, true)) {
          waiting.push_front(std::move(batch));
          return;
        }
        for (const std::uint32_t shard : batch.shards)
          tell_end({batch.model.key.job, shard}, EndCause::kUserError, e.what(), "");
        return;
    }
  }

  static Clock::duration to_duration(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }
  Clock::duration file_grace() const { return to_duration(options.file_grace_s); }
  Clock::duration first_status() const { return to_duration(options.first_status_s); }
  Clock::duration second_look() const { return std::min<Clock::duration>(file_grace(), kSecondLook); }

  void away(const SlurmError& e) {
    const auto now = Clock::now();
    if (!away_since) away_since = now;
    away_until = now + away_pause;
    away_pause = std::min<Clock::duration>(away_pause * 2, seconds(30));
    trouble = e.what();
  }
  void answered() {
    away_since.reset();
    away_pause = seconds(1);
    trouble.clear();
  }

  // ---- the queue ----

  void ask_status() {
    const auto asked = Clock::now();
    calls->post([this, asked](Cluster& cluster) -> Calls::Answer {
      try {
        const auto begin = Clock::now();
        auto tasks = std::make_shared<std::vector<SlurmTask>>(cluster.jobs());
        const auto took = Clock::now() - begin;
        return [this, asked, took, tasks, n = cluster.requests()] {
          requests = n;
          answered();
          status_pause = std::max(status_pause, std::min<Clock::duration>(took * kStatuses, kLongestStatus));
          next_status = std::max(next_status, asked + status_pause);
          take_status(*tasks, asked);
        };
      } catch (const SlurmError& e) {
        return [this, e, n = cluster.requests()] {
          requests = n;
          away(e);
          next_status = away_until;
        };
      }
    });
    next_status = asked + status_pause;
    status_pause = std::max(status_pause, std::min<Clock::duration>(status_pause * 2, kSlowestStatus));
  }

  // The job and the first shard of an array that is ours, by its name: "<token>" or "<token>.<base>".
  struct Ours {
    std::string token;
    std::uint32_t job = 0, base = 0;
  };
  std::optional<Ours> ours(const std::string& name) const {
    const auto dot = name.find('.');
    const std::string token = name.substr(0, dot);
    const auto found = job_of_token.find(token);
    if (found == job_of_token.end()) return std::nullopt;
    return Ours{token, found->second,
                dot == std::string::npos ? 0 : static_cast<std::uint32_t>(std::stoul(name.substr(dot + 1)))};
  }

  void take_status(const std::vector<SlurmTask>& tasks, Clock::time_point asked) {
    std::set<ShardKey> seen;
    status_taken = true;
    strays = 0;
    for (const SlurmTask& task : tasks) {
      const std::optional<Ours> found = ours(task.name);
      if (!found) {
        if (!options.prefix.empty() && task.name.starts_with(options.prefix) && !has_ended(task.state))
          leftovers.insert(task.array);
        continue;
      }
      adopt_lost(task, *found);
      for (const std::uint32_t index : task.tasks) {
        const ShardKey key{found->job, found->base + index};
        const auto it = live.find(key);
        if (it == live.end() || it->second.token != found->token) {  // its end was told already …
          if (has_ended(task.state)) continue;
          ++strays;
          // … and Slurm has put it into the queue again: after a requeue, or when slurmctld had lost its end.
          if (task.state == SlurmState::kPending) to_cancel[task.array].insert(index);
          continue;
        }
        if (it->second.array != 0 && it->second.array != task.array) {  // submitted twice after all
          if (!has_ended(task.state)) to_cancel[task.array].insert(index);
          continue;
        }
        seen.insert(key);
        look_at(it->first, it->second, task, index);
      }
    }
    for (Batch& batch : waiting)
      if (batch.unsure && asked > batch.lost_at + second_look()) batch.unsure = false;  // it never arrived
    if (!unwanted.empty()) cancel(std::exchange(unwanted, {}));
    for (auto& [key, shard] : live) {
      if (seen.contains(key) || asked < shard.since || shard.ended_since) continue;
      if (!shard.missing_since) shard.missing_since = asked;
    }
  }

  // A submission whose answer was lost is in the queue.
  void adopt_lost(const SlurmTask& task, const Ours& found) {
    for (auto batch = waiting.begin(); batch != waiting.end(); ++batch) {
      if (!batch->unsure || batch->model.token != found.token || batch->base != found.base) continue;
      if (!std::any_of(task.tasks.begin(), task.tasks.end(), [&](std::uint32_t index) {
            return std::binary_search(batch->shards.begin(), batch->shards.end(), found.base + index);
          }))
        continue;
      const Batch arrived = std::move(*batch);
      waiting.erase(batch);
      taken(arrived, task.array);
      return;
    }
  }

  void look_at(const ShardKey& key, Live& shard, const SlurmTask& task, std::uint32_t index) {
    shard.missing_since.reset();
    shard.array = task.array;
    shard.index = index;
    shard.job = task.job;
    const std::uint32_t restarts_before = shard.last.restarts;
    shard.last = task;
    shard.last.tasks = {index};
    if (shard.judged) {
      shard.last = *shard.judged;
      return;
    }
    if (task.restarts > restarts_before) shard.started = false;
    const bool pending = task.state == SlurmState::kPending;
    const bool hopeless = pending && never_starts(task.reason);
    const bool held = pending && failed_to_launch(task.reason);
    if (hopeless || held) {
      to_cancel[task.array].insert(index);
      shard.last.state = hopeless ? SlurmState::kOther : SlurmState::kFailed;
      shard.judged = shard.last;
    }
    if (hopeless || held || (has_ended(task.state) && !task.settling)) {
      if (!shard.ended_since) shard.ended_since = Clock::now();
      return;
    }
    shard.ended_since.reset();  // requeued, perhaps
    if (task.state == SlurmState::kRunning && !shard.started)
      tell_started(key, shard,
                   task.restarts > 0 ? "Slurm started it again (" + std::to_string(task.restarts) + ")" : "");
  }

  // ---- last words ----

  void look_at_words() {
    for (auto folder = ends.begin(); folder != ends.end();) {
      const std::filesystem::path path = (folder++)->first;  // the last word of its shards takes it away
      take_words(path, false);
    }
  }

  void take_words(const std::filesystem::path& folder, bool sure) {
    EndsFolder& seen = ends.at(folder);
    std::vector<LastWord> words = std::exchange(seen.early, {});
    for (LastWord& word : seen.words.read_new(sure)) words.push_back(std::move(word));
    for (const LastWord& word : words)
      if (find_live(word) == live.end() && is_awaited(word.token)) seen.early.push_back(word);
    for (const LastWord& word : words)  // the last of its shards takes the folder away
      if (const auto it = find_live(word); it != live.end()) take_word(it, word.told);
  }

  std::map<ShardKey, Live>::iterator find_live(const LastWord& word) {
    const auto job = job_of_token.find(word.token);
    if (job == job_of_token.end()) return live.end();
    const auto it = live.find({job->second, word.shard});
    return it != live.end() && it->second.token == word.token ? it : live.end();
  }

  // Whether a submission with this token is under way, or its answer was lost.
  bool is_awaited(const std::string& token) const {
    return token == submitting || std::any_of(waiting.begin(), waiting.end(), [&](const Batch& batch) {
             return batch.unsure && batch.model.token == token;
           });
  }

  void take_word(std::map<ShardKey, Live>::iterator it, const Json& told) {
    Live& shard = it->second;
    if (shard.array == 0) shard.array = told.value("array", 0u);
    if (shard.last.nodes.empty()) shard.last.nodes = told.value("host", "");
    EndCause cause = parse_end_cause(told.value("cause", "")).value_or(EndCause::kFailed);
    std::string detail = told.value("detail", "");
    if (shard.cancelling && cause == EndCause::kCrash) cause = EndCause::kCancelled;
    if (cause == EndCause::kDiskFull && !disk_is_full(shard.ends)) {  // told in an earlier life, perhaps
      cause = EndCause::kUnknown;
      detail = "the disk was full, and has room again";
    }
    tell_end(it->first, cause, std::move(detail), shard.where(), &told);
    forget(it);
  }

  // Those that Slurm says have ended, or no longer knows: for a while their last words may be under way.
  void look_at_the_silent() {
    const auto now = Clock::now();
    const Clock::duration files = file_grace();
    std::set<std::filesystem::path> folders;
    for (const auto& [key, shard] : live)
      if (shard.ended_since || shard.missing_since) folders.insert(shard.ends);
    for (const std::filesystem::path& folder : folders)
      if (ends.contains(folder)) take_words(folder, true);
    for (auto it = live.begin(); it != live.end();) {
      const auto& [key, shard] = *it;
      if (!shard.ended_since && !shard.missing_since) {
        ++it;
        continue;
      }
      if (shard.ended_since) {
        const bool well = shard.last.state == SlurmState::kCompleted;
        if (now - *shard.ended_since < (well ? files : std::min<Clock::duration>(files, seconds(3)))) {
          ++it;
          continue;
        }
        conclude(key, shard);
      } else {
        if (now - *shard.missing_since < second_look()) {
          ++it;
          continue;
        }
        if (facts.accounting && !shard.cancelling && shard.array != 0 && shard.accounted < kAccountLooks) {
          to_account.insert(shard.array);
          ++it;
          continue;
        }
        tell_end(key, shard.cancelling ? EndCause::kCancelled : EndCause::kUnknown,
                 shard.cancelling ? "" : "Slurm no longer knows the job", shard.where());
      }
      it = forget(it);
    }
  }

  void conclude(const ShardKey& key, const Live& shard) {
    const SlurmTask& task = shard.last;
    EndCause cause = cause_of(task, shard.cancelling);
    std::string detail = fmt::format("Slurm job {} {}", shard.where(), to_string(task.state));
    if (task.state == SlurmState::kFailed && task.signal == 0 && task.exit_code == kExitEnvironment) {
      // A program that exits so leaves a word by warpsmith-shard: this one could not be written.
      const bool full = disk_is_full(shard.ends);
      cause = full ? EndCause::kDiskFull : EndCause::kUnknown;
      detail += full ? ": no room on the file system of the run" : ": it could not say how it ended";
    }
    if (task.state == SlurmState::kOther) {
      cause = EndCause::kUserError;
      detail = fmt::format("Slurm job {} would never start", shard.where());
    }
    // Nobody's wish of today: the controller before this one on its way out, or somebody while there was
    // none.
    if (cause == EndCause::kStopped && shard.attached_s > 0 && task.ended <= shard.attached_s)
      cause = EndCause::kUnknown;
    if (!task.reason.empty()) detail += ", reason " + task.reason;
    if (cause == EndCause::kNodeFailure || cause == EndCause::kLaunchFailure)
      if (!task.nodes.empty() && task.nodes.find_first_of("[,") == std::string::npos)
        avoid[task.nodes] = Clock::now() + kAvoidNode;
    Json told{{"exit_code", task.exit_code}, {"signal", task.signal}};
    if (task.started > 0 && task.ended > task.started)
      told["wall_s"] = static_cast<double>(task.ended - task.started);
    tell_end(key, cause, detail, shard.where(), &told);
  }

  // ---- what is asked next ----

  void drive() {
    const auto now = Clock::now();
    if (now >= next_files) {
      look_at_words();
      const auto took = Clock::now() - now;
      next_files = Clock::now() + std::max<Clock::duration>(kLookAtFiles, took * kLooks);
    }
    if (now >= next_grace) {
      look_at_the_silent();
      next_grace = Clock::now() + milliseconds(500);
    }
    if (calls->busy() || now < away_until) return;
    if (!to_cancel.empty() || !leftovers.empty()) return cancel_next();
    const bool lost = std::any_of(waiting.begin(), waiting.end(), [](const Batch& b) { return b.unsure; });
    if (!waiting.empty() && !waiting.front().unsure && now >= limit_until) return submit_next();
    if ((lost || !live.empty() || last_look) && now >= next_status && bucket.take(now)) return ask_status();
    if (!to_account.empty() && now >= next_account && bucket.take(now)) ask_accounting();
  }

  // How those ended that slurmctld has forgotten. A slurmdbd that does not answer holds nothing up.
  void ask_accounting() {
    const std::vector<std::uint32_t> arrays(to_account.begin(), to_account.end());
    to_account.clear();
    calls->post([this, arrays](Cluster& cluster) -> Calls::Answer {
      std::vector<SlurmTask> ended;
      try {
        ended = cluster.ended_jobs(arrays);
      } catch (const SlurmError&) {
      }
      return [this, arrays, ended, n = cluster.requests()] {
        requests = n;
        next_account = Clock::now() + std::min<Clock::duration>(kBetweenAccountLooks, second_look());
        std::map<std::pair<std::uint32_t, std::uint32_t>, const SlurmTask*> by_index;
        for (const SlurmTask& task : ended)
          for (const std::uint32_t index : task.tasks) by_index[{task.array, index}] = &task;
        for (auto& [key, shard] : live) {
          if (!shard.missing_since || !std::binary_search(arrays.begin(), arrays.end(), shard.array))
            continue;
          ++shard.accounted;
          const auto found = by_index.find({shard.array, shard.index});
          if (found == by_index.end()) continue;
          shard.last = *found->second;
          shard.missing_since.reset();
          shard.ended_since = Clock::now();
        }
      };
    });
  }

  void cancel_next() {
    std::string what;
    std::uint32_t array = 0;
    std::vector<std::uint32_t> indices;
    if (!leftovers.empty()) {
      array = *leftovers.begin();
      leftovers.erase(leftovers.begin());
      what = std::to_string(array);
    } else {
      array = to_cancel.begin()->first;
      indices.assign(to_cancel.begin()->second.begin(), to_cancel.begin()->second.end());
      to_cancel.erase(to_cancel.begin());
      what = fmt::format("{}_[{}]", array, format_indices(indices));
    }
    calls->post([this, what, array, indices](Cluster& cluster) -> Calls::Answer {
      try {
        cluster.cancel(what);
      } catch (const SlurmError& e) {
        return [this, e, array, indices] {
          if (e.trouble() != SlurmTrouble::kRefused) {
            to_cancel[array].insert(indices.begin(), indices.end());
            away(e);
          } else {
            trouble = e.what();
          }
        };
      }
      return [this, array, indices, n = cluster.requests()] {
        requests = n;
        answered();
        // Tasks that had not started leave no record at all.
        for (auto it = live.begin(); it != live.end();) {
          const bool meant = it->second.array == array && it->second.cancelling && !it->second.started &&
                             std::binary_search(indices.begin(), indices.end(), it->second.index);
          if (meant && it->second.last.state != SlurmState::kRunning && !it->second.missing_since)
            it->second.missing_since = Clock::now();
          ++it;
        }
        next_status = std::min(next_status, Clock::now() + seconds(1));
      };
    });
  }

  Clock::time_point next_thing() {
    const auto now = Clock::now();
    Clock::time_point next = now + seconds(1);
    if (!ends.empty()) next = std::min(next, next_files);
    if (!live.empty()) next = std::min({next, next_grace, std::max(next_status, now + milliseconds(20))});
    if (!waiting.empty() && limit_until > now) next = std::min(next, limit_until);
    return std::max(next, now + milliseconds(1));
  }

  void cancel(const std::set<ShardKey>& keys) {
    for (auto batch = waiting.begin(); batch != waiting.end();) {
      if (batch->unsure)
        for (const std::uint32_t shard : batch->shards)
          if (keys.contains({batch->model.key.job, shard})) unwanted.insert({batch->model.key.job, shard});
      if (!batch->unsure)
        std::erase_if(batch->shards, [&](std::uint32_t shard) {
          const ShardKey key{batch->model.key.job, shard};
          if (!keys.contains(key)) return false;
          tell_end(key, EndCause::kCancelled, "had not been submitted", "");
          return true;
        });
      batch = batch->shards.empty() ? waiting.erase(batch) : std::next(batch);
    }
    for (auto& [key, shard] : live) {
      if (shard.cancelling || !keys.contains(key)) continue;
      shard.cancelling = true;
      if (shard.array != 0) to_cancel[shard.array].insert(shard.index);
    }
    next_status = std::min(next_status, Clock::now());
  }
};

SlurmExecutor::SlurmExecutor(std::unique_ptr<Cluster> cluster, SlurmOptions options)
    : state_(std::make_unique<State>(std::move(cluster), std::move(options))) {}

SlurmExecutor::~SlurmExecutor() = default;

void SlurmExecutor::submit(const std::vector<ShardStart>& shards) { state_->enqueue(shards); }

void SlurmExecutor::cancel(const std::vector<ShardKey>& shards) {
  state_->cancel({shards.begin(), shards.end()});
}

std::vector<ShardEvent> SlurmExecutor::poll(milliseconds timeout) {
  State& s = *state_;
  const auto until = Clock::now() + timeout;
  for (;;) {
    s.calls->collect();
    s.drive();
    if (!s.events.empty() || Clock::now() >= until) return std::exchange(s.events, {});
    s.calls->wait_for_answer(std::min(until, s.next_thing()));
  }
}

std::size_t SlurmExecutor::capacity() const { return state_->limit; }

void SlurmExecutor::attach(const std::vector<ShardStart>& shards) {
  State& s = *state_;
  for (const ShardStart& start : shards) {
    s.job_of_token[start.token] = start.key.job;
    make_folders(ends_folder(start.job_file));
    const Batch batch{.model = start, .base = 0, .shards = {}};
    s.add_live(start.key, batch, 0);
    s.live.at(start.key).attached_s = std::time(nullptr);
  }
  s.next_status = Clock::now();
}

void SlurmExecutor::shut_down() {
  State& s = *state_;
  if (!s.calls) return;
  std::set<ShardKey> all;
  for (const Batch& batch : s.waiting)
    for (const std::uint32_t shard : batch.shards) all.insert({batch.model.key.job, shard});
  for (const auto& [key, shard] : s.live) all.insert(key);
  s.cancel(all);
  const auto until = Clock::now() + kShutDown;
  while ((!s.live.empty() || !s.waiting.empty() || !s.to_cancel.empty() || !s.leftovers.empty()) &&
         Clock::now() < until)
    (void)poll(milliseconds(100));
  const bool left = !s.live.empty() || !s.waiting.empty();
  // Nothing of the run is to stay in the queue. A task whose shard has had its last word is gone within
  // seconds.
  const auto calm = Clock::now() + kLastTasks;
  s.last_look = true;
  while (!left && s.any_submitted && Clock::now() < calm) {
    s.status_taken = false;
    s.next_status = Clock::now();
    while (!s.status_taken && Clock::now() < calm) (void)poll(milliseconds(50));
    if (s.status_taken && s.strays == 0 && s.to_cancel.empty() && s.leftovers.empty()) break;
    (void)poll(milliseconds(500));
  }
  const std::string trouble = s.trouble;
  s.calls.reset();
  if (left)
    throw SlurmError(
        SlurmTrouble::kAway, 0,
        "the run's jobs were told to end, but it could not be seen that they have (`squeue --me`)" +
            (trouble.empty() ? "" : ": " + trouble));
}

void SlurmExecutor::detach() { state_->calls.reset(); }

run::ExecutorView SlurmExecutor::view() const {
  const State& s = *state_;
  run::ExecutorView view;
  view.requests = s.requests;
  for (const Batch& batch : s.waiting)
    view.shards[s.limit_until > Clock::now() ? "WAITING (queue full)" : "WAITING (to be submitted)"] +=
        batch.shards.size();
  for (const auto& [key, shard] : s.live) {
    std::string state(shard.array == 0 || shard.last.job == 0 ? "SUBMITTED" : to_string(shard.last.state));
    if (shard.last.state == SlurmState::kPending && !shard.last.reason.empty())
      state += " (" + shard.last.reason + ")";
    ++view.shards[state];
    if (shard.last.state == SlurmState::kRunning && !shard.last.gres.empty())
      ++view.gpus[shard.last.gres.substr(0, shard.last.gres.find('('))];
    if (shard.last.state == SlurmState::kPending && shard.last.started > 0)
      view.next_start =
          view.next_start == 0 ? shard.last.started : std::min(view.next_start, shard.last.started);
  }
  view.trouble = s.trouble;
  if (s.away_since)
    view.trouble =
        fmt::format("Slurm does not answer since {} s: {}",
                    std::chrono::duration_cast<seconds>(Clock::now() - *s.away_since).count(), s.trouble);
  return view;
}

}  // namespace warpsmith::executor

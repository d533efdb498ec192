#include "warpsmith/executor/local.h"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "evidence.h"
#include "shard_child.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::executor {

namespace {

using Clock = std::chrono::steady_clock;
using run::ShardEvent;
using run::ShardKey;
using run::ShardStart;
using std::chrono::milliseconds;

// A GPU, and the shards that have it.
struct GpuInUse {
  LocalGpu gpu;
  int shards = 0;
  int most = 0;  // of them; those that share it may have said different numbers: the least
};

// What one shard takes of the machine.
struct Share {
  int cpus = 1;
  std::uint64_t memory_bytes = 0;
  std::vector<LocalGpu> gpus;
};

}  // namespace

struct LocalExecutor::State {
  struct Running {
    ShardStart start;
    Share share;
    ShardChild child;
    bool alone = false;
  };

  LocalOptions options;
  std::deque<ShardStart> queue;
  std::list<Running> running;
  std::vector<ShardEvent> events;
  int free_cpus = 0;
  std::uint64_t free_memory = 0;
  std::vector<GpuInUse> gpus;

  static ShardEvent ended(ShardKey key, EndCause cause, std::string detail) {
    ShardEvent event;
    event.kind = ShardEvent::Kind::kEnded;
    event.key = key;
    event.cause = cause;
    event.where = process::host_name();
    event.detail = std::move(detail);
    return event;
  }

  // Empty, or what the shard wants that the machine has not.
  std::string beyond(const Resources& wants) const {
    std::string out;
    if (wants.cpus > options.cpus)
      out = "wants " + std::to_string(wants.cpus) + " CPUs, there are " + std::to_string(options.cpus);
    if (wants.memory_bytes > options.memory_bytes)
      out += std::string(out.empty() ? "" : "; ") + "wants " + format_size(wants.memory_bytes) +
             " of memory, there are " + format_size(options.memory_bytes);
    return out;
  }

  // CPUs and memory.
  bool fits(const Resources& wants) const {
    if (!running.empty() && running.front().alone) return false;
    if (!beyond(wants).empty()) return running.empty();
    return std::max(wants.cpus, 1) <= free_cpus && wants.memory_bytes <= free_memory;
  }

  static bool serves(const GpuInUse& gpu, const Resources& wants) {
    return wants.gpu_type.empty() || gpu.gpu.type == wants.gpu_type;
  }
  static bool has_room(const GpuInUse& gpu, const Resources& wants) {
    return serves(gpu, wants) && (gpu.shards == 0 || gpu.shards < std::min(gpu.most, wants.shards_a_gpu));
  }
  // Those that are there, and those that may be had now.
  bool exist(const Resources& wants) const {
    return std::count_if(gpus.begin(), gpus.end(), [&](const GpuInUse& g) { return serves(g, wants); }) >=
           wants.gpus;
  }
  bool are_free(const Resources& wants) const {
    return std::count_if(gpus.begin(), gpus.end(), [&](const GpuInUse& g) { return has_room(g, wants); }) >=
           wants.gpus;
  }

  // Empty, or why it never runs here.
  std::string impossible(const Resources& wants) const {
    if (wants.ranks > 1 || wants.nodes > 1)
      return "is a gang of " + std::to_string(wants.ranks) + " ranks on " + std::to_string(wants.nodes) +
             " nodes; the local executor runs shards of one process";
    if (exist(wants)) return "";
    std::map<std::string, int> types;
    for (const LocalGpu& gpu : options.gpus) ++types[gpu.type];
    std::string has;
    for (const auto& [type, count] : types)
      has += (has.empty() ? "" : ", ") + std::to_string(count) + (type.empty() ? "" : " " + type);
    return "wants " + std::to_string(wants.gpus) + (wants.gpus == 1 ? " GPU" : " GPUs") +
           (wants.gpu_type.empty() ? "" : " of type " + wants.gpu_type) + ", this machine has " +
           (has.empty() ? "none" : has);
  }

  void start_what_fits() {
    std::set<std::string> awaited;  // types of GPUs that shards further ahead wait for
    for (auto it = queue.begin(); it != queue.end();) {
      const Resources& wants = it->resources;
      if (const std::string why = impossible(wants); !why.empty()) {
        events.push_back(ended(it->key, EndCause::kUserError, why));
      } else if (wants.gpus > 0 && (is_awaited(awaited, wants.gpu_type) || !are_free(wants))) {
        awaited.insert(wants.gpu_type);
        ++it;
        continue;
      } else if (!fits(wants)) {
        return;
      } else {
        start(*it);
      }
      it = queue.erase(it);
    }
  }

  static bool is_awaited(const std::set<std::string>& awaited, const std::string& type) {
    return type.empty() ? !awaited.empty() : awaited.contains(type) || awaited.contains("");
  }

  Share take(const Resources& wants) {
    Share share;
    share.cpus = std::clamp(wants.cpus, 1, options.cpus);
    share.memory_bytes = std::min(wants.memory_bytes, free_memory);
    free_cpus -= share.cpus;
    free_memory -= share.memory_bytes;
    for (int i = 0; i < wants.gpus; ++i) share.gpus.push_back(take_gpu(wants));
    return share;
  }

  // That which the fewest have.
  const LocalGpu& take_gpu(const Resources& wants) {
    GpuInUse* best = nullptr;
    for (GpuInUse& gpu : gpus)
      if (has_room(gpu, wants) && (best == nullptr || gpu.shards < best->shards)) best = &gpu;
    best->most = best->shards == 0 ? wants.shards_a_gpu : std::min(best->most, wants.shards_a_gpu);
    ++best->shards;
    return best->gpu;
  }

  void give_back(const Share& share) {
    free_cpus += share.cpus;
    free_memory += share.memory_bytes;
    for (const LocalGpu& mine : share.gpus)
      for (GpuInUse& gpu : gpus) gpu.shards -= gpu.gpu.uuid == mine.uuid;
  }

  static ShardCommand command_of(const ShardStart& shard, const Share& share) {
    ShardCommand command{.program = shard.program,
                         .arguments = shard.arguments,
                         .log = shard.log,
                         .threads = share.cpus,
                         .limits = shard.resources,
                         .environment = {}};
    command.arguments.insert(command.arguments.end(), {shard.job_file, std::to_string(shard.key.shard)});
    std::string gpus;
    for (const LocalGpu& gpu : share.gpus) gpus += (gpus.empty() ? "" : ",") + gpu.uuid;
    command.environment["CUDA_VISIBLE_DEVICES"] = gpus;
    return command;
  }

  void start(const ShardStart& shard) {
    const std::string warning = beyond(shard.resources);
    const Share share = take(shard.resources);
    try {
      make_folders(shard.log.parent_path());
      Running entry{shard, share, ShardChild(command_of(shard, share)), !warning.empty()};
      ShardEvent event;
      event.kind = ShardEvent::Kind::kStarted;
      event.key = shard.key;
      event.where = process::host_name() + ":" + std::to_string(entry.child.child().pid());
      if (!warning.empty()) event.detail = warning + ": runs alone";
      running.push_back(std::move(entry));
      events.push_back(std::move(event));
    } catch (const Error& e) {
      give_back(share);
      events.push_back(ended(
          shard.key, disk_is_full(shard.log.parent_path()) ? EndCause::kDiskFull : EndCause::kLaunchFailure,
          e.what()));
    }
  }

  static ShardEvent conclude(Running& shard) {
    ShardEnd end = shard.child.end();
    ShardEvent event = ended(shard.start.key, end.cause, std::move(end.detail));
    event.where = process::host_name() + ":" + std::to_string(shard.child.child().pid());
    event.exit_code = end.exit_code;
    event.signal = end.signal;
    event.wall_s = end.wall_s;
    event.cpu_s = end.cpu_s;
    event.peak_memory_bytes = end.peak_memory_bytes;
    return event;
  }

  // Ends what is over a limit or out of grace, takes what has ended.
  void look() {
    for (auto it = running.begin(); it != running.end();) {
      if (it->child.running()) {
        ++it;
        continue;
      }
      events.push_back(conclude(*it));
      give_back(it->share);
      it = running.erase(it);
    }
  }

  // Until a child ends, a look is due, or `until`.
  void wait(Clock::time_point until) {
    std::vector<pollfd> fds;
    for (const Running& shard : running) {
      fds.push_back({shard.child.child().event_fd(), POLLIN, 0});
      until = std::min(until, shard.child.next_look());
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
  }
};

LocalExecutor::LocalExecutor(LocalOptions options) : state_(std::make_unique<State>()) {
  if (options.cpus <= 0) options.cpus = static_cast<int>(process::allowed_cpus().size());
  if (options.memory_bytes == 0) options.memory_bytes = process::available_memory();
  state_->options = std::move(options);
  state_->free_cpus = state_->options.cpus;
  state_->free_memory = state_->options.memory_bytes;
  for (const LocalGpu& gpu : state_->options.gpus) state_->gpus.push_back({.gpu = gpu});
  process::become_subreaper();
}

LocalExecutor::~LocalExecutor() { shut_down(); }

void LocalExecutor::submit(const std::vector<ShardStart>& shards) {
  state_->queue.insert(state_->queue.end(), shards.begin(), shards.end());
  state_->start_what_fits();
}

void LocalExecutor::cancel(const std::vector<ShardKey>& shards) {
  State& s = *state_;
  const auto named = [&](ShardKey key) {
    return std::find(shards.begin(), shards.end(), key) != shards.end();
  };
  for (const ShardStart& shard : s.queue)
    if (named(shard.key))
      s.events.push_back(State::ended(shard.key, EndCause::kCancelled, "had not started"));
  std::erase_if(s.queue, [&](const ShardStart& shard) { return named(shard.key); });
  for (State::Running& shard : s.running) {
    if (named(shard.start.key))
      shard.child.cancel(milliseconds(static_cast<std::int64_t>(s.options.grace_s * 1000)));
  }
}

std::vector<ShardEvent> LocalExecutor::poll(milliseconds timeout) {
  State& s = *state_;
  const auto until = Clock::now() + timeout;
  for (;;) {
    s.look();
    s.start_what_fits();
    if (!s.events.empty() || Clock::now() >= until) return std::exchange(s.events, {});
    s.wait(until);
  }
}

std::size_t LocalExecutor::capacity() const { return 2 * static_cast<std::size_t>(state_->options.cpus); }

run::ExecutorView LocalExecutor::view() const {
  run::ExecutorView out;
  for (const GpuInUse& gpu : state_->gpus)
    if (gpu.shards > 0) ++out.gpus[gpu.gpu.type];
  return out;
}

void LocalExecutor::shut_down() {
  State& s = *state_;
  s.queue.clear();
  std::vector<ShardKey> all;
  for (const State::Running& shard : s.running) all.push_back(shard.start.key);
  cancel(all);
  while (!s.running.empty()) {
    s.look();
    if (!s.running.empty()) s.wait(Clock::now() + milliseconds(100));
  }
}

}  // namespace warpsmith::executor

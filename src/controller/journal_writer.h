// What the controller puts on disk before it acts: events in groups, and in which order. Which shards of a
// program without records are done comes before the journal that says so, and the journal before shards are
// handed over: a death at any point repeats nothing that is done, and starts no shard that nobody knows of.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "warpsmith/run/executor.h"
#include "warpsmith/run/journal.h"

namespace warpsmith::controller {

// Where events go, and shards that are to start.
class RunLog {
 public:
  virtual ~RunLog() = default;
  virtual void note(run::Event& event) = 0;  // gets its time
  // Of a job whose program keeps no records.
  virtual void note_done(const std::filesystem::path& job_folder, std::uint32_t shard) = 0;
  // To be handed over when it is on disk that it was.
  virtual void hand_over_later(run::ShardStart shard) = 0;
  // Which shards are done comes to disk.
  virtual void write_done() = 0;
  // So does all that was noted; then what waits goes to `executor`.
  virtual void commit(run::Executor& executor) = 0;
};

class JournalWriter final : public RunLog {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // Claims the next epoch of the run's journal; `replay` gets the events of the earlier ones, oldest first.
  JournalWriter(const std::filesystem::path& run, const std::function<void(run::Event&&)>& replay,
                Clock clock = std::chrono::steady_clock::now);

  void note(run::Event& event) override;
  void note_done(const std::filesystem::path& job_folder, std::uint32_t shard) override;
  void hand_over_later(run::ShardStart shard) override { waiting_.push_back(std::move(shard)); }
  std::size_t waiting() const { return waiting_.size(); }
  void forget_waiting() { waiting_.clear(); }

  // What was noted comes to disk: which shards are done, then the events. Throws Error.
  void write();
  void write_done() override;
  // Throws Error with kExitBusy, and hands nothing over, where another controller has the run.
  void commit(run::Executor& executor) override;

  // How long what is noted may still wait for company, so that one write serves all; 0: write it now.
  std::chrono::milliseconds may_wait() const;
  bool pending() const { return journal_.pending(); }
  std::uint32_t epoch() const { return journal_.epoch(); }

 private:
  std::filesystem::path run_;
  Clock clock_;
  run::Journal journal_;
  std::chrono::steady_clock::time_point oldest_{};  // of what is pending
  std::map<std::filesystem::path, std::vector<std::uint32_t>> done_;
  std::vector<run::ShardStart> waiting_;
};

}  // namespace warpsmith::controller

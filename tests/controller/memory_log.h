// A run's log that is kept in memory, and an executor that does nothing but remember.
#pragma once

#include <string>
#include <vector>

#include "journal_writer.h"

namespace warpsmith::controller {

class MemoryLog final : public RunLog {
 public:
  void note(run::Event& event) override { events.push_back(event); }
  void note_done(const std::filesystem::path&, std::uint32_t shard) override { done.push_back(shard); }
  void hand_over_later(run::ShardStart shard) override { handed_over.push_back(std::move(shard)); }
  void write_done() override {}
  void commit(run::Executor&) override { ++commits; }

  std::vector<run::Event> of(run::EventKind kind) const {
    std::vector<run::Event> out;
    for (const run::Event& event : events)
      if (event.kind == kind) out.push_back(event);
    return out;
  }
  std::vector<run::Event> events;
  std::vector<std::uint32_t> done;
  std::vector<run::ShardStart> handed_over;
  int commits = 0;
};

class IdleExecutor : public run::Executor {
 public:
  explicit IdleExecutor(bool outlives = false) : outlives_(outlives) {}
  void submit(const std::vector<run::ShardStart>&) override {}
  void cancel(const std::vector<run::ShardKey>& shards) override {
    cancelled.insert(cancelled.end(), shards.begin(), shards.end());
  }
  std::vector<run::ShardEvent> poll(std::chrono::milliseconds) override { return {}; }
  std::size_t capacity() const override { return 4; }
  void shut_down() override {}
  bool outlives() const override { return outlives_; }
  void attach(const std::vector<run::ShardStart>& shards) override { attached = shards; }

  std::vector<run::ShardKey> cancelled;
  std::vector<run::ShardStart> attached;

 private:
  const bool outlives_;
};

class Messages : public RunObserver {
 public:
  void on_state(const Json&) override {}
  void on_message(const std::string& message) override { list.push_back(message); }
  std::vector<std::string> list;
};

}  // namespace warpsmith::controller

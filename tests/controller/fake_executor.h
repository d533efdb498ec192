// Shards run inside the test: each poll() runs one submitted shard as a job program would, on the real disk.
#pragma once

#include <deque>
#include <functional>

#include "warpsmith/base/error.h"
#include "warpsmith/controller/controller.h"
#include "warpsmith/records/done_shards.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/run/executor.h"

namespace warpsmith::controller {

class FakeExecutor : public run::Executor {
 public:
  // What a shard's program does with one item; throws Fail to end the attempt.
  struct Fail {
    EndCause cause;
    int exit_code = 0, signal = 0;
  };
  std::function<Json(const JobFile&, const Item&)> program = [](const JobFile&, const Item& item) {
    return Json{{"value", item.value.value("x", 0) * 2}};
  };
  std::function<void()> before_poll = [] {};
  // Runs until it is cancelled.
  std::function<bool(const run::ShardStart&)> goes_on = [](const run::ShardStart&) { return false; };
  // What an attempt takes that records so many items.
  std::function<double(int items)> wall_s = [](int) { return 0.5; };

  void submit(const std::vector<run::ShardStart>& shards) override {
    for (const run::ShardStart& s : shards) {
      queue.push_back(s);
      submitted.push_back(s);
    }
  }
  void cancel(const std::vector<run::ShardKey>& shards) override {
    for (const run::ShardKey key : shards) {
      std::erase_if(queue, [&](const run::ShardStart& s) { return s.key == key; });
      cancelled.push_back(key);
      ended_.push_back({.kind = run::ShardEvent::Kind::kEnded, .key = key, .cause = EndCause::kCancelled});
    }
  }
  std::vector<run::ShardEvent> poll(std::chrono::milliseconds) override {
    before_poll();
    std::vector<run::ShardEvent> events = std::exchange(ended_, {});
    const auto next = std::find_if_not(queue.begin(), queue.end(), goes_on);
    if (next == queue.end()) return events;
    const run::ShardStart start = *next;
    queue.erase(next);
    events.push_back({.kind = run::ShardEvent::Kind::kStarted, .key = start.key, .where = "test"});
    run::ShardEvent end{.kind = run::ShardEvent::Kind::kEnded, .key = start.key};
    const int before = items_run;
    try {
      if (const JobFile job = read_job_file(start.job_file); keeps_no_records(job)) {
        const auto [begin, past] = job.shards.at(start.key.shard);
        for (const Item& item : read_items(start.job_file.parent_path() / "items.jsonl", begin, past)) {
          (void)program(job, item);
          ++items_run;
        }
        events.push_back(end);
        return events;
      }
      ShardSession session(start.job_file, start.key.shard);
      for (const Item& item : session.open_items()) {
        session.write(item, program(session.job(), item));
        ++items_run;
      }
      session.finish();
    } catch (const Fail& fail) {
      end.cause = fail.cause;
      end.exit_code = fail.exit_code;
      end.signal = fail.signal;
    }
    end.wall_s = wall_s(items_run - before);
    end.cpu_s = end.wall_s / 2;
    end.peak_memory_bytes = 1000;
    events.push_back(end);
    return events;
  }
  std::size_t capacity() const override { return 4; }
  void shut_down() override { queue.clear(); }

  std::deque<run::ShardStart> queue;
  std::vector<run::ShardStart> submitted;
  std::vector<run::ShardKey> cancelled;
  int items_run = 0;

 private:
  std::vector<run::ShardEvent> ended_;
};

// What every controller of a test is given; none of its programs exists.
inline ControllerParts parts_of(const workflow::WorkflowSpec& spec, const fs::path& run,
                                run::Executor& executor, RunObserver& observer) {
  ControllerParts parts;
  parts.spec = &spec;
  parts.run = run;
  parts.programs = "/nonexistent";
  parts.executor = &executor;
  parts.observer = &observer;
  parts.run_id = "id";
  return parts;
}

}  // namespace warpsmith::controller

// Requests of the cluster, one after another on a thread of their own: any of them may block for seconds.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "warpsmith/executor/cluster.h"

namespace warpsmith::executor {

class Calls {
 public:
  using Answer = std::function<void()>;             // runs in collect(), on the caller's thread
  using Request = std::function<Answer(Cluster&)>;  // runs on ours; must not throw
  using Time = std::chrono::steady_clock::time_point;

  explicit Calls(std::unique_ptr<Cluster> cluster)
      : cluster_(std::move(cluster)), thread_([this] { work(); }) {}
  // Drops what has not begun and waits for the request under way.
  ~Calls() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      requests_.clear();
    }
    changed_.notify_all();
    thread_.join();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void post(Request request) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
      ++open_;
    }
    changed_.notify_all();
  }
  // Something was posted and its answer has not been collected.
  bool busy() const {
    const std::lock_guard lock(mutex_);
    return open_ > 0;
  }
  void collect() {
    std::deque<Answer> answers;
    {
      const std::lock_guard lock(mutex_);
      answers.swap(answers_);
      open_ -= answers.size();
    }
    for (const Answer& answer : answers) answer();
  }
  void wait_for_answer(Time until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return !answers_.empty(); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !requests_.empty(); });
      if (ending_) return;
      const Request request = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      Answer answer = request(*cluster_);
      lock.lock();
      answers_.push_back(std::move(answer));
      changed_.notify_all();
    }
  }

  std::unique_ptr<Cluster> cluster_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  std::deque<Answer> answers_;
  std::size_t open_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace warpsmith::executor

// A cluster in memory: what it is told to do, and what the test makes of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "warpsmith/executor/cluster.h"

namespace warpsmith::executor {

struct FakeSlurm {
  std::mutex mutex;
  SlurmFacts facts{.cluster = "fake", .version = "22.05", .max_array_size = 1000, .max_jobs = 10000};
  std::vector<SlurmJob> submitted;
  std::vector<SlurmTask> tasks;
  std::vector<std::string> cancelled;
  int status_requests = 0, account_requests = 0;
  std::vector<SlurmTask> accounted;  // what accounting tells …
  int accounting_lags = 0;           // … after so many requests
  std::uint32_t next_id = 100;
  std::function<void()> on_submit, on_jobs;       // may throw; called before anything is done
  std::function<void(const SlurmJob&)> on_job;    // of a submission; may throw
  std::function<void(const SlurmJob&)> on_trial;  // likewise, of expected_start()
  std::size_t rivals = 0;
  bool lose_answer = false;  // of the next submission

  void set(std::uint32_t index, const std::function<void(SlurmTask&)>& change) {
    const std::lock_guard lock(mutex);
    for (SlurmTask& task : tasks)
      if (task.tasks == std::vector{index}) change(task);
  }
  void set_state(std::uint32_t index, SlurmState state) {
    set(index, [&](SlurmTask& task) {
      task.state = state;
      task.nodes = "node-1";
    });
  }
  void forget_jobs() {  // as slurmctld does, MinJobAge after their ends
    const std::lock_guard lock(mutex);
    tasks.clear();
  }
  std::size_t submissions() {
    const std::lock_guard lock(mutex);
    return submitted.size();
  }
};

class FakeCluster final : public Cluster {
 public:
  explicit FakeCluster(std::shared_ptr<FakeSlurm> slurm) : slurm_(std::move(slurm)) {}
  SlurmFacts facts() override {
    const std::lock_guard lock(slurm_->mutex);
    return slurm_->facts;
  }
  std::vector<SlurmNode> nodes() override { return {}; }
  std::vector<SlurmPartition> partitions() override { return {}; }
  std::optional<SlurmLimits> limits() override { return std::nullopt; }
  std::uint32_t submit(const SlurmJob& job) override {
    ++requests_;
    if (slurm_->on_submit) slurm_->on_submit();
    if (slurm_->on_job) slurm_->on_job(job);
    const std::lock_guard lock(slurm_->mutex);
    slurm_->submitted.push_back(job);
    const std::uint32_t id = slurm_->next_id;
    for (const std::uint32_t index : parse_indices(job.array)) {
      SlurmTask task;
      task.job = slurm_->next_id++;
      task.array = id;
      task.tasks = {index};
      task.name = job.name;
      task.state = SlurmState::kPending;
      slurm_->tasks.push_back(task);
    }
    if (std::exchange(slurm_->lose_answer, false)) throw SlurmError(SlurmTrouble::kUnsure, 5004, "lost");
    return id;
  }
  std::int64_t expected_start(const SlurmJob& job) override {
    if (slurm_->on_trial) slurm_->on_trial(job);
    return 0;
  }
  std::size_t rivals(const SlurmJob&) override { return slurm_->rivals; }
  std::vector<SlurmTask> jobs() override {
    ++requests_;
    if (slurm_->on_jobs) slurm_->on_jobs();
    const std::lock_guard lock(slurm_->mutex);
    ++slurm_->status_requests;
    return slurm_->tasks;
  }
  std::vector<SlurmTask> ended_jobs(const std::vector<std::string>& names, std::int64_t) override {
    ++requests_;
    const std::lock_guard lock(slurm_->mutex);
    ++slurm_->account_requests;
    if (slurm_->account_requests <= slurm_->accounting_lags) return {};
    std::vector<SlurmTask> out;
    for (const SlurmTask& task : slurm_->accounted)
      if (std::find(names.begin(), names.end(), task.name) != names.end()) out.push_back(task);
    return out;
  }
  void cancel(const std::string& job) override {
    ++requests_;
    const std::lock_guard lock(slurm_->mutex);
    slurm_->cancelled.push_back(job);
    const auto bar = job.find('_');
    const auto array = static_cast<std::uint32_t>(std::stoul(job.substr(0, bar)));
    const std::vector<std::uint32_t> indices =
        bar == std::string::npos ? std::vector<std::uint32_t>{} : parse_indices(job.substr(bar + 1));
    const auto meant = [&](const SlurmTask& task) {
      return task.array == array && (indices.empty() || std::find(indices.begin(), indices.end(),
                                                                  task.tasks.at(0)) != indices.end());
    };
    // As Slurm does: pending tasks vanish, running ones end.
    std::erase_if(slurm_->tasks,
                  [&](const SlurmTask& t) { return meant(t) && t.state == SlurmState::kPending; });
    for (SlurmTask& task : slurm_->tasks)
      if (meant(task) && task.state == SlurmState::kRunning) task.state = SlurmState::kCancelled;
  }
  void requeue(std::uint32_t) override {}
  std::uint64_t requests() const override { return requests_; }

 private:
  std::shared_ptr<FakeSlurm> slurm_;
  std::uint64_t requests_ = 0;
};

}  // namespace warpsmith::executor

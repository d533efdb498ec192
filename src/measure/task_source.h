// The tasks of candidates that come grouped by task: the last one is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

class TaskSource {
 public:
  explicit TaskSource(std::filesystem::path datasets) : datasets_(std::move(datasets)) {}
  // Throws InvalidInput where the task's file is wrong. Until the next call.
  const task::Task& of(const Candidate& candidate) {
    if (task_ && task_->id == candidate.task) return *task_;
    Diagnostics diagnostics;
    task_ = task::load_task(datasets_ / candidate.task, diagnostics);
    if (!task_) throw InvalidInput(diagnostics);
    return *task_;
  }

 private:
  std::filesystem::path datasets_;
  std::optional<task::Task> task_;
};

}  // namespace warpsmith::measure

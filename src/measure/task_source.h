// The tasks of candidates that come grouped by task: the last one is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

class TaskSource {
 public:
  // `device_kind`: whose timing shapes they have.
  TaskSource(std::filesystem::path datasets, std::string device_kind)
      : datasets_(std::move(datasets)), device_kind_(std::move(device_kind)) {}
  // Throws InvalidInput where the task's file is wrong. Until the next call.
  const task::Task& of(const Candidate& candidate) { return of(candidate.task); }
  const task::Task& of(const std::string& id) {
    if (task_ && task_->id == id) return *task_;
    Diagnostics diagnostics;
    task_ = task::load_task(datasets_ / id, diagnostics);
    if (!task_) throw InvalidInput(diagnostics);
    task_ = task::on_device(std::move(*task_), device_kind_);
    return *task_;
  }

 private:
  std::filesystem::path datasets_;
  std::string device_kind_;
  std::optional<task::Task> task_;
};

}  // namespace warpsmith::measure

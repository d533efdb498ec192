// The tasks of a datasets folder for items that come grouped by task: the last one is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

class TaskSource {
 public:
  // `device_kind`: whose timing shapes the tasks have. Without one: `cpu`.
  explicit TaskSource(std::filesystem::path datasets, std::string device_kind = "cpu")
      : datasets_(std::move(datasets)), device_kind_(std::move(device_kind)) {}
  // Valid until the next call. Throws InvalidInput where the task's file is missing or wrong; mistakes in
  // other tasks do not matter.
  const Task& of(const std::string& id) {
    if (task_ && task_->id == id) return *task_;
    Diagnostics diagnostics;
    task_ = load_task(datasets_ / id, diagnostics);
    if (!task_) throw InvalidInput(diagnostics);
    task_ = on_device(std::move(*task_), device_kind_);
    return *task_;
  }

 private:
  std::filesystem::path datasets_;
  std::string device_kind_;
  std::optional<Task> task_;
};

}  // namespace warpsmith::task

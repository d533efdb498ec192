// A process's turn at a GPU, which it shares with the others that measure there.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "timing/judge.h"
#include "warpsmith/base/files.h"

namespace warpsmith::measure {

class GpuTurn {
 public:
  // Waits for the GPU's lock.
  explicit GpuTurn(const std::filesystem::path& lock) : path_(lock), lock_(std::in_place, lock) {
    begin_ = seconds_now();
  }
  // Gives the GPU back while `work` runs, and waits for it again.
  void without(const std::function<void()>& work) {
    held_s_ = held_s();
    lock_.reset();
    work();
    lock_.emplace(path_);
    begin_ = seconds_now();
  }
  double held_s() const { return held_s_ + seconds_now() - begin_; }

 private:
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
  double begin_ = 0, held_s_ = 0;
};

}  // namespace warpsmith::measure

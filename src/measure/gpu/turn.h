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
  explicit GpuTurn(const std::filesystem::path& lock) : path_(lock) { take(); }
  // Gives the GPU back while `work` runs, and waits for it again, also where that throws.
  void without(const std::function<void()>& work) {
    held_s_ = held_s();
    lock_.reset();
    try {
      work();
    } catch (...) {
      take();
      throw;
    }
    take();
  }
  // Without what `work` took, and the wait behind it.
  double held_s() const { return lock_ ? held_s_ + seconds_now() - begin_ : held_s_; }

 private:
  void take() {
    lock_.emplace(path_);
    begin_ = seconds_now();
  }

  std::filesystem::path path_;
  std::optional<FileLock> lock_;
  double begin_ = 0, held_s_ = 0;
};

}  // namespace warpsmith::measure

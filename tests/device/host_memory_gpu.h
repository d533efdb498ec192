// Host memory in place of a GPU, for children of tiers `extension` and `python`.
#pragma once

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "warpsmith/device/extension_child.h"

namespace warpsmith::device {

class HostMemoryGpu : public ExtensionGpu {
 public:
  void open() override {}
  double choose_context(double*) override { return 0; }
  int map(int fd, const void*, std::uint64_t bytes, void** address) override {
    *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mapped_[*address] = bytes;
    return *address == MAP_FAILED ? 1 : 0;
  }
  int unmap(void* address) override { return ::munmap(address, mapped_.at(address)) == 0 ? 0 : 1; }
  int allocate(std::uint64_t bytes, void** address) override {
    *address = std::malloc(bytes);
    return *address == nullptr ? 2 : 0;
  }
  int release(void* address) override {
    std::free(address);
    return 0;
  }
  int fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count) override {
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(at) + i * width, &pattern, width);
    return 0;
  }
  int copy(void* to, const void* from, std::uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return 0;
  }
  int synchronize() override { return 0; }
  int mark(int which) override {
    marks_[which] = std::chrono::steady_clock::now();
    return 0;
  }
  std::int64_t ns_between_marks() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(marks_[1] - marks_[0]).count();
  }
  // As many lines as there is no room for, behind one for the call.
  std::string kernels_of(const std::function<void()>& work) override {
    work();
    std::string lines = "700 _Z1kPKfPfi\n300 sm90_xmma_gemm_f32f32\n";
    for (int i = 0; i < 20'000; ++i) lines += "1 many\n";
    return lines;
  }
  std::string words(int error) const override { return "error " + std::to_string(error); }

 private:
  std::map<void*, std::uint64_t> mapped_;
  std::chrono::steady_clock::time_point marks_[2];
};

}  // namespace warpsmith::device

// Which kernels some work runs on the GPU, and for how long, as CUPTI tells it in this process.
#pragma once

#include <functional>
#include <string>

namespace warpsmith::device {

class KernelTrace {
 public:
  // Looks CUPTI up, which torch has loaded or which lies beside cuBLAS. To be called before a candidate is
  // there: what it defines under CUPTI's names changes nothing then.
  void open();
  // Does the work, which waits for the GPU. A line for each kernel by name, the longest time first:
  // "NANOSECONDS NAME", mangled as the compiler has it. Empty: CUPTI is not there, or refuses, or saw none.
  std::string of(const std::function<void()>& work) const;

 private:
  void* library_ = nullptr;
};

}  // namespace warpsmith::device

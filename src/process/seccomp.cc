#include <unistd.h>

#include "seccomp_filter.h"
#include "warpsmith/base/error.h"
#include "warpsmith/process/child.h"

namespace warpsmith::process {

void enter_seccomp(bool allow_threads) {
  const int error = install_filter(foreign_code_filter(allow_threads, ::getpid()));
  if (error != 0) throw system_error("cannot enter seccomp", error);
}

void enter_gpu_seccomp() {
  const int error = install_filter(gpu_code_filter(::getpid()));
  if (error != 0) throw system_error("cannot enter seccomp", error);
}

void enter_compiling_seccomp(bool allow_processes) {
  const int error = install_filter(program_filter(allow_processes));
  if (error != 0) throw system_error("cannot enter seccomp", error);
}

}  // namespace warpsmith::process

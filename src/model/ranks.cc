#include "warpsmith/model/ranks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "rank_memory.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"
#include "warpsmith/model/fused.h"

namespace warpsmith::model {

struct Ranks::Watch {
  std::vector<pid_t> children;
  std::atomic<bool> stop{false};
  std::thread thread;
};

namespace {

// The GPU of a rank: the rank-th of those that this process was given.
void see_one_gpu(int rank) {
  const char* const given = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string one = std::to_string(rank);
  if (given != nullptr && *given != '\0') {
    const std::vector<std::string> all = split(given, ',');
    if (static_cast<std::size_t>(rank) >= all.size())
      throw Error("rank " + std::to_string(rank) + " has no GPU: CUDA_VISIBLE_DEVICES is " + given);
    one = all[static_cast<std::size_t>(rank)];
  }
  ::setenv("CUDA_VISIBLE_DEVICES", one.c_str(), 1);
}

}  // namespace

Ranks::Ranks(int size, bool gpus) : size_(size) {
  if (size == 1) return;
  void* const memory =
      ::mmap(nullptr, RankMemory::bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw system_error("no memory for " + std::to_string(size) + " ranks to share", errno);
  shared_ = new (memory) RankMemory;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared_->barrier, &attributes, static_cast<unsigned>(size));
  pthread_barrierattr_destroy(&attributes);
  auto watch = std::make_unique<Watch>();
  const pid_t parent = ::getpid();
  for (int rank = 1; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) throw system_error("rank " + std::to_string(rank) + " cannot be started", errno);
    if (child > 0) {
      watch->children.push_back(child);
      continue;
    }
    rank_ = rank;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kExitFailed);
    break;
  }
  if (gpus) see_one_gpu(rank_);
  if (rank_ > 0) return;
  watch_ = std::move(watch);
  watch_->thread = std::thread([watch = watch_.get(), shared = shared_] {
    while (!watch->stop) {
      for (std::size_t i = 0; i < watch->children.size(); ++i) {
        int status = 0;
        if (::waitpid(watch->children[i], &status, WNOHANG) != watch->children[i]) continue;
        watch->children[i] = 0;  // waitpid(0) would wait for any
        const bool killed = WIFSIGNALED(status);
        if (shared->done || (!killed && WEXITSTATUS(status) == 0)) continue;
        log_error("rank " + std::to_string(i + 1) + " ended " +
                  (killed ? "by signal " + std::to_string(WTERMSIG(status))
                          : "with exit code " + std::to_string(WEXITSTATUS(status))));
        std::_Exit(killed ? kExitFailed : WEXITSTATUS(status));
      }
      std::erase(watch->children, 0);
      ::usleep(20'000);
    }
  });
}

Ranks::~Ranks() {
  if (!watch_) return;
  shared_->done = true;
  watch_->stop = true;
  watch_->thread.join();
  for (const pid_t child : watch_->children) {
    if (std::uncaught_exceptions() > 0) ::kill(child, SIGKILL);  // it may wait for us
    ::waitpid(child, nullptr, 0);
  }
}

std::unique_ptr<Collective> Ranks::connect(const at::TensorOptions& placement) const {
  if (size_ == 1) return nullptr;
  if (placement.device().is_cpu()) return collective_by_memory(*shared_, rank_, size_);
  const Fused& module = gpu_module();
  if (rank_ == 0) module.make_nccl_id(shared_->nccl_id);
  shared_->wait();
  return module.make_collective(shared_->nccl_id, rank_, size_);
}

}  // namespace warpsmith::model

#include "warpsmith/model/collective.h"

#include <ATen/ops/from_blob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"
#include "warpsmith/model/fused.h"

namespace warpsmith::model {

namespace {

constexpr std::int64_t kSlotBytes = 4 << 20;  // of a rank: what it shares at a time

}  // namespace

// Between the ranks of a machine.
struct Ranks::Shared {
  pthread_barrier_t barrier;
  std::atomic<bool> done{false};  // rank 0 has all that it wanted
  unsigned char nccl_id[128];
  alignas(64) unsigned char slots[1];  // kSlotBytes of each rank

  static std::size_t bytes(int size) { return sizeof(Shared) + static_cast<std::size_t>(size) * kSlotBytes; }
  void* slot(int rank) { return slots + static_cast<std::int64_t>(rank) * kSlotBytes; }
  void wait() { pthread_barrier_wait(&barrier); }
};

struct Ranks::Watch {
  std::vector<pid_t> children;
  std::atomic<bool> stop{false};
  std::thread thread;
};

Part Collective::part(std::int64_t n, int of) const {
  const std::int64_t grain = 16, each = (n + grain * size_ - 1) / (grain * size_) * grain;
  const std::int64_t begin = std::min(n, each * of);
  return {begin, std::min(n, begin + each) - begin};
}

namespace {

// Buffers go through the slots piece by piece.
template <typename SharedMemory>
class ByMemory : public Collective {
 public:
  ByMemory(SharedMemory& shared, int rank, int size) : Collective(rank, size), shared_(shared) {}

  void reduce_parts(const at::Tensor& flat) override {
    // All ranks' pieces of every part in turn, of which the owner forms the sum.
    const std::int64_t piece = pieces_of(flat);
    for (int owner = 0; owner < size(); ++owner) {
      const Part whole = part(flat.numel(), owner);
      for (std::int64_t at = 0; at < whole.count; at += piece) {
        const at::Tensor here = flat.narrow(0, whole.begin + at, std::min(piece, whole.count - at));
        slot(rank(), here).copy_(here);
        shared_.wait();
        if (owner == rank()) {
          at::Tensor sum = slot(0, here).to(at::kDouble);
          for (int r = 1; r < size(); ++r) sum.add_(slot(r, here));
          at::Tensor(here).copy_(sum);
        }
        shared_.wait();
      }
    }
  }
  void gather_parts(const at::Tensor& flat) override {
    for (int owner = 0; owner < size(); ++owner) broadcast(part(flat.numel(), owner).of(flat), owner);
  }
  void broadcast(const at::Tensor& flat, int root) override {
    const std::int64_t piece = pieces_of(flat);
    for (std::int64_t at = 0; at < flat.numel(); at += piece) {
      const at::Tensor here = flat.narrow(0, at, std::min(piece, flat.numel() - at));
      if (root == rank()) slot(root, here).copy_(here);
      shared_.wait();
      if (root != rank()) at::Tensor(here).copy_(slot(root, here));
      shared_.wait();
    }
  }
  std::vector<double> sums(const std::vector<double>& values) override {
    std::memcpy(shared_.slot(rank()), values.data(), values.size() * sizeof(double));
    shared_.wait();
    std::vector<double> all(values.size(), 0.0);
    for (int r = 0; r < size(); ++r)
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<const double*>(shared_.slot(r))[i];
    shared_.wait();
    return all;
  }

 private:
  static std::int64_t pieces_of(const at::Tensor& flat) {
    return kSlotBytes / static_cast<std::int64_t>(flat.element_size());
  }
  at::Tensor slot(int rank, const at::Tensor& like) {
    return at::from_blob(shared_.slot(rank), like.sizes(), like.options());
  }
  SharedMemory& shared_;
};

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
      ::mmap(nullptr, Shared::bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw system_error("no memory for " + std::to_string(size) + " ranks to share", errno);
  shared_ = new (memory) Shared;
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
  if (placement.device().is_cpu()) return std::make_unique<ByMemory<Shared>>(*shared_, rank_, size_);
  const Fused& module = gpu_module();
  if (rank_ == 0) module.make_nccl_id(shared_->nccl_id);
  shared_->wait();
  return module.make_collective(shared_->nccl_id, rank_, size_);
}

}  // namespace warpsmith::model

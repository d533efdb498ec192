// The GPU of this process, by way of the CUDA driver: its facts, memory, clock, and the candidates' launches.
//
// One process has one GPU, the first that it sees (CUDA_VISIBLE_DEVICES), and its primary context, which it
// shares with torch. All that is enqueued here goes to the legacy default stream, in order. What a candidate
// does can take the context with it (an illegal access, a kernel that never ends): then every later call
// fails, GpuOutcome::context_lost says so, and the process has to end. Not thread-safe. Errors that are no
// candidate's fault are thrown as Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::device {

using GpuAddress = std::uint64_t;

struct GpuFacts {
  std::string name;          // "NVIDIA H200"
  std::string uuid;          // "GPU-…"
  std::string driver;        // CUDA version that the driver supports: "13.0"
  int major = 0, minor = 0;  // compute capability
  int sms = 0;
  std::int64_t smem_max = 0;    // dynamic shared memory that a block may ask for, bytes
  std::int64_t smem_an_sm = 0;  // bytes
  std::uint64_t l2_bytes = 0, memory_bytes = 0;
};

// What running something on the GPU came to.
struct GpuOutcome {
  Verdict verdict = Verdict::kOk;
  std::string detail;
  bool context_lost = false;  // nothing can be run in this process any more
  bool ok() const { return verdict == Verdict::kOk; }
};

// Thrown where a call of the driver fails that must work. An earlier kernel may be at fault: then its context
// is lost, and outcome() is what its candidate gets.
class GpuError : public Error {
 public:
  GpuError(const std::string& message, GpuOutcome outcome) : Error(message), outcome_(std::move(outcome)) {}
  const GpuOutcome& outcome() const { return outcome_; }

 private:
  GpuOutcome outcome_;
};

// The context of this process is lost, or a kernel in it never ends: to free what is on the device would wait
// for ever, so nothing is freed any more. Set by Gpu::wait() and by whatever throws GpuError for that reason.
bool gpu_is_lost();

class Gpu {
 public:
  Gpu();  // throws Error where there is no driver or no GPU
  const GpuFacts& facts() const { return facts_; }
  // Whether this process has a context on its GPU: anybody's, torch's as well. Throws as the constructor
  // does.
  static bool has_context();
  // Everything that was made in the context must be gone, also torch's. The next Gpu opens another.
  static void close_context();

  static constexpr double kBusySeconds = 2e-3;
  // Waits for all that was enqueued. What went wrong on the device becomes a verdict: out_of_bounds for
  // addresses, crash for the rest, timeout where it takes longer. The wait is busy for `busy_s`, since most
  // are some microseconds; what takes longer is seen up to 0.2 ms late.
  GpuOutcome wait(double timeout_s, double busy_s = kBusySeconds) const;
  // wait(), where nothing may go wrong: throws GpuError.
  void settle(double timeout_s, double busy_s = kBusySeconds) const;
  // Bytes of the GPU that nobody has now.
  std::uint64_t free_memory() const;
  // Lines that a kernel has asked to stay in L2 become ordinary ones.
  void reset_persisting_l2() const;

 private:
  GpuFacts facts_;
};

// How another process can map memory of this one: by a descriptor that belongs to the memory, or, where the
// driver cannot give one, by a handle of CUDA's interprocess memory.
struct GpuShare {
  int fd = -1;
  std::byte handle[64] = {};
  std::uint64_t bytes = 0;  // all that there is to map, from the memory's address on
};

// Bytes on the device, aligned to 256.
class GpuMemory {
 public:
  GpuMemory() = default;
  explicit GpuMemory(
      std::uint64_t bytes);  // throws Error (exit code kExitEnvironment) where there are not as many
  GpuMemory(GpuMemory&& other) noexcept;
  GpuMemory& operator=(GpuMemory&& other) noexcept;
  ~GpuMemory();
  // Memory that another process may map. Throws as the constructor does.
  static GpuMemory shared(std::uint64_t bytes);
  const GpuShare* share() const { return share_.get(); }  // null unless shared
  GpuAddress address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  GpuAddress address_ = 0;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<GpuShare> share_;
};

// Bytes of this process that the GPU can read and write at full speed.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::uint64_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();
  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  // Flags and counters that kernels and the host share.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// A moment on the stream.
class GpuEvent {
 public:
  GpuEvent();
  GpuEvent(GpuEvent&& other) noexcept;
  GpuEvent& operator=(GpuEvent&&) = delete;
  ~GpuEvent();
  void record();
  bool passed() const;  // the GPU has come to it; also true where the context is lost
  // Nanoseconds from `start` to `stop`; both must have passed.
  static double ns_between(const GpuEvent& start, const GpuEvent& stop);

 private:
  void* event_ = nullptr;
};

// Enqueued. Host memory must stay until the stream is done with it.
void upload(GpuAddress to, const void* from, std::uint64_t bytes);
void download(void* to, GpuAddress from, std::uint64_t bytes);
void copy(GpuAddress to, GpuAddress from, std::uint64_t bytes);
void fill_bytes(GpuAddress to, std::uint8_t value, std::uint64_t bytes);

// What a candidate's module has by name, and what NVRTC made of it.
struct GpuNames {
  std::map<std::string, std::string> kernels;  // name expression of the plan -> lowered name
  std::map<std::string, int> parameters;       // name expression -> how many; where that is known
  std::map<std::string, std::string> symbols;  // name in the plan -> lowered name
  std::vector<std::string> variables;          // lowered names of every __device__ and __constant__ variable
};

// A cubin in the context, and a launch plan of it. It holds device code alone: nothing of a candidate runs on
// the host.
class GpuProgram {
 public:
  // Throws Error where the cubin is damaged or not for this GPU.
  GpuProgram(const Gpu& gpu, std::span<const std::byte> cubin, GpuNames names);
  ~GpuProgram();
  GpuProgram(const GpuProgram&) = delete;
  GpuProgram& operator=(const GpuProgram&) = delete;

  // For PlanBindings: SMs, shared memory, blocks_per_sm by the occupancy calculator.
  task::PlanDevice plan_device();
  // Takes a plan, and checks it against the kernels: argument sizes, shared memory, threads, cooperative
  // residency, clusters. launch_error where it does not fit, unsupported where the driver or GPU lacks what
  // it asks for. Drops what was bound.
  GpuOutcome prepare(const task::ConcretePlan& plan, const std::map<std::string, task::Dtype>& dtypes);
  // Adds a set of operands, numbered from 0: addresses of all inputs, outputs and temporaries, and their
  // bytes.
  struct Operand {
    GpuAddress address = 0;
    std::uint64_t bytes = 0;
    std::vector<std::int64_t> shape;
  };
  GpuOutcome bind(const std::map<std::string, Operand>& operands);
  // Enqueues the plan's steps on a set.
  GpuOutcome enqueue(int set);
  // Enqueues copies that give every variable of the module the value that it was loaded with: nothing is kept
  // from call to call.
  void restore_variables();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A kernel of the harness's own.
class GpuKernel {
 public:
  GpuKernel(void* function) : function_(function) {}
  struct Grid {
    unsigned x = 1, y = 1;
  };
  // Arguments as cuLaunchKernel takes them.
  void launch(Grid grid, unsigned threads, void** arguments, unsigned smem = 0) const;
  void launch(unsigned blocks, unsigned threads, void** arguments, unsigned smem = 0) const {
    launch(Grid{blocks, 1}, threads, arguments, smem);
  }
  void allow_shared_memory(std::int64_t bytes) const;

 private:
  void* function_;
};
class GpuModule {
 public:
  explicit GpuModule(std::span<const std::byte> cubin);
  ~GpuModule();
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;
  GpuKernel kernel(const char* name) const;

 private:
  void* module_ = nullptr;
};

}  // namespace warpsmith::device

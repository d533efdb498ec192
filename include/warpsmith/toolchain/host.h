// `plan` candidates on the CPU twin: source to shared object, in a sandboxed, killable compiler with a
// content-addressed cache. What the twin supplies of CUDA's vocabulary: datasets/cpu_twin.md.
#pragma once

#include <memory>
#include <string>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// Compiles candidates one after another. NVRTC is loaded once, by a child that lives as long as this object;
// a candidate that crashes the compiler or uses up its time costs no other candidate its verdict. Of one
// thread.
class HostToolchain {
 public:
  explicit HostToolchain(const CompileOptions& options);  // starts nothing yet
  ~HostToolchain();
  HostToolchain(HostToolchain&&) noexcept;
  HostToolchain& operator=(HostToolchain&&) noexcept;

  // Compiles or finds in the cache (failures are cached too, but timeouts are not). Several processes may use
  // one cache. Throws Error only where this machine is at fault (no compiler, disk full).
  CompileResult compile(const Candidate& candidate, const task::Task& task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same for a single candidate.
CompileResult compile_for_host(const Candidate& candidate, const task::Task& task,
                               const CompileOptions& options);

// g++ makes the twin's binaries. Where NVRTC is, it is asked too: what it refuses is a compile_error, in its
// words, and what g++ alone refuses is unsupported. Without it g++ alone decides.
struct NvrtcOfTwin {
  std::string name;      // version and path of the library; empty: there is none
  std::string why_none;  // set where `name` is empty
};
NvrtcOfTwin nvrtc_of_twin();

// Compilers, their versions and flags as they enter the cache key; for provenance.
std::string host_toolchain_id();

}  // namespace warpsmith::toolchain

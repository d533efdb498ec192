// NVRTC for many candidates, one after another: a child that has loaded it once and forks for each request.
#pragma once

#include <memory>

#include "compiler.h"

namespace warpsmith::toolchain {

// Starting a sandbox and loading NVRTC cost more than asking it about a small candidate. Here both are done
// once, and what one candidate does to the compiler ends with its fork: the next one starts from the same
// loaded library. A fork has the sandbox and the limits of a child of run_nvrtc(): memory and files from its
// parent, its time from us. The server is started again after a timeout, or when it has died.
// Of one thread. Not copied; the destructor ends the child.
class NvrtcServer {
 public:
  // Starts nothing yet.
  explicit NvrtcServer(const CompileOptions& limits);
  ~NvrtcServer();
  NvrtcServer(NvrtcServer&&) noexcept;
  NvrtcServer& operator=(NvrtcServer&&) noexcept;

  // As run_nvrtc(), in folder(). A request that ends badly otherwise than by its time is asked again in a
  // child of its own, which tells what the matter is. Throws as run_nvrtc().
  NvrtcRun run(const NvrtcRequest& request);
  // Where the files of the last answers lie, until the next run().
  const std::filesystem::path& folder() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::toolchain

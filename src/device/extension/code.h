// The candidate, as the child that serves it reaches it: a shared object, or what an interpreter runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "warpsmith/toolchain/extension_abi.h"

namespace warpsmith::device {

class ExtensionServer;

class ExtensionCode {
 public:
  virtual ~ExtensionCode() = default;
  // The GPU is open, and the sandbox not closed yet: nothing of the candidate's runs. Throws Error.
  virtual void open(ExtensionServer&) {}
  // Loads the candidate: its own code may run. Not kDone: the frame's message says why.
  virtual void load(warpsmith_extension::Frame& frame) = 0;
  // The server has new operands.
  virtual void prepare() {}
  // One call on a set: its results lie in the frame, and live until drop().
  virtual void call(std::uint32_t set, warpsmith_extension::Frame& frame) = 0;
  virtual void drop(warpsmith_extension::Frame& frame) = 0;
  // Calls on sets first…first+count-1, in which nothing is learnt of where results are made; false: the
  // server has been told why not. It may do them one by one.
  virtual bool row(std::uint32_t first, std::uint32_t count) = 0;
  // The same with calls that do nothing but have results: what a call costs beside its work. Where it is not
  // known how to do that, nothing.
  virtual bool idle_row(std::uint32_t, std::uint32_t) { return true; }
};

// A shared object of tier `extension`.
std::unique_ptr<ExtensionCode> make_shared_object_code(std::filesystem::path binary);

}  // namespace warpsmith::device

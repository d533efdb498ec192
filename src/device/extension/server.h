// What a child does for its parent: operands, calls, and the clock's marks.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena.h"
#include "code.h"
#include "places.h"
#include "protocol.h"

namespace warpsmith::device {

// One in a process: candidates ask for memory by functions without a `this`.
class ExtensionServer {
 public:
  // Throws Error where the GPU does not work. All that is referred to must outlive it.
  ExtensionServer(int socket_fd, ExtensionGpu& gpu, ExtensionControl& control, ExtensionCode& code);
  ~ExtensionServer();
  ExtensionServer(const ExtensionServer&) = delete;
  ExtensionServer& operator=(const ExtensionServer&) = delete;
  [[noreturn]] void serve();

  // For code: the operands of a set, in the parent's memory.
  std::uint32_t sets() const;
  std::vector<warpsmith_extension::PlainTensor> inputs_of(std::uint32_t set) const;
  void* place_of(std::uint32_t set, std::size_t output) const {
    if (output >= outputs_.size()) throw std::out_of_range("no such output");
    return base_ + offsets_.at(first_offset(set) + inputs_.size() + output);
  }
  std::int32_t input_count() const { return static_cast<std::int32_t>(inputs_.size()); }
  const std::vector<warpsmith_extension::PlainScalar>& scalars() const { return scalars_; }
  const std::vector<WireTensor>& outputs() const { return outputs_; }
  const warpsmith_extension::Services& services() const { return services_; }
  // Between these two allocations may get the places of this set's outputs.
  void begin_call(std::uint32_t set);
  void end_call() { in_call_ = false; }
  // Within a row, before each call.
  void before_call(std::uint32_t set) {
    if (control_.stop.load(std::memory_order_acquire) != 0) come_to_stop();
    control_.current.store(set, std::memory_order_release);
  }
  // What before_call() does, for those who cannot call it: the word that is not 0 where the row is to wait
  // soon; the call, which waits when it is time; and where the set of the call that begins is written.
  const std::atomic<std::uint32_t>& stop() const { return control_.stop; }
  void come_to_stop();
  std::atomic<std::uint32_t>& current() { return control_.current; }
  // Takes the frame's results to where the parent expects them; false: the parent has been told why not.
  bool take_results(std::uint32_t set);
  warpsmith_extension::Frame& frame() { return frame_; }
  // begin_call(), the call, its results, and what it teaches of allocations.
  bool call(std::uint32_t set);

  static ExtensionServer* self;
  static void* allocate(std::uint64_t bytes, const std::int64_t*, std::int32_t,
                        warpsmith_extension::Scalar dtype);
  // To be used on this stream, and handed out again on this one alone.
  static void* allocate_on(const void* stream, std::uint64_t bytes, warpsmith_extension::Scalar dtype);
  static void release(void* memory);
  static std::uint64_t room() { return self->arena_.room(); }
  // From now on memory is for a CUDA graph that is being captured, or no more.
  static void capture(bool on) { self->capturing_ = on; }

 private:
  void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, bool soon = true) const;
  void answer(std::uint32_t sequence);
  void fail(ExtensionAnswer why, const std::string& words);
  std::string frame_message() const;
  bool settled(int error);
  void load();
  void prepare();
  void forget();
  void time(std::uint32_t sequence);
  void trace(std::uint32_t set);
  void wake_up_gpu();
  bool calls(std::uint32_t first, std::uint32_t sets);
  std::size_t first_offset(std::uint32_t set) const { return set * (inputs_.size() + outputs_.size()); }

  static int fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count);
  static int copy(void* to, const void* from, std::uint64_t bytes);

  int socket_fd_;
  ExtensionGpu& gpu_;
  ExtensionControl& control_;
  ExtensionCode& code_;
  Arena arena_;
  warpsmith_extension::Services services_{};
  warpsmith_extension::Frame frame_{};
  Places places_;
  bool loaded_ = false, in_call_ = false, capturing_ = false;
  void* own_ = nullptr;
  char* base_ = nullptr;
  std::vector<std::uint64_t> offsets_;
  std::vector<WireTensor> inputs_, outputs_;
  std::vector<warpsmith_extension::PlainScalar> scalars_;
};

}  // namespace warpsmith::device

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "../twin_protocol.h"
#include "arena.h"
#include "protocol.h"
#include "warpsmith/base/error.h"
#include "warpsmith/device/extension_child.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/descriptors.h"

namespace warpsmith::device {

namespace {

namespace ws = ::warpsmith_extension;
using Clock = std::chrono::steady_clock;

constexpr double kSpinSeconds = 2e-3;
constexpr std::uint64_t kOwnBytes = 4096;

// Where forward()'s results come to lie. An output that it makes by the same allocation in each call gets its
// place in the parent's memory at once, so that nothing has to be copied: torch's caching allocator charges
// nothing for an output either. Which allocation that is, is learnt from the call before: one that was given
// back by its end. A tensor that the candidate keeps is never given such a place.
class Places {
 public:
  void begin(std::vector<void*> places, std::vector<WireTensor> outputs) {
    places_ = std::move(places);
    outputs_ = std::move(outputs);
    made_.clear();
    counts_.clear();
  }
  // Null: nothing of the parent's.
  void* place_for(std::uint64_t bytes, ws::Scalar dtype) {
    const Key key{bytes, dtype, counts_[{bytes, dtype}]++};
    last_ = key;
    const auto found = learnt_.find(key);
    if (found == learnt_.end() || found->second >= outputs_.size()) return nullptr;
    const WireTensor& output = outputs_[found->second];
    return output.bytes == bytes && output.dtype == dtype ? places_[found->second] : nullptr;
  }
  void note(void* memory) { made_.push_back({memory, last_, false}); }
  void note_release(const void* memory) {
    for (Made& m : made_)
      if (m.memory == memory) m.released = true;
  }
  void note_result(std::size_t output, const void* memory) {
    for (const Made& m : made_)
      if (m.memory == memory) results_[m.key] = output;
  }
  // After the results were dropped.
  void learn() {
    learnt_.clear();
    for (const Made& m : made_)
      if (const auto found = results_.find(m.key); found != results_.end() && m.released)
        learnt_[m.key] = found->second;
    results_.clear();
  }

 private:
  struct Key {
    std::uint64_t bytes;
    ws::Scalar dtype;
    int number;  // among those of the call with these bytes and dtype
    bool operator<(const Key& o) const {
      return std::tie(bytes, dtype, number) < std::tie(o.bytes, o.dtype, o.number);
    }
  };
  struct Made {
    void* memory;
    Key key;
    bool released;
  };
  std::vector<void*> places_;
  std::vector<WireTensor> outputs_;
  std::vector<Made> made_;
  std::map<std::pair<std::uint64_t, ws::Scalar>, int> counts_;
  std::map<Key, std::size_t> learnt_, results_;
  Key last_{};
};

class Server {
 public:
  Server(const ExtensionChildOptions& options, ExtensionGpu& gpu, ExtensionControl& control)
      : options_(options), gpu_(gpu), control_(control), arena_(gpu, control.arena_bytes) {
    services_ = {ws::kAbi, &Server::allocate, &Server::release, &Server::fill, &Server::copy};
    if (gpu_.allocate(kOwnBytes, &own_) != 0) throw Error("the GPU has no memory left");
    wake_up_gpu();
    gpu_.mark(0);
    gpu_.mark(1);
    if (const int error = gpu_.synchronize(); error != 0)
      throw Error("the GPU does not work: " + gpu_.words(error));
  }

  [[noreturn]] void serve() {
    for (std::uint32_t sequence = 1;;) {
      wait_for(control_.request, sequence + 1, false);
      sequence = control_.request.load(std::memory_order_acquire);
      control_.answer = ExtensionAnswer::kDone;
      control_.message[0] = '\0';
      control_.event_ns = 0;
      answer(sequence);
      control_.response.store(sequence, std::memory_order_release);
      wake_word(control_.response);
    }
  }

  static Server* self;

 private:
  // `soon`: within a row, where being woken would count. Between rows the parent times its own side, and a
  // process that spins may do so on the other half of the parent's core.
  void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, bool soon = true) const {
    const bool spin = soon && control_.spin != 0;
    const auto begin = Clock::now();
    for (;;) {
      for (int i = 0; i < 64; ++i) {
        if (word.load(std::memory_order_acquire) == value) return;
        pause_briefly();
      }
      const std::uint32_t seen = word.load(std::memory_order_acquire);
      if (seen == value) return;
      if (!spin || std::chrono::duration<double>(Clock::now() - begin).count() > kSpinSeconds)
        wait_on_word(word, seen, 0.05);
    }
  }

  void answer(std::uint32_t sequence) {
    switch (control_.command) {
      case ExtensionCommand::kLoad:
        return load();
      case ExtensionCommand::kPrepare:
        return prepare();
      case ExtensionCommand::kRun:
        if (calls(control_.first_set, control_.sets)) settled(gpu_.synchronize());
        return;
      case ExtensionCommand::kTime:
        return time(sequence);
    }
  }

  void fail(ExtensionAnswer why, const std::string& words) {
    control_.answer = why;
    const std::size_t bytes = std::min(words.size(), kExtensionMessageBytes - 1);
    std::memcpy(control_.message, words.data(), bytes);
    control_.message[bytes] = '\0';
  }
  bool settled(int error) {
    if (error == 0) return true;
    control_.error = error;
    fail(ExtensionAnswer::kCudaError, gpu_.words(error));
    return false;
  }

  void load() {
    void* const object = ::dlopen(options_.binary.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      const std::string why = ::dlerror();
      return fail(ExtensionAnswer::kLaunchError,
                  "it cannot be loaded: " +
                      why.substr(why.rfind(": ") == std::string::npos ? 0 : why.rfind(": ") + 2));
    }
    entry_ = reinterpret_cast<ws::Entry>(::dlsym(object, WARPSMITH_EXTENSION_ENTRY));
    if (entry_ == nullptr)
      return fail(ExtensionAnswer::kLaunchError, "it has no forward(): torch/extension.h is not included");
    entry_(ws::Action::kBind, &services_, &frame_);
    if (frame_.status != ws::Status::kDone)
      fail(ExtensionAnswer::kLaunchError,
           std::string(frame_.message, ::strnlen(frame_.message, ws::kMessageBytes)));
  }

  void prepare() {
    const int fd = control_.by_handle != 0 ? -1 : process::receive_descriptor(options_.socket_fd);
    void* base = nullptr;
    const int error = gpu_.map(fd, control_.handle, control_.share_bytes, &base);
    if (fd >= 0) ::close(fd);
    if (!settled(error)) return;
    base_ = static_cast<char*>(base);
    inputs_.assign(control_.inputs, control_.inputs + std::clamp(control_.input_count, 0, ws::kMostTensors));
    outputs_.assign(control_.outputs,
                    control_.outputs + std::clamp(control_.output_count, 0, ws::kMostTensors));
    scalars_.assign(control_.scalars,
                    control_.scalars + std::clamp(control_.scalar_count, 0, ws::kMostTensors));
    offsets_.assign(control_.offsets,
                    control_.offsets + std::min<std::size_t>(control_.offset_count, kExtensionMostOffsets));
  }

  void time(std::uint32_t sequence) {
    const std::uint32_t first = control_.first_set, sets = control_.sets;
    if (!calls(first + sets, 1) || !settled(gpu_.synchronize())) return;
    control_.ready.store(sequence, std::memory_order_release);
    wake_word(control_.ready);
    wait_for(control_.arm, sequence);
    wake_up_gpu();
    if (!settled(gpu_.synchronize())) return;
    control_.armed.store(sequence, std::memory_order_release);
    wake_word(control_.armed);
    wait_for(control_.go, sequence);
    gpu_.mark(0);
    if (!calls(first, sets)) return;
    gpu_.mark(1);
    if (settled(gpu_.synchronize())) control_.event_ns = gpu_.ns_between_marks();
  }

  void wake_up_gpu() { gpu_.fill(own_, 0, 1, kOwnBytes); }

  // A session without a candidate times nothing, with everything around it.
  bool calls(std::uint32_t first, std::uint32_t sets) {
    for (std::uint32_t set = first; set < first + sets && entry_ != nullptr; ++set)
      if (!call(set)) return false;
    return true;
  }

  static ws::PlainTensor plain(const WireTensor& tensor, char* at) {
    ws::PlainTensor p{};
    p.data = at;
    p.dims = tensor.dims;
    p.dtype = tensor.dtype;
    std::copy_n(tensor.sizes, ws::kMostDims, p.sizes);
    return p;
  }

  bool call(std::uint32_t number) {
    std::size_t next = number * (inputs_.size() + outputs_.size());
    std::vector<ws::PlainTensor> inputs;
    for (const WireTensor& input : inputs_) inputs.push_back(plain(input, base_ + offsets_.at(next++)));
    std::vector<void*> places;
    for (std::size_t i = 0; i < outputs_.size(); ++i) places.push_back(base_ + offsets_.at(next++));
    places_.begin(places, outputs_);
    frame_.inputs = inputs.data();
    frame_.input_count = static_cast<std::int32_t>(inputs.size());
    frame_.scalars = scalars_.data();
    frame_.scalar_count = static_cast<std::int32_t>(scalars_.size());
    in_call_ = true;
    entry_(ws::Action::kCall, &services_, &frame_);
    const bool good = take_results(places);
    entry_(ws::Action::kDrop, &services_, &frame_);
    in_call_ = false;
    places_.learn();
    return good;
  }

  bool take_results(const std::vector<void*>& places) {
    // No memory may be had because nothing works any more.
    if (frame_.status == ws::Status::kOutOfMemory && !settled(gpu_.synchronize())) return false;
    if (frame_.status != ws::Status::kDone) {
      fail(frame_.status == ws::Status::kOutOfMemory ? ExtensionAnswer::kOutOfMemory
           : frame_.status == ws::Status::kResult    ? ExtensionAnswer::kWrongResult
                                                     : ExtensionAnswer::kLaunchError,
           std::string(frame_.message, ::strnlen(frame_.message, ws::kMessageBytes)));
      return false;
    }
    if (frame_.output_count != static_cast<std::int32_t>(outputs_.size())) {
      fail(ExtensionAnswer::kWrongResult, "forward() returns " + std::to_string(frame_.output_count) +
                                              " tensors, and the task has " +
                                              std::to_string(outputs_.size()) + " outputs");
      return false;
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const ws::PlainTensor& got = frame_.outputs[i];
      const WireTensor& wanted = outputs_[i];
      if (got.dims != wanted.dims || got.dtype != wanted.dtype ||
          !std::equal(got.sizes, got.sizes + got.dims, wanted.sizes)) {
        fail(ExtensionAnswer::kWrongResult,
             "output " + std::to_string(i) + " has another shape or dtype than the task's");
        return false;
      }
      places_.note_result(i, got.data);
      if (got.data != places[i] && !settled(gpu_.copy(places[i], got.data, wanted.bytes))) return false;
    }
    return true;
  }

  static void* allocate(std::uint64_t bytes, const std::int64_t*, std::int32_t, ws::Scalar dtype) {
    Server& s = *self;
    void* memory = s.in_call_ ? s.places_.place_for(bytes, dtype) : nullptr;
    if (memory == nullptr) memory = s.arena_.allocate(bytes);
    if (memory != nullptr && s.in_call_) s.places_.note(memory);
    return memory;
  }
  static void release(void* memory) {
    self->arena_.release(memory);
    if (self->in_call_) self->places_.note_release(memory);
  }
  static int fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count) {
    return self->gpu_.fill(at, pattern, width, count);
  }
  static int copy(void* to, const void* from, std::uint64_t bytes) {
    return self->gpu_.copy(to, from, bytes);
  }

  const ExtensionChildOptions& options_;
  ExtensionGpu& gpu_;
  ExtensionControl& control_;
  Arena arena_;
  ws::Services services_{};
  ws::Frame frame_{};
  ws::Entry entry_ = nullptr;
  Places places_;
  bool in_call_ = false;
  void* own_ = nullptr;
  char* base_ = nullptr;
  std::vector<std::uint64_t> offsets_;
  std::vector<WireTensor> inputs_, outputs_;
  std::vector<ws::PlainScalar> scalars_;
};

Server* Server::self = nullptr;

}  // namespace

void run_extension_child(const ExtensionChildOptions& options, ExtensionGpu& gpu) {
  void* const memory =
      ::mmap(nullptr, kExtensionControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, options.control_fd, 0);
  if (memory == MAP_FAILED) throw system_error("cannot map the control block", errno);
  ::close(options.control_fd);
  auto& control = *static_cast<ExtensionControl*>(memory);
  if (control.protocol != kExtensionProtocol) throw Error("started by another version of Warpsmith");
  gpu.open();
  Server server(options, gpu, control);
  Server::self = &server;
  // Tells the parent who we are, as the kernel sees it, while nobody else can.
  if (::send(options.socket_fd, "h", 1, MSG_NOSIGNAL) != 1)
    throw system_error("cannot speak to the parent", errno);
  if (options.seccomp) process::enter_gpu_seccomp();
  control.response.store(1, std::memory_order_release);
  wake_word(control.response);
  server.serve();
}

}  // namespace warpsmith::device

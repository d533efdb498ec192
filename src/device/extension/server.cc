#include "server.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "../twin_protocol.h"
#include "warpsmith/base/error.h"
#include "warpsmith/process/descriptors.h"

namespace warpsmith::device {

namespace {

namespace ws = ::warpsmith_extension;
using Clock = std::chrono::steady_clock;

constexpr double kSpinSeconds = 2e-3;
constexpr std::uint64_t kOwnBytes = 4096;

}  // namespace

ExtensionServer* ExtensionServer::self = nullptr;

ExtensionServer::ExtensionServer(int socket_fd, ExtensionGpu& gpu, ExtensionControl& control,
                                 ExtensionCode& code)
    : socket_fd_(socket_fd), gpu_(gpu), control_(control), code_(code), arena_(gpu, control.arena_bytes) {
  services_ = {ws::kAbi, &ExtensionServer::allocate, &ExtensionServer::release, &ExtensionServer::fill,
               &ExtensionServer::copy};
  if (gpu_.allocate(kOwnBytes, &own_) != 0) throw Error("the GPU has no memory left");
  wake_up_gpu();
  gpu_.mark(0);
  gpu_.mark(1);
  if (const int error = gpu_.synchronize(); error != 0)
    throw Error("the GPU does not work: " + gpu_.words(error));
  self = this;
}

ExtensionServer::~ExtensionServer() { self = nullptr; }

void ExtensionServer::serve() {
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

// `soon`: within a row, where being woken would count. Between rows the parent has it stand still, and a wait
// by the word is what it comes back to.
void ExtensionServer::wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, bool soon) const {
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

void ExtensionServer::answer(std::uint32_t sequence) {
  switch (control_.command) {
    case ExtensionCommand::kLoad:
      return load();
    case ExtensionCommand::kPrepare:
      return prepare();
    case ExtensionCommand::kRun: {
      const std::uint32_t first = control_.first_set, sets = control_.sets;
      if (!loaded_) return fail(ExtensionAnswer::kLaunchError, "no candidate is loaded");
      for (std::uint32_t set = first; set < first + sets; ++set)
        if (!call(set)) return;
      settled(gpu_.synchronize());
      return;
    }
    case ExtensionCommand::kTime:
      return time(sequence);
    case ExtensionCommand::kForget:
      return forget();
    case ExtensionCommand::kTrace:
      return trace(control_.first_set);
  }
}

void ExtensionServer::fail(ExtensionAnswer why, const std::string& words) {
  control_.answer = why;
  const std::size_t bytes = std::min(words.size(), kExtensionMessageBytes - 1);
  std::memcpy(control_.message, words.data(), bytes);
  control_.message[bytes] = '\0';
}

std::string ExtensionServer::frame_message() const {
  return {frame_.message, ::strnlen(frame_.message, ws::kMessageBytes)};
}

bool ExtensionServer::settled(int error) {
  if (error == 0) return true;
  control_.error = error;
  fail(ExtensionAnswer::kCudaError, gpu_.words(error));
  return false;
}

void ExtensionServer::load() {
  code_.load(frame_);
  loaded_ = frame_.status == ws::Status::kDone;
  if (!loaded_) fail(ExtensionAnswer::kLaunchError, frame_message());
}

void ExtensionServer::prepare() {
  const int fd = control_.by_handle != 0 ? -1 : process::receive_descriptor(socket_fd_);
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
  code_.prepare();
}

// What was prepared, whose memory its owner wants back.
void ExtensionServer::forget() {
  if (base_ == nullptr || !settled(gpu_.synchronize())) return;
  offsets_.clear();
  settled(gpu_.unmap(std::exchange(base_, nullptr)));
}

void ExtensionServer::come_to_stop() {
  const std::uint32_t calls = control_.stop.load(std::memory_order_acquire);
  if (calls > 1) return control_.stop.store(calls - 1, std::memory_order_release);
  control_.waits.store(control_.go.load(std::memory_order_relaxed), std::memory_order_release);
  wake_word(control_.waits);
  wait_for(control_.stop, 0, false);
}

void ExtensionServer::time(std::uint32_t sequence) {
  const std::uint32_t first = control_.first_set, sets = control_.sets;
  // On operands of its own; where there is no room for them, on the row's, whose values are renewed behind
  // it.
  const std::uint32_t untimed = first + sets < this->sets() ? first + sets : first;
  if ((loaded_ && !call(untimed)) || !settled(gpu_.synchronize())) return;
  control_.current.store(first - 1, std::memory_order_relaxed);
  control_.ready.store(sequence, std::memory_order_release);
  wake_word(control_.ready);
  wait_for(control_.arm, sequence);
  wake_up_gpu();
  if (!settled(gpu_.synchronize())) return;
  control_.armed.store(sequence, std::memory_order_release);
  wake_word(control_.armed);
  wait_for(control_.go, sequence);
  gpu_.mark(0);
  // A session without a candidate times nothing, with everything around it.
  if (const std::uint32_t idle = control_.idle; idle != 0) {
    for (std::uint32_t i = 0; i < idle; ++i)
      if (!code_.idle_row(first, sets)) return;
  } else if (loaded_ && !code_.row(first, sets)) {
    return;
  }
  const auto enqueued = Clock::now();
  gpu_.mark(1);
  if (!settled(gpu_.synchronize())) return;
  control_.drain_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - enqueued).count();
  control_.event_ns = gpu_.ns_between_marks();
}

// The call alone: a result that is copied to its place is not its work.
void ExtensionServer::trace(std::uint32_t set) {
  control_.kernels[0] = '\0';
  if (!loaded_) return fail(ExtensionAnswer::kLaunchError, "no candidate is loaded");
  begin_call(set);
  int error = 0;
  std::string kernels = gpu_.kernels_of([&] {
    code_.call(set, frame_);
    error = gpu_.synchronize();
  });
  const bool good = take_results(set);
  code_.drop(frame_);
  end_call();
  if (!good || !settled(error) || !settled(gpu_.synchronize())) return;
  if (kernels.size() >= kExtensionKernelBytes)
    kernels.resize(kernels.rfind('\n', kExtensionKernelBytes - 2) + 1);  // npos + 1 is 0
  std::memcpy(control_.kernels, kernels.c_str(), kernels.size() + 1);
}

void ExtensionServer::wake_up_gpu() { gpu_.fill(own_, 0, 1, kOwnBytes); }

std::uint32_t ExtensionServer::sets() const {
  const std::size_t each = inputs_.size() + outputs_.size();
  return each == 0 ? 0 : static_cast<std::uint32_t>(offsets_.size() / each);
}

std::vector<ws::PlainTensor> ExtensionServer::inputs_of(std::uint32_t set) const {
  std::size_t next = first_offset(set);
  std::vector<ws::PlainTensor> inputs;
  for (const WireTensor& input : inputs_) {
    ws::PlainTensor& p = inputs.emplace_back();
    p.data = base_ + offsets_.at(next++);
    p.dims = input.dims;
    p.dtype = input.dtype;
    std::copy_n(input.sizes, ws::kMostDims, p.sizes);
  }
  return inputs;
}

void ExtensionServer::begin_call(std::uint32_t set) {
  std::vector<void*> places;
  for (std::size_t i = 0; i < outputs_.size(); ++i) places.push_back(place_of(set, i));
  places_.begin(std::move(places), outputs_);
  in_call_ = true;
}

bool ExtensionServer::call(std::uint32_t set) {
  begin_call(set);
  code_.call(set, frame_);
  const bool good = take_results(set);
  code_.drop(frame_);
  end_call();
  places_.learn();
  return good;
}

bool ExtensionServer::take_results(std::uint32_t set) {
  if (frame_.status != ws::Status::kDone) {
    // It may have failed because nothing works any more.
    if (!settled(gpu_.synchronize())) return false;
    fail(frame_.status == ws::Status::kOutOfMemory ? ExtensionAnswer::kOutOfMemory
         : frame_.status == ws::Status::kResult    ? ExtensionAnswer::kWrongResult
                                                   : ExtensionAnswer::kLaunchError,
         frame_message());
    return false;
  }
  if (frame_.output_count != static_cast<std::int32_t>(outputs_.size())) {
    fail(ExtensionAnswer::kWrongResult, "forward() returns " + std::to_string(frame_.output_count) +
                                            " tensors, and the task has " + std::to_string(outputs_.size()) +
                                            " outputs");
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
    void* const place = place_of(set, i);
    if (got.data != place && !settled(gpu_.copy(place, got.data, wanted.bytes))) return false;
  }
  return true;
}

void* ExtensionServer::allocate(std::uint64_t bytes, const std::int64_t*, std::int32_t, ws::Scalar dtype) {
  return allocate_on(nullptr, bytes, dtype);
}

void* ExtensionServer::allocate_on(const void* stream, std::uint64_t bytes, ws::Scalar dtype) {
  ExtensionServer& s = *self;
  if (s.capturing_) return s.arena_.allocate_for_ever(bytes);
  void* memory = s.in_call_ ? s.places_.place_for(bytes, dtype) : nullptr;
  if (memory == nullptr) memory = s.arena_.allocate(bytes, stream);
  if (memory != nullptr && s.in_call_) s.places_.note(memory);
  return memory;
}

void ExtensionServer::release(void* memory) {
  self->arena_.release(memory);
  if (self->in_call_) self->places_.note_release(memory);
}

int ExtensionServer::fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count) {
  return self->gpu_.fill(at, pattern, width, count);
}

int ExtensionServer::copy(void* to, const void* from, std::uint64_t bytes) {
  return self->gpu_.copy(to, from, bytes);
}

}  // namespace warpsmith::device

#include "interpreter_code.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "child.h"
#include "server.h"
#include "warpsmith/base/error.h"

namespace {

using warpsmith::device::ExtensionServer;
namespace ws = ::warpsmith_extension;

class Interpreted : public warpsmith::device::ExtensionCode {
 public:
  explicit Interpreted(const WarpsmithHooks& hooks) : hooks_(hooks) {}
  void open(ExtensionServer& server) override {
    server_ = &server;
    if (hooks_.open() == 0)
      throw warpsmith::Error("torch does not work with this GPU: " + std::string(server.frame().message));
  }
  void load(ws::Frame&) override { hooks_.load(); }
  void prepare() override { hooks_.prepare(); }
  void call(std::uint32_t set, ws::Frame&) override { hooks_.call(set); }
  void drop(ws::Frame&) override { hooks_.drop(); }
  bool row(std::uint32_t first, std::uint32_t count) override {
    begun_ = first - 1;  // as `current` is
    in_row_ = true;
    const bool good = hooks_.row(first, count) != 0;
    in_row_ = false;
    server_->end_call();
    return good;
  }
  bool idle_row(std::uint32_t first, std::uint32_t count) override {
    return hooks_.idle_row(first, count) != 0;
  }
  // Whoever asks for memory within a row may be the first to do so in its call.
  void look_at_call() {
    if (!in_row_) return;
    const std::uint32_t current = server_->current().load(std::memory_order_relaxed);
    if (current == begun_ || current >= server_->sets()) return;
    begun_ = current;
    server_->begin_call(begun_);
  }

  static Interpreted* self;
  static std::uint64_t refused;

 private:
  WarpsmithHooks hooks_;
  ExtensionServer* server_ = nullptr;
  std::uint32_t begun_ = 0;
  bool in_row_ = false;
};

Interpreted* Interpreted::self = nullptr;
std::uint64_t Interpreted::refused = 0;

}  // namespace

void warpsmith_serve(std::int32_t control_fd, std::int32_t socket_fd, std::int32_t seccomp,
                     const WarpsmithHooks* hooks, char* problem, std::size_t bytes) {
  try {
    static Interpreted code(*hooks);
    Interpreted::self = &code;
    warpsmith::device::serve_extension(control_fd, socket_fd,
                                       static_cast<warpsmith::device::Closing>(seccomp),
                                       warpsmith::device::interpreters_gpu(), code);
  } catch (const std::exception& e) {
    const std::size_t length = std::min(bytes - 1, std::strlen(e.what()));
    std::memcpy(problem, e.what(), length);
    problem[length] = '\0';
  }
}

std::uint32_t warpsmith_sets() { return ExtensionServer::self->sets(); }
std::int32_t warpsmith_input_count() { return ExtensionServer::self->input_count(); }
std::int32_t warpsmith_output_count() {
  return static_cast<std::int32_t>(ExtensionServer::self->outputs().size());
}
std::int32_t warpsmith_scalar_count() {
  return static_cast<std::int32_t>(ExtensionServer::self->scalars().size());
}
void warpsmith_input(std::uint32_t set, std::int32_t number, ws::PlainTensor* tensor) {
  *tensor = ExtensionServer::self->inputs_of(set).at(static_cast<std::size_t>(number));
}
void* warpsmith_place(std::uint32_t set, std::int32_t output) {
  return ExtensionServer::self->place_of(set, static_cast<std::size_t>(output));
}
void warpsmith_scalar(std::int32_t number, ws::PlainScalar* scalar) {
  *scalar = ExtensionServer::self->scalars().at(static_cast<std::size_t>(number));
}
ws::Frame* warpsmith_frame() { return &ExtensionServer::self->frame(); }
std::int32_t warpsmith_take(std::uint32_t set) { return ExtensionServer::self->take_results(set) ? 1 : 0; }
const std::uint32_t* warpsmith_stop() {
  return reinterpret_cast<const std::uint32_t*>(&ExtensionServer::self->stop());
}
void warpsmith_come_to_stop() { ExtensionServer::self->come_to_stop(); }
std::uint32_t* warpsmith_current() {
  return reinterpret_cast<std::uint32_t*>(&ExtensionServer::self->current());
}

void* warpsmith_allocate(ssize_t bytes, int, void* stream) {
  if (bytes <= 0) return nullptr;
  Interpreted::self->look_at_call();
  void* const memory =
      ExtensionServer::allocate_on(stream, static_cast<std::uint64_t>(bytes), warpsmith::device::kAnyDtype);
  if (memory != nullptr) return memory;
  // torch does not look at what it gets: a null would be written to.
  Interpreted::refused = static_cast<std::uint64_t>(bytes);
  throw std::bad_alloc();
}
std::uint64_t warpsmith_room() { return ExtensionServer::room(); }
void warpsmith_capture(std::int32_t on) { ExtensionServer::capture(on != 0); }
std::uint64_t warpsmith_refused() { return std::exchange(Interpreted::refused, 0); }
void warpsmith_release(void* memory, ssize_t, int, void*) {
  if (ExtensionServer::self != nullptr) ExtensionServer::release(memory);
}

#include "child.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "../twin_protocol.h"
#include "server.h"
#include "warpsmith/base/error.h"
#include "warpsmith/process/child.h"

namespace warpsmith::device {

namespace {

constexpr double kLookSeconds = 0.05;

}  // namespace

void serve_extension(int control_fd, int socket_fd, Closing closing, ExtensionGpu& gpu, ExtensionCode& code) {
  void* const memory =
      ::mmap(nullptr, kExtensionControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, control_fd, 0);
  if (memory == MAP_FAILED) throw system_error("cannot map the control block", errno);
  ::close(control_fd);
  auto& control = *static_cast<ExtensionControl*>(memory);
  if (control.protocol != kExtensionProtocol) throw Error("started by another version of Warpsmith");
  control.loaded.store(1, std::memory_order_release);
  wake_word(control.loaded);
  // Another process may be timed until the parent has the GPU.
  while (control.request.load(std::memory_order_acquire) == 0) wait_on_word(control.request, 0, kLookSeconds);
  gpu.open();
  // Tells the parent who we are, as the kernel sees it, while nobody else can.
  if (::send(socket_fd, "h", 1, MSG_NOSIGNAL) != 1) throw system_error("cannot speak to the parent", errno);
  control.has_context.store(1, std::memory_order_release);
  wake_word(control.has_context);
  while (control.alone.load(std::memory_order_acquire) == 0) wait_on_word(control.alone, 0, kLookSeconds);
  control.launch_ns = gpu.choose_context(&control.least_launch_ns);
  ExtensionServer server(socket_fd, gpu, control, code);
  code.open(server);
  if (closing == Closing::kAll) process::enter_gpu_seccomp();
  if (closing == Closing::kCompiling) process::enter_compiling_seccomp(true);
  control.response.store(1, std::memory_order_release);
  wake_word(control.response);
  server.serve();
}

void run_extension_child(const ExtensionChildOptions& options, ExtensionGpu& gpu) {
  const std::unique_ptr<ExtensionCode> code = make_shared_object_code(options.binary);
  serve_extension(options.control_fd, options.socket_fd, options.seccomp ? Closing::kAll : Closing::kNothing,
                  gpu, *code);
}

}  // namespace warpsmith::device

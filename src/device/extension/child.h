#pragma once

#include "code.h"
#include "warpsmith/device/extension_child.h"

namespace warpsmith::device {

// What of the system is closed before the candidate is loaded. kCompiling: it may start programs.
enum class Closing { kNothing = 0, kAll = 1, kCompiling = 2 };

// As run_extension_child() (extension_child.h), whatever the candidate is.
[[noreturn]] void serve_extension(int control_fd, int socket_fd, Closing closing, ExtensionGpu& gpu,
                                  ExtensionCode& code);

}  // namespace warpsmith::device

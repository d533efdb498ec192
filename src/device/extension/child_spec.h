// How the child of a session is started: its program or interpreter, what it sees of this machine, and its
// limits.
#pragma once

#include <filesystem>

#include "warpsmith/device/extension_session.h"
#include "warpsmith/process/child.h"

namespace warpsmith::device {

// `scratch`: the one folder that it may write to. The two descriptors are its ends of the control block and
// of the socket. Throws Error where a program of ours is missing.
process::ChildSpec extension_child_spec(const ExtensionOptions& options, const std::filesystem::path& scratch,
                                        int control_fd, int socket_fd);

}  // namespace warpsmith::device

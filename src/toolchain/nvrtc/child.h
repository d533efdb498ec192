// The side of warpsmith-nvrtc (protocol.h): NVRTC itself. Loaded at run time, for the folder that it
// lies in is the site's affair, and what is wrong with it can be told.
#pragma once

#include <string>

#include "../common/compiler_child.h"
#include "protocol.h"

namespace warpsmith::toolchain {

// Throw Error where the library cannot be loaded.
NvrtcAbout describe_nvrtc(const std::string& library);
// Compiles for each target and leaves the answers in the working folder. Throws Error also where NVRTC itself
// fails; its message says "out of memory" where that was the cause.
void run_nvrtc_request(const NvrtcRequest& request);
// Loads the library, then answers requests until the other end of the socket is closed.
void serve_nvrtc(const std::string& library, int socket);

}  // namespace warpsmith::toolchain

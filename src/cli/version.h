// What --version says. The definitions are written when the program is built (cmake/Version.cmake).
#pragma once

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

// "warpsmith 0.1.0 (commit 0a1b2c3d, torch 2.11.0, CUDA 13.0)"
extern const char* const kVersionText;
Build build();

}  // namespace warpsmith::cli

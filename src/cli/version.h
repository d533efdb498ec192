// What --version says. The definition is written when the program is built (cmake/Version.cmake).
#pragma once

namespace warpsmith::cli {

// "warpsmith 0.1.0 (commit 0a1b2c3d, torch 2.11.0, CUDA 13.0)"
extern const char* const kVersionText;

}  // namespace warpsmith::cli

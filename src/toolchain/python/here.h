// The python3 that compiles candidates of tier `python`, and what it finds on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace warpsmith::toolchain {

struct PythonHere {
  std::string problem;    // empty where modules can be imported here
  std::string extension;  // empty where extensions can be built as well
  std::filesystem::path python, ninja;
  std::string version, torch;                  // "3.11.7", "2.11.0+cu130"
  std::vector<std::filesystem::path> visible;  // what the sandbox must show for modules
};
// Looked for once a process and value of WARPSMITH_PYTHON.
PythonHere python_here();

// What stands for nvcc and the host compiler in the cache key; "none" where they are not here.
std::string extension_compilers();

}  // namespace warpsmith::toolchain

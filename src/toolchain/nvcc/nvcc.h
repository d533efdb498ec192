// nvcc with the host compiler and all that it starts, as one sandboxed, limited child.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../common/compiler_child.h"
#include "source.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

// What is here. `problem` where nvcc or a host compiler is missing.
struct NvccHere {
  std::string problem;
  std::filesystem::path nvcc, host_compiler;
  std::string version;                                     // of nvcc: "13.0.88"
  std::string host_version;                                // first line of g++ --version
  std::map<std::string, std::filesystem::path> libraries;  // "cublas" -> …/libcublas.so.13
  std::vector<std::filesystem::path> include_folders;      // of libraries that do not lie with nvcc
  std::vector<std::filesystem::path> visible;              // folders that the sandbox must show
};
const NvccHere& nvcc_here();

// "arch=compute_90a,code=sm_90a"
std::string gencode(const GpuTarget& target);

// Fixed options of nvcc, as they enter the key.
const std::vector<std::string>& nvcc_options();

// Compiles what lies in `scratch` as write_sources() left it. Throws Error where the machine is at fault.
CompilerRun run_nvcc(const ExtensionSources& sources, const std::vector<std::string>& options,
                     const GpuTarget& target, const std::filesystem::path& scratch,
                     const CompileOptions& limits);

// The candidate's files and our headers.
void write_sources(const ExtensionSources& sources, const std::filesystem::path& scratch);
std::string digest_of_our_headers();

}  // namespace warpsmith::toolchain

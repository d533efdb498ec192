// What NVIDIA's compilers print, read into its parts: messages of the front end of NVRTC and nvcc, and what
// ptxas says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

// "kernel.cu(12): error: message", and the lines below it until the next.
struct FrontEndReport {
  std::string file, kind, message;
  int line = 0;
  std::vector<std::string> below;
  bool is_error() const {
    return kind.find("rror") != std::string::npos;
  }  // NVRTC's optimiser writes "Error"
};
std::vector<FrontEndReport> read_reports(std::string_view log);

// Of ptxas, each message once, as inline PTX in a loop would repeat it.
std::vector<std::string> assembler_errors(std::string_view log);

// Whether the assembler refused the source for no other reason than that the target lacks an instruction.
bool target_lacks_features(std::string_view log);

struct KernelResources {
  int registers = 0;
  std::uint64_t shared_bytes = 0, local_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};
// By lowered name, from what --ptxas-options=-v prints.
std::map<std::string, KernelResources> read_resources(std::string_view log);

// "/usr/include/a.h" -> "a.h": absolute paths that begin the text or stand behind a character of `before`,
// and end at one of `behind`.
std::string without_folders(const std::string& text, std::string_view before = " \"'",
                            std::string_view behind = " \"'");

}  // namespace warpsmith::toolchain

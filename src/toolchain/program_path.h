// Where the programs lie that people name, or have in PATH.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::toolchain {

// A name with a slash is a path, any other is looked for in PATH; empty where there is none.
std::filesystem::path find_in_path(const std::string& name);

// Where a program leads by way of Debian's alternatives (/usr/bin/c++ -> /etc/alternatives/c++ ->
// /usr/bin/g++), which a sandbox does not show; others stay what they are, for compilers go by their names.
std::filesystem::path past_alternatives(const std::filesystem::path& program);

}  // namespace warpsmith::toolchain

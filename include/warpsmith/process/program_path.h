// Where programs lie.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::process {

// A file that this user may execute.
bool runnable(const std::filesystem::path& path);

// The folder of torch that TORCH_ROOT names. Empty: it names none, so the one of the build counts.
std::filesystem::path chosen_torch();

inline constexpr const char* kUsualFolders = "/usr/local/bin:/usr/bin:/bin";

// PATH; where it is not set or empty, kUsualFolders.
std::string search_path();

// A name with a slash is a path, made absolute; any other is looked for in `folders`, which has colons
// between them. Empty where there is no such program that may be run.
std::filesystem::path find_program(const std::string& name, const std::string& folders = search_path());

// Where a program leads by way of Debian's alternatives (/usr/bin/c++ -> /etc/alternatives/c++ ->
// /usr/bin/g++), which a sandbox does not show; others stay what they are, for compilers go by their names.
std::filesystem::path past_alternatives(const std::filesystem::path& program);

}  // namespace warpsmith::process

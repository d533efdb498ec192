// How a ChildSpec becomes the command line of a guard.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/process/child.h"

namespace warpsmith::process {

// warpsmith-guard, beside this program or one folder up (tests). Throws Error.
const std::filesystem::path& guard_program();

// bwrap, from /usr/bin, /usr/local/bin or PATH; empty where there is none.
std::filesystem::path bwrap_program();

// The environment that the child gets. In a sandbox, unless the spec says otherwise, only what programs need
// to run: keys and passwords that stand in ours are not for foreign code.
std::map<std::string, std::string> child_environment(const ChildSpec& spec);

// argv of the guard, or throws Error (program not found, no bwrap).
std::vector<std::string> guard_command(const ChildSpec& spec, int status_fd, int lifeline_fd);

}  // namespace warpsmith::process

// What a command of the shell prints, on stdout and stderr.
#pragma once

#include <cstdio>
#include <string>

namespace warpsmith {

// `status`: its exit status; without it, what a command prints that fails begins with "failed: ".
inline std::string output_of(const std::string& command, int* status = nullptr) {
  std::string said;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  for (char part[512]; std::fgets(part, sizeof part, pipe) != nullptr;) said += part;
  const int ended = ::pclose(pipe);
  if (status != nullptr)
    *status = ended;
  else if (ended != 0)
    said = "failed: " + said;
  return said;
}

}  // namespace warpsmith

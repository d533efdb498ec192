// warpsmith-generate as a process that tests may kill.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace warpsmith::endpoint {

// Its exit code; of a signal, -number.
inline int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }
inline int wait_for(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return exit_code_of(status);
}

// Works on shard 0 of the job in `folder`; what it logs is appended to `log`.
inline pid_t start_generate(const std::filesystem::path& folder, const std::filesystem::path& log) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (std::freopen(log.c_str(), "a", stderr) == nullptr) ::_exit(99);
  ::execl(WARPSMITH_BINARY_DIR "/warpsmith-generate", "warpsmith-generate", (folder / "job.json").c_str(),
          "0", nullptr);
  ::_exit(98);
}

}  // namespace warpsmith::endpoint

// A server of a language model that others wrote, started for tests, and runs that ask it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "generate_process.h"
#include "output_of.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/endpoint/look.h"

namespace warpsmith::endpoint {

// A process with a group of its own, which ends with this object and with the test.
class Served {
 public:
  // What it prints goes to `log`.
  Served(const std::vector<std::string>& argv, std::filesystem::path log) : log_(std::move(log)) {
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = ::open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::setenv("HF_HUB_OFFLINE", "1", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::execvp(words[0], words.data());
    ::_exit(98);
  }
  ~Served() { stop(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void stop() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    wait_for(pid_);
    pid_ = -1;
  }
  // Whether it answers within four minutes.
  bool answers(const Server& server) {
    for (int i = 0; i < 480; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) != 0) return false;
      try {
        if (look_at(server).problem.empty()) return true;
      } catch (const Error&) {
        // not ready yet
      }
    }
    return false;
  }
  std::string log() const { return read_file(log_); }

 private:
  std::filesystem::path log_;
  pid_t pid_ = -1;
};

inline const std::string kWarpsmith = "'" WARPSMITH_BINARY_DIR "/warpsmith' ";

inline std::string run_command(const std::string& file, const std::string& run) {
  return kWarpsmith + "run '" + file + "' --run-dir '" + run + "' --quiet 2>&1";
}

inline Json exported(const std::string& run) {
  int status = 0;
  const std::string text = output_of(kWarpsmith + "export '" + run + "' --format json 2>&1", &status);
  if (status != 0) throw Error(text);
  return parse_json(text, "export");
}

}  // namespace warpsmith::endpoint

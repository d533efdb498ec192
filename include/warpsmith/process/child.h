// One child process with limits and a sandbox; what it prints is captured; its whole tree dies with it, also what called
// setsid, and also when this process is killed.
//
// Levels: `bubblewrap` (own mount, PID, network and IPC namespaces, plus seccomp), `landlock` (Landlock file rules where the
// kernel has them, seccomp, rlimits), `none` (rlimits only; refused unless asked for by --unsandboxed).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace warpsmith::process {

enum class SandboxLevel { kNone, kLandlock, kBubblewrap };
std::string_view to_string(SandboxLevel level);  // "none", "landlock", "bubblewrap"

// The best level that works here, found by trying it once a process. The environment variable
// WARPSMITH_SANDBOX=none|landlock|bubblewrap asks for a lower one (tests; hosts without user namespaces).
SandboxLevel available_sandbox();

struct Limits {
  double wall_s = 0;                // 0: none
  double cpu_s = 0;                 // RLIMIT_CPU
  std::uint64_t memory_bytes = 0;   // address space of each process (RLIMIT_AS)
  std::uint64_t file_bytes = 0;     // RLIMIT_FSIZE
  std::uint64_t output_bytes = 1 << 20;  // of each of stdout and stderr that is kept; the rest is read and dropped, and counted
  std::uint64_t stack_bytes = 0;    // RLIMIT_STACK
};

struct Sandbox {
  SandboxLevel level = SandboxLevel::kNone;
  std::vector<std::filesystem::path> read_only;   // visible besides the system's libraries (/usr, /lib*, /etc/ld.so.cache)
  std::vector<std::filesystem::path> read_write;  // scratch folders
  bool allow_processes = false;  // fork, exec (compilers need them). Otherwise seccomp kills the child on fork, exec, sockets
  // Where false, seccomp is installed by the child itself (enter_seccomp below), after its dynamic loading is done; where true
  // it is installed before exec.
  bool seccomp_before_exec = false;
};

struct ChildSpec {
  std::vector<std::string> argv;
  std::optional<std::map<std::string, std::string>> environment;  // nothing: inherits ours
  std::filesystem::path folder;            // working folder; empty: ours
  std::string input;                       // on stdin; then end of file
  bool capture_output = true;              // else stdout and stderr are inherited
  std::filesystem::path stderr_file;       // appended to, instead of captured
  std::vector<int> keep_fds;               // descriptors that stay open under the same number
  std::vector<int> cpus;                   // affinity; empty: ours
  Limits limits;
  Sandbox sandbox;
};

enum class Ending { kExited, kSignaled, kTimedOut, kOutputLimit, kStopped /* by us */, kNotStarted };

struct ChildResult {
  Ending ending = Ending::kNotStarted;
  int exit_code = 0;    // kExited
  int signal = 0;       // kSignaled
  std::string out, err; // captured, cut at the limit
  std::uint64_t out_dropped = 0, err_dropped = 0;
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string problem;  // kNotStarted: why
};

// Runs to the end.
ChildResult run_child(const ChildSpec& spec);

// A child that runs beside us. Move-only; the destructor kills its tree and reaps it.
class Child {
 public:
  explicit Child(const ChildSpec& spec);  // throws Error where it cannot be started
  ~Child();
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;

  pid_t pid() const;  // the process started (under bubblewrap: bwrap itself)
  int event_fd() const;  // readable (pidfd) when the child has ended
  bool running();        // reads pending output, enforces limits
  void terminate();      // SIGTERM to the tree
  void kill();           // SIGKILL to the tree, also what called setsid
  ChildResult wait();    // to the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// In the child, called by a program of ours before it loads foreign code: from here on fork, exec, sockets, ptrace, opening files
// for writing, and signals to others end the process with SIGSYS. Threads must have been made before.
// `level` none: does nothing. Throws Error where seccomp is not to be had.
void enter_seccomp(bool allow_threads);

// The whole tree below this process dies when it does: makes us a child subreaper and arms PR_SET_PDEATHSIG in children.
// Once, at the start of programs that run children.
void become_subreaper();

}  // namespace warpsmith::process

// One child process with limits and a sandbox; what it prints is captured; its whole tree dies with it, also
// what called setsid, and also when this process is killed.
//
// Each child stands below a `warpsmith-guard` (a small program beside this one): it holds the limits that the
// kernel has no rlimit for, adopts what the child leaves behind, and ends all of it when this process is
// gone.
//
// Levels: `bubblewrap` (own mount, PID, network and IPC namespaces, plus seccomp), `landlock` (Landlock file
// rules where the kernel has them, seccomp, rlimits), `none` (rlimits only; refused unless asked for by
// --unsandboxed).
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

// Whether a level works here, found by starting a child in it, and if not, why.
struct SandboxTrial {
  bool works = false;
  std::string problem;
};
SandboxTrial try_sandbox(SandboxLevel level);

// The best level that works here, found by trying it once a process. The environment variable
// WARPSMITH_SANDBOX=none|landlock|bubblewrap asks for a lower one (tests; hosts without user namespaces).
SandboxLevel available_sandbox();

// Whether a program in a sandbox of this level can send signals to its own processes alone: by a namespace,
// or by Landlock from version 6 on. Foreign code that may start processes, and so is under no filter that
// looks at each signal, wants that.
bool keeps_signals_inside(SandboxLevel level);

// Whether a program in a sandbox of this level is kept from the user's files: by mounts, or by Landlock where
// the kernel has it. Foreign code whose seccomp filter lets it open files wants that.
bool guards_files(SandboxLevel level);

struct Limits {
  double wall_s = 0;               // 0: none
  double cpu_s = 0;                // RLIMIT_CPU
  std::uint64_t memory_bytes = 0;  // address space of each process (RLIMIT_AS)
  std::uint64_t file_bytes = 0;    // RLIMIT_FSIZE
  std::uint64_t output_bytes =
      1 << 20;  // of each of stdout and stderr that is kept; the rest is read and dropped, and counted
  // What it has written below Sandbox::read_write together, beyond what lay there: bytes that are allocated
  // (holes cost nothing, hard links count once), and files and folders. Looked at twice a second, and once
  // when it has ended. Folders nested more than 64 deep are over the limit; those that it has closed to their
  // owner get their rights back, or are over it. Where folders change under several looks in a row, its
  // processes are stopped for one.
  // What is not seen at once: files without a name that it has open are counted only when the disk has lost
  // as much; those that it has mapped and closed, not at all. They go with it.
  std::uint64_t scratch_bytes = 0, scratch_files = 0;
  std::uint64_t open_files = 0;   // RLIMIT_NOFILE
  std::uint64_t stack_bytes = 0;  // RLIMIT_STACK
  std::uint64_t tree_memory_bytes =
      0;                     // resident memory of all its processes together, looked at five times a second
  unsigned processes = 256;  // alive at once in its tree (threads do not count); 0: no limit. A limit implies
                             // no_new_privs: fork fails with EAGAIN beyond it
};

struct Sandbox {
  SandboxLevel level = SandboxLevel::kNone;
  // Visible besides the system's programs and libraries (/usr, /bin, /lib*, /etc/ld.so.cache) and the
  // program's own file; paths that do not exist are left out.
  std::vector<std::filesystem::path> read_only;
  std::vector<std::filesystem::path> read_write;  // scratch folders
  bool allow_processes =
      false;  // fork, exec (compilers need them). Otherwise seccomp kills the child on fork, exec, sockets
  // NVIDIA's device nodes, and what its driver reads of /proc and /sys.
  bool gpu = false;
  // Where false, seccomp is installed by the child itself (enter_seccomp below), after its dynamic loading is
  // done; where true it is installed before exec.
  bool seccomp_before_exec = false;
};

struct ChildSpec {
  std::vector<std::string> argv;
  // Nothing: inherits ours; in a sandbox only PATH, LANG, LC_*, TZ, LD_LIBRARY_PATH and OMP_* (no keys for
  // foreign code).
  std::optional<std::map<std::string, std::string>> environment;
  std::filesystem::path folder;       // working folder; empty: ours (under bubblewrap an empty /tmp)
  std::string input;                  // on stdin; then end of file
  bool capture_output = true;         // else stdout and stderr are inherited
  std::filesystem::path stderr_file;  // appended to, instead of captured
  bool stdout_to_stderr = false;      // both streams in one: the captured stderr, or stderr_file
  std::vector<int> keep_fds;          // descriptors that stay open under the same number
  std::vector<int> cpus;              // affinity; empty: ours
  Limits limits;
  Sandbox sandbox;
};

enum class Ending {
  kExited,
  kSignaled,
  kTimedOut,     // wall clock or CPU time
  kOutputLimit,  // a file over file_bytes (SIGXFSZ), 64 MiB printed beyond what is kept, or all files over
                 // scratch_bytes or scratch_files (`problem` says which)
  kStopped,      // by us
  kNotStarted,
  kMemoryLimit,  // tree_memory_bytes
};

struct ChildResult {
  Ending ending = Ending::kNotStarted;
  int exit_code = 0;     // kExited
  int signal = 0;        // kSignaled
  std::string out, err;  // captured, cut at the limit
  std::uint64_t out_dropped = 0, err_dropped = 0;
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_memory_bytes = 0;  // of its largest process; with tree_memory_bytes, of the tree
  std::string problem;                  // kNotStarted: why; elsewhere what else is known of the end
};

// Runs to the end.
ChildResult run_child(const ChildSpec& spec);

// The same for a program whose answer is taken as a fact of this machine, such as `g++ --version`: one that
// is killed by somebody has said nothing, and is asked again, three times at most. Throws Error where each
// was killed.
ChildResult ask_program(const ChildSpec& spec);

// A child that runs beside us. Move-only; the destructor kills its tree and reaps it.
class Child {
 public:
  explicit Child(const ChildSpec& spec);  // throws Error where it cannot be started
  ~Child();
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;

  pid_t pid() const;     // the process started (under bubblewrap: bwrap itself)
  int event_fd() const;  // readable (pidfd) when the child has ended
  bool running();        // reads pending output, enforces limits
  void terminate();      // SIGTERM to the tree
  void kill();           // SIGKILL to the tree, also what called setsid
  ChildResult wait();    // to the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// In the child, called by a program of ours before it runs foreign code: from here on fork, exec, sockets,
// ptrace, opening or changing files, and signals to others end the process with SIGSYS; reading files,
// memory, and descriptors that are open go on. Holds for all threads. `allow_threads`: more may be made.
// Throws Error where seccomp is not to be had.
void enter_seccomp(bool allow_threads);

// The same for a process that has opened CUDA: threads may be made, and what the driver goes on to do is
// allowed (ioctl, opening its devices, where memory lies). It also allows files to be written, for a filter
// cannot tell a device from a file: which ones is left to the sandbox's mounts or Landlock. Descriptors can
// be received by sockets that it holds.
void enter_gpu_seccomp();
// The same for one that may start programs as well, compilers: of what ChildSpec's `seccomp_before_exec`
// forbids before a program starts, the rest. CUDA's driver does not start under it. Without `allow_processes`
// no programs and no processes, as without Sandbox::allow_processes.
void enter_compiling_seccomp(bool allow_processes);

// Once, at the start of programs that run children: makes this process a child subreaper, so that even when a
// guard is killed what was below it comes to us and is ended. Such a program starts children in no other way
// than this module's: one that it does not know is taken for a stray.
void become_subreaper();

}  // namespace warpsmith::process

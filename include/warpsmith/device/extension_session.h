// A candidate of tier `extension` or `python`: runs in a sandboxed child (`warpsmith-extension`, or a python3
// that has loaded the same as a library) that has the GPU to itself while it works; operands lie in memory
// that this process owns and shares with it, the clock is here.
//
//   ExtensionSession session(options);                   // starts the child, which opens the GPU
//   session.load();                                      // it loads the candidate: its code may run
//   session.prepare(layout, *memory.share());            // it maps the operands; may be called again
//   session.run(0, 2);                   // forward() on sets 0 and 1, then device-wide synchronisation
//   session.time(0, 8, [&] { harness.flush(); });        // once on set 8, untimed; the caller's turn on the
//                                                        // GPU; then sets 0…7 by the clock
//
// The candidate's code lives in the same process as ours that serves it, and can say what it likes on every
// channel. So times are the parent's, answers are what lies in the parent's memory, and what is said of
// failures can but fail it. From an answer until the next call the child stands still (SIGSTOP): what it has
// not done by then it does not do while its answers are looked at, or another side is timed. What it left on
// the GPU goes on. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/device/gpu.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/task/task.h"

namespace warpsmith::device {

// What runs a candidate of tier `python`, in place of our own program.
struct ExtensionInterpreter {
  std::vector<std::string> command;  // that starts a python3 with torch
  std::string script;                // text of src/python/candidate.py, which says what it is started with
  std::vector<std::filesystem::path> folders;      // that it reads
  std::map<std::string, std::string> environment;  // by which it finds its packages and libraries
  std::string module;             // text of the task's module (task::Task::module); empty: the task is none
  std::string math = "strict";    // or "torch_default": its flags before the candidate is loaded
  std::string device = "cuda";    // "cpu": host memory stands in for a GPU's, in tests
  std::filesystem::path library;  // empty: warpsmith-interpreted.so, beside this program
  // Where what is compiled when a candidate first runs is kept: Triton's kernels and, if it has a folder
  // `inductor`, those of torch.compile. Empty: nowhere. A child that may compile writes there, and may start
  // processes; another one can read it, and may not.
  std::filesystem::path kept;
  bool may_compile = false;
};

struct ExtensionOptions {
  // Of toolchain::compile_extension or, with an interpreter, compile_python; empty: no candidate.
  std::filesystem::path binary;
  std::optional<ExtensionInterpreter> interpreter;
  std::filesystem::path program;                 // empty: warpsmith-extension, beside this program
  std::vector<std::filesystem::path> libraries;  // folders with cuBLAS and cuDNN
  std::string gpu;                               // UUID of the one that the child is to see
  double call_timeout_s = 10;                    // of one call; a row of more than four has that of four
  // The child starts, loads torch where it is a python3, and waits for open() before it goes to the GPU.
  bool waits = false;
  // On top for the first, of an interpreter at each layout: kernels are loaded when they are first launched,
  // cuBLAS and cuDNN when they are first asked.
  double first_call_s = 6;
  std::uint64_t host_memory_bytes = 8ull << 30;  // resident, of the child
  std::uint64_t arena_bytes = 1ull << 30;        // on the device, for tensors that the candidate makes
  process::SandboxLevel sandbox = process::SandboxLevel::kNone;
  // The child's only processor from open() on, on which the caller's thread is, too: neither side spins while
  // the other works. Until then it may use those that share their memory with it. -1: any.
  int cpu = -1;
};

// Of an ExtensionLayout: what a child can be told.
inline constexpr std::size_t kMostExtensionOffsets = 64 << 10;

struct ExtensionTensor {
  std::string name;
  task::Dtype dtype = task::Dtype::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

struct ExtensionLayout {
  std::vector<ExtensionTensor> inputs, outputs;
  std::vector<task::ScalarSpec> scalars;
  std::vector<std::uint64_t> offsets;  // in the shared memory: [set][inputs, then outputs]
  int sets = 0;
};

struct ExtensionRun {
  Verdict verdict = Verdict::kOk;
  std::string detail;
  std::int64_t elapsed_ns =
      0;  // of time(): from the word to go to the answer, which comes after device-wide synchronisation
  std::int64_t event_ns =
      0;  // the same as the child has it from events on the default stream: to be shown, and compared
  // Of time(): from the word to get ready for the clock until the child says it is: little, unless it works
  // there for calls that the clock is to hold.
  std::int64_t arm_ns = 0;
  // Of time(), as the child has it: from the return of the last call until the GPU was done.
  std::int64_t drain_ns = 0;
  // Of time() with a Pause: calls were left when the child was told to wait, and it made them all: its code,
  // in its process, took the word back.
  bool did_not_wait = false;
};

// Of ExtensionSession::trace().
struct ExtensionKernel {
  std::string name;  // mangled, printable
  std::int64_t ns = 0;
};

class ExtensionSession {
 public:
  explicit ExtensionSession(
      const ExtensionOptions& options);  // throws Error where no child can be started, or it finds no GPU
  // Of one that `waits`, if wanted before open(): it opens a context meanwhile, and open() waits for that.
  void begin_open();
  void wait_for_context();  // of begin_open(), or until the child is gone
  // Of one that `waits`, before anything else, while nothing else runs on the GPU. Throws Error where the
  // child is gone, or finds no GPU. `least_launch_ns`: least_launch_ns() of sessions on this GPU so far; 0:
  // there was none. One that does not wait takes any context.
  void open(double call_timeout_s, double least_launch_ns = 0);
  // Until it does wait, or is gone, or the time is over: then open() need not wait for it.
  void wait_until_loaded(double timeout_s);
  ~ExtensionSession();
  ExtensionSession(ExtensionSession&&) noexcept;
  ExtensionSession& operator=(ExtensionSession&&) noexcept;

  ExtensionRun load();
  // What was prepared before stays mapped: a program may have kept an address of it.
  ExtensionRun prepare(const ExtensionLayout& layout, const GpuShare& share);
  // The child unmaps what was prepared last: for memory that is wanted back.
  ExtensionRun forget();
  ExtensionRun run(int first_set, int sets);
  // `before_clock`: after the untimed call, shortly before the clock; what it does on the GPU it must wait
  // for. The child stands still while it runs: no thread of it sees what is written then before the child is
  // to get ready.
  ExtensionRun time(int first_set, int sets, const std::function<void()>& before_clock);
  // The same `times` over, with calls that do nothing: what a call costs beside its work. Of an interpreter;
  // others do not know how.
  ExtensionRun time_idle(int first_set, int sets, int times, const std::function<void()>& before_clock);
  // So long after the start the child is sent a signal to stop, wherever it is, unless its row is over; it is
  // told nothing. `paused` is called while it stands still, but for the time that another processor takes to
  // hear of that: what it has enqueued on the GPU goes on. Then the row does. `more`: it is told to
  // wait when it has made so many calls more, and stopped there.
  struct Pause {
    double after_s = 0;
    std::optional<int> more;
    std::function<void()> paused;
  };
  ExtensionRun time(int first_set, int sets, const std::function<void()>& before_clock, const Pause& pause);
  // One call on a set, and the kernels that it ran on the GPU, by name, the longest time first; none where
  // the child cannot tell (ExtensionGpu::kernels_of). The child says so, and the candidate is in it. Calls
  // take longer from then on.
  ExtensionRun trace(int set, std::vector<ExtensionKernel>* kernels);
  // Within `paused`: how many of the row's calls the child says it has begun, at least 0.
  int begun() const;
  // … and whether it says that all of these have returned, for it waits between two calls.
  bool between_calls() const;
  bool alive() const;
  // What a launch costs in the child's context, as it measured it before the candidate was loaded: contexts
  // differ by chance. 0: it is not known.
  double launch_ns() const;
  // Of all contexts that it opened for that, and of those that open() was told of, the least.
  double least_launch_ns() const;
  // Of the child, as the kernel counts them: before the candidate was loaded, and now (0: not to be known
  // here).
  int threads_before() const;
  int threads() const;
  // Whether the thread that runs calls may use other processors than when it started.
  bool moved() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::device

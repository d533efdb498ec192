// A `plan` candidate on the CPU: runs in a sandboxed child (`warpsmith-twin`), operands in shared memory,
// clock in the parent.
//
//   TwinSession session(options);                 // starts the child, which loads the shared object
//   session.prepare(plan, operands, 8);           // lays out 8 sets of operands; may be called again for
//   another shape fill(session.operand(0, "x"));                // the parent writes inputs and poisons
//   outputs and temporaries TwinRun run = session.run(0, 8);              // the plan once for each of sets
//   0…7; run.elapsed_ns on the parent's clock check(session.operand(0, "out"));
//
// Every operand ends at a guard page and begins behind a canary: a write one element past either end is found
// (at once, or by run()). Inputs lie in a file that the child has open for reading alone: a write to one is
// found at once, and no call of the system makes them writable. When the child dies, run() says why as a
// verdict, and the session is dead. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/process/child.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::device {

struct Operand {
  std::string name;
  std::uint64_t bytes = 0;
  bool writable =
      false;  // inputs are mapped read-only in the child: a write to one is verdict input_modified
  std::uint64_t misalignment = 0;             // bytes past a 256-byte boundary; normally 0
  task::Dtype dtype = task::Dtype::kFloat32;  // asked for where the plan fills it with a number
};

inline constexpr int kMixedOrders = 4;

struct TwinOptions {
  std::filesystem::path binary;  // shared object from toolchain::compile_for_host; empty: no program
  int threads = 1;               // blocks are spread over this many CPU threads
  // Runs the program to find data races: on fibers, in its checked form (toolchain/twin_abi.h), on one CPU
  // thread. Calls take kMixedOrders orders of blocks and threads in turn (src/device/schedule.h), the same
  // in each session. What such a run takes says nothing.
  bool mixed = false;
  std::vector<int> cpus;                    // affinity of the child; empty: ours
  double call_timeout_s = 10;               // of one run() of one set
  std::uint64_t memory_bytes = 2ull << 30;  // of the child, operands included
  process::SandboxLevel sandbox = process::SandboxLevel::kNone;
};

struct TwinRun {
  Verdict verdict =
      Verdict::kOk;  // else: crash, timeout, out_of_bounds, input_modified, out_of_memory, launch_error,
                     // sandbox_violation, unsupported (found at run time: a shuffle in a divergent branch)
  std::string detail;
  std::int64_t elapsed_ns =
      0;  // from the request to the answer, on the parent's steady clock, all sets together
};

class TwinSession {
 public:
  explicit TwinSession(const TwinOptions& options);  // throws Error where the child cannot be started at all
  ~TwinSession();
  TwinSession(TwinSession&&) noexcept;
  TwinSession& operator=(TwinSession&&) noexcept;

  // Operands: every input and output by name; temporaries of `plan` are added by the session. Returns a bad
  // verdict where the plan does not fit the shared object (argument sizes against the kernels' signatures:
  // launch_error) or memory is short.
  TwinRun prepare(const task::ConcretePlan& plan, const std::vector<Operand>& operands, int sets);
  std::span<std::byte> operand(int set,
                               const std::string& name);  // also temporaries; the parent may always write
  // Fills every output and temporary of the sets with a pattern that no right answer has (0xFF: NaN in
  // floats).
  void poison(int first_set, int sets);
  TwinRun run(int first_set, int sets);
  // The same, and from the clock's end to the next run() or prepare() all of the child's threads stand still:
  // one that answers before it is done leaves its outputs as they were then, and none sees what is written
  // for the next run.
  TwinRun run_and_hold(int first_set, int sets);
  bool alive() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A child without a candidate: what the clock holds beside a candidate's work. No candidate can slow it down.
class EmptyTwin {
 public:
  explicit EmptyTwin(const TwinOptions& options);  // `binary` is not loaded; throws Error
  // Nanoseconds of run() with nothing to do: the tenth part of 50 in a row took less. A busy host makes it
  // longer, so of several in a process the least counts.
  double run_ns();
  bool alive() const { return session_.alive(); }  // false: somebody killed the child, and run_ns() threw

 private:
  TwinSession session_;
};

}  // namespace warpsmith::device

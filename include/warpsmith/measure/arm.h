// The two sides of a timing: the baseline in this process, a candidate in its child.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/device/twin_session.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/program.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::measure {

// One side. A call is the task done once, on operands of its own. Right before the timed calls private caches
// are emptied and one more call runs, untimed: it brings code, allocator and branch history to the same state
// whatever ran before, be it nothing or the other arm. (Without it a baseline of 70 µs took 5 to 30 % longer
// beside a candidate, the more so the longer the candidate ran.)
class Arm {
 public:
  using Run = Ran;
  virtual ~Arm() = default;
  // Rows of one measurement follow: what the arm draws for them hangs on `key` and not on what it did before.
  virtual void begin(std::uint64_t /*key*/) {}
  // Outside the clock: new values for calls 0…calls-1 and the untimed one as `key` says, outputs poisoned.
  // run() puts the operands into the shared cache before its clock starts.
  virtual void renew(std::uint64_t key, int calls) = 0;
  virtual Run run(int calls) = 0;
  // Which of its places in memory the last renewal took; one that does not know says 0.
  virtual int place() const { return 0; }
  // After a run, outside the clock: a call whose outputs look as if they had not been written, or nothing.
  // Cheap: a few places of each output.
  virtual std::optional<int> unwritten(int calls) = 0;
  // After a run, outside the clock: whether call `call` gave the right answer. Costs a call of the reference.
  virtual Run inspect(int call) = 0;
  // Outside the clock, on values of its own as `key` says: prepares a row of `calls` calls, makes the first
  // `made` of them, and looks at the results of the others, which nobody may have touched: who does the work
  // of calls that have not been made, many at once, is faster at it than its users could be. Then the others
  // get other values, are made, and one of them is looked at: who has kept answers for them is wrong. An arm
  // that nobody suspects says that all is well.
  virtual Run stop_short(std::uint64_t /*key*/, int /*calls*/, int /*made*/) { return {}; }
};
inline constexpr const char* kWorkedAhead = "writes to results of calls that have not been made yet";

// Seed of the values of call `call` of an arm that was renewed with `key`.
std::uint64_t call_seed(std::uint64_t key, int call);

// How many places in memory an arm's operands have: each renewal takes one of them, by its key. Which
// physical pages an arm has got decides by up to 5 % how fast it is (they collide in a cache, or do not), for
// as long as it keeps them: of one place alone an interval would be narrow and wrong. A candidate has a
// process for each place: where a process has its stack, its libraries and its page tables is worth as much.
inline constexpr int kPlacements = 4;

// The reference's calls, in this process.
class BaselineArm : public Arm {
 public:
  // Operands for up to `most_calls` calls at `dims`. All that is referred to must outlive it.
  BaselineArm(const task::Task& task, const Reference& reference, const ValueSource& source,
              const task::Dims& dims, int most_calls);
  ~BaselineArm() override;
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int calls) override;
  Run inspect(int call) override;  // the reference is right by definition

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A `plan` candidate with its child: checks and timed calls alike go through it.
class CandidateProcess : public Program {
 public:
  // `plan` must have been parsed from the candidate's source. Throws Error where no child can be started.
  CandidateProcess(const task::Task& task, const task::LaunchPlan& plan, const device::TwinOptions& options);

  // Operands for `sets` calls at `dims`: for an arm one more than its timed calls.
  Ran prepare(const task::Dims& dims, int sets) override;
  const task::Dims& dims() const override { return dims_; }
  std::vector<std::span<std::byte>> inputs(int set) override;
  std::vector<std::span<const std::byte>> outputs(int set) override;
  void poison(int sets) override { session_.poison(0, sets); }
  Ran run(int sets) override;
  bool alive() const override { return session_.alive(); }
  device::TwinSession& session() { return session_; }

 private:
  const task::Task& task_;
  const task::LaunchPlan& plan_;
  device::TwinSession session_;
  task::Dims dims_;
};

// Timed calls of a candidate. `bounds`: by output, for inspect(), which compares with the reference in its
// own precision. `handshake_ns`: what a run takes with nothing to do (device::EmptyTwin), taken off its time,
// but never over three quarters of it.
class CandidateArm : public Arm {
 public:
  CandidateArm(CandidateProcess& process, const task::Task& task, const Reference& reference,
               const ValueSource& source, std::vector<double> bounds, double handshake_ns);
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int calls) override;
  Run inspect(int call) override;
  Run stop_short(std::uint64_t key, int calls, int made) override;

 private:
  // Whether a place of a call's outputs satisfies `is`: a few places of each.
  bool any_place(int call, const std::function<bool(std::span<const std::byte>)>& is);

  CandidateProcess& process_;
  const task::Task& task_;
  const Reference& reference_;
  const ValueSource& source_;
  std::vector<double> bounds_;
  std::int64_t handshake_ns_;
  std::uint64_t key_ = 0;  // of the last renewal
};

// Arms of the same program, one of which each renewal takes, by its key. There is at least one; they must
// outlive it.
class AnyOf : public Arm {
 public:
  explicit AnyOf(std::vector<Arm*> arms) : arms_(std::move(arms)), now_(arms_.front()) {}
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override { return now_->run(calls); }
  std::optional<int> unwritten(int calls) override { return now_->unwritten(calls); }
  Run inspect(int call) override { return now_->inspect(call); }
  Run stop_short(std::uint64_t key, int calls, int made) override;

 private:
  Arm* taken(std::uint64_t key) const;

  std::vector<Arm*> arms_;
  Arm* now_;
};

}  // namespace warpsmith::measure

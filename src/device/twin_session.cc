#include "warpsmith/device/twin_session.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "child_end.h"
#include "twin_layout.h"
#include "twin_protocol.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::device {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::byte kCanary{0xA5};
constexpr std::byte kPoison{0xFF};
constexpr double kStartSeconds = 30;
constexpr double kPrepareSeconds = 60;
constexpr double kCheckSeconds = 0.01;  // how often a sleeping wait looks whether the child lives
// Address space that no operand uses: stacks of fibers, guard pages, libraries.
constexpr std::uint64_t kAddressSpaceSlack = 3ull << 30;
// An address this far from the operands is still taken for an index that ran away rather than for a wild
// pointer.
constexpr std::int64_t kFarBytes = 64ll << 30;

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("warpsmith-twin", MFD_CLOEXEC)) {
    if (fd_ < 0) throw system_error("cannot make a memory file", errno);
    resize(kControlBytes + kPlanBytes);
  }
  ~MemoryFile() {
    if (base_ != nullptr) ::munmap(base_, bytes_);
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Drops everything but control block and plan. False where there is no memory for it.
  bool resize(std::uint64_t bytes) {
    if (base_ != nullptr) {
      if (::ftruncate(fd_, kControlBytes + kPlanBytes) != 0)
        throw system_error("cannot cut the memory file", errno);
      ::munmap(base_, bytes_);
      base_ = nullptr;
    }
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return false;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (p == MAP_FAILED) return false;
    base_ = static_cast<std::byte*>(p);
    bytes_ = bytes;
    return true;
  }
  int fd() const { return fd_; }
  std::byte* base() const { return base_; }
  Control& control() const { return *reinterpret_cast<Control*>(base_); }

 private:
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

fs::path twin_program() {
  const fs::path folder = program_folder();
  for (const fs::path& f : {folder, folder.parent_path()})
    if (fs::exists(f / "warpsmith-twin")) return f / "warpsmith-twin";
  throw Error("warpsmith-twin is missing in " + folder.string());
}

std::string signal_words(const Control& c) {
  switch (c.signal) {
    case SIGFPE:
      return "integer division by zero or overflow";
    case SIGILL:
    case SIGTRAP:
      return "__trap() or a failed assert()";
    case SIGABRT:
      return "abort()";
    case SIGBUS:
      return "an access to memory that is not there";
    default:
      return "signal " + std::to_string(c.signal);
  }
}

}  // namespace

struct TwinSession::State {
  TwinOptions options;
  MemoryFile memory;
  std::unique_ptr<process::Child> child;
  Layout layout;
  std::uint32_t sequence = 1;  // 1: the child's first `ready`
  bool alive = false;
  bool prepared = false;
  bool spin_long = true;  // there is a processor for us while the child works
  bool one_processor = false;

  bool answered(const std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds, double spin_s);
  TwinRun dead();
  TwinRun failed(Answer answer);
  TwinRun fault();
  TwinRun request(Command command);
  std::byte* data(const Placed& p, int set) const {
    return memory.base() + p.offset + static_cast<std::uint64_t>(set) * layout.set_bytes;
  }
  void write_canaries();
  TwinRun check_canaries(int first_set, int sets) const;
};

// Waits until `word` is `value`; false where the time is over or the child has ended. Spins first, where there
// is a processor for that.
bool TwinSession::State::answered(const std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds,
                                  double spin_s) {
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Control& control = memory.control();
  while (!one_processor) {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) == value) return true;
      pause_briefly();
    }
    if (passed() > spin_s) break;
    ::sched_yield();  // the child may be waiting for this very processor
  }
  for (;;) {
    control.parent_sleeps.store(1);
    const std::uint32_t seen = word.load();
    if (seen != value) wait_on_word(word, seen, std::min(kCheckSeconds, std::max(seconds - passed(), 0.0)));
    control.parent_sleeps.store(0);
    if (word.load(std::memory_order_acquire) == value) return true;
    // A dying child reports by `response` whatever we wait for.
    if (control.answer.load() == static_cast<std::uint32_t>(Answer::kFault)) return false;
    if (!child->running() || passed() > seconds) return word.load(std::memory_order_acquire) == value;
  }
}

// The child has died or hangs: why, as a verdict.
TwinRun TwinSession::State::dead() {
  alive = false;
  const auto answer = static_cast<Answer>(memory.control().answer.load());
  if (answer == Answer::kFault) return fault();
  if (answer == Answer::kUnsupported || answer == Answer::kLaunchError || answer == Answer::kOutOfMemory)
    return failed(answer);
  const ChildEnd end = end_silent(*child);
  TwinRun run;
  run.verdict = end.verdict;
  run.detail = end.detail;
  return run;
}

TwinRun TwinSession::State::failed(Answer answer) {
  TwinRun run;
  run.verdict = answer == Answer::kUnsupported   ? Verdict::kUnsupported
                : answer == Answer::kOutOfMemory ? Verdict::kOutOfMemory
                                                 : Verdict::kLaunchError;
  const Control& c = memory.control();
  run.detail.assign(c.message, ::strnlen(c.message, kMessageBytes));
  return run;
}

TwinRun TwinSession::State::fault() {
  const Control& c = memory.control();
  TwinRun run;
  run.verdict = Verdict::kCrash;
  run.detail = signal_words(c);
  if (c.signal == SIGSYS) {
    run.verdict = Verdict::kSandboxViolation;
    run.detail = "system call " + std::to_string(c.system_call) + ", which the sandbox forbids";
    return run;
  }
  if (c.signal != SIGSEGV && c.signal != SIGBUS) return run;
  if (c.region == Region::kSharedMemory) {
    run.verdict = Verdict::kOutOfBounds;
    run.detail = "an access beside the shared memory";
    return run;
  }
  if (c.region == Region::kStack) {
    run.detail = "stack overflow";
    return run;
  }
  constexpr int kGeneralProtection = 128;  // SI_KERNEL: no usable address
  if (c.code == kGeneralProtection && c.address == 0) {
    run.detail = "a misaligned vector access, or a wild pointer";
    return run;
  }
  const std::int64_t offset = static_cast<std::int64_t>(c.address) - static_cast<std::int64_t>(c.base);
  const auto size = static_cast<std::int64_t>(layout.file_bytes);
  if (prepared && c.address >= 1 << 20 && offset > -kFarBytes && offset < size + kFarBytes) {
    const PlaceInFile place = describe_offset(layout, offset);
    run.verdict = place.read_only_data ? Verdict::kInputModified : Verdict::kOutOfBounds;
    run.detail = (place.read_only_data ? "a write to an input: " : "an access to ") + place.words;
    return run;
  }
  run.detail = c.address < 1 << 20 ? "a null pointer" : "a wild pointer";
  return run;
}

// A request without a clock.
TwinRun TwinSession::State::request(Command command) {
  Control& c = memory.control();
  c.command = command;
  c.answer.store(0);
  c.request.store(++sequence, std::memory_order_release);
  wake_word(c.request);
  if (!answered(c.response, sequence, kPrepareSeconds, 1e-4)) return dead();
  const auto answer = static_cast<Answer>(c.answer.load());
  if (answer == Answer::kDone) return {};
  if (answer == Answer::kFault) return dead();
  return failed(answer);
}

void TwinSession::State::write_canaries() {
  for (int set = 0; set < layout.sets; ++set)
    for (const Placed& p : layout.operands) {
      std::byte* const pages =
          memory.base() + p.pages_offset + static_cast<std::uint64_t>(set) * layout.set_bytes;
      std::byte* const begin = data(p, set);
      std::fill(pages, begin, kCanary);
      std::fill(begin + p.operand.bytes, pages + p.pages_bytes, kCanary);
    }
}

TwinRun TwinSession::State::check_canaries(int first_set, int sets) const {
  const auto intact = [](const std::byte* begin, const std::byte* end) {
    return std::all_of(begin, end, [](std::byte b) { return b == kCanary; });
  };
  for (int set = first_set; set < first_set + sets; ++set)
    for (const Placed& p : layout.operands) {
      if (!p.operand.writable) continue;
      const std::byte* const pages =
          memory.base() + p.pages_offset + static_cast<std::uint64_t>(set) * layout.set_bytes;
      const std::byte* const begin = data(p, set);
      const bool before = intact(pages, begin);
      if (before && intact(begin + p.operand.bytes, pages + p.pages_bytes)) continue;
      return {Verdict::kOutOfBounds,
              std::string("a write ") + (before ? "behind the end of `" : "before the start of `") +
                  p.operand.name + "`",
              0};
    }
  return {};
}

TwinSession::TwinSession(const TwinOptions& options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = options;
  const std::size_t processors =
      options.cpus.empty() ? process::allowed_cpus().size() : options.cpus.size();
  s.one_processor = processors == 1;
  s.spin_long = static_cast<std::size_t>(options.threads) < processors;
  Control* const control = ::new (s.memory.base()) Control{};
  control->one_processor = s.one_processor ? 1 : 0;
  control->protocol = kProtocol;
  process::ChildSpec spec;
  const fs::path binary = options.binary.empty() ? fs::path() : fs::absolute(options.binary);
  spec.argv = {twin_program().string(), std::to_string(s.memory.fd()), std::to_string(options.threads),
               binary.string()};
  if (options.sandbox == process::SandboxLevel::kNone) spec.argv.push_back("--no-seccomp");
  spec.keep_fds = {s.memory.fd()};
  spec.cpus = options.cpus;
  spec.limits.memory_bytes = options.memory_bytes + kAddressSpaceSlack;
  spec.limits.output_bytes = 4096;
  spec.limits.stack_bytes = 8 << 20;
  spec.limits.file_bytes = 0;
  spec.sandbox.level = options.sandbox;
  if (!binary.empty()) spec.sandbox.read_only = {binary};
  s.child = std::make_unique<process::Child>(spec);
  if (!s.answered(control->ready, 1, kStartSeconds, 0)) {
    s.child->kill();
    const process::ChildResult end = s.child->wait();
    throw Error("cannot run a candidate: " + (end.err.empty() ? end.problem : end.err));
  }
  s.alive = true;
}

TwinSession::~TwinSession() = default;
TwinSession::TwinSession(TwinSession&&) noexcept = default;
TwinSession& TwinSession::operator=(TwinSession&&) noexcept = default;

TwinRun TwinSession::prepare(const task::ConcretePlan& plan, const std::vector<Operand>& operands, int sets) {
  State& s = *state_;
  if (!s.alive) throw Error("prepare() of a session whose child has ended");
  s.prepared = false;
  s.layout = lay_out(plan, operands, sets);
  if (s.layout.data_bytes > s.options.memory_bytes)
    return {Verdict::kOutOfMemory, std::to_string(s.layout.data_bytes >> 20) + " MiB of operands", 0};
  PlanProblem problem;
  const std::vector<std::byte> bytes = encode_plan(plan, s.layout, &problem);
  if (problem.verdict != Verdict::kOk) return {problem.verdict, problem.detail, 0};
  if (!s.memory.resize(s.layout.file_bytes)) return {Verdict::kOutOfMemory, "no memory for the operands", 0};
  std::memcpy(s.memory.base() + kControlBytes, bytes.data(), bytes.size());
  s.memory.control().file_bytes = s.layout.file_bytes;
  s.write_canaries();
  TwinRun run = s.request(Command::kPrepare);
  s.prepared = run.verdict == Verdict::kOk;
  return run;
}

std::span<std::byte> TwinSession::operand(int set, const std::string& name) {
  State& s = *state_;
  const auto found = s.layout.numbers.find(name);
  if (!s.prepared || found == s.layout.numbers.end() || set < 0 || set >= s.layout.sets)
    throw Error("no operand " + name + " in set " + std::to_string(set));
  const Placed& p = s.layout.operands[found->second];
  return {s.data(p, set), p.operand.bytes};
}

void TwinSession::poison(int first_set, int sets) {
  State& s = *state_;
  for (int set = first_set; set < first_set + sets; ++set)
    for (const Placed& p : s.layout.operands)
      if (p.operand.writable) std::memset(s.data(p, set), static_cast<int>(kPoison), p.operand.bytes);
}

TwinRun TwinSession::run(int first_set, int sets) {
  State& s = *state_;
  if (!s.alive || !s.prepared) throw Error("run() of a session that is not prepared");
  if (first_set < 0 || sets < 1 || first_set + sets > s.layout.sets)
    throw Error("run() of sets that were not prepared");
  Control& c = s.memory.control();
  c.command = Command::kRun;
  c.first_set = static_cast<std::uint32_t>(first_set);
  c.sets = static_cast<std::uint32_t>(sets);
  c.answer.store(0);
  c.request.store(++s.sequence, std::memory_order_release);
  wake_word(c.request);
  if (!s.answered(c.ready, s.sequence, kPrepareSeconds, 1e-4)) return s.dead();
  const auto start = Clock::now();
  c.go.store(s.sequence, std::memory_order_release);
  if (s.one_processor) wake_word(c.go);
  const bool done =
      s.answered(c.response, s.sequence, s.options.call_timeout_s * sets, s.spin_long ? 2e-3 : 5e-5);
  const auto end = Clock::now();
  if (!done || static_cast<Answer>(c.answer.load()) != Answer::kDone) return s.dead();
  TwinRun run = s.check_canaries(first_set, sets);
  run.elapsed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
  return run;
}

bool TwinSession::alive() const { return state_->alive; }

namespace {

TwinOptions without_program(TwinOptions options) {
  options.binary.clear();
  return options;
}

}  // namespace

EmptyTwin::EmptyTwin(const TwinOptions& options) : session_(without_program(options)) {
  if (const TwinRun run = session_.prepare({}, {}, 1); run.verdict != Verdict::kOk)
    throw Error("cannot prepare an empty run of the twin: " + run.detail);
}

double EmptyTwin::run_ns() {
  constexpr std::size_t kWarm = 10, kRuns = 50;
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < kWarm + kRuns; ++i) {
    const TwinRun run = session_.run(0, 1);
    if (run.verdict != Verdict::kOk) throw Error("cannot time an empty run of the twin: " + run.detail);
    if (i >= kWarm) times.push_back(run.elapsed_ns);
  }
  const auto tenth = times.begin() + kRuns / 10;
  std::nth_element(times.begin(), tenth, times.end());
  return static_cast<double>(*tenth);
}

}  // namespace warpsmith::device

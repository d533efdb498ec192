#include "warpsmith/device/twin_session.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#include "warpsmith/base/text.h"
#include "warpsmith/process/descriptors.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::device {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::byte kCanary{0xA5};
constexpr std::byte kPoison{0xFF};
constexpr double kStartSeconds = 30;
constexpr double kPrepareSecondsAByte = 30.0 / (1 << 30);  // pages are made; beside what a call may take
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
  // Another descriptor, by which nobody can write, map for writing, cut or punch. (A seal against writing
  // would do as much, from Linux 5.1 on, but holds for us, too, when the file grows.)
  int open_to_read() const {
    const int fd = ::open(("/proc/self/fd/" + std::to_string(fd_)).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw system_error("cannot open a memory file for reading", errno);
    (void)::fchmod(fd_, S_IRUSR);  // nor open it anew for writing
    return fd;
  }
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

std::string signal_words(int signal) {
  switch (signal) {
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
      return "signal " + std::to_string(signal);
  }
}

}  // namespace

struct TwinSession::State {
  TwinOptions options;
  MemoryFile memory, inputs;  // inputs: without control block and plan
  process::Peer peer;         // the child itself, below what its sandbox is made of
  std::unique_ptr<process::Child> child;
  Layout layout;
  std::uint32_t sequence = 1;  // 1: the child's first `ready`
  bool alive = false;
  bool prepared = false;
  bool held = false;
  bool spin_long = true;  // there is a processor for us while the child works
  bool one_processor = false;

  bool answered(const std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds, double spin_s);
  TwinRun dead();
  TwinRun failed(Answer answer);
  TwinRun fault();
  void start();
  void hold();
  void let_go();
  TwinRun request(Command command, double seconds);
  TwinRun run(int first_set, int sets, bool and_hold);
  std::byte* pages(const Placed& p, int set) const {
    const MemoryFile& file = p.operand.writable ? memory : inputs;
    return file.base() + p.pages_offset + static_cast<std::uint64_t>(set) * layout.set_bytes;
  }
  std::byte* data(const Placed& p, int set) const { return pages(p, set) + (p.offset - p.pages_offset); }
  void write_canaries();
  TwinRun check_canaries(int first_set, int sets) const;
};

// Waits until `word` is `value`; false where the time is over or the child has ended. Spins first, where
// there is a processor for that.
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
  char words[kMessageBytes];
  std::memcpy(words, memory.control().message, sizeof words);
  run.detail = printable({words, ::strnlen(words, sizeof words)});
  return run;
}

TwinRun TwinSession::State::fault() {
  const Control& c = memory.control();
  const int signal = c.signal, code = c.code, system_call = c.system_call;
  const std::uint64_t address = c.address, base = c.base;
  const Region region = c.region;
  TwinRun run;
  run.verdict = Verdict::kCrash;
  run.detail = signal_words(signal);
  if (signal == SIGSYS) {
    run.verdict = Verdict::kSandboxViolation;
    run.detail = "system call " + std::to_string(system_call) + ", which the sandbox forbids";
    return run;
  }
  if (signal != SIGSEGV && signal != SIGBUS) return run;
  if (region == Region::kSharedMemory) {
    run.verdict = Verdict::kOutOfBounds;
    run.detail = "an access beside the shared memory";
    return run;
  }
  if (region == Region::kStack) {
    run.detail = "stack overflow";
    return run;
  }
  constexpr int kGeneralProtection = 128;  // SI_KERNEL: no usable address
  if (code == kGeneralProtection && address == 0) {
    run.detail = "a misaligned vector access, or a wild pointer";
    return run;
  }
  const auto offset = static_cast<std::int64_t>(address - base);
  const auto size = static_cast<std::int64_t>(layout.file_bytes);
  if (prepared && address >= 1 << 20 && offset > -kFarBytes && offset < size + kFarBytes) {
    const PlaceInFile place = describe_offset(layout, offset);
    run.verdict = place.read_only_data ? Verdict::kInputModified : Verdict::kOutOfBounds;
    run.detail = (place.read_only_data ? "a write to an input: " : "an access to ") + place.words;
    return run;
  }
  run.detail = address < 1 << 20 ? "a null pointer" : "a wild pointer";
  return run;
}

// All threads of the child stand still when this returns, or within the time that another processor takes to
// hear of it. On our own processor none of them runs before it has been stopped; it does that now, and not
// while the baseline is timed.
void TwinSession::State::hold() {
  peer.stop();
  held = true;
  if (one_processor)
    ::sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void TwinSession::State::let_go() {
  if (held) peer.go_on();
  held = false;
}

// A request without a clock.
TwinRun TwinSession::State::request(Command command, double seconds) {
  let_go();
  Control& c = memory.control();
  c.command = command;
  c.answer.store(0);
  c.request.store(++sequence, std::memory_order_release);
  wake_word(c.request);
  if (!answered(c.response, sequence, seconds, 1e-4)) return dead();
  const auto answer = static_cast<Answer>(c.answer.load());
  if (answer == Answer::kDone) return {};
  if (answer == Answer::kFault) return dead();
  return failed(answer);
}

void TwinSession::State::write_canaries() {
  for (int set = 0; set < layout.sets; ++set)
    for (const Placed& p : layout.operands) {
      std::byte* const first = pages(p, set);
      std::byte* const begin = data(p, set);
      std::fill(first, begin, kCanary);
      std::fill(begin + p.operand.bytes, first + p.pages_bytes, kCanary);
    }
}

TwinRun TwinSession::State::check_canaries(int first_set, int sets) const {
  const auto intact = [](const std::byte* begin, const std::byte* end) {
    return std::all_of(begin, end, [](std::byte b) { return b == kCanary; });
  };
  for (int set = first_set; set < first_set + sets; ++set)
    for (const Placed& p : layout.operands) {
      if (!p.operand.writable) continue;  // it can write to nothing there
      const std::byte* const first = pages(p, set);
      const std::byte* const begin = data(p, set);
      const bool before = intact(first, begin);
      if (before && intact(begin + p.operand.bytes, first + p.pages_bytes)) continue;
      return {Verdict::kOutOfBounds,
              std::string("a write ") + (before ? "behind the end of `" : "before the start of `") +
                  p.operand.name + "`",
              0};
    }
  return {};
}

TwinSession::TwinSession(const TwinOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->start();
}

void TwinSession::State::start() {
  const std::size_t processors = options.cpus.empty() ? process::allowed_cpus().size() : options.cpus.size();
  one_processor = processors == 1;
  spin_long = static_cast<std::size_t>(options.threads) < processors;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("socketpair", errno);
  const process::Fd socket(ends[0]), theirs(ends[1]), inputs_to_read(inputs.open_to_read());
  const int on = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  Control* const control = ::new (memory.base()) Control{};
  control->one_processor = one_processor ? 1 : 0;
  control->inputs_fd = inputs_to_read.get();
  control->socket_fd = theirs.get();
  control->protocol = kProtocol;
  process::ChildSpec spec;
  const fs::path binary = options.binary.empty() ? fs::path() : fs::absolute(options.binary);
  spec.argv = {twin_program().string(), std::to_string(memory.fd()), std::to_string(options.threads),
               binary.string()};
  if (options.mixed) spec.argv.push_back("--mixed");
  if (options.sandbox == process::SandboxLevel::kNone) spec.argv.push_back("--no-seccomp");
  spec.keep_fds = {memory.fd(), inputs_to_read.get(), theirs.get()};
  spec.cpus = options.cpus;
  spec.limits.memory_bytes = options.memory_bytes + kAddressSpaceSlack;
  spec.limits.output_bytes = 4096;
  spec.limits.stack_bytes = 8 << 20;
  spec.limits.file_bytes = 0;
  spec.sandbox.level = options.sandbox;
  if (!binary.empty()) spec.sandbox.read_only = {binary};
  child = std::make_unique<process::Child>(spec);
  if (!answered(control->ready, 1, kStartSeconds, 0)) {
    child->kill();
    const process::ChildResult end = child->wait();
    throw Error("cannot run a candidate: " + (end.err.empty() ? end.problem : printable(trim(end.err))));
  }
  peer = process::Peer(process::sender_of(socket.get()));
  alive = true;
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
  if (!s.memory.resize(s.layout.file_bytes) || !s.inputs.resize(s.layout.file_bytes))
    return {Verdict::kOutOfMemory, "no memory for the operands", 0};
  std::memcpy(s.memory.base() + kControlBytes, bytes.data(), bytes.size());
  s.memory.control().file_bytes = s.layout.file_bytes;
  s.write_canaries();
  TwinRun run =
      s.request(Command::kPrepare,
                s.options.call_timeout_s + kPrepareSecondsAByte * static_cast<double>(s.layout.data_bytes));
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

TwinRun TwinSession::run(int first_set, int sets) { return state_->run(first_set, sets, false); }
TwinRun TwinSession::run_and_hold(int first_set, int sets) { return state_->run(first_set, sets, true); }

TwinRun TwinSession::State::run(int first_set, int sets, bool and_hold) {
  if (!alive || !prepared) throw Error("run() of a session that is not prepared");
  if (first_set < 0 || sets < 1 || first_set + sets > layout.sets)
    throw Error("run() of sets that were not prepared");
  let_go();
  Control& c = memory.control();
  c.command = Command::kRun;
  c.first_set = static_cast<std::uint32_t>(first_set);
  c.sets = static_cast<std::uint32_t>(sets);
  c.answer.store(0);
  c.request.store(++sequence, std::memory_order_release);
  wake_word(c.request);
  if (!answered(c.ready, sequence, options.call_timeout_s, 1e-4)) return dead();
  const auto start = Clock::now();
  c.go.store(sequence, std::memory_order_release);
  if (one_processor) wake_word(c.go);
  const bool done = answered(c.response, sequence, options.call_timeout_s * sets, spin_long ? 2e-3 : 5e-5);
  const auto end = Clock::now();
  if (!done || static_cast<Answer>(c.answer.load()) != Answer::kDone) return dead();
  if (and_hold) hold();
  TwinRun run = check_canaries(first_set, sets);
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

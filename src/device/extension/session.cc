#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include "../child_end.h"
#include "../gpu/outcome.h"
#include "../twin_protocol.h"
#include "child_spec.h"
#include "protocol.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/base/text.h"
#include "warpsmith/device/extension_session.h"
#include "warpsmith/process/descriptors.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::device {

namespace {

static_assert(kMostExtensionOffsets == kExtensionMostOffsets);

namespace ws = ::warpsmith_extension;
using Clock = std::chrono::steady_clock;

constexpr double kGpuStartSeconds = 60;    // a busy driver takes long to open a GPU
constexpr double kAnyContext = -1;         // ExtensionGpu::open()
constexpr double kPrepareSeconds = 60;     // also of loading: constructors, and CUDA's own start
constexpr double kCuptiSeconds = 3;        // its start, within the traced call
constexpr double kLivenessSeconds = 0.01;  // how often a wait looks whether the child lives
constexpr double kSpinSeconds = 100e-3;  // longer than a timed row: being woken takes longer than it scatters
constexpr int kMostPatience = 4;

// The control block. Sealed: the child cannot cut it under our feet.
class ControlBlock {
 public:
  ControlBlock() : fd_(::memfd_create("warpsmith-extension", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (fd_.get() < 0) throw system_error("cannot make a memory file", errno);
    if (::ftruncate(fd_.get(), static_cast<off_t>(kExtensionControlBytes)) != 0)
      throw system_error("cannot size a memory file", errno);
    (void)::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    void* const memory =
        ::mmap(nullptr, kExtensionControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) throw system_error("cannot map a memory file", errno);
    control_ = ::new (memory) ExtensionControl{};
  }
  ~ControlBlock() { ::munmap(control_, kExtensionControlBytes); }
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;
  int fd() const { return fd_.get(); }
  ExtensionControl* operator->() const { return control_; }

 private:
  process::Fd fd_;
  ExtensionControl* control_;
};

int count_threads(pid_t pid) {
  if (pid <= 0) return 0;
  std::error_code error;
  fs::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", error);
  if (error) return 0;
  int count = 0;
  for (; tasks != fs::directory_iterator(); tasks.increment(error)) {
    if (error) return 0;
    ++count;
  }
  return count;
}

// Of a process's first thread, as the kernel has it; nothing where that cannot be known.
std::optional<cpu_set_t> processors_of(pid_t pid) {
  cpu_set_t set;
  if (pid <= 0 || ::sched_getaffinity(pid, sizeof set, &set) != 0) return std::nullopt;
  return set;
}

ws::Scalar scalar_of(task::Dtype dtype) {
  switch (dtype) {
    case task::Dtype::kFloat64:
      return ws::Scalar::kDouble;
    case task::Dtype::kFloat32:
      return ws::Scalar::kFloat;
    case task::Dtype::kFloat16:
      return ws::Scalar::kHalf;
    case task::Dtype::kBfloat16:
      return ws::Scalar::kBFloat16;
    case task::Dtype::kFloat8E4m3:
      return ws::Scalar::kFloat8_e4m3fn;
    case task::Dtype::kFloat8E5m2:
      return ws::Scalar::kFloat8_e5m2;
    case task::Dtype::kInt64:
      return ws::Scalar::kLong;
    case task::Dtype::kInt32:
      return ws::Scalar::kInt;
    case task::Dtype::kInt16:
      return ws::Scalar::kShort;
    case task::Dtype::kInt8:
      return ws::Scalar::kChar;
    case task::Dtype::kUint8:
      return ws::Scalar::kByte;
    case task::Dtype::kBool:
      return ws::Scalar::kBool;
  }
  return ws::Scalar::kFloat;
}

// "NANOSECONDS NAME\n" …, of whatever else nothing.
std::vector<ExtensionKernel> parse_kernels(std::string_view text) {
  std::vector<ExtensionKernel> kernels;
  for (const std::string& line : split_lines(text)) {
    std::int64_t ns = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), ns);
    const auto digits = static_cast<std::size_t>(rest - line.data());
    if (error != std::errc() || ns <= 0 || digits + 1 >= line.size() || line[digits] != ' ') continue;
    kernels.push_back({printable(std::string_view(line).substr(digits + 1)), ns});
  }
  return kernels;
}

bool write_tensors(const std::vector<ExtensionTensor>& tensors, WireTensor* wire, std::int32_t* count) {
  if (tensors.size() > static_cast<std::size_t>(ws::kMostTensors)) return false;
  *count = static_cast<std::int32_t>(tensors.size());
  for (const ExtensionTensor& t : tensors) {
    if (t.shape.size() > static_cast<std::size_t>(ws::kMostDims)) return false;
    *wire = WireTensor{t.bytes, {}, static_cast<std::int32_t>(t.shape.size()), scalar_of(t.dtype)};
    std::copy(t.shape.begin(), t.shape.end(), wire->sizes);
    ++wire;
  }
  return true;
}

}  // namespace

struct ExtensionSession::State {
  ExtensionOptions options;
  ControlBlock control;
  TemporaryFolder scratch{"extension"};
  process::Fd socket;
  process::Peer peer;  // the child itself, below what its sandbox is made of
  std::unique_ptr<process::Child> child;
  std::uint32_t sequence = 1;  // 1: the child's first response
  int threads_before = 0, sets = 0;
  std::optional<cpu_set_t> processors_before;
  double launch_ns = 0, least_launch_ns = 0;
  bool alive = false, loaded = false, asked = false;  // asked: to open a context
  std::uint32_t row_first = 0;                        // of the row that time() has begun last, as first_set
  bool spin = false;                                  // as `control` has it, which the child can write to
  bool stopped = false;                               // it stands still (SIGSTOP) …
  void stop() {                                       // … while nobody calls it
    peer.stop();
    stopped = true;
  }
  void go_on() {
    if (stopped) peer.go_on();
    stopped = false;
  }

  void start();
  void begin_open();
  void open();
  bool answered(const std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds);
  ExtensionRun dead();
  ExtensionRun result();
  ExtensionRun request(ExtensionCommand command, double seconds);
  ExtensionRun time(int first_set, int calls, const std::function<void()>& before_clock, const Pause* pause,
                    int idle = 0);
  int begun() const {
    const std::uint32_t begun = control->current.load(std::memory_order_seq_cst) + 1 - row_first;
    return static_cast<int>(std::min<std::uint32_t>(begun, std::numeric_limits<int>::max()));
  }
  bool pause_row(const Pause& pause, int calls, double patience_s);
  void post(std::atomic<std::uint32_t>& word) {
    word.store(sequence, std::memory_order_release);
    go_on();
    wake_word(word);
  }
  bool called = false;
  double patience(int calls) {
    const double more = called ? 0 : options.first_call_s;
    called = true;
    return options.call_timeout_s * std::min(calls, kMostPatience) + more;
  }
};

void ExtensionSession::State::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("socketpair", errno);
  socket.reset(ends[0]);
  const process::Fd theirs(ends[1]);
  const int on = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  control->protocol = kExtensionProtocol;
  spin = options.cpu < 0 && process::allowed_cpus().size() > 2;
  control->spin = spin ? 1 : 0;
  control->arena_bytes = options.arena_bytes;
  child = std::make_unique<process::Child>(
      extension_child_spec(options, scratch.path(), control.fd(), theirs.get()));
}

void ExtensionSession::State::begin_open() {
  if (!asked) post(control->request);
  asked = true;
}

void ExtensionSession::State::open() {
  begin_open();
  const bool has_context = answered(control->has_context, 1, kGpuStartSeconds);
  if (has_context) {
    peer = process::Peer(process::sender_of(socket.get()));
    if (options.cpu >= 0) process::keep_threads_on(peer.pid(), options.cpu);
    post(control->alone);
  }
  if (!has_context || !answered(control->response, 1, kGpuStartSeconds)) {
    child->kill();
    const process::ChildResult end = child->wait();
    throw Error(std::string("cannot run candidates of tier ") +
                (options.interpreter ? "`python`: " : "`extension`: ") +
                (!end.err.empty()       ? end.err
                 : !end.problem.empty() ? end.problem
                                        : std::string("their process does not start")));
  }
  threads_before = count_threads(peer.pid());
  processors_before = processors_of(peer.pid());
  launch_ns = control->launch_ns;
  least_launch_ns = std::max(0., control->least_launch_ns);
  alive = true;
}

// Waits until `word` is `value`; false where the time is over or the child has ended.
bool ExtensionSession::State::answered(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                                       double seconds) {
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (;;) {
    const bool spins = spin && passed() < std::min(kSpinSeconds, seconds);
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) == value) return true;
      if (spins) pause_briefly();
    }
    // A child that cannot go on says so by its response, whatever we wait for.
    if (&word != &control->response && control->response.load(std::memory_order_acquire) == sequence)
      return false;
    if (spins) continue;
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    if (seen != value) wait_on_word(word, seen, std::clamp(seconds - passed(), 0.0, kLivenessSeconds));
    if (!child->running() || passed() > seconds) return word.load(std::memory_order_acquire) == value;
  }
}

// No answer: why, as a verdict.
ExtensionRun ExtensionSession::State::dead() {
  alive = false;
  const ChildEnd end = end_silent(*child);
  ExtensionRun run;
  run.verdict = end.verdict;
  run.detail = end.detail;
  return run;
}

ExtensionRun ExtensionSession::State::result() {
  stop();
  ExtensionRun run;
  char words[kExtensionMessageBytes];
  std::memcpy(words, control->message, sizeof words);
  run.detail = printable({words, ::strnlen(words, sizeof words)});
  switch (control->answer) {
    case ExtensionAnswer::kDone:
      run.detail.clear();
      return run;
    case ExtensionAnswer::kOutOfMemory:
      run.verdict = Verdict::kOutOfMemory;
      return run;
    case ExtensionAnswer::kWrongResult:
      run.verdict = Verdict::kWrongOutput;
      return run;
    case ExtensionAnswer::kCudaError:
      run.verdict = verdict_of(control->error);
      break;
    default:
      run.verdict = Verdict::kLaunchError;
      return run;
  }
  // An error on the device may have taken its context: nothing works in this child any more.
  alive = false;
  child->kill();
  return run;
}

ExtensionRun ExtensionSession::State::request(ExtensionCommand command, double seconds) {
  if (!alive) throw Error("a request to a child that has ended");
  control->command = command;
  ++sequence;
  post(control->request);
  return answered(control->response, sequence, seconds) ? result() : dead();
}

ExtensionSession::ExtensionSession(const ExtensionOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->start();
  state_->control->least_launch_ns = kAnyContext;
  if (!options.waits) state_->open();
}
void ExtensionSession::begin_open() { state_->begin_open(); }
void ExtensionSession::wait_for_context() {
  if (state_->asked) (void)state_->answered(state_->control->has_context, 1, kGpuStartSeconds);
}
void ExtensionSession::open(double call_timeout_s, double least_launch_ns) {
  State& s = *state_;
  s.options.call_timeout_s = call_timeout_s;
  s.control->least_launch_ns = least_launch_ns;
  if (!s.alive) s.open();
}
void ExtensionSession::wait_until_loaded(double timeout_s) {
  (void)state_->answered(state_->control->loaded, 1, timeout_s);
}
ExtensionSession::~ExtensionSession() = default;
ExtensionSession::ExtensionSession(ExtensionSession&&) noexcept = default;
ExtensionSession& ExtensionSession::operator=(ExtensionSession&&) noexcept = default;

ExtensionRun ExtensionSession::load() {
  state_->called = false;
  return state_->request(ExtensionCommand::kLoad, kPrepareSeconds);
}

ExtensionRun ExtensionSession::prepare(const ExtensionLayout& layout, const GpuShare& share) {
  State& s = *state_;
  if (!s.alive) throw Error("prepare() of a session whose child has ended");
  if (!write_tensors(layout.inputs, s.control->inputs, &s.control->input_count) ||
      !write_tensors(layout.outputs, s.control->outputs, &s.control->output_count) ||
      layout.scalars.size() > static_cast<std::size_t>(ws::kMostTensors))
    return {Verdict::kUnsupported, "tensors of at most 8 dimensions, and at most 64 of them", 0, 0};
  if (layout.offsets.size() > kExtensionMostOffsets ||
      layout.offsets.size() !=
          static_cast<std::size_t>(layout.sets) * (layout.inputs.size() + layout.outputs.size()))
    throw Error("a layout with another number of offsets than tensors");
  s.control->scalar_count = static_cast<std::int32_t>(layout.scalars.size());
  for (std::size_t i = 0; i < layout.scalars.size(); ++i)
    s.control->scalars[i] = {layout.scalars[i].is_float ? 1 : 0, layout.scalars[i].value,
                             static_cast<std::int64_t>(layout.scalars[i].value)};
  s.control->offset_count = static_cast<std::uint32_t>(layout.offsets.size());
  std::copy(layout.offsets.begin(), layout.offsets.end(), s.control->offsets);
  s.control->share_bytes = share.bytes;
  s.control->by_handle = share.fd < 0 ? 1 : 0;
  std::memcpy(s.control->handle, share.handle, sizeof share.handle);
  if (share.fd >= 0) process::send_descriptor(s.socket.get(), share.fd);
  s.sets = layout.sets;
  // At each shape Triton may look for its fastest configuration anew, and torch for its libraries'.
  if (s.options.interpreter) s.called = false;
  return s.request(ExtensionCommand::kPrepare, kPrepareSeconds);
}

ExtensionRun ExtensionSession::forget() {
  state_->sets = 0;
  return state_->request(ExtensionCommand::kForget, kPrepareSeconds);
}

ExtensionRun ExtensionSession::run(int first_set, int sets) {
  State& s = *state_;
  if (first_set < 0 || sets < 1 || first_set + sets > s.sets)
    throw Error("run() of sets that were not prepared");
  s.control->first_set = static_cast<std::uint32_t>(first_set);
  s.control->sets = static_cast<std::uint32_t>(sets);
  return s.request(ExtensionCommand::kRun, s.patience(sets));
}

ExtensionRun ExtensionSession::trace(int set, std::vector<ExtensionKernel>* kernels) {
  State& s = *state_;
  if (set < 0 || set >= s.sets) throw Error("trace() of a set that was not prepared");
  s.control->first_set = static_cast<std::uint32_t>(set);
  const ExtensionRun run = s.request(ExtensionCommand::kTrace, s.options.call_timeout_s + kCuptiSeconds);
  std::string text(kExtensionKernelBytes, '\0');
  std::memcpy(text.data(), s.control->kernels, text.size());
  *kernels = run.verdict == Verdict::kOk ? parse_kernels(text.c_str()) : std::vector<ExtensionKernel>();
  return run;
}

// False where the child should have waited, and has not.
bool ExtensionSession::State::pause_row(const Pause& pause, int calls, double patience_s) {
  if (answered(control->response, sequence, pause.after_s)) return true;
  constexpr int kOnTheWay = 2;  // calls that it may have begun before it sees the word
  const int more = pause.more.value_or(0);
  if (pause.more) control->stop.store(static_cast<std::uint32_t>(more) + 1, std::memory_order_seq_cst);
  // Asked behind the word, for it may make many calls while we are held up here.
  const bool must_wait =
      pause.more && static_cast<std::int64_t>(begun()) + kOnTheWay + more < static_cast<std::int64_t>(calls);
  const bool waits = pause.more && answered(control->waits, sequence, patience_s);
  if (waits || !pause.more) {
    stop();
    pause.paused();
  }
  control->stop.store(0, std::memory_order_release);
  go_on();
  wake_word(control->stop);
  return waits || !must_wait;
}

ExtensionRun ExtensionSession::State::time(int first_set, int calls,
                                           const std::function<void()>& before_clock, const Pause* pause,
                                           int idle) {
  if (!alive) throw Error("time() of a session whose child has ended");
  row_first = static_cast<std::uint32_t>(first_set);
  control->first_set = row_first;
  control->sets = static_cast<std::uint32_t>(calls);
  control->command = ExtensionCommand::kTime;
  control->idle = static_cast<std::uint32_t>(idle);
  control->stop.store(0, std::memory_order_release);
  ++sequence;
  post(control->request);
  const auto ended = [&] {
    return control->response.load(std::memory_order_acquire) == sequence &&
                   control->answer != ExtensionAnswer::kDone
               ? result()
               : dead();
  };
  if (!answered(control->ready, sequence, patience(1))) return ended();
  stop();
  before_clock();
  const auto arm = Clock::now();  // before it goes on: it may do so before we are told
  post(control->arm);
  if (!answered(control->armed, sequence, kPrepareSeconds)) return ended();
  const auto start = Clock::now();
  control->go.store(sequence, std::memory_order_release);
  if (!spin) wake_word(control->go);
  const double all_s = patience(calls);
  const bool paused = pause == nullptr || pause_row(*pause, calls, all_s);
  const bool done = answered(control->response, sequence, all_s);
  const auto end = Clock::now();
  if (!done) return dead();
  ExtensionRun run = result();
  run.arm_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(start - arm).count();
  run.elapsed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
  run.event_ns = control->event_ns;
  run.drain_ns = std::clamp<std::int64_t>(control->drain_ns, 0, run.elapsed_ns);
  run.did_not_wait = !paused;
  return run;
}

ExtensionRun ExtensionSession::time(int first_set, int sets, const std::function<void()>& before_clock) {
  return state_->time(first_set, sets, before_clock, nullptr);
}

ExtensionRun ExtensionSession::time_idle(int first_set, int sets, int times,
                                         const std::function<void()>& before_clock) {
  return state_->time(first_set, sets, before_clock, nullptr, std::max(1, times));
}

ExtensionRun ExtensionSession::time(int first_set, int sets, const std::function<void()>& before_clock,
                                    const Pause& pause) {
  return state_->time(first_set, sets, before_clock, &pause);
}

int ExtensionSession::begun() const { return state_->begun(); }
bool ExtensionSession::between_calls() const {
  return state_->control->waits.load(std::memory_order_acquire) == state_->sequence;
}
double ExtensionSession::launch_ns() const { return state_->launch_ns; }
double ExtensionSession::least_launch_ns() const { return state_->least_launch_ns; }
bool ExtensionSession::alive() const { return state_->alive; }
int ExtensionSession::threads_before() const { return state_->threads_before; }
int ExtensionSession::threads() const { return count_threads(state_->peer.pid()); }
bool ExtensionSession::moved() const {
  const std::optional<cpu_set_t>& before = state_->processors_before;
  const std::optional<cpu_set_t> now = processors_of(state_->peer.pid());
  return before && now && !CPU_EQUAL(&*before, &*now);
}

}  // namespace warpsmith::device

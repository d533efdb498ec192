#include "warpsmith/device/twin_child.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "launcher.h"
#include "twin_protocol.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/process/child.h"

namespace warpsmith::device {

namespace {

// Bounds that the loops over blocks and threads are compiled for (wstw_launch).
constexpr std::uint32_t kMaxGridX = (1u << 20) - 1;
constexpr std::uint64_t kMaxBlocks = 1ull << 31;
constexpr std::size_t kSignalStackBytes = 64 << 10;
// Of a cooperative launch: each block has its own shared memory, each thread is a fiber.
constexpr std::uint64_t kGridBlocks = 256, kGridThreads = 16384;

// For the signal handler and fail(), which have no other way to know.
Control* control = nullptr;
Launcher* launcher = nullptr;
std::uint64_t main_stack_low = 0, main_stack_high = 0;

void write_message(const char* text) {
  std::size_t i = 0;
  for (; text[i] != 0 && i + 1 < kMessageBytes; ++i) control->message[i] = text[i];
  control->message[i] = 0;
}

void answer(Answer a) {
  control->answer.store(static_cast<std::uint32_t>(a), std::memory_order_release);
  control->response.store(control->request.load(), std::memory_order_release);
  wake_word(control->response);
}

[[noreturn]] void die_with(Answer a) {
  answer(a);
  ::_exit(9);
}

void fail(int failure, const char* message) {
  write_message(message);
  die_with(failure == kWstwUnsupported ? Answer::kUnsupported : Answer::kLaunchError);
}

void on_signal(int number, siginfo_t* info, void*) {
  // Only the first of several threads reports.
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  if (reported.test_and_set())
    for (;;) ::pause();
  control->signal = number;
  control->code = info->si_code;
  control->address = reinterpret_cast<std::uint64_t>(info->si_addr);
  control->system_call = number == SIGSYS ? info->si_syscall : -1;
  control->region = Region::kUnknown;
  const std::uint64_t a = control->address;
  if (launcher != nullptr && launcher->in_shared_guard(a))
    control->region = Region::kSharedMemory;
  else if ((launcher != nullptr && launcher->in_stack_guard(a)) ||
           (a >= main_stack_low && a < main_stack_high))
    control->region = Region::kStack;
  die_with(Answer::kFault);
}

// A stack of its own for signals: the usual cause is that the other is full.
void use_signal_stack() {
  stack_t stack{};
  stack.ss_size = kSignalStackBytes;
  stack.ss_sp =
      ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::sigaltstack(&stack, nullptr);
}

void catch_signals() {
  use_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP})
    ::sigaction(number, &action, nullptr);
  // The pages below this thread's stack, which it may grow into no further.
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    ::pthread_attr_getstack(&attributes, &low, &bytes);
    ::pthread_attr_destroy(&attributes);
    main_stack_high = reinterpret_cast<std::uint64_t>(low) + bytes;
    main_stack_low = reinterpret_cast<std::uint64_t>(low) - (64ull << 20);
  }
}

// A step with everything looked up, but for the addresses of a set.
struct Step {
  WireStep wire{};
  Launch launch;
  std::vector<WireArg> args;
  char* symbol = nullptr;
};

class Server {
 public:
  Server(const TwinChildOptions& options, const wstw_module& module)
      : options_(options),
        inputs_fd_(control->inputs_fd),
        module_(module),
        launcher_(options.threads, use_signal_stack) {
    launcher = &launcher_;
  }

  [[noreturn]] void serve() {
    std::uint32_t seen = 0;
    for (;;) {
      const int most_spins = control->one_processor != 0 ? 0 : 2000;
      for (int spins = 0; control->request.load(std::memory_order_acquire) == seen; ++spins)
        if (spins < most_spins)
          pause_briefly();
        else
          wait_on_word(control->request, seen, 60);
      seen = control->request.load(std::memory_order_acquire);
      if (control->command == Command::kPrepare)
        answer(prepare() ? Answer::kDone : failed_);
      else
        run(seen);
    }
  }

 private:
  bool refuse(Answer a, const std::string& message) {
    failed_ = a;
    write_message(message.c_str());
    return false;
  }

  bool prepare() {
    steps_.clear();
    if (base_ != nullptr) ::munmap(base_, mapped_);
    mapped_ = control->file_bytes;
    void* p = ::mmap(nullptr, mapped_, PROT_NONE, MAP_SHARED | MAP_NORESERVE, options_.memory_fd, 0);
    if (p == MAP_FAILED) {
      base_ = nullptr;
      return refuse(Answer::kOutOfMemory, "no address space for the operands");
    }
    base_ = static_cast<char*>(p);
    control->base = reinterpret_cast<std::uint64_t>(base_);
    if (::mprotect(base_ + kControlBytes, kPlanBytes, PROT_READ) != 0)
      return refuse(Answer::kBroken, "cannot read the plan");
    const char* at = base_ + kControlBytes;
    std::memcpy(&plan_, at, sizeof plan_);
    at += sizeof plan_;
    operands_.resize(plan_.operand_count);
    std::memcpy(operands_.data(), at, operands_.size() * sizeof(WireOperand));
    at += operands_.size() * sizeof(WireOperand);
    std::vector<WireStep> steps(plan_.step_count);
    std::memcpy(steps.data(), at, steps.size() * sizeof(WireStep));
    at += steps.size() * sizeof(WireStep);
    std::vector<WireArg> args(plan_.arg_count);
    std::memcpy(args.data(), at, args.size() * sizeof(WireArg));
    at += args.size() * sizeof(WireArg);
    const std::string names(at, plan_.name_bytes);
    if (!map_operands()) return false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      control->step = static_cast<std::uint32_t>(i);
      Step s;
      s.wire = steps[i];
      s.args.assign(args.begin() + s.wire.first_arg, args.begin() + s.wire.first_arg + s.wire.arg_count);
      const std::string name = names.substr(s.wire.name, s.wire.name_bytes);
      if (s.wire.kind == WireStepKind::kLaunch && !resolve_launch(s, name)) return false;
      if (s.wire.kind == WireStepKind::kConst && !resolve_symbol(s, name)) return false;
      steps_.push_back(std::move(s));
    }
    return true;
  }

  // Gives the operands' pages their physical places in random order. Handed out in the order of their
  // addresses they lie side by side in one process and scattered in another, by what was freed before;
  // neighbours take fewer entries of the address translation buffers, and short programs differ by 2 to 4 %
  // from process to process.
  void place_operands() {
    std::vector<const char*> pages;
    for (std::uint32_t set = 0; set < plan_.sets; ++set)
      for (const WireOperand& o : operands_)
        for (std::uint64_t i = 0; i < o.pages_bytes; i += kPageBytes)
          pages.push_back(base_ + o.pages_offset + set * plan_.set_bytes + i);
    static Random random(random_key({static_cast<std::uint64_t>(::getpid()), name_key("pages")}));
    for (std::size_t left = pages.size(); left > 1; --left)
      std::swap(pages[left - 1], pages[random.below(left)]);
    for (const char* page : pages) static_cast<void>(*static_cast<const volatile char*>(page));
  }

  // An input comes from a file that this process cannot write, whatever rights it asks for.
  bool map_operand(const WireOperand& o, std::uint64_t offset) const {
    if (o.writable) return ::mprotect(base_ + offset, o.pages_bytes, PROT_READ | PROT_WRITE) == 0;
    return ::mmap(base_ + offset, o.pages_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                  inputs_fd_, static_cast<off_t>(offset)) != MAP_FAILED;
  }

  bool map_operands() {
    for (std::uint32_t set = 0; set < plan_.sets; ++set)
      for (const WireOperand& o : operands_)
        if (!map_operand(o, o.pages_offset + set * plan_.set_bytes))
          return refuse(Answer::kOutOfMemory, "no memory for the operands");
    place_operands();
    for (std::uint32_t set = 0; set < plan_.sets; ++set)
      for (const WireOperand& o : operands_) {
        char* const pages = base_ + o.pages_offset + set * plan_.set_bytes;
#ifdef MADV_POPULATE_READ
        // Page faults now, not in the first timed call. Where the kernel is too old, touching does it.
        if (::madvise(pages, o.pages_bytes, o.writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
          continue;
#endif
        for (std::uint64_t i = 0; i < o.pages_bytes; i += kPageBytes) {
          auto* const byte = reinterpret_cast<std::atomic<char>*>(pages + i);
          if (o.writable)
            byte->fetch_or(0);
          else
            static_cast<void>(byte->load());
        }
      }
    return true;
  }

  bool resolve_launch(Step& s, const std::string& name) {
    const wstw_kernel* kernel = nullptr;
    for (unsigned k = 0; k < module_.kernel_count; ++k)
      if (name == module_.kernels[k].name) kernel = &module_.kernels[k];
    if (kernel == nullptr) return refuse(Answer::kLaunchError, "no kernel `" + name + "` in the program");
    if (s.args.size() != kernel->param_count)
      return refuse(Answer::kLaunchError, "`" + name + "` takes " + std::to_string(kernel->param_count) +
                                              " arguments, the plan has " + std::to_string(s.args.size()));
    for (std::size_t i = 0; i < s.args.size(); ++i)
      if (!argument_fits(s.args[i], kernel->params[i]))
        return refuse(Answer::kLaunchError, "argument " + std::to_string(i + 1) + " of `" + name +
                                                "`, for parameter `" + parameter_name(*kernel, i) +
                                                "`: " + describe(s.args[i]) + " where the kernel takes " +
                                                describe(kernel->params[i]));
    s.launch.kernel = kernel;
    s.launch.grid = {s.wire.grid[0], s.wire.grid[1], s.wire.grid[2]};
    s.launch.block = {s.wire.block[0], s.wire.block[1], s.wire.block[2]};
    s.launch.dynamic_bytes = static_cast<std::uint32_t>(s.wire.dynamic_bytes);
    s.launch.cooperative = s.wire.cooperative != 0;
    return check_sizes(s, name);
  }

  bool check_sizes(const Step& s, const std::string& name) {
    const auto& g = s.launch.grid;
    const auto& b = s.launch.block;
    if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0)
      return refuse(Answer::kLaunchError, "`" + name + "`: a grid or block of size 0");
    if (b.x > 1024 || b.y > 1024 || b.z > 64 || std::uint64_t{b.x} * b.y * b.z > 1024)
      return refuse(Answer::kLaunchError, "`" + name + "`: more than 1,024 threads a block");
    if (g.y > 65535 || g.z > 65535)
      return refuse(Answer::kLaunchError, "`" + name + "`: a grid over 65,535 in y or z");
    if (g.x > kMaxGridX || std::uint64_t{g.x} * b.x > (1u << 28) || std::uint64_t{g.y} * b.y > (1u << 26))
      return refuse(
          Answer::kUnsupported,
          "`" + name +
              "`: the CPU twin runs grids of up to 2^20 blocks and 2^28 threads in x, 2^26 threads in y");
    if (s.launch.blocks() > kMaxBlocks)
      return refuse(Answer::kUnsupported, "`" + name + "`: the CPU twin runs grids of up to 2^31 blocks");
    if (s.wire.dynamic_bytes > 227 * 1024)
      return refuse(Answer::kLaunchError, "`" + name + "`: over 227 KB of dynamic shared memory");
    if (s.launch.is_one_grid() &&
        (s.launch.blocks() > kGridBlocks || s.launch.blocks() * s.launch.threads() > kGridThreads))
      return refuse(Answer::kLaunchError, "`" + name +
                                              "`: too many blocks in a cooperative launch (up to 256 blocks "
                                              "and 16,384 threads can be alive together)");
    return true;
  }

  static bool argument_fits(const WireArg& a, const wstw_param& p) {
    if (a.bytes != p.bytes) return false;
    switch (a.kind) {
      case WireArgKind::kPointer:
        return p.kind == kWstwPointer;
      case WireArgKind::kInteger:
        return p.kind == kWstwInteger;
      case WireArgKind::kFloat:
        return p.kind == kWstwFloat;
    }
    return false;
  }
  static std::string describe(const WireArg& a) {
    if (a.kind == WireArgKind::kPointer) return "a pointer";
    return (a.kind == WireArgKind::kInteger ? "an integer of " : "a float of ") +
           std::to_string(8 * a.bytes) + " bits";
  }
  static std::string describe(const wstw_param& p) {
    if (p.kind == kWstwPointer) return "a pointer";
    return (p.kind == kWstwInteger ? "an integer of "
            : p.kind == kWstwFloat ? "a float of "
                                   : "a struct of ") +
           std::to_string(8 * p.bytes) + " bits";
  }
  static std::string parameter_name(const wstw_kernel& kernel, std::size_t index) {
    std::string_view names = kernel.param_names;
    for (; index > 0 && names.find(',') != std::string_view::npos; --index)
      names.remove_prefix(names.find(',') + 1);
    return std::string(names.substr(0, names.find(',')));
  }

  bool resolve_symbol(Step& s, const std::string& name) {
    for (unsigned k = 0; k < module_.symbol_count; ++k) {
      if (name != module_.symbols[k].name) continue;
      if (operands_[s.wire.source].bytes > module_.symbols[k].bytes)
        return refuse(Answer::kLaunchError,
                      "`const " + name + "`: " + std::to_string(operands_[s.wire.source].bytes) +
                          " bytes do not fit into " + std::to_string(module_.symbols[k].bytes));
      s.symbol = static_cast<char*>(module_.symbols[k].address);
      return true;
    }
    return refuse(Answer::kLaunchError, "no symbol `" + name + "` in the program");
  }

  void run(std::uint32_t sequence) {
    const std::uint32_t first = control->first_set, last = first + control->sets;
    control->ready.store(sequence, std::memory_order_seq_cst);
    if (control->parent_sleeps.load() != 0) wake_word(control->ready);
    std::uint32_t seen = 0;
    for (int spins = 0; (seen = control->go.load(std::memory_order_acquire)) != sequence; ++spins)
      if (control->one_processor != 0)
        wait_on_word(control->go, seen, 60);
      else if (spins % 64 != 63)
        pause_briefly();
      else
        ::sched_yield();  // with as many threads as processors the parent may be waiting for this one
    for (std::uint32_t set = first; set < last; ++set, ++mixed_calls_) run_set(set);
    control->answer.store(static_cast<std::uint32_t>(Answer::kDone), std::memory_order_relaxed);
    control->response.store(sequence, std::memory_order_seq_cst);
    if (control->parent_sleeps.load() != 0) wake_word(control->response);
  }

  void run_set(std::uint32_t set) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      control->step = static_cast<std::uint32_t>(i);
      switch (s.wire.kind) {
        case WireStepKind::kLaunch:
          launch(s, set);
          break;
        case WireStepKind::kFill:
          fill(s, set);
          break;
        case WireStepKind::kCopy:
          std::memcpy(address(s.wire.destination, set), address(s.wire.source, set),
                      std::min(operands_[s.wire.destination].bytes, operands_[s.wire.source].bytes));
          break;
        case WireStepKind::kConst:
          std::memcpy(s.symbol, address(s.wire.source, set), operands_[s.wire.source].bytes);
          break;
      }
    }
  }

  char* address(std::uint64_t operand, std::uint32_t set) const {
    return base_ + operands_[operand].offset + set * plan_.set_bytes;
  }

  void launch(Step& s, std::uint32_t set) {
    std::uint64_t values[64];
    void* pointers[64];
    for (std::size_t i = 0; i < s.args.size(); ++i) {
      values[i] = s.args[i].kind == WireArgKind::kPointer
                      ? reinterpret_cast<std::uint64_t>(address(s.args[i].value, set))
                      : s.args[i].value;
      pointers[i] = &values[i];
    }
    s.launch.args = pointers;
    if (!options_.mixed) return launcher_.run(s.launch);
    static constexpr Order kOrders[] = {Order::kReverse, Order::kLateUpdates, Order::kLateWarps,
                                        Order::kRandom};
    launcher_.run_mixed(s.launch, kOrders[mixed_calls_ % 4],
                        random_key({name_key("order"), mixed_calls_, ++mixed_launches_}));
  }

  void fill(const Step& s, std::uint32_t set) const {
    char* const to = address(s.wire.destination, set);
    const std::uint64_t bytes = operands_[s.wire.destination].bytes, step = s.wire.pattern_bytes;
    const auto* const pattern = reinterpret_cast<const unsigned char*>(&s.wire.pattern);
    if (std::all_of(pattern, pattern + step, [&](unsigned char c) { return c == pattern[0]; })) {
      std::memset(to, pattern[0], bytes);
      return;
    }
    for (std::uint64_t i = 0; i + step <= bytes; i += step) std::memcpy(to + i, pattern, step);
  }

  TwinChildOptions options_;
  int inputs_fd_;
  const wstw_module& module_;
  Launcher launcher_;
  Answer failed_ = Answer::kBroken;
  std::uint64_t mixed_calls_ = 0, mixed_launches_ = 0;
  char* base_ = nullptr;
  std::uint64_t mapped_ = 0;
  WirePlan plan_{};
  std::vector<WireOperand> operands_;
  std::vector<Step> steps_;
};

const wstw_module& load_module(const TwinChildOptions& options) {
  static constexpr wstw_module kNothing{};
  if (options.binary.empty()) return kNothing;
  void* const object = ::dlopen(options.binary.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Error(std::string("cannot load the candidate: ") + ::dlerror());
  const char* const table = options.mixed ? "wstw_checked_table" : "wstw_module_table";
  const auto* module = static_cast<const wstw_module*>(::dlsym(object, table));
  if (module == nullptr || module->abi != kWstwAbi)
    throw Error("the candidate was compiled by another version of the toolchain");
  if (module->access != nullptr) *module->access = before_access;
  return *module;
}

// Before there is foreign code in this process.
void say_who_we_are() {
  (void)::send(control->socket_fd, "t", 1, MSG_NOSIGNAL);
  ::close(control->socket_fd);
}

}  // namespace

int run_twin_child(const TwinChildOptions& options) {
  void* p = ::mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, options.memory_fd, 0);
  if (p == MAP_FAILED) throw system_error("cannot map the control block", errno);
  control = static_cast<Control*>(p);
  if (control->protocol != kProtocol) throw Error("started by another version of Warpsmith");
  say_who_we_are();
  catch_signals();
  set_fail_handler(fail);
  const wstw_module& module = load_module(options);
  auto* const server = new Server(options, module);  // its threads run until the process ends
  if (options.seccomp) process::enter_seccomp(false);
  control->ready.store(1, std::memory_order_release);
  wake_word(control->ready);
  server->serve();
}

}  // namespace warpsmith::device

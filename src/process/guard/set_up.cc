#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../seccomp_filter.h"
#include "options.h"

namespace warpsmith::guard {

namespace {

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool limit(__rlimit_resource_t resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit now{};
  getrlimit(resource, &now);
  if (now.rlim_max != RLIM_INFINITY && hard > now.rlim_max) hard = now.rlim_max;
  const rlimit wanted{soft < hard ? soft : hard, hard};
  return setrlimit(resource, &wanted) == 0;
}

// Root without privileges: what Landlock and file modes say holds for it too.
void drop_capabilities() {
  for (int capability = 0; capability < 64; ++capability)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno == EINVAL) break;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  syscall(__NR_capset, &header, none);
}

// The kernel's own call: libc's refuses the two real-time signals that it keeps for itself, and what
// started us may ignore any of them.
void reset_signals() {
  const struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
  } by_default{SIG_DFL, 0, nullptr, 0};
  for (int number = 1; number <= 64; ++number)
    syscall(SYS_rt_sigaction, number, &by_default, nullptr, sizeof by_default.mask);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// "3,5"
bool read_cpus(const char* value, std::vector<int>& cpus) {
  for (const char* at = value; *at != '\0'; at += *at == ',' ? 1 : 0) {
    char* end = nullptr;
    cpus.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    if (end == at) return false;
    at = end;
  }
  return true;
}

bool take_option(const std::string& key, const char* value, Options& options) {
  const auto number = [&] { return std::strtoull(value, nullptr, 10); };
  if (key == "status")
    options.status = std::atoi(value);
  else if (key == "lifeline")
    options.lifeline = std::atoi(value);
  else if (key == "wall")
    options.wall_s = std::strtod(value, nullptr);
  else if (key == "tree_memory")
    options.tree_memory = number();
  else if (key == "processes")
    options.processes = static_cast<unsigned>(number());
  else if (key == "scratch")
    options.scratch.emplace_back(value);
  else if (key == "scratch_bytes")
    options.scratch_bytes = number();
  else if (key == "scratch_files")
    options.scratch_files = number();
  else if (key == "bwrap")
    options.bwrap = true;
  else if (key == "folder")
    options.folder = value;
  else if (key == "cpus")
    return read_cpus(value, options.cpus);
  else if (key == "cpu")
    options.cpu_s = number();
  else if (key == "as")
    options.address_space = number();
  else if (key == "fsize")
    options.file_bytes = number();
  else if (key == "stack")
    options.stack_bytes = number();
  else if (key == "open_files")
    options.open_files = number();
  else if (key == "landlock")
    options.landlock = true;
  else if (key == "ro")
    options.read_only.emplace_back(value);
  else if (key == "rw")
    options.read_write.emplace_back(value);
  else if (key == "device")
    options.devices.emplace_back(value);
  else if (key == "filter")
    options.filter = value;
  else
    return false;
  return true;
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options) {
  int i = 2;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const char* equals = std::strchr(argv[i], '=');
    if (equals == nullptr ||
        !take_option({argv[i], static_cast<std::size_t>(equals - argv[i])}, equals + 1, options))
      return false;
  }
  if (i + 1 >= argc) return false;
  options.program = argv + i + 1;
  return true;
}

std::string set_up(const Options& o) {
  reset_signals();
  if (!o.folder.empty() && chdir(o.folder.c_str()) != 0) return failed(("cannot enter " + o.folder).c_str());
  if (!o.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : o.cpus)
      if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return failed("cannot set the CPUs");
  }
  // Where memory runs out, the kernel takes this process before the controller.
  if (const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] const ssize_t n = write(fd, "500", 3);
    close(fd);
  }
  limit(RLIMIT_CORE, 0, 0);
  // SIGXCPU at the limit tells why; a second later SIGKILL for those that catch it.
  if (o.cpu_s > 0 && !limit(RLIMIT_CPU, o.cpu_s, o.cpu_s + 1)) return failed("RLIMIT_CPU");
  if (o.file_bytes > 0 && !limit(RLIMIT_FSIZE, o.file_bytes, o.file_bytes)) return failed("RLIMIT_FSIZE");
  if (o.stack_bytes > 0 && !limit(RLIMIT_STACK, o.stack_bytes, o.stack_bytes)) return failed("RLIMIT_STACK");
  if (o.open_files > 0 && !limit(RLIMIT_NOFILE, o.open_files, o.open_files)) return failed("RLIMIT_NOFILE");
  if (o.landlock) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs");
    if (std::string problem = enter_landlock(o); !problem.empty()) return problem;
    if (geteuid() == 0) drop_capabilities();
  }
  if (!o.filter.empty()) {
    const int error = process::install_filter(process::program_filter(o.filter == "program_and_processes"));
    if (error != 0) return std::string("seccomp: ") + std::strerror(error);
  }
  // Last: from here on this process can hardly allocate.
  if (o.address_space > 0 && !limit(RLIMIT_AS, o.address_space, o.address_space)) return failed("RLIMIT_AS");
  return {};
}

}  // namespace warpsmith::guard

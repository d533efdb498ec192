#include "warpsmith/process/machine.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "landlock_abi.h"
#include "sandbox.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"

extern char** environ;

namespace warpsmith::process {

namespace {

std::string first_line(const std::string& text) { return trim(text.substr(0, text.find('\n'))); }

std::optional<std::string> output_of(std::vector<std::string> argv) {
  ChildSpec spec;
  spec.argv = std::move(argv);
  spec.limits.wall_s = 10;
  const ChildResult result = run_child(spec);
  if (result.ending != Ending::kExited || result.exit_code != 0) return std::nullopt;
  return result.out;
}

// A number in a small file; nothing where it is missing or says "max".
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// The folder of this process's control group below `mount`, from lines such as "0::/a/b" or "9:memory:/a/b".
std::optional<std::string> control_group(std::string_view controller) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    for (const std::string& name : split(parts[1], ','))
      if (name == controller) return line.substr(parts[0].size() + parts[1].size() + 2);
  }
  return std::nullopt;
}

// What the control groups leave; each folder up to the root may set a limit.
std::optional<std::uint64_t> left_in_control_group() {
  std::optional<std::uint64_t> least;
  const auto walk = [&](const fs::path& mount, const std::string& group, const char* limit,
                        const char* used) {
    for (fs::path at = fs::path(group).relative_path();; at = at.parent_path()) {
      const auto most = number_in(mount / at / limit), now = number_in(mount / at / used);
      if (most && now && *most < (1ull << 60)) {
        const std::uint64_t left = *most > *now ? *most - *now : 0;
        if (!least || left < *least) least = left;
      }
      if (at.empty()) return;
    }
  };
  if (const auto group = control_group("")) {
    walk("/sys/fs/cgroup", *group, "memory.max", "memory.current");
    walk("/sys/fs/cgroup/unified", *group, "memory.max", "memory.current");
  }
  if (const auto group = control_group("memory"))
    walk("/sys/fs/cgroup/memory", *group, "memory.limit_in_bytes", "memory.usage_in_bytes");
  return least;
}

std::uint64_t meminfo(std::string_view key) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  return 0;
}

Fact sandbox_fact() {
  std::string reasons;
  for (const SandboxLevel level : {SandboxLevel::kBubblewrap, SandboxLevel::kLandlock}) {
    const SandboxTrial trial = try_sandbox(level);
    if (trial.works)
      return {"sandbox", std::string(to_string(level)), true,
              reasons.empty() ? "" : "candidates are held by seccomp, rlimits and Landlock; " + reasons};
    reasons += (reasons.empty() ? "no " : "; no ") + std::string(to_string(level)) + ": " + trial.problem;
  }
  return {"sandbox", "none", false, "candidates are refused unless --unsandboxed is given; " + reasons};
}

Fact program_fact(const std::string& name, const std::vector<std::string>& argv, const std::string& missing,
                  bool needed) {
  if (const auto text = output_of(argv)) return {name, first_line(*text), true, ""};
  return {name, "not found", !needed, missing};
}

Fact gpu_fact(const Gpu& gpu) {
  std::string value = gpu_type_of(gpu.name) + ": " + gpu.name;
  if (gpu.memory_bytes > 0) value += ", " + format_size(gpu.memory_bytes);
  if (gpu.major > 0)
    value += ", capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + " (" +
             compile_target(gpu.major, gpu.minor) + ")";
  value += ", driver " + gpu.driver + ", " + gpu.uuid;
  return {"gpu", value, true,
          gpu.mig
              ? "it is in MIG mode: no job of ours gets it, as a slice of it is no " + gpu_type_of(gpu.name)
              : ""};
}

std::vector<Fact> gpu_facts() {
  std::string problem;
  const std::vector<Gpu> gpus = nvidia_gpus(&problem);
  if (gpus.empty())
    return {{"gpu", "none", true,
             (problem.empty() ? "" : problem + "; ") + "candidates run on the CPU twin (device kind `cpu`)"}};
  std::vector<Fact> facts;
  for (const Gpu& gpu : gpus) facts.push_back(gpu_fact(gpu));
  return facts;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::map<std::string, std::string> our_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (const auto equals = text.find('='); equals != std::string::npos)
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    for (const char* key : {"model name", "Model", "cpu model"})
      if (line.starts_with(key) && line.find(':') != std::string::npos)
        return trim(line.substr(line.find(':') + 1));
  return "unknown";
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  // Machines with more than 1024 CPUs need a larger set.
  for (std::size_t count = CPU_SETSIZE; count <= 1 << 16; count *= 4) {
    cpu_set_t* set = CPU_ALLOC(count);
    const std::size_t size = CPU_ALLOC_SIZE(count);
    const bool fits = ::sched_getaffinity(0, size, set) == 0;
    if (fits)
      for (std::size_t cpu = 0; cpu < count; ++cpu)
        if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(static_cast<int>(cpu));
    CPU_FREE(set);
    if (fits) return cpus;
  }
  return {0};
}

std::vector<int> cpus_near(int cpu) {
  const std::vector<int> all = allowed_cpus();
  const fs::path system = "/sys/devices/system";
  std::error_code error;
  fs::path node;
  for (fs::directory_iterator it(system / "cpu" / ("cpu" + std::to_string(cpu)), error), end;
       !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with("node")) node = system / "node" / it->path().filename();
  std::vector<int> near;
  for (const int one : all)
    if (!node.empty() && fs::exists(node / ("cpu" + std::to_string(one)), error)) near.push_back(one);
  return near.empty() ? all : near;
}

void keep_threads_on(int pid, int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (cpu < 0 || cpu >= CPU_SETSIZE) throw Error("no processor " + std::to_string(cpu));
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  std::set<std::string> kept;
  for (bool more = true; more;) {  // one that was not kept yet may have started another
    more = false;
    std::error_code error;
    for (fs::directory_iterator it("/proc/" + std::to_string(pid) + "/task", error), end; !error && it != end;
         it.increment(error)) {
      const std::string thread = it->path().filename().string();
      if (!kept.insert(thread).second) continue;
      more = true;
      if (::sched_setaffinity(std::stoi(thread), sizeof one, &one) != 0 && errno != ESRCH)
        throw system_error("cannot keep thread " + thread + " on processor " + std::to_string(cpu), errno);
    }
    if (kept.empty()) throw Error("process " + std::to_string(pid) + " has no threads to be seen");
  }
}

std::uint64_t available_memory() {
  const std::uint64_t kernel = meminfo("MemAvailable:");
  const auto group = left_in_control_group();
  return group ? std::min(kernel, *group) : kernel;
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  const bool got = socket >= 0 &&
                   ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                   ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (socket >= 0) ::close(socket);
  if (!got) throw Error("there is no free port", kExitEnvironment);
  return ntohs(address.sin_port);
}

int landlock_version() { return landlock_abi(); }

bool process_lives(int pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

std::vector<Fact> machine_facts(const fs::path& folder) {
  std::vector<Fact> facts;
  const std::size_t cores = std::thread::hardware_concurrency(), allowed = allowed_cpus().size();
  facts.push_back({"cpu", cpu_model(), true, ""});
  facts.push_back(
      {"cores",
       std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + ", " + std::to_string(allowed) + " may be used", true,
       allowed < cores ? "the affinity mask leaves fewer than there are" : ""});
  const std::uint64_t memory = available_memory();
  facts.push_back({"memory", format_size(memory) + " available of " + format_size(meminfo("MemTotal:")),
                   memory >= 4ull << 30, memory >= 4ull << 30 ? "" : "the quickstart wants 4 GiB"});
  utsname system{};
  ::uname(&system);
  facts.push_back(
      {"kernel", std::string(system.sysname) + " " + system.release + " " + system.machine, true, ""});

  facts.push_back(sandbox_fact());
  const fs::path bwrap = bwrap_program();
  facts.push_back(
      bwrap.empty() ? Fact{"bubblewrap", "not found", false, "install bubblewrap for the best sandbox"}
                    : program_fact("bubblewrap", {bwrap.string(), "--version"}, "bwrap does not run", true));
  const bool seccomp = try_sandbox(SandboxLevel::kLandlock).works;
  facts.push_back({"seccomp", seccomp ? "works" : "does not work", seccomp,
                   seccomp ? "" : "the kernel was built without it, or a container forbids it"});
  facts.push_back(
      landlock_version() > 0
          ? Fact{"landlock", "version " + std::to_string(landlock_version()), true, ""}
          : Fact{"landlock", "none", available_sandbox() == SandboxLevel::kBubblewrap,
                 "without bubblewrap, files are guarded by their modes alone, and candidates with host code "
                 "are refused (needs Linux 5.13)"});

  // A folder that the first run will make lies on the disk of the one that holds it.
  struct statvfs disk {};
  std::filesystem::path there = folder;
  while (::statvfs(there.c_str(), &disk) != 0 && errno == ENOENT && there.has_relative_path())
    there = there.parent_path();
  if (::statvfs(there.c_str(), &disk) == 0) {
    const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
    const std::string whose = there == folder ? "" : ", where " + folder.string() + " will be made";
    facts.push_back({"disk", format_size(free) + " free in " + there.string() + whose, free >= 2ull << 30,
                     free >= 2ull << 30 ? "" : "a run wants 2 GiB and more"});
  } else {
    facts.push_back(
        {"disk", system_error(folder.string(), errno).what(), false, "name a folder that exists"});
  }

  facts.push_back(program_fact("compiler g++", {"g++", "--version"},
                               "the CPU twin compiles candidates with it: install g++", true));
  facts.push_back(program_fact("compiler clang", {"clang", "--version"}, "not needed", false));
  facts.push_back(
      program_fact("compiler nvcc", {"nvcc", "--version"}, "needed for the `extension` tier alone", false));
  facts.push_back(program_fact("python3", {"python3", "--version"},
                               "needed for the `python` tier and to install torch", false));
  for (Fact& fact : gpu_facts()) facts.push_back(std::move(fact));
  facts.push_back(program_fact("slurm", {"sbatch", "--version"}, "shards run on this machine", false));
  return facts;
}

}  // namespace warpsmith::process

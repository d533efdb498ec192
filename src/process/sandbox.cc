#include "sandbox.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "landlock_abi.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/process/program_path.h"

namespace warpsmith::process {

namespace {

// What programs need to start. Those that are missing are left out.
constexpr const char* kSystemPaths[] = {"/usr", "/lib",  "/lib64",     "/lib32",
                                        "/bin", "/sbin", "/nix/store", "/gnu/store"};
constexpr const char* kSystemFiles[] = {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                                        "/etc/alternatives", "/etc/localtime"};
// Of the GPU. The numbered nodes are found in /dev.
constexpr const char* kGpuNodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                     "/dev/nvidia-modeset"};
constexpr const char* kGpuPaths[] = {"/proc/driver/nvidia",        "/proc/devices",       "/proc/modules",
                                     "/proc/sys/vm/mmap_min_addr", "/sys/devices/system", "/sys/bus/pci",
                                     "/sys/module/nvidia",         "/usr/local/nvidia"};
constexpr const char* kPciFunctions = "/sys/bus/pci/devices";
constexpr const char* kNvidiasNumber = "0x10de";  // as a PCI vendor
constexpr const char* kTmpfsBytes = "67108864";

fs::path resolve_program(const ChildSpec& spec, const std::map<std::string, std::string>& environment) {
  if (spec.argv.empty() || spec.argv[0].empty()) throw Error("no program to start", kExitUsage);
  const std::string& name = spec.argv[0];
  if (name.find('/') == std::string::npos) {
    const auto path = environment.find("PATH");
    fs::path found = find_program(name, path == environment.end() ? kUsualFolders : path->second);
    if (found.empty()) throw Error("program not found: " + name);
    return found;
  }
  const fs::path program = fs::absolute(spec.folder.empty() ? fs::path(name) : spec.folder / name);
  if (!fs::exists(program)) throw Error("program not found: " + program.string());
  if (!runnable(program)) throw Error("not a program that may be run: " + program.string());
  return program;
}

std::string number(double value) { return std::to_string(static_cast<std::uint64_t>(std::ceil(value))); }

// Options of the step that becomes the program.
void append_set_up(std::vector<std::string>& out, const ChildSpec& spec) {
  const Limits& limits = spec.limits;
  if (limits.cpu_s > 0) out.push_back("cpu=" + number(limits.cpu_s));
  if (limits.memory_bytes > 0) out.push_back("as=" + std::to_string(limits.memory_bytes));
  if (limits.file_bytes > 0) out.push_back("fsize=" + std::to_string(limits.file_bytes));
  if (limits.open_files > 0) out.push_back("open_files=" + std::to_string(limits.open_files));
  if (limits.stack_bytes > 0) out.push_back("stack=" + std::to_string(limits.stack_bytes));
  if (!spec.cpus.empty()) {
    std::string list;
    for (const int cpu : spec.cpus) list += (list.empty() ? "" : ",") + std::to_string(cpu);
    out.push_back("cpus=" + list);
  }
  if (spec.sandbox.level != SandboxLevel::kNone && spec.sandbox.seccomp_before_exec)
    out.push_back(spec.sandbox.allow_processes ? "filter=program_and_processes" : "filter=program");
}

std::vector<fs::path> gpu_nodes() {
  std::vector<fs::path> nodes;
  std::error_code error;
  for (const char* path : kGpuNodes)
    if (fs::exists(path, error)) nodes.emplace_back(path);
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 6 && name.starts_with("nvidia") &&
        name.find_first_not_of("0123456789", 6) == std::string::npos)
      nodes.push_back(entry.path());
  }
  return nodes;
}

// Which node of memory each GPU is near: files apart from the others of a PCI function, which can be its
// memory.
std::vector<fs::path> gpu_nodes_of_memory() {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kPciFunctions, error)) {
    std::ifstream vendor(entry.path() / "vendor");
    std::string number;
    if (vendor >> number && number == kNvidiasNumber) files.push_back(entry.path() / "numa_node");
  }
  return files;
}

struct Bind {
  fs::path path;
  bool writable;
};

void append_bwrap(std::vector<std::string>& out, const ChildSpec& spec, const fs::path& bwrap,
                  const fs::path& program) {
  const auto add = [&](std::initializer_list<std::string> words) { out.insert(out.end(), words); };
  add({bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"});
  std::error_code error;
  for (const char* path : kSystemPaths) {
    if (fs::is_symlink(path, error))
      add({"--symlink", fs::read_symlink(path, error), path});
    else if (fs::exists(path, error))
      add({"--ro-bind", path, path});
  }
  for (const char* path : kSystemFiles)
    if (fs::exists(path, error)) add({"--ro-bind", path, path});
  // Folders in memory have a size: a child that fills them gets "no space left", the machine keeps its
  // memory.
  add({"--proc", "/proc", "--dev", "/dev", "--size", kTmpfsBytes, "--tmpfs", "/dev/shm"});
  if (spec.sandbox.gpu) {
    for (const fs::path& node : gpu_nodes()) add({"--dev-bind", node, node});
    // Of /proc it sees the driver's part as every process does.
    for (const char* path : kGpuPaths)
      if (std::string_view(path).starts_with("/sys/") && fs::exists(path, error))
        add({"--ro-bind", path, path});
  }
  add({"--remount-ro", "/dev"});
  add({"--size", kTmpfsBytes, "--tmpfs", "/tmp"});
  std::vector<Bind> binds;
  for (const fs::path& path : spec.sandbox.read_only)
    binds.push_back({fs::absolute(path).lexically_normal(), false});
  binds.push_back({program, false});
  for (const fs::path& path : spec.sandbox.read_write)
    binds.push_back({fs::absolute(path).lexically_normal(), true});
  // Outer folders first, so that what lies in them can have other rights.
  std::stable_sort(binds.begin(), binds.end(), [](const Bind& a, const Bind& b) {
    return std::distance(a.path.begin(), a.path.end()) < std::distance(b.path.begin(), b.path.end());
  });
  for (const Bind& bind : binds)
    if (fs::exists(bind.path, error)) add({bind.writable ? "--bind" : "--ro-bind", bind.path, bind.path});
  add({"--ro-bind", guard_program(), "/.warpsmith-guard", "--remount-ro", "/"});
  if (!spec.folder.empty())
    add({"--chdir", fs::absolute(spec.folder).lexically_normal()});
  else
    add({"--chdir", "/tmp"});
  add({"--", "/.warpsmith-guard", "enter"});
}

void append_landlock(std::vector<std::string>& out, const ChildSpec& spec, const fs::path& program) {
  out.emplace_back("landlock=1");
  for (const char* path : kSystemPaths) out.push_back(std::string("ro=") + path);
  for (const char* path : kSystemFiles) out.push_back(std::string("ro=") + path);
  for (const fs::path& path : spec.sandbox.read_only) out.push_back("ro=" + fs::absolute(path).string());
  if (spec.sandbox.gpu) {
    for (const char* path : kGpuPaths) out.push_back(std::string("ro=") + path);
    for (const fs::path& file : gpu_nodes_of_memory()) out.push_back("ro=" + file.string());
    for (const fs::path& node : gpu_nodes()) out.push_back("device=" + node.string());
    // The driver names its threads, and does not start where it cannot. Below its own /proc a process has
    // power over itself alone; without bubblewrap's, too, over how soon the kernel takes it when memory is
    // short, as far as the user has it.
    out.emplace_back("rw=/proc/self/task");
  }
  out.push_back("ro=" + program.string());
  for (const fs::path& path : spec.sandbox.read_write) out.push_back("rw=" + fs::absolute(path).string());
}

}  // namespace

std::string_view to_string(SandboxLevel level) {
  static constexpr std::string_view kNames[] = {"none", "landlock", "bubblewrap"};
  return kNames[static_cast<int>(level)];
}

const fs::path& guard_program() {
  static const fs::path kPath = [] {
    const fs::path guard = beside_programs("warpsmith-guard");
    if (!guard.empty() && runnable(guard)) return guard;
    throw Error("warpsmith-guard is missing beside this program, in " + program_folder().string());
  }();
  return kPath;
}

fs::path bwrap_program() { return find_program("bwrap", "/usr/bin:/usr/local/bin:" + search_path()); }

std::map<std::string, std::string> child_environment(const ChildSpec& spec) {
  if (spec.environment) return *spec.environment;
  std::map<std::string, std::string> out = our_environment();
  if (spec.sandbox.level == SandboxLevel::kNone) return out;
  std::erase_if(out, [](const auto& variable) {
    const std::string& name = variable.first;
    return name != "PATH" && name != "LANG" && !name.starts_with("LC_") && name != "TZ" &&
           name != "LD_LIBRARY_PATH" && !name.starts_with("OMP_");
  });
  return out;
}

std::vector<std::string> guard_command(const ChildSpec& spec, int status_fd, int lifeline_fd) {
  const fs::path program = resolve_program(spec, child_environment(spec));
  const std::string status = "status=" + std::to_string(status_fd);
  std::vector<std::string> out = {guard_program(), "watch", status,
                                  "lifeline=" + std::to_string(lifeline_fd)};
  if (spec.limits.wall_s > 0) out.push_back("wall=" + std::to_string(spec.limits.wall_s));
  if (spec.limits.tree_memory_bytes > 0)
    out.push_back("tree_memory=" + std::to_string(spec.limits.tree_memory_bytes));
  if (spec.limits.processes > 0) out.push_back("processes=" + std::to_string(spec.limits.processes));
  if (spec.limits.scratch_bytes > 0)
    out.push_back("scratch_bytes=" + std::to_string(spec.limits.scratch_bytes));
  if (spec.limits.scratch_files > 0)
    out.push_back("scratch_files=" + std::to_string(spec.limits.scratch_files));
  if (spec.limits.scratch_bytes > 0 || spec.limits.scratch_files > 0)
    for (const fs::path& path : spec.sandbox.read_write)
      out.push_back("scratch=" + fs::absolute(path).string());
  if (spec.sandbox.level == SandboxLevel::kBubblewrap) {
    const fs::path bwrap = bwrap_program();
    if (bwrap.empty()) throw Error("bubblewrap (bwrap) is not installed");
    out.insert(out.end(), {"bwrap=1", "--"});
    append_bwrap(out, spec, bwrap, program);
    out.push_back(status);
  } else {
    if (!spec.folder.empty()) out.push_back("folder=" + fs::absolute(spec.folder).string());
    if (spec.sandbox.level == SandboxLevel::kLandlock) append_landlock(out, spec, program);
  }
  append_set_up(out, spec);
  out.insert(out.end(), {"--", program});
  out.insert(out.end(), spec.argv.begin() + 1, spec.argv.end());
  return out;
}

SandboxTrial try_sandbox(SandboxLevel level) {
  ChildSpec spec;
  std::error_code error;
  spec.limits.wall_s = 20;
  spec.sandbox.level = level;
  spec.sandbox.seccomp_before_exec = true;
  try {
    spec.argv = {guard_program(), "probe"};
  } catch (const Error& e) {
    return {false, e.what()};
  }
  const ChildResult result = run_child(spec);
  if (result.ending == Ending::kExited && result.exit_code == 0) return {true, ""};
  if (!result.problem.empty()) return {false, result.problem};
  return {false, trim(result.err).empty() ? "the probe ended badly" : trim(result.err)};
}

SandboxLevel available_sandbox() {
  static const SandboxLevel kLevel = [] {
    const char* wanted = std::getenv("WARPSMITH_SANDBOX");
    const std::string most = wanted == nullptr ? "bubblewrap" : wanted;
    if (most != "bubblewrap" && most != "landlock" && most != "none")
      throw Error("WARPSMITH_SANDBOX is `" + most + "`; none, landlock or bubblewrap was expected",
                  kExitUsage);
    if (most == "bubblewrap" && try_sandbox(SandboxLevel::kBubblewrap).works)
      return SandboxLevel::kBubblewrap;
    if (most != "none" && try_sandbox(SandboxLevel::kLandlock).works) return SandboxLevel::kLandlock;
    return SandboxLevel::kNone;
  }();
  return kLevel;
}

bool keeps_signals_inside(SandboxLevel level) {
  constexpr int kScopesSignals = 6;  // of Landlock: what guard/landlock.cc asks for from there on
  return level == SandboxLevel::kBubblewrap ||
         (level == SandboxLevel::kLandlock && landlock_abi() >= kScopesSignals);
}

bool guards_files(SandboxLevel level) {
  return level == SandboxLevel::kBubblewrap || (level == SandboxLevel::kLandlock && landlock_abi() > 0);
}

}  // namespace warpsmith::process

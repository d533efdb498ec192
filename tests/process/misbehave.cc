// misbehave MODE [ARGUMENT]: one kind of trouble a MODE, for the tests of the process module. Exit code 0: it
// got away with it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/process/child.h"

namespace {

using Mode = std::function<int(const std::string&)>;

int errno_or_zero(bool done) { return done ? 0 : errno; }

[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth) {
  volatile char frame[4096];
  frame[depth % sizeof frame] = static_cast<char>(depth);
  return recurse(depth + 1) + static_cast<std::uint64_t>(frame[0]);
}

// Forks without end, in every process. The first one stops after a while and prints how many of its own it
// got.
int fork_bomb(const std::string&) {
  int born = 0;
  for (int i = 0; i < 1000; ++i) {
    const pid_t pid = fork();
    while (pid == 0) fork();
    if (pid > 0) ++born;
  }
  std::printf("%d\n", born);
  return 0;
}

int divide(const std::string& by) {
  volatile int numerator = 7, denominator = std::atoi(by.c_str());
  return numerator / denominator;
}

int write_file(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  return errno_or_zero(fd >= 0 && write(fd, "x", 1) == 1);
}

int read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  char byte = 0;
  return errno_or_zero(fd >= 0 && read(fd, &byte, 1) >= 0);
}

// Leaves a grandchild in a session of its own behind, and writes its number to the file.
int escape(const std::string& pid_file) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      if (FILE* out = std::fopen(pid_file.c_str(), "w"); out != nullptr) {
        std::fprintf(out, "%d\n", static_cast<int>(getpid()));
        std::fclose(out);
      }
      for (;;) pause();
    }
    _exit(0);
  }
  wait(nullptr);
  for (int i = 0; i < 2000 && access(pid_file.c_str(), F_OK) != 0; ++i) usleep(1000);
  return 0;
}

int allocate(const std::string& bytes) {
  const std::size_t size = std::strtoull(bytes.c_str(), nullptr, 10);
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno;
  for (std::size_t i = 0; i < size; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return 0;
}

int flood(const std::string&) {
  const std::string line(1 << 16, 'x');
  for (;;)
    if (write(1, line.data(), line.size()) < 0) return errno;
}

int fill_file(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  const std::string block(1 << 20, 'x');
  for (;;)
    if (write(fd, block.data(), block.size()) <= 0) return errno;
}

constexpr int kSomeFiles = 200;

// A file of a MiB, open; -1 where it cannot be had.
int write_mebibyte(int folder, const std::string& name) {
  const std::string block(1 << 20, 'x');
  const int fd = openat(folder, name.c_str(), O_WRONLY | O_CREAT, 0644);
  return fd >= 0 && write(fd, block.data(), block.size()) == 1 << 20 ? fd : -1;
}

// 200 MiB in files of one, then it waits. `hide` comes when a file is written.
int write_files(const std::string& path, const std::function<void(int, const std::string&)>& hide) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < kSomeFiles; ++i) {
    const std::string name = std::to_string(i);
    const int fd = write_mebibyte(folder, name);
    if (fd < 0) return errno;
    if (hide)
      hide(folder, name);
    else
      close(fd);
  }
  for (;;) pause();
}

int make_empty_files(const std::string& path) {
  for (int i = 0; i < 2000; ++i)
    close(open((path + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0644));
  for (;;) pause();
}

int nest(const std::string& path) {
  for (int folder = open(path.c_str(), O_RDONLY); folder >= 0;) {
    if (mkdirat(folder, "in", 0755) != 0) break;
    const int inner = openat(folder, "in", O_RDONLY);
    close(folder);
    folder = inner;
    usleep(1000);
  }
  for (;;) pause();
}

int write_into_closed_folder(const std::string& path) {
  const std::string closed = path + "/closed";
  mkdir(closed.c_str(), 0700);
  const int folder = open(closed.c_str(), O_RDONLY | O_DIRECTORY);
  int left = kSomeFiles;
  return write_files(closed, [&](int, const std::string&) {
    if (--left == 0) fchmod(folder, 0);
  });
}

// Full folders, moved without rest from one to the other of two.
int move_about(const std::string& path) {
  const std::string here = path + "/a/full", there = path + "/z/full";
  mkdir((path + "/a").c_str(), 0755);
  mkdir((path + "/z").c_str(), 0755);
  mkdir(here.c_str(), 0755);
  for (int i = 0; i < 300; ++i)
    close(open((here + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0644));
  for (;;) {
    rename(here.c_str(), there.c_str());
    rename(there.c_str(), here.c_str());
  }
}

// Threads that make and remove folders without rest, until the process is woken (SIGCONT). There are several,
// so that one of them has just run whenever somebody looks, on a busy machine too.
int change_until_woken(const std::string& path) {
  static volatile std::sig_atomic_t woken = 0;
  std::signal(SIGCONT, [](int) { woken = 1; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([folder = path + "/" + std::to_string(i)] {
      while (woken == 0) {
        mkdir(folder.c_str(), 0755);
        rmdir(folder.c_str());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("resumed\n");
  return 0;
}

// What an honest one may do: a file with a hole of a TiB, one of a MiB under many names, and a while of both.
int write_little(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY);
  const int hole = openat(folder, "hole", O_WRONLY | O_CREAT, 0644);
  const int fd = write_mebibyte(folder, "one");
  if (ftruncate(hole, 1ll << 40) != 0 || fd < 0) return errno;
  for (int i = 0; i < 30; ++i) linkat(folder, "one", folder, ("link" + std::to_string(i)).c_str(), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  while (std::chrono::steady_clock::now() < end) {
    close(write_mebibyte(folder, "come"));
    unlinkat(folder, "come", 0);
  }
  return 0;
}

int tcp(const std::string&) { return errno_or_zero(socket(AF_INET, SOCK_STREAM, 0) >= 0); }

int run_threads(const std::string&) {
  int sum = 0;
  std::thread one([&] { sum += 1; });
  one.join();
  return sum - 1;
}

// A child of ours runs a fork bomb: a kernel has one seccomp listener a process, so its guard has to count by
// looking.
int nested_fork_bomb(const std::string&) {
  warpsmith::process::ChildSpec spec;
  spec.argv = {std::filesystem::read_symlink("/proc/self/exe"), "fork_bomb"};
  spec.limits.processes = 20;
  spec.limits.wall_s = 20;
  const warpsmith::process::ChildResult result = warpsmith::process::run_child(spec);
  std::printf("%s\n", result.problem.c_str());
  return 0;
}

const std::map<std::string, Mode>& modes() {
  static const std::map<std::string, Mode> kModes = {
      {"exit", [](const std::string& code) { return std::atoi(code.c_str()); }},
      {"loop",
       [](const std::string&) -> int {
         volatile int i = 0;
         for (;;) static_cast<void>(i);
       }},
      {"abort", [](const std::string&) -> int { std::abort(); }},
      {"segv", [](const std::string&) -> int { return *reinterpret_cast<volatile int*>(16); }},
      {"divide", divide},
      {"stack", [](const std::string&) { return static_cast<int>(recurse(0)); }},
      {"allocate", allocate},
      {"allocate_and_wait",
       [](const std::string& bytes) -> int {
         allocate(bytes);
         for (;;) pause();
       }},
      {"fork",
       [](const std::string&) {
         const pid_t pid = fork();
         if (pid == 0) _exit(0);
         return errno_or_zero(pid > 0);
       }},
      {"fork_bomb", fork_bomb},
      {"nested_fork_bomb", nested_fork_bomb},
      {"exec", [](const std::string&) { return execl("/bin/true", "true", nullptr) < 0 ? errno : 0; }},
      {"socket", tcp},
      {"write", write_file},
      {"read", read_file},
      {"unlink", [](const std::string& path) { return errno_or_zero(unlink(path.c_str()) == 0); }},
      {"kill_parent", [](const std::string&) { return errno_or_zero(kill(getppid(), SIGTERM) == 0); }},
      // Of another process, by its number: whether it may be sent signals, and its limits be set.
      {"signal", [](const std::string& pid) { return errno_or_zero(kill(std::atoi(pid.c_str()), 0) == 0); }},
      {"limit",
       [](const std::string& pid) {
         rlimit limit{};
         if (prlimit(0, RLIMIT_CORE, nullptr, &limit) != 0) return 97;
         return errno_or_zero(prlimit(std::atoi(pid.c_str()), RLIMIT_CORE, &limit, nullptr) == 0);
       }},
      {"kill_all", [](const std::string&) { return errno_or_zero(kill(-1, SIGKILL) == 0); }},
      {"ptrace",
       [](const std::string&) { return errno_or_zero(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0); }},
      {"threads", run_threads},
      {"escape", escape},
      {"flood", flood},
      {"fill_file", fill_file},
      {"write_files", [](const std::string& path) { return write_files(path, {}); }},
      {"write_open_files",
       [](const std::string& path) {
         return write_files(path,
                            [](int folder, const std::string& name) { unlinkat(folder, name.c_str(), 0); });
       }},
      {"write_and_end",
       [](const std::string& path) {
         const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY);
         for (int i = 0; i < 30; ++i) close(write_mebibyte(folder, std::to_string(i)));
         return 0;
       }},
      {"write_into_closed_folder", write_into_closed_folder},
      {"make_empty_files", make_empty_files},
      {"nest", nest},
      {"move_about", move_about},
      {"change_until_woken", change_until_woken},
      {"write_little", write_little},
      {"open_files",
       [](const std::string&) {
         rlimit limit{};
         getrlimit(RLIMIT_NOFILE, &limit);
         std::printf("%lu %lu", static_cast<unsigned long>(limit.rlim_cur),
                     static_cast<unsigned long>(limit.rlim_max));
         return 0;
       }},
      {"environment",
       [](const std::string& name) {
         std::printf("%s", std::getenv(name.c_str()) == nullptr ? "" : std::getenv(name.c_str()));
         return 0;
       }},
      {"raise", [](const std::string& number) { return raise(std::atoi(number.c_str())); }},
      {"write_fd",
       [](const std::string& fd) { return errno_or_zero(write(std::atoi(fd.c_str()), "hello", 5) == 5); }},
      {"is_open",
       [](const std::string& fd) { return errno_or_zero(fcntl(std::atoi(fd.c_str()), F_GETFD) >= 0); }},
      {"ignore_term",
       [](const std::string&) -> int {
         std::signal(SIGTERM, SIG_IGN);
         std::printf("ready\n");
         std::fflush(stdout);
         for (;;) pause();
       }},
  };
  return kModes;
}

}  // namespace

// `misbehave seccomp MODE [ARGUMENT]`: the same behind enter_seccomp, as for a candidate.
int main(int argc, char** argv) {
  int at = 1;
  if (argc > 1 && std::strcmp(argv[1], "seccomp") == 0) {
    ++at;
    try {
      warpsmith::process::enter_seccomp(/*allow_threads=*/true);
    } catch (const warpsmith::Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return 98;
    }
  }
  const auto mode = at < argc ? modes().find(argv[at]) : modes().end();
  if (mode == modes().end()) return 99;
  const int code = mode->second(at + 1 < argc ? argv[at + 1] : "");
  std::fflush(stdout);
  return code;
}

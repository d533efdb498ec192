// warpsmith-guard: stands between a program of ours and a child that it runs, and answers for the child's
// whole tree.
//
// It is the subreaper of everything below it, so that a descendant that called setsid or forked twice becomes
// its child; and it holds one end of a socket whose other end only its starter has, so that it learns at once
// when the starter is gone, however it died. It is a program of its own because it must outlive its starter,
// must have one thread (PR_SET_PDEATHSIG is tied to the thread that forked) and should be small: setting
// limits after fork in a large threaded process is a mine field.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "../seccomp_filter.h"
#include "options.h"
#include "tree.h"
#include "warpsmith/process/descriptors.h"
#include "written.h"

namespace warpsmith::guard {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kFilesEvery = milliseconds(500);
constexpr int kShareOfLooks = 20;  // looks at files take one part in so many of the time
constexpr int kChangingLooks = 4;  // in a row, and then the tree stands still for one

void say(int fd, const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t n = write(fd, text.data(), text.size());
}

// Numbers of the children reaped so far, in the form of the answers.
std::string usage(std::uint64_t peak_bytes) {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const long long cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000LL +
                           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  const auto peak_kib = std::max<long long>(used.ru_maxrss, static_cast<long long>(peak_bytes / 1024));
  return std::to_string(cpu_us) + " " + std::to_string(peak_kib);
}

struct Started {
  pid_t pid = -1;
  int listener = -1;
  std::string problem;
};

// Reads the child's report until exec closes it: a descriptor (the listener), and text where something
// failed.
void receive(int socket, Started& started) {
  char text[512];
  for (;;) {
    iovec data{text, sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&started.listener, CMSG_DATA(header), sizeof started.listener);
    else
      started.problem.append(text, static_cast<std::size_t>(n));
  }
}

Started start(const Options& options) {
  Started started;
  int report[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) != 0) {
    started.problem = std::string("socketpair: ") + std::strerror(errno);
    return started;
  }
  const pid_t self = getpid();
  started.pid = fork();
  if (started.pid < 0) {
    started.problem = std::string("fork: ") + std::strerror(errno);
    return started;
  }
  if (started.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(127);
    setpgid(0, 0);
    if (options.status >= 0) fcntl(options.status, F_SETFD, options.bwrap ? 0 : FD_CLOEXEC);
    if (options.processes > 0)
      if (const int listener = process::install_listener(process::process_count_filter()); listener >= 0) {
        process::send_descriptor(report[1], listener);
        close(listener);
      }
    std::string problem = set_up(options);
    if (problem.empty()) {
      execv(options.program[0], options.program);
      problem = std::string(options.program[0]) + ": " + std::strerror(errno);
    }
    send(report[1], problem.data(), problem.size(), 0);
    _exit(127);
  }
  close(report[1]);
  receive(report[0], started);
  close(report[0]);
  return started;
}

// Our own copies of the child's standard streams would hide their end from whoever reads them.
void drop_standard_streams() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  if (null > 2) close(null);
}

class Watch {
 public:
  explicit Watch(const Options& options) : options_(options) {}

  int run() {
    // A new session: Ctrl-C at a terminal reaches the controller, which decides.
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (options_.lifeline >= 0) fcntl(options_.lifeline, F_SETFD, FD_CLOEXEC);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signal(SIGCHLD, SIG_DFL);  // where our starter ignored it, nobody would learn how a child ended
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    signals_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);

    if (options_.scratch_bytes > 0 || options_.scratch_files > 0)
      files_.emplace(options_.scratch, options_.scratch_bytes, options_.scratch_files);
    const Started started = start(options_);
    drop_standard_streams();
    if (started.pid < 0 || !started.problem.empty()) {
      say(options_.status, "error " + started.problem);
      return 127;
    }
    main_ = started.pid;
    listener_ = started.listener;
    begin_ = Clock::now();
    next_look_at_files_ = begin_ + kFilesEvery;
    say(options_.status, "pid " + std::to_string(main_));
    if (!options_.bwrap) say(options_.status, "running");
    while (reason_ == nullptr) step();
    kill_tree();
    if (files_)
      if (const char* const over = files_->look(); over != nullptr && std::strcmp(reason_, "exit") == 0)
        reason_ = over;
    say(options_.status, std::string("end ") + reason_ + " " + std::to_string(status_) + " " + usage(peak_));
    return 0;
  }

 private:
  // Waits for the next thing to happen and deals with it; sets reason_ when the tree shall end.
  void step() {
    const auto now = Clock::now();
    auto wait = milliseconds(-1);
    const auto earlier = [&](milliseconds other) {
      wait = wait < milliseconds(0) ? other : std::min(wait, other);
    };
    if (options_.wall_s > 0) {
      const auto left =
          begin_ +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.wall_s)) - now;
      if (left <= Clock::duration::zero()) {
        reason_ = "wall";
        return;
      }
      earlier(std::chrono::ceil<milliseconds>(std::min<Clock::duration>(left, std::chrono::hours(1))));
    }
    const bool count_by_polling = options_.processes > 0 && listener_ < 0;
    if (options_.tree_memory > 0 || count_by_polling) {
      if (now >= next_look_) {
        look(count_by_polling);
        next_look_ = Clock::now() + milliseconds(count_by_polling ? 20 : 200);
        if (reason_ != nullptr) return;
      }
      earlier(std::max(milliseconds(1), std::chrono::ceil<milliseconds>(next_look_ - Clock::now())));
    }
    if (files_) {
      if (now >= next_look_at_files_) {
        look_at_files();
        if (reason_ != nullptr) return;
      }
      earlier(std::max(milliseconds(1), std::chrono::ceil<milliseconds>(next_look_at_files_ - Clock::now())));
    }
    pollfd fds[3] = {{signals_, POLLIN, 0}, {options_.lifeline, POLLIN, 0}, {listener_, POLLIN, 0}};
    if (poll(fds, 3, static_cast<int>(wait.count())) < 0) return;
    if (fds[1].revents != 0) obey();
    if ((fds[2].revents & POLLIN) != 0)
      decide_on_process();
    else if (fds[2].revents != 0)
      drop_listener();  // nobody is left below the filter
    if (fds[0].revents != 0) {
      signalfd_siginfo info;
      while (read(signals_, &info, sizeof info) > 0) {
      }
      reap();
      if (main_ended_ && reason_ == nullptr) reason_ = "exit";
    }
  }

  void look(bool count_by_polling) {
    const std::vector<pid_t> tree = process::descendants(getpid());
    if (count_by_polling && tree.size() > options_.processes) reason_ = "processes";
    if (options_.tree_memory == 0) return;
    const std::uint64_t bytes = process::resident_bytes(tree, options_.tree_memory);
    peak_ = std::max(peak_, bytes);
    if (bytes > options_.tree_memory) reason_ = "memory";
  }

  void look_at_files() {
    const auto begin = Clock::now();
    reason_ = files_->look();
    changing_looks_ = files_->changing() ? changing_looks_ + 1 : 0;
    if (reason_ == nullptr && changing_looks_ >= kChangingLooks) {
      changing_looks_ = 0;
      const std::set<pid_t> stopped = hold_tree();
      reason_ = files_->look();
      for (const pid_t pid : process::descendants(getpid()))
        if (!stopped.contains(pid)) kill(pid, SIGCONT);
    }
    const auto end = Clock::now();
    next_look_at_files_ = end + std::max<Clock::duration>(kFilesEvery, kShareOfLooks * (end - begin));
  }

  // More than once: the list may miss what is being born. Returns those that our starter has stopped already,
  // and that are its own to wake.
  static std::set<pid_t> hold_tree() {
    std::set<pid_t> stopped, seen;
    for (int round = 0; round < 3; ++round) {
      for (const pid_t pid : process::descendants(getpid())) {
        if (seen.insert(pid).second && process::is_stopped(pid)) stopped.insert(pid);
        kill(pid, SIGSTOP);
      }
      const timespec nap{0, 1'000'000};
      nanosleep(&nap, nullptr);
    }
    return stopped;
  }

  void obey() {
    char order = 0;
    const ssize_t n = read(options_.lifeline, &order, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0 || order == 'K') {
      reason_ = "stop";
      return;
    }
    // bubblewrap itself is spared: with it the namespace would go at once, and nobody inside could end in
    // order.
    for (const pid_t pid : process::descendants(getpid()))
      if (!(options_.bwrap && pid == main_)) kill(pid, SIGTERM);
  }

  // A descendant wants to fork. Deaths are not counted, so the tree is looked at when the estimate reaches
  // the limit; when that look found it full, not again for 20 ms: a fork bomb costs one look then, not one
  // for each attempt.
  void decide_on_process() {
    seccomp_notif request{};
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
      if (errno != ENOENT && errno != EINTR) drop_listener();  // ENOENT: whoever asked has died
      return;
    }
    ++alive_;
    if (alive_ > options_.processes && !(full_ && Clock::now() - counted_ < milliseconds(20))) {
      alive_ = static_cast<unsigned>(process::descendants(getpid()).size()) + 1;
      full_ = alive_ > options_.processes;
      counted_ = Clock::now();
    }
    seccomp_notif_resp answer{};
    answer.id = request.id;
    if (alive_ > options_.processes) {
      answer.error = -EAGAIN;
      --alive_;
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }

  void drop_listener() {
    close(listener_);
    listener_ = -1;
  }

  // True while there are children.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0) return false;
      if (pid == main_) {
        main_ended_ = true;
        status_ = status;
      }
    }
  }

  // Until no child is left. Forks wait for the listener's answer, which does not come any more, so nothing
  // new appears; where there is no listener, a fork bomb is outrun by priority (root) or by repetition.
  void kill_tree() {
    setpriority(PRIO_PROCESS, 0, -20);
    const auto give_up =
        Clock::now() + std::chrono::seconds(10);  // a process in the kernel's uninterruptible sleep
    for (auto pause = std::chrono::microseconds(100); reap() && Clock::now() < give_up;) {
      for (const pid_t pid : process::descendants(getpid())) kill(pid, SIGKILL);
      if (!reap()) break;
      timespec nap{0, pause.count() * 1000};
      nanosleep(&nap, nullptr);
      pause = std::min(pause * 2, std::chrono::microseconds(5000));
    }
  }

  const Options& options_;
  pid_t main_ = -1;
  int signals_ = -1, listener_ = -1;
  Clock::time_point begin_, next_look_, next_look_at_files_, counted_;
  std::optional<WrittenFiles> files_;
  int changing_looks_ = 0;
  unsigned alive_ = 1;
  std::uint64_t peak_ = 0;
  bool full_ = false;  // at the last count
  bool main_ended_ = false;
  int status_ = 0;
  const char* reason_ = nullptr;
};

// Process 1 of a PID namespace: when it ends, the kernel ends the rest.
int enter(Options& options) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  fcntl(options.status, F_SETFD, FD_CLOEXEC);
  const Started started = start(options);
  drop_standard_streams();
  if (started.pid < 0 || !started.problem.empty()) {
    say(options.status, "error " + started.problem);
    return 127;
  }
  say(options.status, "running");
  int status = 0;
  for (;;) {
    int ended = 0;
    const pid_t pid = waitpid(-1, &ended, 0);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) break;
    if (pid == started.pid) {
      status = ended;
      break;
    }
  }
  kill(-1, SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  say(options.status, "inner " + std::to_string(status) + " " + usage(0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace
}  // namespace warpsmith::guard

int main(int argc, char** argv) {
  using namespace warpsmith::guard;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "probe") return 0;
  Options options;
  if ((mode != "watch" && mode != "enter") || !parse_options(argc, argv, options)) {
    std::fputs("warpsmith-guard: runs children for the other programs of Warpsmith; not for use by hand\n",
               stderr);
    return 2;
  }
  if (mode == "enter") return enter(options);
  return Watch(options).run();
}

#include "seccomp_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW (1UL << 2)
#endif

namespace warpsmith::process {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t kTrap =
    SECCOMP_RET_TRAP;  // SIGSYS: ends the program, but for one that first says which call it was
constexpr std::uint32_t fail_with(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

constexpr std::uint32_t low_half(int argument) {  // little-endian machines only
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8u * static_cast<std::uint32_t>(argument);
}
constexpr std::uint32_t high_half(int argument) { return low_half(argument) + 4; }

enum class Test { kAnySet, kEqual, kNotEqual };

// Rules are tried in order; the first that fits decides.
class Rules {
 public:
  Rules() {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    answer(kKill);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));  // the x32 table
    answer(kKill);
#endif
  }

  Rules& on(std::initializer_list<int> calls, std::uint32_t action) {
    for (const int call : calls) {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
      answer(action);
    }
    return *this;
  }

  // Only where 32 bits of an argument pass the test.
  Rules& on_if(int call, std::uint32_t offset, Test test, std::uint32_t value, std::uint32_t action) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4));
    load(offset);
    const std::uint16_t operation = test == Test::kAnySet ? BPF_JSET : BPF_JEQ;
    const std::uint8_t if_true = test == Test::kNotEqual ? 1 : 0;
    const auto if_false = static_cast<std::uint8_t>(1 - if_true);
    code_.push_back(
        BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | operation | BPF_K), value, if_true, if_false));
    answer(action);
    load(offsetof(seccomp_data, nr));
    return *this;
  }

  FilterProgram otherwise(std::uint32_t action) {
    answer(action);
    return std::move(code_);
  }

 private:
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void answer(std::uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  FilterProgram code_;
};

// Nobody below us has business with these, compilers included.
void forbid_kernel_interfaces(Rules& rules, std::uint32_t action) {
  rules.on({__NR_ptrace,
            __NR_process_vm_readv,
            __NR_process_vm_writev,
            __NR_mount,
            __NR_umount2,
            __NR_pivot_root,
            __NR_chroot,
            __NR_setns,
            __NR_unshare,
            __NR_bpf,
            __NR_perf_event_open,
            __NR_keyctl,
            __NR_add_key,
            __NR_request_key,
            __NR_init_module,
            __NR_finit_module,
            __NR_delete_module,
            __NR_kexec_load,
            __NR_reboot,
            __NR_swapon,
            __NR_swapoff,
            __NR_acct,
            __NR_quotactl,
            __NR_settimeofday,
            __NR_clock_settime,
            __NR_adjtimex,
            __NR_clock_adjtime,
            __NR_sethostname,
            __NR_setdomainname,
            __NR_open_by_handle_at,
            __NR_userfaultfd,
            __NR_nfsservctl,
            __NR_vhangup,
            __NR_syslog},
           action);
#ifdef __NR_io_uring_setup
  rules.on({__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register}, action);
#endif
#ifdef __NR_pidfd_getfd
  rules.on({__NR_pidfd_getfd, __NR_pidfd_send_signal}, action);
#endif
#ifdef __NR_fsopen
  rules.on({__NR_fsopen, __NR_fsmount, __NR_fsconfig, __NR_fspick, __NR_move_mount, __NR_open_tree}, action);
#endif
#ifdef __NR_kexec_file_load
  rules.on({__NR_kexec_file_load}, action);
#endif
#if defined(__x86_64__)
  rules.on({__NR_iopl, __NR_ioperm, __NR_modify_ldt, __NR_uselib, __NR__sysctl}, action);
#endif
}

void forbid_processes(Rules& rules, std::uint32_t action) {
#if defined(__x86_64__)
  rules.on({__NR_fork, __NR_vfork}, action);
#endif
  rules.on_if(__NR_clone, low_half(0), Test::kAnySet, CLONE_THREAD, kAllow).on({__NR_clone}, action);
#ifdef __NR_clone3
  rules.on({__NR_clone3}, fail_with(ENOSYS));  // its flags lie in memory; C libraries fall back to clone
#endif
}

}  // namespace

namespace {

// Computing, memory, waiting, the descriptors that it holds, questions about files and itself.
void allow_computing(Rules& rules) {
  rules.on({__NR_read,
            __NR_write,
            __NR_futex,
            __NR_sched_yield,
            __NR_clock_gettime,
            __NR_clock_nanosleep,
            __NR_nanosleep,
            __NR_ppoll,
            __NR_mmap,
            __NR_munmap,
            __NR_mprotect,
            __NR_madvise,
            __NR_mremap,
            __NR_brk,
            __NR_readv,
            __NR_writev,
            __NR_pread64,
            __NR_pwrite64,
            __NR_close,
            __NR_fstat,
            __NR_lseek,
            __NR_rt_sigaction,
            __NR_rt_sigprocmask,
            __NR_rt_sigreturn,
            __NR_rt_sigtimedwait,
            __NR_rt_sigsuspend,
            __NR_sigaltstack,
            __NR_exit,
            __NR_exit_group,
            __NR_restart_syscall,
            __NR_set_robust_list,
            __NR_get_robust_list,
            __NR_set_tid_address,
            __NR_membarrier,
            __NR_getpid,
            __NR_gettid,
            __NR_getppid,
            __NR_getuid,
            __NR_geteuid,
            __NR_getgid,
            __NR_getegid,
            __NR_clock_getres,
            __NR_gettimeofday,
            __NR_times,
            __NR_getrusage,
            __NR_getrandom,
            __NR_uname,
            __NR_sysinfo,
            __NR_sched_getaffinity,
            __NR_sched_getparam,
            __NR_sched_getscheduler,
            __NR_getcpu,
            __NR_pselect6,
            __NR_epoll_create1,
            __NR_epoll_ctl,
            __NR_epoll_pwait,
            __NR_eventfd2,
            __NR_dup,
            __NR_dup3,
            __NR_fcntl,
            __NR_readlinkat,
            __NR_faccessat,
            __NR_newfstatat,
            __NR_statx,
            __NR_getcwd,
            __NR_getdents64,
            __NR_mincore,
            __NR_msync,
            __NR_mlock,
            __NR_munlock,
            __NR_recvfrom},
           kAllow);
#ifdef __NR_rseq
  rules.on({__NR_rseq}, kAllow);
#endif
#ifdef __NR_futex_waitv
  rules.on({__NR_futex_waitv}, kAllow);
#endif
#if defined(__x86_64__)
  rules.on({__NR_arch_prctl, __NR_poll, __NR_select, __NR_epoll_wait, __NR_dup2, __NR_access, __NR_readlink,
            __NR_stat, __NR_lstat, __NR_time, __NR_getrlimit, __NR_pause},
           kAllow);
#endif
}

void read_files_only(Rules& rules) {
  constexpr std::uint32_t kWriting =
      O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
  rules.on_if(__NR_openat, low_half(2), Test::kAnySet, kWriting, kKill).on({__NR_openat}, kAllow);
#if defined(__x86_64__)
  rules.on_if(__NR_open, low_half(1), Test::kAnySet, kWriting, kKill).on({__NR_open}, kAllow);
  rules.on({__NR_creat, __NR_unlink, __NR_rename, __NR_mkdir, __NR_rmdir, __NR_link, __NR_symlink, __NR_chmod,
            __NR_chown, __NR_lchown, __NR_mknod, __NR_utime, __NR_utimes, __NR_futimesat},
           kKill);
#endif
  rules.on(
      {__NR_unlinkat, __NR_renameat, __NR_renameat2, __NR_mkdirat, __NR_linkat, __NR_symlinkat, __NR_fchmodat,
       __NR_fchownat, __NR_fchmod, __NR_fchown, __NR_mknodat, __NR_utimensat, __NR_truncate, __NR_ftruncate,
       __NR_fallocate, __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr},
      kKill);
}

// Signals: to itself (abort, raise), to nobody else.
void signal_itself_only(Rules& rules, std::uint32_t me) {
  for (const int call : {__NR_tgkill, __NR_kill, __NR_rt_tgsigqueueinfo})
    rules.on_if(call, low_half(0), Test::kEqual, me, kAllow).on({call}, kKill);
  rules.on({__NR_tkill, __NR_rt_sigqueueinfo}, kKill);
}

// Nor has the kernel send signals for it, when something happens to a descriptor: to whom, and which, it
// would say by these.
void ask_for_no_signals(Rules& rules) {
  for (const std::uint32_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY})
    rules.on_if(__NR_fcntl, low_half(1), Test::kEqual, command, kKill);
  for (const std::uint32_t command : {FIOSETOWN, SIOCSPGRP, FIOASYNC})
    rules.on_if(__NR_ioctl, low_half(1), Test::kEqual, command, kKill);
}

// On a socket that it was given it may answer, without an address and without a descriptor; it has no other.
void answer_on_given_sockets(Rules& rules) {
  rules.on_if(__NR_sendto, low_half(4), Test::kNotEqual, 0, kKill)
      .on_if(__NR_sendto, high_half(4), Test::kNotEqual, 0, kKill)
      .on({__NR_sendto}, kAllow);
  rules.on({__NR_socket, __NR_socketpair, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4,
            __NR_sendmsg, __NR_sendmmsg, __NR_recvmmsg},
           kKill);
}

// Its own limits may be read and its name set; the rest of these calls fails softly, for C libraries try
// them.
void read_own_limits(Rules& rules) {
  rules.on_if(__NR_prlimit64, low_half(2), Test::kNotEqual, 0, fail_with(EPERM))
      .on_if(__NR_prlimit64, high_half(2), Test::kNotEqual, 0, fail_with(EPERM))
      .on({__NR_prlimit64}, kAllow);
  rules.on_if(__NR_prctl, low_half(0), Test::kEqual, PR_SET_NAME, kAllow)
      .on_if(__NR_prctl, low_half(0), Test::kEqual, PR_GET_NAME, kAllow)
      .on({__NR_prctl, __NR_setpriority}, fail_with(EPERM));
}

// No program but this one, no other user, session or group of processes, no way into the kernel.
void stay_who_it_is(Rules& rules) {
  forbid_processes(rules, kKill);
  rules.on({__NR_execve, __NR_execveat, __NR_setuid, __NR_setgid, __NR_setreuid, __NR_setregid,
            __NR_setresuid, __NR_setresgid, __NR_setgroups, __NR_capset, __NR_setsid, __NR_setpgid},
           kKill);
  forbid_kernel_interfaces(rules, kKill);
}

}  // namespace

FilterProgram foreign_code_filter(bool allow_threads, std::int32_t self) {
  Rules rules;
  ask_for_no_signals(rules);
  allow_computing(rules);
  read_files_only(rules);
  signal_itself_only(rules, static_cast<std::uint32_t>(self));
  if (!allow_threads) rules.on({__NR_clone}, kKill);
  answer_on_given_sockets(rules);
  rules.on({__NR_recvmsg}, kKill);
  read_own_limits(rules);
  rules.on({__NR_ioctl, __NR_sched_setaffinity}, fail_with(EPERM));
  stay_who_it_is(rules);
  return rules.otherwise(fail_with(ENOSYS));
}

FilterProgram gpu_code_filter(std::int32_t self) {
  Rules rules;
  ask_for_no_signals(rules);
  allow_computing(rules);
  // What CUDA's driver and libraries do: their devices, where memory lies and stays, priorities, what they
  // wait on.
  rules.on({__NR_ioctl,
            __NR_openat,
            __NR_mbind,
            __NR_get_mempolicy,
            __NR_set_mempolicy,
            __NR_pipe2,
            __NR_recvmsg,
            __NR_memfd_create,
            __NR_sched_setaffinity,
            __NR_mlock2,
            __NR_munlockall,
            __NR_statfs,
            __NR_fstatfs,
            __NR_timerfd_create,
            __NR_timerfd_settime,
            __NR_ftruncate,
            __NR_fallocate,
            __NR_fsync,
            __NR_fdatasync,
            __NR_unlinkat,
            __NR_mkdirat,
            __NR_renameat2,
            __NR_flock,
            __NR_fchmod,
            __NR_shutdown,
            __NR_getsockopt,
            __NR_getsockname,
            __NR_getpriority,
            __NR_sched_get_priority_max,
            __NR_sched_get_priority_min},
           kAllow);
#if defined(__x86_64__)
  rules.on({__NR_open, __NR_pipe, __NR_getdents, __NR_epoll_create, __NR_eventfd, __NR_unlink, __NR_mkdir,
            __NR_rename, __NR_rmdir},
           kAllow);
#endif
  signal_itself_only(rules, static_cast<std::uint32_t>(self));
  // The driver tries sockets of this machine for what it shares with other processes, and does without.
  for (const int call : {__NR_socket, __NR_socketpair})
    rules.on_if(call, low_half(0), Test::kEqual, AF_UNIX, fail_with(EPERM));
  answer_on_given_sockets(rules);
  read_own_limits(rules);
  rules.on({__NR_sched_setscheduler, __NR_setrlimit}, fail_with(EPERM));
  stay_who_it_is(rules);
  return rules.otherwise(fail_with(ENOSYS));
}

FilterProgram program_filter(bool allow_processes) {
  Rules rules;
  forbid_kernel_interfaces(rules, kTrap);
  // Softly: C libraries look for a name service here and there, and do without.
  rules.on({__NR_socket, __NR_socketpair, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4},
           fail_with(EACCES));
  // A program may set its own limits (compilers do), not those of the user's other processes.
  rules.on_if(__NR_prlimit64, low_half(0), Test::kEqual, 0, kAllow)
      .on_if(__NR_prlimit64, low_half(2), Test::kNotEqual, 0, fail_with(EPERM))
      .on_if(__NR_prlimit64, high_half(2), Test::kNotEqual, 0, fail_with(EPERM));
  if (!allow_processes) {
    forbid_processes(rules, kTrap);
  } else {
    constexpr std::uint32_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                          CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    rules.on_if(__NR_clone, low_half(0), Test::kAnySet, kNamespaces, kTrap);
#ifdef __NR_clone3
    rules.on({__NR_clone3}, fail_with(ENOSYS));
#endif
  }
  return rules.otherwise(kAllow);
}

FilterProgram process_count_filter() {
  Rules rules;
#if defined(__x86_64__)
  rules.on({__NR_fork, __NR_vfork}, SECCOMP_RET_USER_NOTIF);
#endif
  rules.on_if(__NR_clone, low_half(0), Test::kAnySet, CLONE_THREAD, kAllow)
      .on({__NR_clone}, SECCOMP_RET_USER_NOTIF);
#ifdef __NR_clone3
  rules.on({__NR_clone3}, fail_with(ENOSYS));
#endif
  return rules.otherwise(kAllow);
}

namespace {

long install(const FilterProgram& filter, unsigned long flags) {
  if (kArchitecture == 0) {
    errno = ENOSYS;
    return -1;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  // Without SPEC_ALLOW, kernels before 5.16 switch speculative store bypass off in the child: foreign code
  // would run slower than the baseline that it is compared with.
  long result =
      syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
  if (result < 0 && errno == EINVAL) result = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  return result;
}

}  // namespace

int install_filter(const FilterProgram& filter) {
  const long result = install(filter, SECCOMP_FILTER_FLAG_TSYNC);
  if (result > 0) return ESRCH;  // a thread that cannot follow
  return result < 0 ? errno : 0;
}

int install_listener(const FilterProgram& filter) {
  const long result = install(filter, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace warpsmith::process

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/process/descriptors.h"

namespace warpsmith::process {

// Kernels before 5.3 have no descriptors of processes: there the number has to do.
Peer::Peer(pid_t pid) : pid_(pid) {
  if (pid <= 0) return;
  process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process_ || errno == ENOSYS) return;
  if (errno != ESRCH) throw system_error("pidfd_open", errno);
  pid_ = 0;  // it has ended
}

Peer::Peer(Peer&& other) noexcept : pid_(std::exchange(other.pid_, 0)), process_(std::move(other.process_)) {}

Peer& Peer::operator=(Peer&& other) noexcept {
  pid_ = std::exchange(other.pid_, 0);
  process_ = std::move(other.process_);
  return *this;
}

void Peer::send(int signal) const {
  if (process_)
    (void)::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0);
  else if (pid_ > 0)
    (void)::kill(pid_, signal);
}
void Peer::stop() const { send(SIGSTOP); }
void Peer::go_on() const { send(SIGCONT); }

}  // namespace warpsmith::process

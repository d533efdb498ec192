// Descriptors, what one process hands another over a Unix socket besides bytes, and the process at the other
// end of one.
#pragma once

#include <sys/types.h>

#include <utility>

namespace warpsmith::process {

// One descriptor, closed with its owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_;
};

// Sends `fd` along with one byte. Does not wait, and says nothing where nobody is there.
void send_descriptor(int socket, int fd);
// Waits for a byte and what came along with it; closed over exec. -1 where no descriptor came.
int receive_descriptor(int socket);
// Who sent the byte that is there, in our numbers, as the kernel has it; 0 where it does not say. The socket
// has SO_PASSCRED.
pid_t sender_of(int socket);

// A process that said who it is, as sender_of() has it; whatever becomes of its number later (from Linux 5.3
// on).
class Peer {
 public:
  Peer() = default;
  explicit Peer(pid_t pid);  // 0: nobody is known, and nothing below does anything
  Peer(Peer&& other) noexcept;
  Peer& operator=(Peer&& other) noexcept;
  pid_t pid() const { return pid_; }  // 0: it had ended before it was known, too
  // All its threads stand still, within the time that another processor takes to hear of it; until go_on().
  // One that has ended is let be: that is found elsewhere.
  void stop() const;
  void go_on() const;

 private:
  void send(int signal) const;

  pid_t pid_ = 0;
  Fd process_;
};

}  // namespace warpsmith::process

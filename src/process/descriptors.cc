#include "warpsmith/process/descriptors.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace warpsmith::process {

namespace {

// One byte, and room for what goes along with it.
struct Parcel {
  char byte = 'f';
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[std::max(CMSG_SPACE(sizeof(int)), CMSG_SPACE(sizeof(ucred)))] = {};
  msghdr message{};

  explicit Parcel(std::size_t room) {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = room;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  bool receive(int socket, int flags) {
    ssize_t bytes = 0;
    do bytes = ::recvmsg(socket, &message, flags);
    while (bytes < 0 && errno == EINTR);
    return bytes > 0;
  }
  // False where nothing of that kind came.
  template <typename T>
  bool take(int type, T* to) {
    for (const cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr;
         h = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(h))) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != type) continue;
      std::memcpy(to, CMSG_DATA(h), sizeof *to);
      return true;
    }
    return false;
  }
};

}  // namespace

void send_descriptor(int socket, int fd) {
  Parcel parcel(CMSG_SPACE(sizeof fd));
  cmsghdr* const header = CMSG_FIRSTHDR(&parcel.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  (void)::sendmsg(socket, &parcel.message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int receive_descriptor(int socket) {
  int fd = -1;
  Parcel parcel(CMSG_SPACE(sizeof fd));
  return parcel.receive(socket, MSG_CMSG_CLOEXEC) && parcel.take(SCM_RIGHTS, &fd) ? fd : -1;
}

pid_t sender_of(int socket) {
  ucred sender{};
  Parcel parcel(CMSG_SPACE(sizeof sender));
  return parcel.receive(socket, MSG_DONTWAIT) && parcel.take(SCM_CREDENTIALS, &sender) ? sender.pid : 0;
}

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace warpsmith::process

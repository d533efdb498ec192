// Permissions do not bind root: while one of these lives, this thread acts as another user.
#pragma once

#include <unistd.h>

namespace warpsmith {

class NoPermission {
 public:
  NoPermission() : was_root_(::geteuid() == 0), changed_(was_root_ && ::seteuid(kNobody) == 0) {}
  ~NoPermission() {
    if (changed_ && ::seteuid(0) != 0) ::_exit(1);
  }
  NoPermission(const NoPermission&) = delete;
  NoPermission& operator=(const NoPermission&) = delete;
  bool works() const { return !was_root_ || changed_; }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_, changed_;
};

}  // namespace warpsmith

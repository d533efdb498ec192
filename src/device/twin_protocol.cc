#include "twin_protocol.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace warpsmith::device {

void wait_on_word(const std::atomic<std::uint32_t>& word, std::uint32_t seen, double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec limit{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake_word(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
            0);
}

}  // namespace warpsmith::device

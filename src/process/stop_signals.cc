#include "warpsmith/process/stop_signals.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace warpsmith::process {

namespace {

constexpr std::int64_t kOnceNs = 1'000'000'000;

// When each came first, 0: never. What the handler uses must be free of locks.
std::array<std::atomic<std::int64_t>, NSIG> first_ns{};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void on_signal(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  std::int64_t first = 0;
  if (first_ns[signal].compare_exchange_strong(first, ns) || ns - first < kOnceNs) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);  // it is blocked here: it comes when this returns
}

}  // namespace

struct StopSignals::Before {
  int signal = 0;
  struct sigaction action {};
};

StopSignals::StopSignals(std::vector<int> more) {
  more.insert(more.end(), {SIGINT, SIGTERM, SIGHUP});
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : more) {
    before_.push_back({.signal = signal});
    ::sigaction(signal, &action, &before_.back().action);
  }
}

StopSignals::~StopSignals() {
  for (auto& [signal, action] : before_) {
    ::sigaction(signal, &action, nullptr);
    first_ns[signal] = 0;
  }
}

bool StopSignals::asked() {
  return std::ranges::any_of(first_ns, [](const std::atomic<std::int64_t>& ns) { return ns != 0; });
}

bool StopSignals::asked(int signal) { return first_ns[signal] != 0; }

}  // namespace warpsmith::process

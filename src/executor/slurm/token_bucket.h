// Bounds how often something is done: so many at once, so many a second in the long run. Time is the
// caller's.
#pragma once

#include <algorithm>
#include <chrono>

namespace warpsmith::executor {

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  TokenBucket(double per_minute, int burst, Time now)
      : per_second_(per_minute / 60), burst_(burst), tokens_(burst), last_(now) {}

  bool take(Time now) {
    fill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // When the next one is there; not before `now`.
  Time next(Time now) {
    fill(now);
    if (tokens_ >= 1) return now;
    return now + std::chrono::duration_cast<Time::duration>(
                     std::chrono::duration<double>((1 - tokens_) / per_second_));
  }

 private:
  void fill(Time now) {
    tokens_ =
        std::min<double>(burst_, tokens_ + std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
  }
  double per_second_, burst_, tokens_;
  Time last_;
};

}  // namespace warpsmith::executor

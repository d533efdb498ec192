// When a measured speedup counts as one, and whose speedups headlines leave out. Pure functions of numbers.
#pragma once

#include <cstdint>
#include <optional>

namespace warpsmith::stats {

// The bar of CUDA-L1, which counts scores above it.
inline constexpr double kSpeedupBar = 1.01;

// CUDA-L1's count: by the score alone.
constexpr bool is_above_bar(double speedup) { return speedup > kSpeedupBar; }

// `low`: the lower end of the score's 95 % interval. How wide the interval is does not matter: what is known
// badly needs more to lie above the bar.
constexpr bool is_win(double low) { return low > kSpeedupBar; }

// Programs or tasks that are counted together: wins, and CUDA-L1's count beside them.
struct WinCount {
  std::int64_t of = 0, wins = 0, above = 0;
  void add(bool win, double speedup) {
    ++of;
    wins += win;
    above += is_above_bar(speedup);
  }
  double win_share() const { return share(wins); }
  double above_share() const { return share(above); }

 private:
  double share(std::int64_t n) const { return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 0; }
};

// Whether a task's baseline waits for the host on a device, so that its speedups are launches saved, not
// kernels: most of the measurements there that know it say so. Headlines leave such tasks out, and count
// them.
class HostBound {
 public:
  void add(std::optional<bool> says) {
    if (says) balance_ += *says ? 1 : -1;
  }
  bool holds() const { return balance_ > 0; }

 private:
  std::int64_t balance_ = 0;
};

}  // namespace warpsmith::stats

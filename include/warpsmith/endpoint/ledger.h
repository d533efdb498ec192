// What requests to a server may cost, and how often they may be sent. Neither asks a clock or a server: both
// are told.
#pragma once

#include <cstdint>

namespace warpsmith::endpoint {

struct Tokens {
  std::uint64_t prompt = 0, completion = 0;
  std::uint64_t all() const { return prompt + completion; }
  Tokens& operator+=(const Tokens& other);
  friend bool operator==(const Tokens&, const Tokens&) = default;
};

// In one currency, whichever it is, for a million tokens.
struct Prices {
  double prompt = 0, completion = 0;
  double of(const Tokens& tokens) const;
};

// 0: no limit.
struct Budget {
  std::uint64_t tokens = 0;
  double money = 0;
};

// Keeps a budget from being passed: each open request holds back the most that it may take, until its answer
// says what it took.
class Ledger {
 public:
  Ledger(const Budget& budget, const Prices& prices) : budget_(budget), prices_(prices) {}
  // False, and nothing is held back, where that might pass the budget.
  bool hold(const Tokens& most);
  // An answer came: `used` instead of `held`.
  void settle(const Tokens& held, const Tokens& used);
  // No answer came, and none will be paid for: the server refused.
  void release(const Tokens& held);
  // What was in flight when an earlier process died: it is taken to have cost all that it might.
  void lose(const Tokens& held);

  const Tokens& spent() const { return spent_; }
  const Tokens& lost() const { return lost_; }  // part of spent()
  const Tokens& held() const { return held_; }
  double money() const { return prices_.of(spent_); }

 private:
  Budget budget_;
  Prices prices_;
  Tokens spent_, lost_, held_;
};

// At most so much a minute, at an even pace, with room for `burst` minutes' worth after a pause.
class Pace {
 public:
  // `a_minute` 0: no limit.
  explicit Pace(double a_minute, double burst = 0.1) : a_second_(a_minute / 60), most_(a_minute * burst) {}
  // Seconds from `now_s` (on any clock that never goes back) until `amount` may be taken; 0: now. An amount
  // that is more than the burst waits for a full one.
  double wait_s(double now_s, double amount);
  void take(double now_s, double amount);
  // It was `by` more or, if negative, less than was taken.
  void correct(double by) { room_ -= by; }

 private:
  void fill(double now_s);
  double a_second_, most_, room_ = 0, filled_s_ = 0;
  bool begun_ = false;
};

}  // namespace warpsmith::endpoint

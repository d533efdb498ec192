#include "warpsmith/endpoint/ledger.h"

#include <algorithm>

namespace warpsmith::endpoint {

namespace {

void take_from(Tokens& sum, const Tokens& part) {
  sum.prompt -= std::min(sum.prompt, part.prompt);
  sum.completion -= std::min(sum.completion, part.completion);
}

}  // namespace

Tokens& Tokens::operator+=(const Tokens& other) {
  prompt += other.prompt;
  completion += other.completion;
  return *this;
}

double Prices::of(const Tokens& tokens) const {
  return (prompt * static_cast<double>(tokens.prompt) + completion * static_cast<double>(tokens.completion)) /
         1e6;
}

bool Ledger::hold(const Tokens& most) {
  Tokens all = spent_;
  all += held_;
  all += most;
  if (budget_.tokens > 0 && all.all() > budget_.tokens) return false;
  if (budget_.money > 0 && prices_.of(all) > budget_.money) return false;
  held_ += most;
  return true;
}

void Ledger::settle(const Tokens& held, const Tokens& used) {
  release(held);
  spent_ += used;
}

void Ledger::release(const Tokens& held) { take_from(held_, held); }

void Ledger::lose(const Tokens& held) {
  spent_ += held;
  lost_ += held;
}

void Pace::fill(double now_s) {
  if (!begun_) room_ = most_;
  if (begun_) room_ = std::min(most_, room_ + (now_s - filled_s_) * a_second_);
  begun_ = true;
  filled_s_ = now_s;
}

double Pace::wait_s(double now_s, double amount) {
  if (a_second_ <= 0) return 0;
  fill(now_s);
  const double wanted = std::min(amount, most_);
  return room_ >= wanted ? 0 : (wanted - room_) / a_second_;
}

void Pace::take(double now_s, double amount) {
  if (a_second_ <= 0) return;
  fill(now_s);
  room_ -= amount;
}

}  // namespace warpsmith::endpoint

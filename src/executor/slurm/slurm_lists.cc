// What sbatch reads as --constraint and --exclude.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "warpsmith/executor/site_check.h"

namespace warpsmith::executor {

namespace {

constexpr std::size_t kMostHosts = 100'000;

// From left to right, as Slurm reads it: & and | bind alike. Brackets are about several nodes; for the one
// node of a job they are parentheses.
class Constraint {
 public:
  Constraint(std::string_view text, const std::vector<std::string>& features)
      : text_(text), features_(features) {}

  std::optional<bool> read() {
    const bool value = expression();
    if (!good_ || at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  bool expression() {
    bool value = term();
    while (good_ && at_ < text_.size() && (text_[at_] == '&' || text_[at_] == ',' || text_[at_] == '|')) {
      const bool either = text_[at_++] == '|';
      const bool next = term();
      value = either ? value || next : value && next;
    }
    return value;
  }

  bool term() {
    if (take('!')) return !term();
    for (const char* pair : {"()", "[]"})
      if (take(pair[0])) {
        const bool value = expression();
        good_ = take(pair[1]) && good_;
        return value;
      }
    const std::size_t end = std::min(text_.find_first_of("&|,!()[]*", at_), text_.size());
    const std::string_view feature = text_.substr(at_, end - at_);
    good_ = good_ && !feature.empty();
    at_ = end;
    if (take('*'))  // a number of nodes
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return std::find(features_.begin(), features_.end(), feature) != features_.end();
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  const std::vector<std::string>& features_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// One range of brackets, "07" or "1-3", with the zeros that its first number begins with.
bool add_range(std::string_view range, const std::string& before, const std::vector<std::string>& after,
               std::vector<std::string>& out) {
  const std::string_view first = range.substr(0, range.find('-'));
  const std::string_view last = first.size() < range.size() ? range.substr(first.size() + 1) : first;
  std::size_t from = 0, to = 0;
  for (const auto& [text, value] : {std::pair(first, &from), std::pair(last, &to)}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  }
  if (from > to || to - from >= kMostHosts) return false;
  for (std::size_t n = from; n <= to; ++n) {
    std::string number = std::to_string(n);
    if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
    for (const std::string& tail : after) out.push_back(before + number + tail);
    if (out.size() > kMostHosts) return false;
  }
  return true;
}

bool add_hosts(std::string_view name, std::vector<std::string>& out) {
  const std::size_t open = name.find('['), close = name.find(']');
  if (open == std::string_view::npos) {
    if (name.empty() || close != std::string_view::npos) return false;
    out.emplace_back(name);
    return true;
  }
  if (close == std::string_view::npos || close < open) return false;
  std::vector<std::string> after;
  const std::string_view tail = name.substr(close + 1);
  if (tail.empty())
    after.emplace_back();
  else if (!add_hosts(tail, after))
    return false;
  std::string_view ranges = name.substr(open + 1, close - open - 1);
  for (std::size_t comma = 0; comma != std::string_view::npos; ranges.remove_prefix(comma + 1)) {
    comma = ranges.find(',');
    if (!add_range(ranges.substr(0, comma), std::string(name.substr(0, open)), after, out)) return false;
    if (comma == std::string_view::npos) break;
  }
  return true;
}

}  // namespace

std::optional<bool> has_features(std::string_view constraint, const std::vector<std::string>& features) {
  return Constraint(constraint, features).read();
}

std::optional<std::vector<std::string>> expand_hosts(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0, depth = 0, at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']' && depth > 0) --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    if (!add_hosts(list.substr(begin, at - begin), out)) return std::nullopt;
    begin = at + 1;
  }
  return out;
}

}  // namespace warpsmith::executor

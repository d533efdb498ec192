#include "html_text.h"

#include <fmt/format.h>

#include "warpsmith/base/terminal_text.h"

namespace warpsmith::report {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : terminal_text(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string with_interval(double share, const std::optional<stats::Interval>& interval) {
  if (!interval) return percent(share);
  return percent(share) +
         fmt::format(" <small>[{:.1f}, {:.1f}]</small>", 100 * interval->low, 100 * interval->high);
}

std::string speedup_with_interval(double speedup, const std::optional<stats::Interval>& interval) {
  if (!interval) return fmt::format("{:.2f}×", speedup);
  return fmt::format("{:.2f}× <small>[{:.2f}, {:.2f}]</small>", speedup, interval->low, interval->high);
}

std::string times(double speedup) { return fmt::format("{:.2f}×", speedup); }

std::string microseconds(double ns) { return fmt::format("{:.1f} µs", ns / 1e3); }

std::string range_words(std::int64_t least, std::int64_t most) {
  return least == most ? std::to_string(most) : fmt::format("{}–{}", least, most);
}

std::string group_title(const std::string& group) {
  if (group == "train") return "trained tasks";
  if (group == "heldout_combination") return "held out: new combinations";
  if (group == "heldout_operation") return "held out: new operations";
  if (group == "heldout_length") return "held out: longer chains";
  if (group == "heldout_people") return "held out: tasks that people wrote";
  return group;
}

}  // namespace warpsmith::report

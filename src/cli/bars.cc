#include "bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "progress.h"
#include "table.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

constexpr std::size_t kLeastColumns = 20;

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

std::string repeated(const char* text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// A piece of a line; of those that do not fit, the ones of the highest rank go first.
struct Part {
  std::string text;
  int rank = 0;
};

std::string fitted(std::vector<Part> parts, std::size_t width, bool unicode) {
  std::erase_if(parts, [](const Part& part) { return part.text.empty(); });
  const auto joined = [&] {
    std::string out;
    for (const Part& part : parts) out += (out.empty() ? "" : "  ") + part.text;
    return out;
  };
  while (parts.size() > 1 && characters(joined()) > width)
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  return shortened(joined(), width, unicode);
}

std::string padded(const std::string& text, std::size_t width, bool unicode) {
  const std::string cut = shortened(text, width, unicode);
  return cut + std::string(width - characters(cut), ' ');
}

// "finished" stages and those that ended otherwise: state, time, figures.
std::string ended_line(const CommandContext& context, const Screen& screen, const Json& stage,
                       std::size_t names) {
  const ShownState shown = shown_state(stage, true);
  const double s = stage.value("seconds", 0.0);
  const Json progress = stage.value("progress", Json::object());
  const std::string name = padded(stage.value("stage", ""), names, screen.unicode) + "  ";
  const std::size_t left = screen.columns - 1 - std::min(screen.columns - 1, characters(name) + 2);
  const std::string state = padded(shown.text, std::min<std::size_t>(10, left), screen.unicode);
  const std::string rest = fitted({{stage.value("failure", ""), 0},
                                   {s > 0 ? seconds_text(s) : "", 1},
                                   {valid_text(progress), 3},
                                   {best_text(progress), 2},
                                   {loss_text(progress), 4}},
                                  left - std::min(left, characters(state)), screen.unicode);
  return name + paint(context, shown.colour, rest.empty() ? trim(state) : state) +
         (rest.empty() ? "" : "  " + rest);
}

}  // namespace

Screen screen_of(std::FILE* to) {
  Screen screen;
  if (const TerminalSize size = terminal_size(to); size.columns > 0 && size.rows > 0) {
    screen.columns = std::max(kLeastColumns, size.columns);
    screen.rows = size.rows;
  }
  screen.unicode = is_utf8_locale();
  return screen;
}

std::string bar(std::uint64_t done, std::uint64_t total, std::size_t width, bool unicode) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (width == 0) return "";
  if (total == 0) return repeated(unicode ? "─" : "-", width);
  const std::size_t steps = unicode ? 8 * width : width;
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  auto filled = static_cast<std::size_t>(share * static_cast<double>(steps));
  if (done > 0) filled = std::max<std::size_t>(filled, 1);
  if (done < total) filled = std::min(filled, steps - 1);
  if (!unicode) return std::string(filled, '#') + std::string(width - filled, '.');
  const std::size_t part = filled % 8;
  return repeated("█", filled / 8) + kEighths[part] + repeated("·", width - filled / 8 - (part > 0 ? 1 : 0));
}

std::string shortened(const std::string& text, std::size_t width, bool unicode) {
  if (characters(text) <= width) return text;
  if (width == 0) return "";
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if ((text[bytes] & 0xC0) == 0x80) continue;
    if (++seen == width) break;  // the place of the mark
  }
  return text.substr(0, bytes) + (unicode ? "…" : "~");
}

std::size_t name_width(const Json& stages, const Screen& screen) {
  std::size_t width = 5;
  for (const Json& stage : stages) width = std::max(width, characters(stage.value("stage", "")));
  return std::min(width, std::max<std::size_t>(screen.columns / 4, 8));
}

std::string running_line(const CommandContext& context, const Screen& screen, const Json& stage, double rate,
                         std::size_t names) {
  const std::size_t bar_width = std::clamp<std::size_t>(screen.columns / 6, 4, 24);
  const Json progress = stage.value("progress", Json::object());
  const Done all = done_of(stage);
  const int rounds = progress.value("rounds", 0);
  const std::string round =
      rounds > 1 ? fmt::format("round {}/{}", std::clamp(progress.value("round", 0), 1, rounds), rounds) : "";
  const std::string head = padded(stage.value("stage", ""), names, screen.unicode) + "  ";
  const std::size_t taken = names + 2 + bar_width + 2;
  const std::string rest = fitted({{jobs_text(stage), 0},
                                   {rate > 0 ? rate_text(rate) : "", 5},
                                   {rate > 0 && all.done < all.items ? left_text(all, rate) : "", 1},
                                   {round, 2},
                                   {valid_text(progress), 3},
                                   {best_text(progress), 4},
                                   {loss_text(progress), 6},
                                   {device_text(stage), 7}},
                                  screen.columns - 1 - std::min(screen.columns - 1, taken), screen.unicode);
  return head + paint(context, "green", bar(all.done, all.items, bar_width, screen.unicode)) +
         (rest.empty() ? "" : "  " + rest);
}

std::string watch_text(const CommandContext& context, const Screen& screen, const std::string& head,
                       const Json& state, const std::map<std::string, double>& rates) {
  const auto cut = [&](const std::string& line) {
    return shortened(line, screen.columns - 1, screen.unicode) + "\n";
  };
  const std::size_t names = name_width(state.at("stages"), screen);
  std::vector<std::string> ended, others, behind;
  std::string waiting;
  std::size_t wait = 0;
  for (const Json& stage : state.at("stages")) {
    const std::string is = stage.value("state", ""), name = stage.value("stage", "");
    const auto rate = rates.find(name);
    if (is == "running")
      others.push_back(running_line(context, screen, stage, rate == rates.end() ? 0 : rate->second, names) +
                       "\n");
    else if (is == "finished")
      ended.push_back(ended_line(context, screen, stage, names) + "\n");
    else if (is != "waiting")
      others.push_back(ended_line(context, screen, stage, names) + "\n");
    else
      waiting += (wait++ == 0 ? "" : ", ") + name;
  }
  if (wait > 0) behind.push_back(cut(fmt::format("{} waiting: {}", wait, waiting)));
  for (const std::string& line : doubt_lines(state)) behind.push_back(paint(context, "yellow", cut(line)));
  for (const std::string& line :
       split_lines(hours_line(state) + queue_text(state.value("executor", Json::object()))))
    behind.push_back(cut(trim(line)));
  if (ended.size() > 1 && 1 + ended.size() + others.size() + behind.size() >= screen.rows)
    ended = {cut(fmt::format("{} stages finished", ended.size()))};
  std::string out = cut(head);
  std::size_t lines = 2;  // the head, and where the cursor stands
  for (const auto* part : {&ended, &others, &behind})
    for (const std::string& line : *part)
      if (lines++ < std::max<std::size_t>(screen.rows, 3)) out += line;
  return out;
}

}  // namespace warpsmith::cli

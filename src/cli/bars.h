// A run as a terminal shows it while it goes: a line a stage, with a bar where it runs. Pure but for
// screen_of(): the state, the rates and the screen are handed in.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

struct Screen {
  std::size_t columns = 80, rows = 24;
  bool unicode = false;  // the locale is UTF-8
};
// Of the terminal behind `to`, as it is now.
Screen screen_of(std::FILE* to);

// `width` places, filled by `done` of `total`: eighths of blocks, or `#` and `.`. Whatever is done shows, and
// only all is full. `total` 0: how much there is to do is not known, a line without beginning or end.
std::string bar(std::uint64_t done, std::uint64_t total, std::size_t width, bool unicode);

// `text` in at most `width` places; what is cut ends with a mark.
std::string shortened(const std::string& text, std::size_t width, bool unicode);

// A running stage of state.json: "rl  ████▌···  measure 36/96  2.0/s  30s left  round 2/8  valid 54%  best
// 3.21x". What does not fit is left out, the least important first. `rate`: items a second; 0: not known.
// `names`: what names take, as name_width() says.
std::string running_line(const CommandContext& context, const Screen& screen, const Json& stage, double rate,
                         std::size_t names);
// Of all names in `stages`, what a column of them takes on the screen.
std::size_t name_width(const Json& stages, const Screen& screen);

// The whole run: `head`, a line for each stage that has begun or failed, one for those that wait, and what
// else is to be known. Fits the screen; where it is low, finished stages share a line. `rates` by stage.
std::string watch_text(const CommandContext& context, const Screen& screen, const std::string& head,
                       const Json& state, const std::map<std::string, double>& rates);

}  // namespace warpsmith::cli

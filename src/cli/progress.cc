#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "bars.h"
#include "print.h"
#include "table.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

std::string job_key(const Json& stage) {
  std::string key = stage.value("stage", "");
  for (const Json& job : stage.value("jobs", Json::array()))
    key += " " + std::to_string(job.value("round", 0)) + "/" + job.value("job", "");
  return key;
}

bool has_number(const Json& p, const char* key) { return p.contains(key) && p.at(key).is_number(); }

// "  best 2.31x  median 1.05x": the figures that a stage tells of its last round, each behind two blanks.
std::string figures(const Json& p) {
  std::string out;
  const auto add = [&](const std::string& part) { out += part.empty() ? "" : "  " + part; };
  add(best_text(p));
  if (has_number(p, "median")) add(fmt::format("median {:.2f}x", p.at("median").get<double>()));
  if (has_number(p, "wins"))
    add(fmt::format("of the correct: wins {:.0f}%, scores above 1.01x {:.0f}%",
                    100 * p.at("wins").get<double>(), 100 * p.value("above_1_01", 0.0)));
  if (const auto tasks = p.value("host_bound", std::size_t{0}); tasks > 0)
    add(fmt::format("without {} task{} bound by the host", tasks, tasks == 1 ? "" : "s"));
  add(valid_text(p));
  if (const std::string note = p.value("note", ""); !note.empty()) add(note);
  if (const Json skip = p.value("skip", Json::object()); skip.contains("note")) {
    add(skip.value("note", ""));
  } else if (skip.value("guessed", 0) > 0) {
    add(fmt::format("skipped {} of {} compiled, {} measured blindly", skip.value("skipped", 0),
                    skip.value("guessed", 0), skip.value("blind", 0)));
    if (skip.contains("rank_correlation"))
      out += fmt::format(" (rank correlation {:.2f})", skip.at("rank_correlation").get<double>());
  }
  add(loss_text(p));
  return out;
}

std::string device_mark(const Json& stage) {
  const std::string text = device_text(stage);
  return text.empty() ? "" : "  " + text;
}

}  // namespace

void RateMeter::see(double now_s, std::uint64_t done) {
  if (!any_ || done < last_done_) {
    any_ = true;
    first_s_ = now_s;
    first_done_ = done;
    rate_ = 0;
  } else if (now_s - first_s_ > 0.5 && done > first_done_) {
    rate_ = static_cast<double>(done - first_done_) / (now_s - first_s_);
  }
  last_done_ = done;
}

bool StageRates::see(double now_s, const Json& stage) {
  const std::string name = stage.value("stage", ""), key = job_key(stage);
  const bool changed = std::exchange(jobs_[name], key) != key;
  if (changed) meters_[name] = {};
  meters_[name].see(now_s, done_of(stage).done);
  per_s_[name] = meters_[name].per_s();
  return changed;
}

double StageRates::per_s(const std::string& stage) const {
  const auto found = per_s_.find(stage);
  return found == per_s_.end() ? 0 : found->second;
}

std::string seconds_text(double seconds) {
  return format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

Done done_of(const Json& stage) {
  Done all;
  for (const Json& job : stage.value("jobs", Json::array())) {
    const auto items = job.value("items", std::uint64_t{0});
    all.items += items;
    all.done += std::min(job.value("done", std::uint64_t{0}), items);
  }
  return all;
}

std::string jobs_text(const Json& stage) {
  std::string text;
  const int ahead = stage.value("progress", Json::object()).value("ahead", 0);
  for (const Json& job : stage.value("jobs", Json::array())) {
    text += fmt::format("{}{} {}/{}", text.empty() ? "" : "  ", job.value("job", ""),
                        job.value("done", std::uint64_t{0}), job.value("items", std::uint64_t{0}));
    if (ahead > 0 && job.value("round", 0) == ahead) text += fmt::format(" of round {}", ahead);
    if (const int failed = job.value("shards_failed", 0); failed > 0)
      text += fmt::format(" ({} shards failed)", failed);
  }
  return text;
}

std::string rate_text(double per_s) { return fmt::format("{:.{}f}/s", per_s, per_s < 10 ? 1 : 0); }

std::string left_text(const Done& done, double per_s) {
  return seconds_text(static_cast<double>(done.items - done.done) / per_s) + " left";
}

std::string best_text(const Json& p) {
  if (!has_number(p, "best")) return "";
  const std::string author = p.value("best_author", "generated");
  return fmt::format("best {:.2f}x{}", p.at("best").get<double>(),
                     author == "generated" ? "" : " (" + author + ")");
}

std::string valid_text(const Json& p) {
  if (!has_number(p, "valid_share")) return "";
  std::string text = fmt::format("valid {:.0f}%", 100 * p.at("valid_share").get<double>());
  if (p.value("known", 0) > 0)
    text += fmt::format(" ({} of {} novel)", p.value("novel", 0), p.value("novel", 0) + p.value("known", 0));
  return text;
}

std::string loss_text(const Json& p) {
  return has_number(p, "loss") ? fmt::format("loss {:.3f}", p.at("loss").get<double>()) : "";
}

std::string device_text(const Json& stage) {
  const std::string found = stage.value("device_found", "");
  if (found == "twin") return "on the CPU twin";
  return found == "none" ? "no " + stage.value("device", "") : "";
}

ShownState shown_state(const Json& stage, bool run_goes_on) {
  const std::string name = stage.value("state", "");
  const bool skipped = name == "finished" && !stage.value("ran", false);
  return {name == "waiting" && !run_goes_on ? "not run"
          : skipped                         ? stage.value("action", "")
                                            : name,
          name == "failed" || name == "blocked" ? "red"
          : name == "running"                   ? "yellow"
          : name == "finished"                  ? "green"
                                                : "dim"};
}

std::string stage_line(const Json& stage, double rate) {
  std::string line = stage.value("stage", "");
  const Json progress = stage.value("progress", Json::object());
  if (const int rounds = progress.value("rounds", 0); rounds > 1)
    line += fmt::format("  round {}/{}", std::clamp(progress.value("round", 0), 1, rounds), rounds);
  if (const std::string jobs = jobs_text(stage); !jobs.empty()) line += "  " + jobs;
  if (rate > 0) line += "  " + rate_text(rate) + "  " + left_text(done_of(stage), rate);
  return line + figures(progress) + device_mark(stage);
}

std::vector<std::string> doubt_lines(const Json& state) {
  std::vector<std::string> lines;
  for (const Json& doubt : state.value("doubted_gpus", Json::array()))
    lines.push_back("warning: " + doubt.value("text", ""));
  return lines;
}

std::string hours_line(const Json& state) {
  const double used = state.value("gpu_hours", 0.0), asked = state.value("gpu_hours_asked", 0.0);
  if (used <= 0 && asked <= 0) return "";
  std::string line = fmt::format("  GPU-hours: {:.3g} used", used);
  if (asked > 0) line += fmt::format(", {:.3g} asked by the shards in flight, at their time limits", asked);
  return line + "\n";
}

std::string state_table(const CommandContext& context, const Json& state) {
  Table table({{.head = "", .least = 5}, {.head = "", .least = 12}, {.head = "", .right = true}, {}}, 2);
  for (const Json& stage : state.at("stages")) {
    const ShownState shown = shown_state(stage, state.value("state", "") == "running");
    const double s = stage.value("seconds", 0.0);
    std::string said = stage.value("state", "") == "running"
                           ? stage_line(stage, 0).substr(stage.value("stage", "").size())
                           : figures(stage.value("progress", Json::object())) + device_mark(stage);
    if (stage.contains("failure")) said += "  " + stage.at("failure").get<std::string>();
    table.add(
        {stage.value("stage", ""), {shown.text, shown.colour}, s > 0 ? seconds_text(s) : "", trim(said)});
  }
  std::string out = table.text(context);
  for (const std::string& line : doubt_lines(state)) out += paint(context, "yellow", "  " + line) + "\n";
  const Json phases = state.value("phase_s", Json::object());
  if (!phases.empty()) {
    out += "  time by phase, of all shards:";
    for (const auto& [job, s] : phases.items())
      out += fmt::format("  {} {}", job, seconds_text(s.get<double>()));
    out += "\n";
  }
  return out + hours_line(state);
}

std::string time_text(std::time_t time) {
  char text[32] = {};
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string queue_text(const Json& queue, const std::string& stage) {
  // By names: items() of a temporary outlives it.
  const Json shards = queue.value("shards", Json::object()), gpus = queue.value("gpus", Json::object());
  std::string out;
  for (const auto& [what, count] : shards.items())
    out += fmt::format("{}{} {}", out.empty() ? "  queue: " : ", ", count.get<std::size_t>(), what);
  for (const auto& [type, count] : gpus.items())
    out += fmt::format("{}{} x {}", out.empty() ? "  in use: " : ", ", count.get<std::size_t>(), type);
  if (!out.empty()) out += "\n";
  if (const std::int64_t next = queue.value("next_start", std::int64_t{0}); next > 0) {
    const std::int64_t left = std::max<std::int64_t>(0, next - std::time(nullptr));
    out +=
        fmt::format("  next start as Slurm expects it: {} ({})\n", time_text(static_cast<std::time_t>(next)),
                    left == 0 ? "now" : "in " + format_duration(std::chrono::seconds(left)));
  }
  for (const Json& held : queue.value("held", Json::array())) {
    if (!stage.empty() && held.value("stage", "") != stage) continue;
    const std::string tasks = held.value("tasks", ""), reason = held.value("reason", "");
    out += fmt::format("  held: Slurm job {} of stage {} ({}): it starts after `scontrol release '{}'`{}\n",
                       tasks, held.value("stage", ""), reason, tasks,
                       reason == "JobHeldAdmin" ? ", which only an administrator may do" : "");
  }
  if (const std::string trouble = queue.value("trouble", ""); !trouble.empty()) out += "  " + trouble + "\n";
  return out;
}

void ProgressPrinter::clear() {
  erase_lines(stderr, drawn_);
  drawn_ = 0;
}

void ProgressPrinter::on_state(const Json& state) {
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const double now_s = std::chrono::duration<double>(now.time_since_epoch()).count();
  const Screen screen = screen_of(stderr);
  const std::size_t names = name_width(state.at("stages"), screen);
  std::vector<std::string> lines;
  for (const Json& stage : state.at("stages")) {
    if (stage.value("state", "") != "running") continue;
    const std::string name = stage.value("stage", "");
    const bool changed = rates_.see(now_s, stage);
    if (terminal_) {
      lines.push_back(running_line(context_, screen, stage, rates_.per_s(name), names));
    } else if (changed || now - last_line_[name] > std::chrono::seconds(30)) {
      last_line_[name] = now;
      print_error("%s\n", stage_line(stage, rates_.per_s(name)).c_str());
    }
  }
  if (!terminal_) return;
  clear();
  for (const std::string& line : lines) print_error("%s\n", line.c_str());
  drawn_ = static_cast<int>(lines.size());
}

void ProgressPrinter::on_message(const std::string& message) {
  clear();
  log_warning(message);
}

void ProgressPrinter::on_news(const std::string& message) {
  clear();
  log_info(message);
}

}  // namespace warpsmith::cli

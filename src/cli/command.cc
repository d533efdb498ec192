#include "warpsmith/cli/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>

#include "warpsmith/base/files.h"

namespace warpsmith::cli {

CLI::App* add_command(CLI::App& app, CommandContext& context, const std::string& name,
                      const std::string& what, const std::string& example, std::function<int()> action) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer("Example:\n  " + example);
  command->callback([&context, action = std::move(action)] { context.action = action; });
  return command;
}

void add_json_flag(CLI::App& command, CommandContext& context) {
  command.add_flag("--json", context.json, "Answer with one JSON value on stdout");
}

void add_seed_option(CLI::App& command, std::optional<std::uint64_t>& seed) {
  command.add_option_function<std::string>(
      "--seed",
      [&seed](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < 0)
          throw CLI::ValidationError("--seed", "`" + text + "` is no number from 0 to 2^63 - 1");
        seed = static_cast<std::uint64_t>(value);
      },
      "Seed instead of the file's");
}

fs::path find_run(const CommandContext& context, const std::string& name) {
  std::error_code error;
  if (!name.empty()) {
    for (const fs::path& folder : {fs::path(name), context.results / name})
      if (fs::exists(folder / "run.json", error)) return folder;
    throw Error("there is no run `" + name + "`: neither it nor " + (context.results / name).string() +
                    " holds a run.json (`warpsmith list` shows the runs)",
                kExitUsage);
  }
  fs::path newest;
  fs::file_time_type newest_time{};
  for (fs::directory_iterator it(context.results, error), end; !error && it != end; it.increment(error)) {
    std::error_code missing;
    for (const char* file : {"state.json", "run.json"}) {
      const auto time = fs::last_write_time(it->path() / file, missing);
      if (missing) continue;
      if (newest.empty() || time > newest_time) {
        newest = it->path();
        newest_time = time;
      }
      break;
    }
  }
  if (newest.empty())
    throw Error("there is no run in " + context.results.string() + " (start one: `warpsmith run FILE.yaml`)",
                kExitUsage);
  return newest;
}

void print_json(const CommandContext& context, const Json& value) {
  std::printf("%s\n",
              value.dump(context.terminal ? 2 : -1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_diagnostics(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics) std::fprintf(stderr, "%s\n", to_string(d).c_str());
}

std::string paint(const CommandContext& context, std::string_view colour, std::string_view text) {
  if (!context.colour) return std::string(text);
  const char* code = colour == "red"      ? "31"
                     : colour == "green"  ? "32"
                     : colour == "yellow" ? "33"
                     : colour == "bold"   ? "1"
                                          : "2";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace warpsmith::cli

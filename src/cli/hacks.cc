// `warpsmith hacks [WHERE] [--into FOLDER]`: the confirmed cases of cheating of a run or a database; adds
// them to a database.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "print.h"
#include "table.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/time.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/method/hacks.h"
#include "warpsmith/store/hacks.h"
#include "warpsmith/workflow/hack_database.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string where, into;
};

struct Found {
  fs::path folder;
  bool is_run = false;
  std::vector<HackCase> cases;
};

std::vector<HackCase> read_database(const fs::path& folder) {
  Diagnostics mistakes;
  auto database = workflow::load_hack_database(folder, mistakes);
  if (!database) throw InvalidInput(std::move(mistakes));
  return std::move(database->cases);
}

Found find_cases(const CommandContext& context, const std::string& where) {
  const bool is_run = where.empty() || path_exists(fs::path(where) / "run.json") ||
                      path_exists(context.results / where / "run.json");
  if (is_run) {
    const fs::path run = find_run(context, where);
    return {run, true, store::read_hacks(run)};
  }
  if (!is_folder(where))
    throw Error(
        "there is no run and no hack database `" + where +
            "` (`warpsmith list` shows the runs; `warpsmith hacks RUN --into FOLDER` makes a database)",
        kExitUsage);
  return {where, false, read_database(where)};
}

Json to_json(const HackCase& c) {
  Json json = {{"candidate", c.candidate.id},
               {"task", c.candidate.task},
               {"tier", to_string(c.candidate.tier)},
               {"verdict", to_string(c.verdict)},
               {"kind", c.kind},
               {"reason", c.reason},
               {"device", c.device},
               {"device_name", c.device_name},
               {"run", c.run},
               {"stage", c.stage},
               {"round", c.round}};
  if (!c.date.empty()) json["date"] = c.date;
  return json;
}

// What a record or a shared file says is printed as plain text: it may hold a terminal's control characters.
std::vector<Table::Cell> cells_of(const HackCase& c, const std::string& note) {
  constexpr std::size_t kLongestWord = 40, kLongestReason = 100;
  const auto plain = [](const std::string& text, std::size_t most) { return method::plain_line(text, most); };
  return {c.candidate.id.substr(0, 8),
          plain(c.kind, kLongestWord),
          std::string(to_string(c.candidate.tier)),
          plain(c.candidate.task, kLongestWord),
          plain(c.device.empty() ? "-" : c.device, kLongestWord),
          plain(c.stage.empty() ? "-" : fmt::format("{}/{}", c.stage, c.round), kLongestWord),
          note + plain(c.reason, kLongestReason)};
}

void print_list(const Found& found, const std::vector<workflow::AddedHack>& added,
                const CommandContext& context) {
  if (found.cases.empty()) {
    print("%s holds no confirmed case.\n", found.folder.string().c_str());
    return;
  }
  Table table({{"program"}, {"kind"}, {"tier"}, {"task"}, {"device"}, {"stage/round"}, {"reason"}});
  for (std::size_t i = 0; i < found.cases.size(); ++i) {
    const bool left = i < added.size() && !added[i].added;
    table.add(cells_of(found.cases[i], left ? "(there already) " : ""));
  }
  print_text(stdout, table.text(context));
}

int hacks(const Options& options, CommandContext& context) {
  const Found found = find_cases(context, options.where);
  std::vector<workflow::AddedHack> added;
  if (!options.into.empty()) added = workflow::add_to_hack_database(options.into, found.cases, utc_now());
  std::size_t fresh = 0;
  for (const workflow::AddedHack& one : added) fresh += one.added;
  if (context.json) {
    Json list = Json::array();
    for (const HackCase& c : found.cases) list.push_back(to_json(c));
    for (std::size_t i = 0; i < added.size(); ++i)
      list[i].update({{"folder", added[i].name}, {"added", added[i].added}});
    Json answer = {{found.is_run ? "run" : "database", found.folder.string()}, {"cases", std::move(list)}};
    if (!options.into.empty()) answer["into"] = options.into;
    print_json(context, answer);
    return kExitOk;
  }
  print_list(found, added, context);
  if (!options.into.empty())
    print("%zu added to %s, %zu there already and left alone\n", fresh, options.into.c_str(),
          added.size() - fresh);
  return kExitOk;
}

}  // namespace

void add_hacks(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, context, "hacks", "Lists programs that were found out, and keeps them in a database",
      "warpsmith hacks quickstart --into hacks", [options, &context] { return hacks(*options, context); });
  expect(Word::kRun,
         command->add_option("WHERE", options->where,
                             "Name or folder of a run, or a hack database (default: the run changed last)"));
  command->add_option("--into", options->into, "Hack database to which the cases are added");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

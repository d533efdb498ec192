// warpsmith report [RUN]: writes report.html, one file that works offline; warpsmith open [RUN]: shows it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "named_results.h"
#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/controller/device_doubts.h"
#include "warpsmith/process/program_path.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, output;
};

constexpr const char* kAlone =
    "Made from results.h5 alone. The folder of the run has more: the currency of sums of money, doubts about "
    "GPUs, logs of programs.";

void write_page(const NamedResults& named, const fs::path& page) {
  store::Results results = store::current_versions(named.results);
  if (!named.is_alone) controller::note_doubts(named.file.parent_path(), results);
  write_file_atomic(page, report::html(results, named.is_alone ? kAlone : ""));
}

int write_report(const Options& options, const CommandContext& context) {
  const NamedResults named = named_results(context, options.run);
  const fs::path output =
      options.output.empty() ? named.file.parent_path() / "report.html" : fs::path(options.output);
  write_page(named, output);
  if (context.json)
    print_json(context, {{"report", output.string()}, {"results", named.file.string()}});
  else
    print("%s\n", output.string());
  return kExitOk;
}

// The words of the command that shows `page`; empty: there is no browser. BROWSER may name several, separated
// by `:`, each with %s where the page belongs.
std::vector<std::string> browser_command(const std::string& page) {
  const char* wanted = std::getenv("BROWSER");
  for (const std::string& browser : split(wanted == nullptr ? "" : wanted, ':')) {
    std::vector<std::string> words = split(browser, ' ');
    std::erase(words, "");
    if (words.empty() || process::find_program(words.front()).empty()) continue;
    if (browser.find("%s") == std::string::npos) words.emplace_back("%s");
    for (std::string& word : words) word = replaced(word, "%s", page);
    return words;
  }
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if ((is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !process::find_program("xdg-open").empty())
    return {"xdg-open", page};
  return {};
}

// This process becomes the browser, which may want the terminal.
int open_report(const std::string& name, const CommandContext& context) {
  const fs::path run = find_run(context, name), page = fs::absolute(run / "report.html").lexically_normal();
  controller::aggregate_run(run);
  if (!path_exists(page) || fs::last_write_time(page) < fs::last_write_time(run / "results.h5"))
    write_page({run / "results.h5", controller::stored_results(run)}, page);
  print("%s\n", page.string());
  std::fflush(stdout);
  std::vector<std::string> words = browser_command(page.string());
  if (words.empty()) return kExitOk;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  throw Error("the browser " + words.front() + " does not start", kExitEnvironment, errno);
}

}  // namespace

void add_report(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "report", "Writes a run's report: one HTML file that works offline",
                  "warpsmith report quickstart --output report.html",
                  [options, &context] { return write_report(*options, context); });
  add_results_argument(*command, options->run);
  command->add_option("--output", options->output,
                      "File to write (default: report.html in the run's folder)");
  add_json_flag(*command, context);
}

void add_open(CLI::App& app, CommandContext& context) {
  auto run = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, context, "open",
                  "Shows a run's report in the browser ($BROWSER, else xdg-open), and says where it is",
                  "warpsmith open quickstart", [run, &context] { return open_report(*run, context); });
  add_run_argument(*command, *run);
}

}  // namespace warpsmith::cli

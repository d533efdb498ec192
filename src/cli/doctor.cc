// `warpsmith doctor`: what this machine has and lacks.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::cli {

namespace {

// The job programs beside the controller.
std::vector<process::Fact> program_facts() {
  std::vector<process::Fact> facts;
  for (const char* name : {"warpsmith-collect", "warpsmith-compile", "warpsmith-twin", "warpsmith-generate",
                           "warpsmith-measure", "warpsmith-train"}) {
    const fs::path path = program_folder() / name;
    const bool there = ::access(path.c_str(), X_OK) == 0;
    facts.push_back({.name = std::string("program ") + name,
                     .value = there ? path.string() : "not found",
                     .ok = there,
                     .hint = there ? "" : "it was not built: LibTorch is off, or the build is incomplete"});
  }
  return facts;
}

int doctor(CommandContext& context) {
  std::vector<process::Fact> facts = process::machine_facts(fs::absolute(context.results));
  for (process::Fact& fact : program_facts()) facts.push_back(std::move(fact));
  bool ok = true;
  Json list = Json::array();
  for (const process::Fact& fact : facts) {
    ok &= fact.ok;
    list.push_back({{"name", fact.name}, {"value", fact.value}, {"ok", fact.ok}, {"hint", fact.hint}});
    if (context.json) continue;
    std::printf("%s %-28s %s\n", paint(context, fact.ok ? "green" : "red", fact.ok ? "ok  " : "LACK").c_str(),
                fact.name.c_str(), fact.value.c_str());
    if (!fact.hint.empty()) std::printf("     %-28s %s\n", "", paint(context, "dim", fact.hint).c_str());
  }
  if (context.json) print_json(context, {{"ok", ok}, {"facts", list}});
  return ok ? kExitOk : kExitEnvironment;
}

}  // namespace

void add_doctor(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      add_command(app, context, "doctor", "Says what this machine has and lacks, the sandbox level included",
                  "warpsmith doctor --json", [&context] { return doctor(context); });
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

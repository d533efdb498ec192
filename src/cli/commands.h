// The commands that this build has, in the order of --help.
#pragma once

namespace CLI {
class App;
}

namespace warpsmith::cli {

struct CommandContext;
void add_commands(CLI::App& app, CommandContext& context);

}  // namespace warpsmith::cli

// `warpsmith schema`: the workflow format as a JSON Schema, for editors.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "warpsmith/cli/command.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

void add_schema(CLI::App& app, CommandContext& context) {
  add_command(app, context, "schema", "Prints the JSON Schema of workflow files, for editors",
              "warpsmith schema > workflow.schema.json", [] {
                std::printf("%s\n", workflow::workflow_json_schema().dump(2).c_str());
                return kExitOk;
              });
}

}  // namespace warpsmith::cli

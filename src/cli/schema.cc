// `warpsmith schema`: the formats of workflow and site files as JSON Schemas, for editors.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "print.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::cli {

void add_schema(CLI::App& app, CommandContext& context) {
  auto format = std::make_shared<std::string>("workflow");
  CLI::App* command =
      add_command(app, context, "schema", "Prints the JSON Schema of workflow or site files, for editors",
                  "warpsmith schema site > site.schema.json", [format] {
                    const Json schema =
                        *format == "site" ? workflow::site_json_schema() : workflow::workflow_json_schema();
                    print("%s\n", schema.dump(2).c_str());
                    return kExitOk;
                  });
  command->add_option("FORMAT", *format, "workflow (the default) or site")
      ->check(CLI::IsMember({"workflow", "site"}));
}

}  // namespace warpsmith::cli

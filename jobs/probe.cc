// warpsmith-probe: measures what the GPU of this process can do at most, prints it, and keeps it as JSON.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "warpsmith/base/log.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/measure/probe.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/ceilings.h"

namespace {

constexpr const char* kUsage =
    "usage: warpsmith-probe [--output FILE] [--quick] [--cache DIR] [--unsandboxed]\n"
    "  --output FILE   writes what was found as JSON, beside the text on stdout (format: results/README.md)\n"
    "  --quick         the short form, as warpsmith-measure does it: 1 to 3 s\n"
    "  --cache DIR     keeps the compiled kernels there\n"
    "  --unsandboxed   compiles them without a sandbox\n"
    "It takes the first GPU that CUDA_VISIBLE_DEVICES leaves, and waits for its timing lock.\n";

struct Options {
  warpsmith::measure::ProbeOptions probe;
  std::string output;
  bool help = false;
};

// Nothing where the command line makes no sense.
std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word == "--quick") {
      options.probe.thorough = false;
    } else if (word == "--unsandboxed") {
      options.probe.unsandboxed = true;
    } else if (word == "--output" && more) {
      options.output = argv[++i];
    } else if (word == "--cache" && more) {
      options.probe.cache = argv[++i];
    } else {
      warpsmith::log_error("what is `" + std::string(word) + "`?");
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace warpsmith;
  start_logging("warpsmith-probe");
  const std::optional<Options> options = parse(argc, argv);
  if (!options || options->help) {
    print_terminal_text(options ? stdout : stderr, kUsage);
    return options ? kExitOk : kExitUsage;
  }
  return exit_code_of([&] {
    process::become_subreaper();
    const Ceilings found = measure::probe_this_gpu(options->probe);
    print_terminal_text(stdout, ceilings_text(found));
    if (!options->output.empty()) write_ceilings(options->output, found);
  });
}

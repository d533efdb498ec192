// warpsmith-probe: measures what the GPU of this process can do at most, prints it, and keeps it as JSON.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/measure/probe.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/ceilings.h"
#include "warpsmith/records/gpu_doubts.h"

namespace {

constexpr const char* kUsage =
    "usage: warpsmith-probe [--output FILE] [--quick] [--kind TYPE] [--against FILE]… [--cache DIR]\n"
    "                       [--unsandboxed]\n"
    "  --output FILE   writes what was found as JSON, beside the text on stdout (format: results/README.md)\n"
    "  --quick         the short form, as warpsmith-measure does it: 1 to 3 s\n"
    "  --kind TYPE     says whether the GPU is what it should be, such as H100\n"
    "  --against FILE  compares it with a GPU of the same type, of which --output wrote FILE\n"
    "  --cache DIR     keeps the compiled kernels there\n"
    "  --unsandboxed   compiles them without a sandbox\n"
    "It takes the first GPU that CUDA_VISIBLE_DEVICES leaves, and waits for its timing lock.\n";

struct Options {
  warpsmith::measure::ProbeOptions probe;
  std::string output, kind;
  std::vector<std::string> against;
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
    } else if (word == "--kind" && more) {
      options.kind = argv[++i];
    } else if (word == "--against" && more) {
      options.against.emplace_back(argv[++i]);
    } else if (word == "--cache" && more) {
      options.probe.cache = argv[++i];
    } else {
      warpsmith::log_error("what is `" + std::string(word) + "`?");
      return std::nullopt;
    }
  }
  return options;
}

void print_doubts(const warpsmith::Ceilings& gpu, const std::vector<warpsmith::Ceilings>& others) {
  using namespace warpsmith;
  const std::string known = process::known_gpu_type(gpu.kind), type = known.empty() ? gpu.kind : known;
  const std::vector<std::string> doubts = gpu_doubts(gpu, type, others);
  std::string text;
  if (!type.empty() && !has_data_sheet(type)) text = "What a " + type + " is sold as is not known here.\n";
  if (!doubts.empty())
    text += "It is doubted:\n";
  else if (has_data_sheet(type) || !others.empty())
    text += "It fits.\n";
  for (const std::string& doubt : doubts) text += "  " + doubt + "\n";
  print_terminal_text(stdout, text);
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
    std::vector<Ceilings> others;
    for (const std::string& file : options->against)
      others.push_back(ceilings_from_json(read_json_file(file)));
    process::become_subreaper();
    Ceilings found = measure::probe_this_gpu(options->probe);
    found.kind = options->kind;
    print_terminal_text(stdout, ceilings_text(found));
    if (!options->kind.empty() || !others.empty()) print_doubts(found, others);
    if (!options->output.empty()) write_ceilings(options->output, found);
  });
}

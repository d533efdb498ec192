// `warpsmith doctor`: what this machine has and lacks; with --site, what a cluster has and lacks.
#include "doctor.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "load_options.h"
#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/controller/device_doubts.h"
#include "warpsmith/controller/model_memory.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/ceilings.h"
#include "warpsmith/toolchain/host.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

// The job programs beside the controller.
std::vector<process::Fact> program_facts() {
  std::vector<process::Fact> facts;
  for (const char* name : {"warpsmith-collect", "warpsmith-compile", "warpsmith-twin", "warpsmith-generate",
                           "warpsmith-service", "warpsmith-measure", "warpsmith-train"}) {
    const fs::path path = program_folder() / name;
    const std::string problem = start_problem(path);
    std::string hint;
    if (!path_exists(path)) hint = "it was not built: LibTorch is off, or the build is incomplete";
    facts.push_back({.name = std::string("program ") + name,
                     .value = problem.empty() ? path.string() : problem,
                     .ok = problem.empty(),
                     .hint = std::move(hint)});
  }
  return facts;
}

}  // namespace

std::vector<process::Fact> sandbox_facts() {
  const char* wanted = std::getenv("WARPSMITH_SANDBOX");
  if (wanted == nullptr) return {};
  process::Fact fact{.name = "WARPSMITH_SANDBOX", .value = wanted, .ok = false, .hint = ""};
  try {
    const process::SandboxLevel level = process::available_sandbox();
    fact.ok = level != process::SandboxLevel::kNone;
    fact.value = std::string(to_string(level)) + " is taken";
    if (!fact.ok) fact.hint = "`warpsmith run` wants --unsandboxed for that";
  } catch (const Error& e) {
    fact.hint = e.what();
  }
  return {fact};
}

process::Fact nvrtc_fact() {
  const toolchain::NvrtcOfTwin nvrtc = toolchain::nvrtc_of_twin();
  if (!nvrtc.name.empty()) return {.name = "compiler NVRTC", .value = nvrtc.name, .ok = true, .hint = ""};
  return {.name = "compiler NVRTC",
          .value = "not found",
          .ok = true,
          .hint = nvrtc.why_none + "; without it g++ alone decides what is a compile_error on the CPU"};
}

std::vector<process::Fact> ceilings_facts(const fs::path& results) {
  std::map<std::string, Ceilings> newest;  // by UUID
  for (Ceilings& kept : controller::ceilings_of_runs(results)) {
    const auto [at, is_new] = newest.try_emplace(kept.uuid, kept);
    if (!is_new && at->second.date < kept.date) at->second = std::move(kept);
  }
  std::vector<process::Fact> facts;
  for (const auto& [uuid, c] : newest)
    facts.push_back({.name = "ceilings of " + process::gpu_type_of(c.name),
                     .value = ceilings_line(c),
                     .ok = true,
                     .hint = uuid + ", measured on " + c.host + ", " + c.date});
  return facts;
}

namespace {

// What each of its stages takes of this machine's GPUs, and why it cannot run here.
std::vector<process::Fact> stage_facts(const std::string& file) {
  workflow::LoadResult loaded = workflow::load_workflow(file, with_folders({}));
  if (!loaded.spec) throw InvalidInput(loaded.mistakes);
  const std::vector<process::Gpu> gpus = controller::look_at_place(*loaded.spec, std::nullopt);
  std::vector<process::Fact> facts;
  for (const workflow::StageSpec& stage : loaded.spec->stages) {
    const bool has_model =
        !workflow::runs_program(stage.kind) && (workflow::resources_of_job(stage, "train") != nullptr ||
                                                workflow::resources_of_job(stage, "generate") != nullptr);
    const std::string name = "stage " + stage.name;
    for (const std::string& line : controller::memory_lines(stage, gpus))
      facts.push_back({.name = name, .value = line, .ok = true, .hint = ""});
    if (!stage.blocked.empty())
      facts.push_back({.name = name, .value = "cannot run here", .ok = false, .hint = stage.blocked});
    else if (facts.empty() || facts.back().name != name)
      facts.push_back({.name = name,
                       .value = has_model ? "its model runs on the CPU" : "has no model",
                       .ok = true,
                       .hint = ""});
  }
  return facts;
}

struct Options {
  std::string file;  // a workflow
  DoctorSiteOptions site;
  bool discover = false;
  DiscoverOptions discovery;
  endpoint::Server endpoint;
  std::vector<std::string> on_node;  // what warpsmith-shard says: job file and shard
};

int doctor(const Options& options, CommandContext& context) {
  if (!options.on_node.empty()) return doctor_on_node(options.on_node.front());
  if (!options.endpoint.url.empty()) return doctor_endpoint(options.endpoint, context);
  if (options.discover) return discover_site(options.discovery, context);
  if (!options.site.site.empty()) return doctor_site(options.site, context);
  FactPrinter printer(context);
  printer.add(process::machine_facts(fs::absolute(context.results)));
  printer.add(sandbox_facts());
  printer.add(nvrtc_fact());
  printer.add(ceilings_facts(fs::absolute(context.results)));
  printer.add(program_facts());
  if (!options.file.empty()) printer.add(stage_facts(options.file));
  return printer.finish();
}

}  // namespace

Json to_json(const process::Fact& fact) {
  return {{"name", fact.name}, {"value", fact.value}, {"ok", fact.ok}, {"hint", fact.hint}};
}

void FactPrinter::add(const process::Fact& fact) {
  ok_ &= fact.ok;
  list_.push_back(to_json(fact));
  if (context_.json) return;
  print("%s %-30s %s\n", paint(context_, fact.ok ? "green" : "red", fact.ok ? "ok  " : "LACK").c_str(),
        fact.name.c_str(), fact.value.c_str());
  if (!fact.hint.empty()) print("     %-30s %s\n", "", paint(context_, "dim", fact.hint).c_str());
  std::fflush(stdout);
}

void FactPrinter::add(const std::vector<process::Fact>& facts) {
  for (const process::Fact& fact : facts) add(fact);
}

int FactPrinter::finish() const {
  if (context_.json) print_json(context_, {{"ok", ok_}, {"facts", list_}});
  return ok_ ? kExitOk : kExitEnvironment;
}

void add_doctor(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "doctor",
                                  "Says what this machine, a cluster or a model's server has and lacks",
                                  "warpsmith doctor --json\n"
                                  "  warpsmith doctor workflows/pretrained.yaml\n"
                                  "  warpsmith doctor --discover --name lab --output slurm/sites/lab.yaml\n"
                                  "  warpsmith doctor --site lab\n"
                                  "  warpsmith doctor --endpoint http://localhost:8000/v1",
                                  [options, &context] { return doctor(*options, context); });
  CLI::Option* file = command->add_option("FILE", options->file,
                                          "A workflow: what its stages take of this machine's GPUs as well");
  CLI::Option* site = command->add_option("--site", options->site.site,
                                          "Compare this site file with its cluster, with tiny jobs");
  command
      ->add_option("--wait", options->site.wait_s, "Seconds to wait for the tiny jobs in all; 0: submit none")
      ->needs(site)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* discover = command->add_flag("--discover", options->discover,
                                            "Write a first site file from what the cluster shows");
  discover->excludes(site);
  file->excludes(site)->excludes(discover);
  command
      ->add_option("--name", options->discovery.name,
                   "Name of the site (default: the file's, else the cluster's)")
      ->needs(discover);
  command->add_option("--output", options->discovery.output, "File to write; it must not exist")
      ->needs(discover);
  command
      ->add_option("--conf", options->discovery.conf,
                   "slurm.conf (default: SLURM_CONF, else where Slurm looks)")
      ->needs(discover);
  CLI::Option* endpoint =
      command->add_option("--endpoint", options->endpoint.url,
                          "Ask this server of a language model what it offers, and for two short answers");
  endpoint->excludes(site)->excludes(discover)->excludes(file);
  command->add_option("--model", options->endpoint.model, "The model that answers (default: its first)")
      ->needs(endpoint);
  command
      ->add_option("--key-variable", options->endpoint.key_variable,
                   "Environment variable that holds the server's key")
      ->needs(endpoint);
  command->add_option("--on-node", options->on_node)->expected(2)->group("");  // hidden: what tiny jobs run
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

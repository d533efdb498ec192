// The parts of `warpsmith doctor`: this machine (doctor.cc), a site (doctor_site.cc), a node of a site
// (doctor_node.cc), the first file of a site (doctor_discover.cc) and a server (doctor_endpoint.cc).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/endpoint/look.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::cli {

Json to_json(const process::Fact& fact);

// Shows facts as they are found; with --json all of them at the end.
class FactPrinter {
 public:
  explicit FactPrinter(const CommandContext& context) : context_(context) {}
  void add(const process::Fact& fact);
  void add(const std::vector<process::Fact>& facts);
  // The exit code: kExitEnvironment where one was not ok.
  int finish() const;

 private:
  const CommandContext& context_;
  Json list_ = Json::array();
  bool ok_ = true;
};

// Compares a site with its cluster, with jobs of a few seconds for which it waits at most `wait_s`; 0:
// without. Throws as load_named_site() does; what the cluster lacks are facts.
struct DoctorSiteOptions {
  std::string site;
  double wait_s = 60;
};
int doctor_site(const DoctorSiteOptions& options, CommandContext& context);

struct DiscoverOptions {
  std::string name;              // of the site; empty: the output's, else the cluster's
  std::filesystem::path output;  // empty: stdout
  std::filesystem::path conf;    // slurm.conf; empty: where Slurm looks
};
int discover_site(const DiscoverOptions& options, CommandContext& context);

// Asks it what it has, and for two answers of 8 tokens. Throws as endpoint::look_at() does.
int doctor_endpoint(const endpoint::Server& server, CommandContext& context);

// On a compute node: answers the question of a probe (warpsmith/executor/site_probe.h).
int doctor_on_node(const std::filesystem::path& question);

// What runs in `results` have measured of the GPUs that they were on (<run>/cache/ceilings): the newest of
// each GPU.
std::vector<process::Fact> ceilings_facts(const std::filesystem::path& results);

// Where WARPSMITH_SANDBOX chooses the sandbox: `run` takes its word, and refuses what it does not know.
std::vector<process::Fact> sandbox_facts();

// NVRTC, which also decides about candidates for the CPU twin: verdicts can differ where it is missing.
process::Fact nvrtc_fact();

// Empty, or why a program of ours does not start here. Without arguments each says how it is used and ends;
// what the loader, a lost library or a lost torch makes of it is another matter.
std::string start_problem(const std::filesystem::path& program);

// The programs of ours that lie beside this one.
std::vector<std::string> programs_beside();

}  // namespace warpsmith::cli

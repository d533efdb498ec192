// Tiny jobs that show whether a site's places work: each is a shard like any other, by the same script, so
// what the site file puts around programs is tried as well. Its program is `warpsmith doctor --on-node`.
//
// A probe has a folder of its own in the results folder:
//
//   token        a word
//   job.json     the question: {"token", "conf", "programs": [names], "submit": {options of sbatch} or null}
//   seen         written by the script before anything else: the word that the node read, and the node's name
//   answer.json  written by `warpsmith doctor --on-node`:
//     {"version", "machine": [facts], "gpus": [names],
//      "tmpdir": TMPDIR where it can be written, else "", "modules": LOADEDMODULES,
//      "programs": {name: "" or why it does not start},
//      "submit": "" or why no job can be submitted from there; null: was not asked}
//   ends/, 0/    as for every shard
//
// Pure functions, but for read_probe() and write_probe().
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/executor/site_check.h"

namespace warpsmith::executor {

struct SiteProbe {
  std::string places;                // "cpu, controller": whose jobs are like this one
  const workflow::SitePlace* place;  // the first of them; into the site
  int gpus = 0;
  std::string gpu_type;
  bool submits = false;  // the controller's job goes there: it must be able to submit
};
// One for each kind of job that the site's places make.
std::vector<SiteProbe> site_probes(const workflow::SiteSpec& site);

// A job of the largest size that the site says for a place: would Slurm take it?
SlurmJob largest_job(const workflow::SiteSpec& site, const NamedPlace& place, const std::string& name);

// `folder`: the probe's own. `name`: the job's, and the token of its files.
SlurmJob probe_job(const SiteProbe& probe, const std::string& name, const std::filesystem::path& folder,
                   const std::filesystem::path& programs);
// Makes the folder and the question. `programs`: the names of those that should start on the node.
void write_probe(const SiteProbe& probe, const std::string& name, const std::filesystem::path& folder,
                 const std::filesystem::path& conf, const std::vector<std::string>& programs);

struct ProbeOutcome {
  std::string refused;   // why Slurm did not take the job; empty: it did
  bool for_now = false;  // … as a limit of how many is reached
  std::uint32_t job = 0;
  std::optional<SlurmTask> task;  // as Slurm saw it last
  double waited_s = 0;
  std::optional<std::string> seen;  // the token that the node read
  std::string node;                 // … and which node that was
  Json end, answer;                 // null: none
  std::string last_line;            // of what the job printed
};
// What the node wrote so far; what is above `seen` is not touched.
void read_probe(const std::filesystem::path& folder, const std::string& name, ProbeOutcome& outcome);
// Nothing more will come.
bool has_answered(const ProbeOutcome& outcome);

// Whether a pending job waits until somebody changes something: the job, a limit, a hold or a partition.
bool waits_in_vain(std::string_view reason);

// `folder`: where the results lie.
std::vector<process::Fact> probe_facts(const SiteProbe& probe, const std::string& name,
                                       const ProbeOutcome& outcome, const std::filesystem::path& folder);

}  // namespace warpsmith::executor

// Site files: the cluster or machine that jobs run on. Format document: slurm/README.md.
//
//   Diagnostics mistakes;
//   const SiteSpec site = load_site(find_site("lab"), mistakes);
//   if (!mistakes.empty()) throw InvalidInput(mistakes);
//   const SitePlace* place = place_for(site, job.resources);  // null: the site has no such GPU
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/records/job.h"
#include "warpsmith/workflow/prices.h"

namespace warpsmith::workflow {

// Where one kind of job goes, and what stands around its program there. Empty and 0: not said.
struct SitePlace {
  // Options of the job, as sbatch takes them.
  std::string partition, account, qos, reservation, constraint, exclude;
  std::string gres;                  // "gpu:l40"; the count is appended. Never empty for a GPU type
  std::vector<std::string> modules;  // environment modules that are loaded
  std::vector<std::string> setup;    // shell lines before the program; any text, one line each
  // Words before the program. They and `scratch` may name variables ($USER, ${SLURM_JOB_ID}) and hold no
  // quotes, backslashes, backquotes or other `$`: a shell may read them between double quotes.
  std::vector<std::string> container;
  std::map<std::string, std::string> environment;  // values are meant literally
  std::string scratch;                             // becomes TMPDIR
  std::vector<std::string> names;  // see is_device_of(). Empty for `cpu`, and for a twin that says nothing
  std::string target;  // what the GPUs are compiled for, such as "sm_90a"; empty: it follows from the type
  // The nodes have no such GPU: shards run on the CPU twin, their device kind is `cpu`, and results say so.
  bool twin = false;
  double max_time_s = 0;             // the longest that a job may ask for
  std::uint64_t memory_per_cpu = 0;  // bytes, where a job asks for no memory
  friend bool operator==(const SitePlace&, const SitePlace&) = default;
};

struct SiteSpec {
  std::string name;
  std::filesystem::path file;
  std::string text;                // as read
  std::string executor = "slurm";  // or "local"
  std::filesystem::path conf;      // slurm.conf, absolute; empty: SLURM_CONF, else where Slurm looks
  std::uint32_t max_queued = 0;    // shards in the queue at a time; 0: from the cluster's limits
  double requests_per_minute = 6;  // status requests, sustained …
  int request_burst = 20;          // … and at once
  SitePlace cpu;
  std::map<std::string, SitePlace> gpus;  // by GPU type, as workflows name it
  SitePlace controller;                   // the controller's own job
  double controller_time_s = 0;           // 0: the partition's default
  double controller_warning_s = 120;      // before its time limit
  std::uint64_t controller_memory = 1ull << 30;
  int controller_cpus = 1;
  Prices prices;
  double start_s = 2;  // what starting a shard costs
  double shard_s = 0;  // target duration of a shard here; 0: the stage's
  friend bool operator==(const SiteSpec&, const SiteSpec&) = default;
};

// Appends every mistake of the file to `mistakes`, by place; with mistakes, what is returned is of no use.
// Never throws on what a file says, and looks at no other file: `warpsmith doctor --site` compares it with
// the cluster.
SiteSpec load_site(const std::filesystem::path& file, Diagnostics& mistakes);
// The same from text; `file` is its name in messages, and a relative `conf` starts in its folder.
SiteSpec load_site_text(std::string_view text, const std::filesystem::path& file, Diagnostics& mistakes);

// Whether the text's line `schema:` is that of a site file, of whatever version; also where its YAML is bad.
bool is_site_text(std::string_view text);

// The file that --site means: a path to a file, else NAME.yaml in a folder of $WARPSMITH_SITES, in
// slurm/sites, in
// ~/.config/warpsmith/sites, or in `installed`. Throws Error with kExitUsage, naming the folders and the
// sites there.
std::filesystem::path find_site(const std::string& name_or_path, const std::filesystem::path& installed = {});

// Where such a shard goes: without GPUs to `cpu`, else to its GPU type; to the only one where it names none.
// Null: the site has no such type, or several to choose from. Points into `site`.
const SitePlace* place_for(const SiteSpec& site, const Resources& resources);

// Whether a device of this name is what the place promises: the name holds one of `names` (holds_words() in
// base/words.h): "H20" is in "NVIDIA H20" and not in "NVIDIA H200". True where `names` is empty.
bool is_device_of(const SitePlace& place, std::string_view device_name);

// The site as a commented file that loads to the same site, `file` and `text` aside. An empty `gres`, or
// empty `names`, of a GPU type come back as what a file without them means.
std::string site_yaml(const SiteSpec& site);

// The format as a JSON Schema (draft 2020-12) for editors, made from the tables that the reader uses.
Json site_json_schema();

}  // namespace warpsmith::workflow

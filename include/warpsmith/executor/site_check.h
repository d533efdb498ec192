// Site files against the cluster that they describe, as numbers and names: nothing here asks the cluster, but
// view_of().
//
//   const ClusterView view = view_of(*open_cluster(programs, site.conf));
//   for (const process::Fact& fact : check_site(site, view)) …
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::executor {

// What a cluster shows of itself at one moment.
struct ClusterView {
  SlurmFacts facts;
  std::vector<SlurmNode> nodes;
  std::vector<SlurmPartition> partitions;
  std::optional<SlurmLimits> limits;  // nothing: no accounting, or it does not answer
  std::string accounting_trouble;     // why it does not answer
};

// Throws SlurmError where slurmctld does not answer; slurmdbd need not.
ClusterView view_of(Cluster& cluster);

// A place of a site as messages name it: "cpu", "gpu L40", "controller".
struct NamedPlace {
  std::string name;
  std::string gpu_type;              // empty: not a GPU type's
  const workflow::SitePlace* place;  // into the site
};
std::vector<NamedPlace> places_of(const workflow::SiteSpec& site);

// The cluster, its limits, then each place: partition, time, GPUs, constraint, excluded nodes, memory,
// account, QOS; at last the types of GPU that the site does not name. `ok` is false where jobs of the site
// would be refused or would wait for ever.
std::vector<process::Fact> check_site(const workflow::SiteSpec& site, const ClusterView& view);

// A first site file for a cluster, and remarks for people about what was chosen or could not be known.
struct SiteDraft {
  workflow::SiteSpec site;
  std::vector<std::string> notes;
};
// GPU types come from the types of GRES, and where these have none from features that name a GPU. A type goes
// to a partition that is up and has nodes with no other type, of those to the one with the largest MaxTime.
SiteDraft draft_site(const std::string& name, const ClusterView& view);

// GPUs of a place on usable nodes of its partitions.
std::size_t count_gpus(const workflow::SitePlace& place, const std::vector<SlurmNode>& nodes);

// Whether a node with these features is one for --constraint; nothing where the expression is not understood.
std::optional<bool> has_features(std::string_view constraint, const std::vector<std::string>& features);

// "gpu[1-3,07],a" -> gpu1 gpu2 gpu3 gpu07 a; nothing where it is not understood.
std::optional<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace warpsmith::executor

// Clusters as they show themselves, for tests.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/executor/site_check.h"

namespace warpsmith::executor {

// The development cluster: four GPU nodes, each in a partition of its own, one node without; all of them in
// `all`.
inline ClusterView dev_view() {
  ClusterView view;
  view.facts = {.cluster = "dev",
                .version = "22.05.8",
                .max_array_size = 1001,
                .max_jobs = 10000,
                .min_job_age_s = 300};
  const auto add = [&](const std::string& name, const std::string& partition, const std::string& gpu,
                       int count) {
    SlurmNode node{.name = name,
                   .state = "IDLE",
                   .features = {partition},
                   .partitions = {partition, "all"},
                   .gpus = {},
                   .cpus = 8,
                   .memory_mib = 16000};
    if (count > 0) node.gpus = {{gpu, count}};
    view.nodes.push_back(node);
    view.partitions.push_back(
        {.name = partition, .nodes = {name}, .max_minutes = 1440, .is_default = partition == "cpu"});
  };
  add("cpu-0", "cpu", "", 0);
  add("gpu-h100", "h100", "h100", 1);
  add("gpu-h20", "h20", "h20", 2);
  add("gpu-l40", "l40", "l40", 1);
  add("gpu-rtx3090", "rtx3090", "rtx3090", 1);
  view.partitions.push_back({.name = "all", .nodes = {}, .max_minutes = 1440});
  for (const SlurmNode& node : view.nodes) view.partitions.back().nodes.push_back(node.name);
  return view;
}

inline SlurmNode& node_of(ClusterView& view, const std::string& name) {
  for (SlurmNode& node : view.nodes)
    if (node.name == name) return node;
  throw Error("no node " + name);
}

inline SlurmPartition& partition_of(ClusterView& view, const std::string& name) {
  for (SlurmPartition& partition : view.partitions)
    if (partition.name == name) return partition;
  throw Error("no partition " + name);
}

}  // namespace warpsmith::executor

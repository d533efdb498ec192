// The first site file of a cluster: what goes where.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "site_words.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/site_check.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::executor {

namespace {

using workflow::SitePlace;

constexpr std::uint32_t kDay = 1440;  // minutes
constexpr std::uint32_t kShortestController = 5;

// GPUs that one entry of the site is to stand for.
struct GpuGroup {
  std::string gres;             // "gpu:l40", or "gpu" where GRES have no types
  std::string model;            // "L40"; empty: not known
  std::string feature;          // of untyped GPUs: what tells them from others; may be empty
  std::set<std::string> nodes;  // names of those that have it
  std::set<std::string> usable;
  int count = 0;
};

std::string upper(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// A GPU type of the site file from whatever word there is.
std::string as_type(const std::string& word) {
  std::string out = upper(word);
  for (char& c : out)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') c = '_';
  return is_identifier(out) ? out.substr(0, 60) : "GPU_" + out.substr(0, 50);
}

class Drafter {
 public:
  Drafter(const std::string& name, const ClusterView& view) : view_(view) { draft_.site.name = name; }

  SiteDraft draft() {
    if (view_.partitions.empty()) {
      note("the cluster shows no partition");
      return std::move(draft_);
    }
    SitePlace& cpu = draft_.site.cpu;
    set_partition(cpu, cpu_partition());
    SitePlace& controller = draft_.site.controller;
    controller.partition = cpu.partition;
    controller.max_time_s = cpu.max_time_s;
    const auto longest = static_cast<std::uint32_t>(cpu.max_time_s / 60);
    if (longest == 0 || longest >= kShortestController)
      draft_.site.controller_time_s = 60.0 * (longest == 0 ? kDay : std::min(longest, kDay));
    add_gpus();
    set_account();
    return std::move(draft_);
  }

 private:
  void note(std::string text) { draft_.notes.push_back(std::move(text)); }

  const SlurmNode* node(const std::string& name) const {
    for (const SlurmNode& n : view_.nodes)
      if (n.name == name) return &n;
    return nullptr;
  }

  static void set_partition(SitePlace& place, const SlurmPartition& partition) {
    place.partition = partition.name;
    if (partition.max_minutes > 0 && partition.max_minutes <= 365 * kDay)
      place.max_time_s = 60.0 * partition.max_minutes;
  }

  // The default one; where there is none, the one with the most cores on nodes without GPUs.
  const SlurmPartition& cpu_partition() {
    const SlurmPartition* best = nullptr;
    std::tuple<bool, bool, std::uint64_t> best_score;
    for (const SlurmPartition& p : view_.partitions) {
      std::uint64_t plain = 0;
      for (const std::string& name : p.nodes)
        if (const SlurmNode* n = node(name); n != nullptr && n->usable && n->gpus.empty()) plain += n->cpus;
      const std::tuple score(p.is_default, p.up, plain);
      if (best == nullptr || score > best_score) best = &p, best_score = score;
    }
    const auto [is_default, up, plain] = best_score;
    note(fmt::format("cpu: partition {}, {}{}", best->name,
                     is_default ? "the default" : "as the cluster has no default",
                     plain == 0 ? "; no usable node of it is without GPUs" : ""));
    if (!best->up) note(fmt::format("partition {} is not up", best->name));
    return *best;
  }

  // ---- GPUs ----

  std::vector<GpuGroup> groups() {
    std::map<std::pair<std::string, std::string>, GpuGroup> found;  // by GRES and feature
    std::set<std::string> slices;
    for (const SlurmNode& n : view_.nodes)
      for (const auto& [type, count] : n.gpus) {
        if (process::is_gpu_slice(type)) {
          slices.insert("gpu:" + type);
          continue;
        }
        std::string feature;
        if (type.empty())
          for (const std::string& f : n.features)
            if (feature.empty() && !process::known_gpu_type(f).empty()) feature = f;
        GpuGroup& group = found[{type, feature}];
        group.gres = type.empty() ? "gpu" : "gpu:" + type;
        group.feature = feature;
        group.model = process::known_gpu_type(type.empty() ? feature : type);
        group.nodes.insert(n.name);
        if (n.usable) group.usable.insert(n.name);
        group.count += count;
      }
    if (!slices.empty())
      note(fmt::format("left out, as slices of a GPU: {}", listed({slices.begin(), slices.end()})));
    std::vector<GpuGroup> out;
    for (auto& [key, group] : found) out.push_back(std::move(group));
    return out;
  }

  void add_gpus() {
    const std::vector<GpuGroup> all = groups();
    std::map<std::string, int> of_model;
    for (const GpuGroup& group : all) ++of_model[group.model];
    for (const GpuGroup& group : all) {
      const bool typed = group.gres != "gpu";
      std::string type = group.model;
      if (typed && (type.empty() || of_model[type] > 1)) type = as_type(group.gres.substr(4));
      if (type.empty()) type = "GPU";
      add_gpu(type, group);
    }
    if (all.empty()) note("no node has a GPU as a GRES");
  }

  void add_gpu(const std::string& type, const GpuGroup& group) {
    const SlurmPartition* partition = gpu_partition(group);
    const std::string what = group.gres + (group.feature.empty() ? "" : " with feature " + group.feature);
    if (partition == nullptr) return note(fmt::format("left out, as no partition has its nodes: {}", what));
    if (draft_.site.gpus.contains(type))
      return note(
          fmt::format("left out, as `{}` is there already: {} in partition {}", type, what, partition->name));
    SitePlace place;
    set_partition(place, *partition);
    place.gres = group.gres;
    // Any: what the driver calls it is not known.
    place.names = {!group.model.empty() ? group.model : group.gres == "gpu" ? "NVIDIA" : type};
    std::string text =
        fmt::format("{}: {}, {} in all, in partition {}", type, what, group.count, partition->name);
    if (group.gres == "gpu" && !only(group, *partition, /*cpu_nodes=*/true)) {
      place.constraint = group.feature;
      text += group.feature.empty() ? ", where nothing tells it from other GPUs" : ", by that feature";
    }
    if (group.usable.empty()) text += "; no node of it is usable now";
    if (!partition->up) text += "; the partition is not up";
    note(text);
    if (group.model.empty())
      note(fmt::format("{}: what the driver calls it is not known: correct `names` after `nvidia-smi -L`",
                       type));
    else if (type != group.model)
      note(fmt::format("{}: `names` lets every {} in: write what `nvidia-smi -L` says", type, group.model));
    draft_.site.gpus.emplace(type, std::move(place));
  }

  // Whether the partition's GPUs are all of this group, whatever nodes without GPUs it has.
  bool only(const GpuGroup& group, const SlurmPartition& p, bool cpu_nodes) const {
    return std::all_of(p.nodes.begin(), p.nodes.end(), [&](const std::string& name) {
      const SlurmNode* n = node(name);
      if (n == nullptr || (cpu_nodes && n->gpus.empty())) return true;
      return group.nodes.contains(name) && n->gpus.size() == 1;
    });
  }

  const SlurmPartition* gpu_partition(const GpuGroup& group) const {
    const SlurmPartition* best = nullptr;
    std::tuple<bool, bool, bool, bool, std::uint32_t, std::size_t> best_score;
    for (const SlurmPartition& p : view_.partitions) {
      std::size_t has = 0, usable = 0;
      for (const std::string& name : p.nodes) {
        has += group.nodes.count(name);
        usable += group.usable.count(name);
      }
      if (has == 0) continue;
      const std::uint32_t time = p.max_minutes == 0 ? UINT32_MAX : p.max_minutes;
      const std::tuple score(p.up, usable > 0, only(group, p, false), only(group, p, true), time, usable);
      if (best == nullptr || score > best_score) best = &p, best_score = score;
    }
    return best;
  }

  void set_account() {
    if (!view_.limits) return note("account: none, as the cluster has no accounting that answers");
    const SlurmLimits& l = *view_.limits;
    const std::string account = !l.account.empty()       ? l.account
                                : l.accounts.size() == 1 ? l.accounts.front()
                                                         : "";
    if (account.empty()) return note("account: none of yours is the default");
    draft_.site.cpu.account = draft_.site.controller.account = account;
    for (auto& [type, place] : draft_.site.gpus) place.account = account;
    std::string text = "account: " + account + ", your default";
    if (l.accounts.size() > 1) text += "; you have " + listed(l.accounts);
    note(text);
  }

  const ClusterView& view_;
  SiteDraft draft_;
};

}  // namespace

SiteDraft draft_site(const std::string& name, const ClusterView& view) { return Drafter(name, view).draft(); }

}  // namespace warpsmith::executor

#include "warpsmith/executor/site_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "site_words.h"
#include "warpsmith/base/text.h"

namespace warpsmith::executor {

namespace {

using workflow::SitePlace;

constexpr std::uint64_t kMiB = 1ull << 20;

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// What to write in place of a word that the cluster does not know.
std::string known_instead(const std::string& word, const std::vector<std::string>& known,
                          const std::string& has) {
  if (const auto near = nearest_word(word, known)) return "did you mean `" + *near + "`?";
  return known.empty() ? "" : has + ": " + listed(known);
}

// Where jobs of a place may land.
struct Target {
  std::vector<const SlurmPartition*> partitions;  // that exist
  std::vector<const SlurmNode*> nodes;            // of these, each once
  std::vector<const SlurmNode*> fit;              // usable, with the features, not excluded
  std::set<std::string> excluded;
};

// "gpu:l40" and "gpu:l40" or "gpu"; a GRES without a type is of any.
bool covers(const std::string& gres, const std::string& type) {
  return gres == "gpu" || gres == "gpu:" + type;
}

int count_gpus(const std::vector<const SlurmNode*>& nodes, const std::string& gres) {
  int count = 0;
  for (const SlurmNode* node : nodes)
    for (const auto& [type, number] : node->gpus)
      if (covers(gres, type)) count += number;
  return count;
}

class SiteChecker {
 public:
  SiteChecker(const workflow::SiteSpec& site, const ClusterView& view) : site_(site), view_(view) {}

  std::vector<process::Fact> check() {
    check_cluster();
    check_accounting();
    for (const NamedPlace& place : places_of(site_)) check_place(place);
    check_other_gpus();
    return std::move(facts_);
  }

 private:
  void add(const std::string& name, std::string value, bool ok = true, std::string hint = "") {
    facts_.push_back({name, std::move(value), ok, std::move(hint)});
  }

  // ---- the cluster ----

  void check_cluster() {
    const SlurmFacts& f = view_.facts;
    add("cluster", fmt::format("{}, Slurm {}, {} nodes, {} partitions", f.cluster, f.version,
                               view_.nodes.size(), view_.partitions.size()));
    add("limits",
        fmt::format("MaxArraySize {}{}, MaxJobCount {}, MinJobAge {} s", f.max_array_size,
                    f.max_array_tasks > 0 ? fmt::format(", max_array_tasks {}", f.max_array_tasks) : "",
                    f.max_jobs, f.min_job_age_s),
        f.max_array_size > 1,
        f.max_array_size > 1 ? "" : "shards are tasks of arrays, which are switched off");
    if (!f.requeue) add("requeue", "JobRequeue=0", true, "a controller in a job submits a successor instead");
    if (site_.max_queued > 0 && f.max_jobs > 0 && site_.max_queued > f.max_jobs)
      add("max_queued", fmt::format("{} is over MaxJobCount", site_.max_queued), true,
          "the cluster's limit holds");
  }

  void check_accounting() {
    if (!view_.accounting_trouble.empty()) {
      add("accounting", view_.accounting_trouble, false,
          "accounts, QOS and limits are not known; runs go on without");
    } else if (!view_.limits) {
      add("accounting", "none", true, "accounts and QOS are not checked; limits are learnt from refusals");
    } else {
      const SlurmLimits& l = *view_.limits;
      std::string text =
          l.accounts.empty() ? "slurmdbd knows no account of yours" : "accounts " + listed(l.accounts);
      if (!l.account.empty() && l.accounts.size() > 1) text += ", " + l.account + " by default";
      if (!l.qos.empty()) text += "; QOS " + listed(l.qos);
      if (l.max_submit > 0) text += fmt::format("; MaxSubmitJobs {}", l.max_submit);
      if (l.max_jobs > 0) text += fmt::format("; MaxJobs {}", l.max_jobs);
      add("accounting", text);
      if (l.max_submit > 0 && site_.max_queued > l.max_submit)
        add("max_queued", fmt::format("{} is over MaxSubmitJobs", site_.max_queued), true,
            "the cluster's limit holds");
    }
  }

  // ---- a place ----

  void check_place(const NamedPlace& named) {
    const SitePlace& place = *named.place;
    Target target;
    check_partition(named, target);
    if (target.partitions.empty()) return;
    check_exclude(named, target);
    choose_nodes(place, target);
    check_constraint(named, target);
    if (!named.gpu_type.empty()) check_gpus(named, target);
    check_time(named, target);
    check_memory(named, target);
    const auto& limits = view_.limits;
    check_name(named.name + " account", place.account, limits ? &limits->accounts : nullptr, "your accounts");
    check_name(named.name + " qos", place.qos, limits ? &limits->qos : nullptr, "those of your accounts");
    if (!place.reservation.empty())
      add(named.name + " reservation", place.reservation + ": not checked", true,
          "`request`, below, shows whether Slurm takes a job for it");
  }

  void check_partition(const NamedPlace& named, Target& target) {
    const std::string name = named.name + " partition";
    std::vector<std::string> known, words;
    for (const SlurmPartition& p : view_.partitions) known.push_back(p.name);
    const bool by_default = named.place->partition.empty();
    if (by_default) {
      for (const SlurmPartition& p : view_.partitions)
        if (p.is_default) words.push_back(p.name);
      if (words.empty())
        return add(name, "none said, and the cluster has no default", false,
                   "write one of: " + listed(known));
    } else {
      words = split(named.place->partition, ',');
    }
    std::string text;
    bool up = false;
    for (const std::string& word : words) {
      const auto found = std::find_if(view_.partitions.begin(), view_.partitions.end(),
                                      [&](const SlurmPartition& p) { return p.name == word; });
      if (found == view_.partitions.end()) {
        target.partitions.clear();
        return add(name, "the cluster has no partition `" + word + "`", false,
                   known_instead(word, known, "it has"));
      }
      target.partitions.push_back(&*found);
      up |= found->up;
      text += (text.empty() ? "" : "; ") + found->name + ": " + describe(*found, target);
    }
    const bool usable = std::any_of(target.nodes.begin(), target.nodes.end(),
                                    [](const SlurmNode* node) { return node->usable; });
    add(name, (by_default ? "the default, " : "") + text, up && usable,
        !up      ? "jobs wait until an administrator sets it up again"
        : usable ? ""
                 : "jobs wait until a node is usable again (`sinfo -R` says why they are not)");
  }

  std::string describe(const SlurmPartition& partition, Target& target) {
    std::size_t usable = 0;
    std::uint32_t cpus = 0;
    std::set<std::string> states;
    for (const SlurmNode& node : view_.nodes) {
      if (!contains(partition.nodes, node.name)) continue;
      if (std::find(target.nodes.begin(), target.nodes.end(), &node) == target.nodes.end())
        target.nodes.push_back(&node);
      usable += node.usable ? 1 : 0;
      cpus += node.usable ? node.cpus : 0;
      if (!node.usable) states.insert(node.state);
    }
    std::string text = fmt::format("{}, {} of {} nodes usable, {} cores", partition.up ? "up" : "not up",
                                   usable, partition.nodes.size(), cpus);
    if (!states.empty()) text += " (" + listed({states.begin(), states.end()}) + ")";
    return text;
  }

  void check_exclude(const NamedPlace& named, Target& target) {
    const std::string& text = named.place->exclude;
    if (text.empty()) return;
    const auto hosts = expand_hosts(text);
    if (!hosts)
      return add(named.name + " exclude", text + ": not checked", true, "it is not understood here");
    std::vector<std::string> known;
    for (const SlurmNode& node : view_.nodes) known.push_back(node.name);
    for (const std::string& host : *hosts)
      if (!contains(known, host))
        return add(named.name + " exclude", "the cluster has no node `" + host + "`", false,
                   known_instead(host, known, "it has"));
    target.excluded = {hosts->begin(), hosts->end()};
    add(named.name + " exclude", fmt::format("{}: {} nodes", text, hosts->size()));
  }

  static void choose_nodes(const SitePlace& place, Target& target) {
    for (const SlurmNode* node : target.nodes)
      if (node->usable && !target.excluded.contains(node->name) &&
          (place.constraint.empty() || has_features(place.constraint, node->features).value_or(true)))
        target.fit.push_back(node);
  }

  void check_constraint(const NamedPlace& named, const Target& target) {
    const std::string& text = named.place->constraint;
    if (text.empty()) return;
    if (!has_features(text, {}))
      return add(named.name + " constraint", text + ": not checked", true, "it is not understood here");
    std::set<std::string> here, anywhere;
    for (const SlurmNode* node : target.nodes) here.insert(node->features.begin(), node->features.end());
    for (const SlurmNode& node : view_.nodes) anywhere.insert(node.features.begin(), node.features.end());
    const bool ok = !target.fit.empty();
    const std::vector<std::string> known(here.begin(), here.end());
    add(named.name + " constraint", fmt::format("{}: {} usable nodes", text, target.fit.size()), ok,
        ok                        ? ""
        : anywhere.contains(text) ? "nodes of other partitions have it"
                                  : known_instead(text, known, "features here"));
  }

  void check_gpus(const NamedPlace& named, const Target& target) {
    const std::string& gres = named.place->gres;
    const std::string name = named.name + " gres";
    if (gres != "gpu" && !gres.starts_with("gpu:"))
      return add(name, gres + ": not checked", true, "only GRES `gpu` is read");
    if (const int count = count_gpus(target.fit, gres); count > 0) {
      std::set<std::string> types;
      for (const SlurmNode* node : target.fit)
        for (const auto& [type, number] : node->gpus) types.insert("gpu:" + type);
      const bool mixed = gres == "gpu" && types.size() > 1;
      return add(name, fmt::format("{}: {} in all, on usable nodes", gres, count), !mixed,
                 mixed ? "they are of several types: " + listed({types.begin(), types.end()}) : "");
    }
    add(name, gres + ": no usable node of the partition has it", false, gpu_hint(gres, target));
  }

  std::string gpu_hint(const std::string& gres, const Target& target) const {
    if (count_gpus(target.fit, gres) == 0 && count_gpus(target.nodes, gres) > 0)
      return fmt::format("it is on nodes that are not usable, or that the site leaves out ({})",
                         count_gpus(target.nodes, gres));
    std::set<std::string> partitions, types;
    for (const SlurmNode& node : view_.nodes)
      for (const auto& [type, number] : node.gpus) {
        types.insert(type.empty() ? "gpu" : "gpu:" + type);
        if (covers(gres, type)) partitions.insert(node.partitions.begin(), node.partitions.end());
      }
    if (!partitions.empty())
      return "these partitions have it: " + listed({partitions.begin(), partitions.end()});
    if (types.empty()) return "the cluster has no GPUs";
    return known_instead(gres, {types.begin(), types.end()}, "the cluster has");
  }

  void check_time(const NamedPlace& named, const Target& target) {
    std::uint32_t least = 0, most = 0;  // minutes; 0: no limit
    bool limited = true;
    for (const SlurmPartition* p : target.partitions) {
      if (p->max_minutes == 0) limited = false;
      most = std::max(most, p->max_minutes);
      if (p->max_minutes > 0) least = least == 0 ? p->max_minutes : std::min(least, p->max_minutes);
    }
    if (least == 0) return;
    const bool controller = named.place == &site_.controller;
    const bool timed = controller && site_.controller_time_s > 0;
    const std::string name = named.name + (timed ? " time" : " max_time");
    const double wanted_s = timed ? site_.controller_time_s : named.place->max_time_s;
    const std::string allowed = show_minutes(least);
    if (wanted_s <= 0)
      return add(name, "none said; the partition allows " + allowed, true,
                 controller ? "" : "a job that asks for more is refused");
    const std::string wanted = show_minutes(static_cast<std::uint32_t>(std::ceil(wanted_s / 60)));
    if (limited && wanted_s > 60.0 * most)
      return add(name, fmt::format("{} is over the partition's MaxTime", wanted), false,
                 fmt::format("write {}: {}", timed ? "time" : "max_time", show_minutes(most)));
    add(name, fmt::format("{}; the partition allows {}", wanted, allowed), true,
        wanted_s > 60.0 * least ? "some of its partitions allow less" : "");
  }

  void check_memory(const NamedPlace& named, const Target& target) {
    if (target.fit.empty()) return;
    const auto largest = *std::max_element(
        target.fit.begin(), target.fit.end(),
        [](const SlurmNode* a, const SlurmNode* b) { return a->memory_mib < b->memory_mib; });
    const std::uint64_t has = largest->memory_mib * kMiB;
    const std::string there =
        fmt::format("{} has {} and {} cores", largest->name, format_size(has), largest->cpus);
    if (named.place == &site_.controller) {
      const bool fits = site_.controller_memory <= has &&
                        static_cast<std::uint32_t>(site_.controller_cpus) <= largest->cpus;
      if (!fits)
        add(named.name + " size",
            fmt::format("{} and {} cores: over what any node has", format_size(site_.controller_memory),
                        site_.controller_cpus),
            false, there);
      return;
    }
    const std::uint64_t each = named.place->memory_per_cpu;
    if (each == 0) return;
    const std::uint64_t cores = std::min<std::uint64_t>(has / each, largest->cpus);
    add(named.name + " memory_per_cpu", fmt::format("{}; {}", format_size(each), there), cores > 0,
        cores == 0              ? "no node has as much"
        : cores < largest->cpus ? fmt::format("memory for {} cores at a time", cores)
                                : "");
  }

  // A word that accounting knows, or does not.
  void check_name(const std::string& name, const std::string& word, const std::vector<std::string>* known,
                  const std::string& whose) {
    if (word.empty()) return;
    if (known == nullptr || known->empty())
      return add(name, word + ": not checked", true,
                 "accounting does not say; `request`, below, shows whether Slurm takes it");
    if (contains(*known, word)) return add(name, word);
    add(name, "`" + word + "` is not open to you", false, known_instead(word, *known, whose));
  }

  // ---- GPUs that the site does not name ----

  void check_other_gpus() {
    std::map<std::string, std::pair<int, std::set<std::string>>>
        all;  // type -> how many, in which partitions
    std::set<std::string> named;
    for (const SlurmNode& node : view_.nodes)
      for (const auto& [type, number] : node.gpus) {
        auto& [count, partitions] = all[type];
        count += number;
        partitions.insert(node.partitions.begin(), node.partitions.end());
        for (const auto& [name, place] : site_.gpus)
          if (covers(place.gres, type) && goes_to(place, node)) named.insert(type);
      }
    for (const auto& [type, where] : all)
      if (!named.contains(type))
        add("not in the site",
            fmt::format("gpu{}{}, {} in all; partitions {}", type.empty() ? "" : ":", type, where.first,
                        listed({where.second.begin(), where.second.end()})),
            true, "`warpsmith doctor --discover` shows how to name it");
  }

  bool goes_to(const SitePlace& place, const SlurmNode& node) const {
    if (!place.constraint.empty() && !has_features(place.constraint, node.features).value_or(true))
      return false;
    for (const SlurmPartition& p : view_.partitions)
      if (place.partition.empty() ? p.is_default : contains(split(place.partition, ','), p.name))
        if (contains(p.nodes, node.name)) return true;
    return false;
  }

  const workflow::SiteSpec& site_;
  const ClusterView& view_;
  std::vector<process::Fact> facts_;
};

}  // namespace

std::string listed(const std::vector<std::string>& words) {
  constexpr std::size_t kMost = 12;
  std::string out;
  for (std::size_t i = 0; i < std::min(words.size(), kMost); ++i) out += (i > 0 ? ", " : "") + words[i];
  if (words.size() > kMost) out += fmt::format(" and {} more", words.size() - kMost);
  return out;
}

std::string show_minutes(std::uint32_t minutes) {
  if (minutes > 0 && minutes % 1440 == 0) return fmt::format("{}d", minutes / 1440);
  if (minutes > 0 && minutes % 60 == 0) return fmt::format("{}h", minutes / 60);
  return fmt::format("{}m", minutes);
}

std::vector<NamedPlace> places_of(const workflow::SiteSpec& site) {
  std::vector<NamedPlace> places = {{"cpu", "", &site.cpu}};
  for (const auto& [type, place] : site.gpus) places.push_back({"gpu " + type, type, &place});
  places.push_back({"controller", "", &site.controller});
  return places;
}

ClusterView view_of(Cluster& cluster) {
  ClusterView view;
  view.facts = cluster.facts();
  view.nodes = cluster.nodes();
  view.partitions = cluster.partitions();
  try {
    view.limits = cluster.limits();
  } catch (const SlurmError& e) {
    view.accounting_trouble = e.what();
  }
  return view;
}

std::size_t count_gpus(const SitePlace& place, const std::vector<SlurmNode>& nodes) {
  std::vector<const SlurmNode*> fit;
  for (const SlurmNode& node : nodes) {
    const bool there = place.partition.empty() ||
                       std::any_of(node.partitions.begin(), node.partitions.end(), [&](const std::string& p) {
                         return contains(split(place.partition, ','), p);
                       });
    if (there && node.usable &&
        (place.constraint.empty() || has_features(place.constraint, node.features).value_or(true)))
      fit.push_back(&node);
  }
  return static_cast<std::size_t>(std::max(0, count_gpus(fit, place.gres)));
}

std::vector<process::Fact> check_site(const workflow::SiteSpec& site, const ClusterView& view) {
  return SiteChecker(site, view).check();
}

}  // namespace warpsmith::executor

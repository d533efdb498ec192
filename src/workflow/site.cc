#include "warpsmith/workflow/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "site_tables.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

std::string ticked(std::string_view word) { return fmt::format("`{}`", word); }

void check_text(const TextRule& rule, const std::string& key, const Node& node, Diagnostics& mistakes) {
  if (rule.allows(node.text())) return;
  if (node.text().size() > 1000)
    mistakes.push_back(mistake_at(node.place(), ticked(key) + " is longer than 1,000 characters"));
  else
    mistakes.push_back(mistake_at(
        node.place(), fmt::format("`{}`: {} {}", key, yaml::describe(node), rule.wrong), rule.hint));
}

// What a variable's name forbids: those that are not the site's to set.
const char* set_by_others(const std::string& name) {
  if (name.starts_with("SLURM_") || name.starts_with("SBATCH_")) return "Slurm sets its own variables";
  if (name.starts_with("WARPSMITH_")) return "Warpsmith sets its own variables";
  if (name == "TMPDIR") return "write it as `scratch`";
  if (name == "OMP_NUM_THREADS") return "it follows from `resources: cpus` of the workflow";
  if (name == "CUDA_VISIBLE_DEVICES") return "Slurm sets it to the GPUs that a shard has";
  return nullptr;
}

void read_environment(MapReader& map, std::map<std::string, std::string>& environment,
                      Diagnostics& mistakes) {
  for (const Entry& entry : map.map("environment")) {
    const std::string what = "environment: " + entry.key;
    if (!variable_name_rule().allows(entry.key)) {
      mistakes.push_back(mistake_at(
          entry.place,
          fmt::format("`environment`: `{}` {}", entry.key.substr(0, 40), variable_name_rule().wrong),
          variable_name_rule().hint));
    } else if (const char* reason = set_by_others(entry.key)) {
      mistakes.push_back(mistake_at(
          entry.place, fmt::format("`environment`: `{}` is not the site's to set", entry.key), reason));
    } else if (auto value = yaml::read_text(entry.value, ticked(what), mistakes)) {
      if (!value->empty()) check_text(shell_line_rule(), what, entry.value, mistakes);
      environment[entry.key] = std::move(*value);
    }
  }
}

// A key of a place that this kind of place cannot have.
void refuse(const PlaceKey& key, PlaceKind kind, MapReader& map) {
  const char* name = key.key.rule.name;
  if (!map.has(name)) return;
  map.expect(name);
  if (std::string_view(name) == "memory_per_cpu")
    map.mistake(name, "`memory_per_cpu` does not apply to the controller",
                "its `memory` is a key of its own");
  else
    map.mistake(name, fmt::format("`{}` belongs to a GPU type", name),
                kind == kDefaults ? "each type has its own" : "gpus: {L40: {…}}");
}

// What the file does not say stays as it is. The map may have other keys, which are the caller's to report.
void read_place(MapReader& map, PlaceKind kind, SitePlace& place, Diagnostics& mistakes) {
  for (const PlaceKey& key : place_keys()) {
    const KeyRule& rule = key.key.rule;
    if (!key.applies(kind)) {
      refuse(key, kind, map);
      continue;
    }
    const auto node = map.value(rule.name);
    if (!node) continue;
    auto value = read_value(rule, *node, mistakes);
    if (!value) continue;
    assign(key.key, place, std::move(*value));
    if (key.text == nullptr) continue;
    const bool unset = node->is_scalar() && node->text().empty() && rule.form == Form::kString;
    const std::vector<Node> one = unset ? std::vector<Node>{} : std::vector<Node>{*node};
    for (const Node& text : node->is_sequence() ? node->items() : one)
      check_text(*key.text, rule.name, text, mistakes);
  }
  read_environment(map, place.environment, mistakes);
}

// The defaults as this kind of place has them.
SitePlace inherit(const SitePlace& defaults, PlaceKind kind) {
  SitePlace place = defaults;
  static const SitePlace nothing;
  for (const PlaceKey& key : place_keys())
    if (!key.applies(kind))
      std::visit(
          [&](const auto& member) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, Spelt<SitePlace>>)
              place.*member = nothing.*member;
          },
          key.key.member);
  return place;
}

// What decides on which nodes a job may land.
auto request_of(const SitePlace& p) {
  return std::tie(p.partition, p.qos, p.reservation, p.constraint, p.exclude, p.gres);
}

class SiteLoader {
 public:
  explicit SiteLoader(const fs::path& file) { site_.file = file; }

  SiteSpec load(std::string_view text) {
    site_.text = std::string(text);
    const Node root = yaml::load_text(text, site_.file.string(), mistakes_);
    if (yaml::is_map_file(root, "site", kSiteSchema, mistakes_)) read_root(root);
    return std::move(site_);
  }

  Diagnostics mistakes() {
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    return std::move(mistakes_);
  }

 private:
  void read_root(const Node& root) {
    MapReader map(root, "site", mistakes_);
    check_schema(map);
    if (auto name = map.string("name", {.required = true})) {
      if (!is_identifier(*name) || name->size() > 64)
        map.mistake("name", fmt::format("{} is no name", yaml::describe(*root.find("name"))),
                    "a letter, then letters, digits, _ and -");
      site_.name = std::move(*name);
    }
    read_keys(site_keys(), map, site_, mistakes_);
    if (const auto slurm = map.value("slurm")) read_slurm(*slurm);
    SitePlace defaults;
    read_block(map, "defaults", kDefaults, defaults);
    site_.cpu = inherit(defaults, kCpu);
    read_block(map, "cpu", kCpu, site_.cpu);
    for (const Entry& entry : map.map("gpus")) read_gpu(entry, inherit(defaults, kGpu));
    if (site_.executor == "slurm") site_.controller = inherit(defaults, kController);
    read_controller(map);
    if (const auto prices = map.value("prices")) read_prices(*prices);
    if (site_.executor == "local")
      for (const char* block : {"slurm", "controller"})
        if (map.has(block))
          map.mistake(block, fmt::format("`{}` stands beside `executor: local`", block), "executor: slurm");
    map.finish();
    check_shard_time(map);
  }

  void check_schema(MapReader& map) {
    const auto schema = map.text("schema");
    if (!schema && !map.has("schema"))
      map.mistake("", "key `schema` is missing", std::string("schema: ") + kSiteSchema);
    if (schema && *schema != kSiteSchema)
      map.mistake("schema", fmt::format("schema `{}` is not known to this version", *schema),
                  std::string("schema: ") + kSiteSchema);
  }

  void read_slurm(const Node& node) {
    SlurmKeys keys;
    read_map(slurm_keys(), node, "`slurm`", keys, mistakes_);
    if (const Node* conf = node.find("conf"); conf != nullptr && !keys.conf.empty()) {
      check_text(shell_line_rule(), "conf", *conf, mistakes_);
      std::error_code ignored;  // where the working folder is gone
      site_.conf = fs::absolute(site_.file.parent_path() / keys.conf, ignored).lexically_normal();
    }
    site_.max_queued = static_cast<std::uint32_t>(keys.max_queued);
    site_.requests_per_minute = keys.requests_per_minute;
    site_.request_burst = keys.request_burst;
  }

  void read_block(MapReader& root, const char* key, PlaceKind kind, SitePlace& place) {
    const auto node = root.value(key);
    if (!node) return;
    MapReader map(*node, ticked(key), mistakes_);
    read_place(map, kind, place, mistakes_);
    map.finish();
  }

  void read_gpu(const Entry& entry, SitePlace place) {
    const std::string& type = entry.key;
    if (!is_identifier(type) || type.size() > 64 || default_gres(type) == "gpu:cpu" ||
        default_gres(type) == "gpu:auto") {
      mistakes_.push_back(
          mistake_at(entry.place, fmt::format("`{}` is no GPU type", type.substr(0, 40)),
                     "a letter, then letters, digits, _ and -, such as H100; not cpu or auto"));
      return;
    }
    MapReader map(entry.value, fmt::format("GPU type `{}`", type), mistakes_);
    read_place(map, kGpu, place, mistakes_);
    map.finish();
    if (map.has("names") && map.node().find("names")->is_sequence() && place.names.empty())
      map.mistake("names", "`names` is empty", "take it out: its default is the type itself");
    if (place.gres.empty()) place.gres = default_gres(type);
    if (place.names.empty() && !place.twin) place.names = {type};
    for (const auto& [other, with] : site_.gpus) {
      if (default_gres(other) == default_gres(type))
        mistakes_.push_back(mistake_at(
            entry.place, fmt::format("GPU types `{}` and `{}` differ by case alone", other, type)));
      else if (request_of(with) == request_of(place))
        mistakes_.push_back(mistake_at(
            entry.place, fmt::format("GPU types `{}` and `{}` ask Slurm for the same", other, type),
            "tell them apart by gres, partition or constraint"));
    }
    site_.gpus.emplace(type, std::move(place));
  }

  void read_controller(MapReader& root) {
    const auto node = root.value("controller");
    if (!node) return;
    MapReader map(*node, "`controller`", mistakes_);
    read_keys(controller_keys(), map, site_, mistakes_);
    read_place(map, kController, site_.controller, mistakes_);
    map.finish();
    const double time_s = site_.controller_time_s, longest_s = site_.controller.max_time_s;
    if (time_s > 0 && site_.controller_warning_s + 60 >= time_s)
      map.mistake(map.has("warning") ? "warning" : "time",
                  fmt::format("`warning` of {:g} s leaves nothing of the {:g} s of `time`",
                              site_.controller_warning_s, time_s),
                  "Slurm may send it 60 s early");
    if (longest_s > 0 && time_s > longest_s)
      map.mistake("time",
                  fmt::format("`time` of {:g} s is over the `max_time` of {:g} s", time_s, longest_s));
  }

  void read_prices(const Node& node) {
    MapReader map(node, "`prices`", mistakes_);
    read_keys(price_keys(), map, site_.prices, mistakes_);
    if (const Node* currency = node.find("currency"); currency != nullptr && !site_.prices.currency.empty())
      check_text(shell_line_rule(), "currency", *currency, mistakes_);
    for (const Entry& entry : map.map("gpu_hours")) {
      if (site_.executor == "slurm" && !site_.gpus.contains(entry.key))
        mistakes_.push_back(mistake_at(entry.place,
                                       fmt::format("`gpu_hours`: this site has no GPU type `{}`", entry.key),
                                       "as `gpus` names it"));
      const KeyRule rule = {.name = entry.key.c_str(), .form = Form::kNumber, .low = 0, .high = 1e6};
      if (const auto price = read_value(rule, entry.value, mistakes_))
        site_.prices.gpu_hours[entry.key] = std::get<double>(*price);
    }
    for (const Entry& entry : map.map("tokens"))
      read_map(token_price_keys(), entry.value, fmt::format("price of `{}`", entry.key),
               site_.prices.tokens[entry.key], mistakes_);
    map.finish();
  }

  void check_shard_time(MapReader& map) {
    std::string over;
    const auto look = [&](const std::string& name, const SitePlace& place) {
      if (place.max_time_s > 0 && site_.shard_s > place.max_time_s)
        over += (over.empty() ? "" : ", ") + ticked(name);
    };
    look("cpu", site_.cpu);
    for (const auto& [type, place] : site_.gpus) look(type, place);
    if (!over.empty()) map.mistake("shard_time", "`shard_time` is over the `max_time` of " + over);
  }

  SiteSpec site_;
  Diagnostics mistakes_;
};

}  // namespace

SiteSpec load_site_text(std::string_view text, const fs::path& file, Diagnostics& mistakes) {
  SiteLoader loader(file);
  SiteSpec site = loader.load(text);
  for (Diagnostic& mistake : loader.mistakes()) mistakes.push_back(std::move(mistake));
  return site;
}

SiteSpec load_site(const fs::path& file, Diagnostics& mistakes) {
  try {
    return load_site_text(read_file(file), file, mistakes);
  } catch (const Error& e) {
    mistakes.push_back({"", 0, 0, e.what(), ""});
    return {};
  }
}

bool is_site_text(std::string_view text) {
  for (const std::string& line : split_lines(text)) {
    if (!line.starts_with("schema:")) continue;
    std::string value = trim(line.substr(7));
    if (!value.empty() && (value[0] == '"' || value[0] == '\'')) value.erase(0, 1);
    return value.starts_with("warpsmith.site");
  }
  return false;
}

}  // namespace warpsmith::workflow

// A site as a file for people: what is said as keys, what may be said as comments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "site_tables.h"

namespace warpsmith::workflow {

namespace {

constexpr std::size_t kColumns = 100;

// Plain where every YAML reader takes it for a string, else in double quotes.
std::string show_string(const std::string& text) {
  static const std::regex plain("[A-Za-z_/][A-Za-z0-9_./+-]{0,200}");
  static const std::regex word("null|true|false|yes|no|on|off|y|n", std::regex::icase);
  if (text.size() <= 200 && std::regex_match(text, plain) && !std::regex_match(text, word)) return text;
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string show_seconds(double seconds) {
  static constexpr std::array<std::pair<long long, const char*>, 4> kUnits = {
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  const long long ms = std::llround(seconds * 1000);
  for (const auto& [unit, sign] : kUnits)
    if (ms != 0 && ms % unit == 0) return fmt::format("{}{}", ms / unit, sign);
  return ms == 0 ? "0s" : fmt::format("{}ms", ms);
}

std::string show_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string show_list(const Json& list, const std::string& indent) {
  std::string flow, block;
  for (const Json& item : list) {
    const std::string text = show_string(item.get<std::string>());
    flow += (flow.empty() ? "" : ", ") + text;
    block += "\n" + indent + "  - " + text;
  }
  return flow.size() <= kColumns - 30 ? " [" + flow + "]" : block;
}

// With the space or line break that goes before it.
std::string show_value(const KeyRule& rule, const Json& value, const std::string& indent) {
  if (rule.form == Form::kSeconds) return " " + show_seconds(value.get<double>());
  if (rule.form == Form::kBytes) return " " + show_bytes(value.get<std::uint64_t>());
  if (value.is_array()) return show_list(value, indent);
  return " " + (value.is_string() ? show_string(value.get<std::string>()) : value.dump());
}

// What a key of a place says: null where it says what a file without it means.
Json said(const PlaceKey& key, const SitePlace& place, const std::string& gpu_type) {
  Json value = value_json(key.key, place);
  const std::string_view name = key.key.rule.name;
  if (value == value_json(key.key, SitePlace{})) return nullptr;
  if (name == "gres" && value == default_gres(gpu_type)) return nullptr;
  if (name == "names" && !place.twin && value == Json::array({gpu_type})) return nullptr;
  return value;
}

struct Part {
  PlaceKind kind;
  std::string gpu_type;
  const SitePlace* place;
};

class SiteWriter {
 public:
  explicit SiteWriter(const SiteSpec& site) : site_(site) {
    parts_ = {{kCpu, "", &site.cpu}, {kController, "", &site.controller}};
    for (const auto& [type, place] : site.gpus) parts_.push_back({kGpu, type, &place});
    find_common();
  }

  std::string write() {
    out_ = fmt::format(
        "# A site of Warpsmith; its format: slurm/README.md.\n#\n#   warpsmith doctor --site {}\n#\n"
        "# compares it with the cluster. Keys behind a # show what else may be said.\n"
        "schema: {}\nname: {}\n",
        site_.name, kSiteSchema, show_string(site_.name));
    write_table(site_keys(), site_, SiteSpec{}, "");
    if (site_.executor == "slurm") write_slurm();
    out_ += "\n# For `cpu`, `controller` and every GPU type, which may say otherwise.\ndefaults:\n";
    write_common();
    out_ += "\n# Where shards without a GPU go.\ncpu:";
    write_place(parts_[0], "  ");
    out_ += "\n# Where shards with a GPU go, by GPU type as workflows name it.\ngpus:";
    out_ += site_.gpus.empty() ? " {}\n" : "\n";
    for (const Part& part : parts_) {
      if (part.kind != kGpu) continue;
      out_ += "  " + show_string(part.gpu_type) + ":";
      write_place(part, "    ");
    }
    if (site_.executor == "slurm") {
      out_ += "\n# The controller's own job.\ncontroller:\n";
      write_table(controller_keys(), site_, SiteSpec{}, "  ");
      write_place(parts_[1], "  ", /*begun=*/true);
    }
    write_prices();
    return std::move(out_);
  }

 private:
  // Keys that say the same in each of at least two places.
  void find_common() {
    for (const PlaceKey& key : place_keys()) {
      if (!key.applies(kDefaults)) continue;
      Json value;
      int places = 0;
      bool same = true;
      for (const Part& part : parts_) {
        if (!key.applies(part.kind) || skipped(part)) continue;
        const Json here = said(key, *part.place, part.gpu_type);
        if (places++ == 0) value = here;
        same = same && here == value;
      }
      if (places >= 2 && same && !value.is_null()) common_[key.key.rule.name] = value;
    }
    const auto& environment = site_.cpu.environment;
    common_environment_ =
        !environment.empty() && std::all_of(parts_.begin(), parts_.end(), [&](const Part& p) {
          return skipped(p) || p.place->environment == environment;
        });
  }

  // A site without Slurm has no controller's job.
  bool skipped(const Part& part) const { return part.kind == kController && site_.executor != "slurm"; }

  void write_key(const KeyRule& rule, const Json& value, const Json& standard, const std::string& indent) {
    out_ += indent + "# " + rule.meaning + "\n" + indent;
    const bool unsaid = value == standard;
    const bool nothing = value.is_string() ? value == "" : value.is_array() ? value.empty() : value == 0;
    out_ += std::string(unsaid ? "# " : "") + rule.name + ":";
    out_ += unsaid && nothing ? "\n" : show_value(rule, value, indent) + "\n";
  }

  template <typename T>
  void write_table(const Table<T>& table, const T& object, const T& standard, const std::string& indent) {
    for (const Key<T>& key : table)
      write_key(key.rule, value_json(key, object), value_json(key, standard), indent);
  }

  void write_slurm() {
    SlurmKeys keys;
    keys.conf = site_.conf.string();
    keys.max_queued = static_cast<int>(site_.max_queued);
    keys.requests_per_minute = site_.requests_per_minute;
    keys.request_burst = site_.request_burst;
    out_ += "\nslurm:\n";
    write_table(slurm_keys(), keys, SlurmKeys{}, "  ");
  }

  void write_prices() {
    out_ +=
        "\n# Of an hour of a CPU; of a GPU, by type; of a million tokens, by model as its server calls it. "
        "All in one "
        "currency.\n";
    if (site_.prices == Prices{}) {
      out_ +=
          "# prices:\n#   currency: EUR\n#   cpu_hours: 0.02\n#   gpu_hours: {H100: 2.5}\n#   tokens:\n#     "
          "gpt-4o: {prompt: 2.5, completion: 10}\n";
      return;
    }
    out_ += "prices:\n";
    write_table(price_keys(), site_.prices, Prices{}, "  ");
    if (!site_.prices.gpu_hours.empty()) out_ += "  gpu_hours:\n";
    for (const auto& [type, price] : site_.prices.gpu_hours)
      out_ += fmt::format("    {}: {}\n", show_string(type), price);
    if (!site_.prices.tokens.empty()) out_ += "  tokens:\n";
    for (const auto& [model, price] : site_.prices.tokens)
      out_ += fmt::format("    {}: {{prompt: {}, completion: {}}}\n", show_string(model), price.prompt,
                          price.completion);
  }

  void write_common() {
    for (const PlaceKey& key : place_keys()) {
      const KeyRule& rule = key.key.rule;
      const Json standard = value_json(key.key, SitePlace{});
      if (key.applies(kDefaults))
        write_key(rule, common_.contains(rule.name) ? common_.at(rule.name) : standard, standard, "  ");
    }
    out_ += std::string("  # ") + kEnvironmentMeaning + "\n";
    if (common_environment_)
      write_environment(site_.cpu.environment, "  ");
    else
      out_ += "  # environment: {}\n";
  }

  void write_environment(const std::map<std::string, std::string>& environment, const std::string& indent) {
    out_ += indent + "environment:\n";
    for (const auto& [name, value] : environment)
      out_ += indent + "  " + show_string(name) + ": " + show_string(value) + "\n";
  }

  // Behind "key:"; `begun`: lines of the map stand there already.
  void write_place(const Part& part, const std::string& indent, bool begun = false) {
    const std::size_t before = out_.size();
    if (!begun) out_ += "\n";
    const std::size_t empty = out_.size();
    for (const PlaceKey& key : place_keys()) {
      const KeyRule& rule = key.key.rule;
      if (!key.applies(part.kind) || common_.contains(rule.name)) continue;
      if (const Json value = said(key, *part.place, part.gpu_type); !value.is_null())
        out_ += indent + rule.name + ":" + show_value(rule, value, indent) + "\n";
    }
    if (!common_environment_ && !part.place->environment.empty())
      write_environment(part.place->environment, indent);
    if (begun || out_.size() > empty) return;
    out_.resize(before);
    out_ += " {}\n";
  }

  const SiteSpec& site_;
  std::vector<Part> parts_;
  std::map<std::string, Json> common_;
  bool common_environment_ = false;
  std::string out_;
};

}  // namespace

std::string site_yaml(const SiteSpec& site) { return SiteWriter(site).write(); }

}  // namespace warpsmith::workflow

// `warpsmith doctor --discover`: the first site file of a cluster.
#include <cctype>
#include <cstdio>

#include "doctor.h"
#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/site_check.h"

namespace warpsmith::cli {

namespace {

// What was asked for, else the file's name, by which --site finds it, else the cluster's.
std::string site_name(const DiscoverOptions& options, const std::string& cluster) {
  if (!options.name.empty()) return options.name;
  const std::string file = options.output.stem().string();
  if (is_identifier(file) && file.size() <= 64) return file;
  std::string name = cluster.substr(0, 64);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') c = '-';
  return is_identifier(name) ? name : "cluster";
}

}  // namespace

int discover_site(const DiscoverOptions& options, CommandContext& context) {
  if (!options.name.empty() && (!is_identifier(options.name) || options.name.size() > 64))
    throw Error("`" + options.name + "` is no name of a site (a letter, then letters, digits, _ and -)",
                kExitUsage);
  if (!options.output.empty() && path_exists(options.output))
    throw Error(options.output.string() + " is there already and stays as it is", kExitUsage);
  const fs::path conf = options.conf.empty() ? fs::path() : fs::absolute(options.conf).lexically_normal();
  const auto cluster = executor::open_cluster(program_folder(), conf);
  const executor::ClusterView view = executor::view_of(*cluster);
  executor::SiteDraft draft = executor::draft_site(site_name(options, view.facts.cluster), view);
  draft.site.conf = conf;
  const std::string text = workflow::site_yaml(draft.site);
  if (!options.output.empty() && !create_file_exclusive(options.output, text))
    throw Error(options.output.string() + " is there already and stays as it is", kExitUsage);

  const std::string site = options.output.empty() ? "FILE" : options.output.string();
  if (context.json) {
    print_json(context, {{"name", draft.site.name},
                         {"file", options.output.empty() ? Json() : Json(options.output.string())},
                         {"text", text},
                         {"notes", draft.notes}});
    return kExitOk;
  }
  if (options.output.empty()) print_text(stdout, text);
  std::fflush(stdout);
  for (const std::string& note : draft.notes) print_error("%s\n", note.c_str());
  print_error("`warpsmith doctor --site %s` compares it with the cluster.\n", site.c_str());
  return kExitOk;
}

}  // namespace warpsmith::cli

// Which file --site means.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/site.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

namespace {

std::vector<fs::path> site_folders(const fs::path& installed) {
  std::vector<fs::path> folders;
  if (const char* list = std::getenv("WARPSMITH_SITES"))
    for (const std::string& folder : split(list, ':'))
      if (!folder.empty()) folders.emplace_back(folder);
  folders.emplace_back("slurm/sites");
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    folders.push_back(fs::path(home) / ".config/warpsmith/sites");
  if (!installed.empty()) folders.push_back(installed);
  return folders;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<std::string> sites_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (it->path().extension() == ".yaml" && is_file(it->path())) names.push_back(it->path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

fs::path find_site(const std::string& name_or_path, const fs::path& installed) {
  if (is_file(name_or_path)) return name_or_path;
  if (name_or_path.empty() || name_or_path.find('/') != std::string::npos)
    throw Error(fmt::format("there is no site file `{}`", name_or_path), kExitUsage);
  std::string looked;
  std::vector<std::string> known;
  for (const fs::path& folder : site_folders(installed)) {
    for (const char* ending : {".yaml", ""})
      if (const fs::path path = folder / (name_or_path + ending); is_file(path)) return path;
    const std::vector<std::string> here = sites_in(folder);
    std::string list = here.empty() ? "no site" : "";
    for (const std::string& name : here) list += (list.empty() ? "" : ", ") + name;
    looked += fmt::format("\n  {}: {}", folder.string(), list);
    known.insert(known.end(), here.begin(), here.end());
  }
  const auto near = nearest_word(name_or_path, known);
  throw Error(fmt::format("there is no site `{}`{}; a site is a file, or NAME.yaml in one of{}", name_or_path,
                          near ? " (did you mean `" + *near + "`?)" : "", looked),
              kExitUsage);
}

}  // namespace warpsmith::workflow

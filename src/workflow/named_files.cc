#include "named_files.h"

#include <fmt/format.h>

#include "endpoint.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/workflow/other_run.h"

namespace warpsmith::workflow {

using yaml::mistake_at;

namespace {

// "runs/x/" -> "runs/x"
fs::path without_end(const fs::path& folder) { return folder.has_filename() ? folder : folder.parent_path(); }

}  // namespace

void NamedFiles::find(Draft& draft) {
  if (draft.hacks)
    draft.spec.hacks = find_hacks(std::get<ContrastiveSettings>(draft.spec.settings).hacks, *draft.hacks);
  if (draft.checker_hacks)
    draft.spec.checker->known = find_hacks(draft.spec.checker->hacks, *draft.checker_hacks);
  for (EndpointSettings* endpoint : endpoints_of(draft.spec)) find_certificates(draft, *endpoint);
  if (draft.model) find_model(draft.spec.model, *draft.model);
  if (const auto* command = std::get_if<CommandSettings>(&draft.spec.settings))
    check_files_of(draft, command->argv);
  if (const auto* service = std::get_if<ServiceSettings>(&draft.spec.settings))
    check_files_of(draft, service->argv);
}

void NamedFiles::find(StageSpec& stage) {
  if (auto* command = std::get_if<CommandSettings>(&stage.settings)) find_files(stage, command->argv);
  if (auto* service = std::get_if<ServiceSettings>(&stage.settings)) find_files(stage, service->argv);
  if (auto* measure = std::get_if<MeasureSettings>(&stage.settings)) find_run(stage, *measure);
}

// Words of `argv` that begin with ./ or ../ are files beside the workflow.
std::optional<fs::path> NamedFiles::file_beside(const std::string& word) const {
  if (!word.starts_with("./") && !word.starts_with("../")) return std::nullopt;
  return (base_ / word).lexically_normal();
}

void NamedFiles::check_files_of(const Draft& draft, const std::vector<std::string>& argv) {
  if (!options_.check_files) return;
  const bool placed = draft.argv.size() == argv.size();  // not where a word was no text
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const auto path = file_beside(argv[i]);
    if (std::error_code error; path && !fs::exists(*path, error))
      mistakes_.push_back(mistake_at(placed ? draft.argv[i] : draft.place,
                                     fmt::format("`argv`: there is no file {}", path->string()),
                                     "relative to the folder of this file"));
  }
}

// They are made absolute, and their contents hashed.
void NamedFiles::find_files(StageSpec& stage, std::vector<std::string>& argv) {
  for (std::string& word : argv) {
    const auto path = file_beside(word);
    if (!path) continue;
    if (std::error_code error; fs::is_regular_file(*path, error))
      stage.resolved["files"][word] = sha256_file_hex(*path);
    word = path->string();
  }
}

// `candidates_of_run` is made absolute. A run that is not there yet is no mistake: the workflow may be
// checked before it is made.
void NamedFiles::find_run(const StageSpec& stage, MeasureSettings& measure) {
  if (measure.candidates_of_run.empty()) return;
  const fs::path folder = without_end((base_ / measure.candidates_of_run).lexically_normal());
  const std::string lack = options_.check_files ? lack_of_run(folder) : "";
  if (!lack.empty())
    notes_.push_back({file_.string(), stage.line, 1, "`candidates_of_run`: " + lack,
                      fmt::format("`{}` makes it; until then the stage cannot run",
                                  command_for_run(folder, fs::absolute(file_)))});
  measure.candidates_of_run = folder.string();
}

// `hacks` is made absolute, and its cases are read now: the database may change while the workflow runs.
// Null: it has mistakes.
std::shared_ptr<const HackDatabase> NamedFiles::find_hacks(std::string& named, const yaml::Place& place) {
  const fs::path folder = without_end((base_ / named).lexically_normal());
  named = folder.string();
  if (!options_.check_files) return nullptr;
  const auto [known, fresh] = hacks_.emplace(folder, nullptr);  // the instances of a matrix share theirs
  if (std::error_code error; !fs::is_directory(folder, error)) {
    mistakes_.push_back(
        mistake_at(place, fmt::format("`hacks`: there is no folder {}", folder.string()),
                   "relative to the folder of this file; `warpsmith hacks RUN --into FOLDER` makes one"));
  } else if (fresh) {
    if (auto database = load_hack_database(folder, mistakes_))
      known->second = std::make_shared<const HackDatabase>(std::move(*database));
  }
  return known->second;
}

// `ca_file` is made absolute.
void NamedFiles::find_certificates(const Draft& draft, EndpointSettings& endpoint) {
  std::string& named = endpoint.ca_file;
  if (named.empty()) return;
  const fs::path file = (base_ / named).lexically_normal();
  named = file.string();
  if (std::error_code error; options_.check_files && !fs::is_regular_file(file, error))
    mistakes_.push_back(mistake_at(draft.place, fmt::format("`ca_file`: there is no file {}", named),
                                   "relative to the folder of this file"));
}

// The folder of a model is made absolute and looked at.
void NamedFiles::find_model(ModelSettings& model, const yaml::Place& place) {
  std::string& named = model.from.empty() ? model.shape_of : model.from;
  if (named.empty()) return;
  const fs::path folder = without_end((base_ / named).lexically_normal());
  named = folder.string();
  if (!options_.check_files) return;
  const bool weights = !model.from.empty();
  const int context = model.context_given ? model.context : 0;
  const auto [known, fresh] = models_.emplace(std::tuple(folder, weights, context), nullptr);
  if (fresh) {
    const std::string key = weights ? "from" : "shape_of";
    try {
      if (!options_.pretrained) throw Error("a folder of a model cannot be looked at here");
      known->second = std::make_shared<const PretrainedModel>(options_.pretrained(folder, weights, context));
      for (const std::string& note : known->second->notes)
        notes_.push_back(mistake_at(place, fmt::format("`{}`: {}: {}", key, folder.string(), note)));
    } catch (const Error& error) {
      mistakes_.push_back(mistake_at(place, fmt::format("`{}`: {}", key, error.what()),
                                     "a Hugging Face folder, relative to the folder of this file"));
    }
  }
  model.pretrained = known->second;
  if (model.pretrained) model.context = model.pretrained->context;
}

}  // namespace warpsmith::workflow

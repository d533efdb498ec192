// Reads a workflow file. Format document: workflows/README.md.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

struct LoadOptions {
  // --set: "path.in.the.file=value", the value in YAML. `params.x=3` sets a parameter of the file; other
  // paths must exist in it or be a key of the format ("stages.sft.steps=10": a list's element by its name).
  std::vector<std::string> overrides;
  std::optional<std::uint64_t> seed;  // --seed
  std::filesystem::path base_folder;  // relative paths start here; empty: the folder of the file
  bool check_files = true;            // that the dataset folder exists and holds the tasks that are named;
                                      // known hacks are read
  // A folder with the tasks of a checkout of KernelBench: `dataset: {kernelbench: PATH}`; `levels`: those
  // alone, or all that become tasks. It may throw Error. Not set: such a dataset is a mistake.
  std::function<std::filesystem::path(const std::filesystem::path& checkout, const std::vector<int>& levels)>
      kernelbench;
  // A folder with synthesised tasks: `dataset: {synthesize: {…}}`; `people`: of tasks of people, which are to
  // lie there, too, and none of which is made; may be empty. It may throw Error. Not set: such
  // a dataset is a mistake.
  std::function<std::filesystem::path(const SynthesizeSettings& settings,
                                      const std::filesystem::path& people)>
      synthesize;
  // Looks at a Hugging Face folder: `model: {from: PATH}` and `{shape_of: PATH}`; `weights`: they must be
  // there; `context`: at most so many tokens, 0: as many as it allows. It may throw Error. Not set: such a
  // model is a mistake, unless files are not checked.
  std::function<PretrainedModel(const std::filesystem::path& folder, bool weights, int context)> pretrained;
  bool refuse_idle_gpus = true;  // false: of a run that is there, GPUs that no program uses are no mistake
};

struct LoadResult {
  std::optional<WorkflowSpec> spec;  // nothing where there are mistakes
  Diagnostics mistakes;              // all of them, by place
  Diagnostics notes;                 // what is allowed and worth knowing (`teachers:` is not built yet)
};

// Pure but for reading `file` and known hacks, and looking at the dataset folder. Never throws on what a file
// says.
LoadResult load_workflow(const std::filesystem::path& file, const LoadOptions& options = {});
// The same from text; `file` is its name in messages.
LoadResult load_workflow_text(std::string_view text, const std::filesystem::path& file,
                              const LoadOptions& options = {});

// All settings by their keys; other settings make other tasks.
Json to_json(const SynthesizeSettings& settings);

// A key of `synthesize`, for programs that take it as an option.
struct SettingKey {
  std::string name, meaning;
  Json standard;
};
std::vector<SettingKey> synthesize_setting_keys();
// Sets what a file says at that key: "30%", "[chains, pooling]". Throws Error (kExitUsage) where it may not
// say that, or there is no such key.
void set_at_key(SynthesizeSettings& settings, const std::string& key, const std::string& value);

// The format as a JSON Schema (draft 2020-12) for editors, made from the tables that the reader uses.
Json workflow_json_schema();

}  // namespace warpsmith::workflow

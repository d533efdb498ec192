// Reading one stage of a workflow file: the defaults of the file in, the instances of the stage out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "matrix.h"
#include "substitute.h"
#include "tables.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

// A name in the file and where it stands.
struct NamedPlace {
  std::string name;
  yaml::Place place;
};

// An instance before its `needs` are resolved.
struct Draft {
  StageSpec spec;
  yaml::Place place;  // of the stage
  std::vector<NamedPlace> needs;
  std::vector<NamedPlace> checkpoint_of, candidates_of;
  std::vector<yaml::Place> argv;             // of the words of `argv`
  std::optional<yaml::Place> hacks;          // of the folder of known hacks; nothing: none is named
  std::optional<yaml::Place> checker_hacks;  // the same of its checker
  std::optional<yaml::Place> model;          // of the stage's own `model`
};

// GPUs that a shard of `job` can use where the file names that job: one to measure, train or sample on, many
// where a program of the user's runs. Compilers run on the CPU. Of a spec without a kind, what the file says
// of all stages: any of them may use it.
inline constexpr int kMostGpus = 64;
int most_gpus(const StageSpec& spec, std::string_view job);
// Where the file speaks of a stage's jobs together: training and sampling stay on the CPU then.
int most_gpus_unnamed(const StageSpec& spec, std::string_view job);
// Adds to `idle` that `who` cannot use what `gpus` and `gpu_type` of the map `resources` ask for, but `most`
// GPUs.
void refuse_gpus(const yaml::Node& resources, const std::string& who, int most, Diagnostics& idle,
                 const std::string& other_hint = "");

// Reads blocks that both the file and a stage may have (of those in `blocks`), and resources, retry and plain
// keys. `idle`: mistakes, too, each a request for GPUs that no program could use.
void read_shared(yaml::MapReader& map, const std::vector<std::string>& blocks, StageSpec& spec,
                 Diagnostics& mistakes, Diagnostics& idle);

// All instances of `node`, an element of `stages:`. `defaults` holds what the file says for every stage,
// `outside` the references that do not depend on its matrix.
std::vector<Draft> read_stage(const yaml::Node& node, const StageSpec& defaults, const References& outside,
                              Diagnostics& mistakes, Diagnostics& notes, Diagnostics& idle);

// Every parameter that the result of the stage depends on.
Json resolved_parameters(const StageSpec& spec);

// Fills StageSpec::needs, finds cycles, and puts the stages in order. `stated` are the names of all stages of
// the file, those with mistakes included.
std::vector<StageSpec> order_stages(std::vector<Draft> drafts, const std::vector<std::string>& stated,
                                    Diagnostics& mistakes);

}  // namespace warpsmith::workflow

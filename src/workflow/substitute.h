// ${params.NAME} and ${matrix.AXIS}, and --set.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

// What all references of a file together may bring, counted as often as they are used: so few lines of
// parameters that refer to one another can exhaust no machine.
struct ReferenceBudget {
  std::size_t values = 1'000'000;
  std::size_t bytes = 16u << 20;
  // The mistake at the reference that went over it. From then on every reference is broken, and what readers
  // find follows from that.
  std::optional<Diagnostic> exceeded;
};

// What references may refer to.
struct References {
  const std::map<std::string, yaml::Node>* params = nullptr;
  const std::map<std::string, yaml::Node>* matrix = nullptr;  // null: there is no matrix here
  ReferenceBudget* budget = nullptr;                          // never null
};

// `node` with its references replaced. A scalar that is one reference becomes that value, with its type
// (quotes around it do not count: within [ ] and { } YAML demands them); within longer text a reference
// becomes its text. `$${` stands for `${`. Keys are not touched. Shares what does not change with `node`.
yaml::Node substitute(const yaml::Node& node, const References& references, Diagnostics& mistakes);

// The values of `params:`, which may refer to one another.
std::map<std::string, yaml::Node> resolve_params(const yaml::Node* params, ReferenceBudget& budget,
                                                 Diagnostics& mistakes);

// `root` with each "path=value" put in its place. Elements of lists are found by their `name`.
yaml::Node apply_overrides(yaml::Node root, const std::vector<std::string>& overrides, Diagnostics& mistakes);

}  // namespace warpsmith::workflow

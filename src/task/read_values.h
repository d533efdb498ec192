// The values of an input as task files say them: `normal(0, 1)`, `mix(0.1, choice(nan, inf), normal(0, 1))`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plan_text.h"
#include "warpsmith/task/task.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::task {

// Reads the text of a node. Each mistake goes to the diagnostics, with the node's place.
class ValueReader {
 public:
  // An argument that begins `offset` characters behind the node's first; nothing where it is a mistake, which
  // has then been told.
  using ReadArgument = std::function<std::optional<Expression>(std::string_view text, int offset)>;
  // `in_distribution`: whether the forms that only checks have are allowed.
  ValueReader(const yaml::Node& node, const TensorSpec& tensor, bool in_distribution, ReadArgument argument,
              Diagnostics& diagnostics);

  std::optional<ValueSpec> read(const std::string& text);

 private:
  std::optional<ValueSpec> read_part(const Piece& piece, int depth);
  bool fits(const ValueSpec& spec);                          // the tensor
  bool mistake(std::string message, std::string hint = {});  // false

  const yaml::Node& node_;
  const TensorSpec& tensor_;
  bool in_distribution_;
  ReadArgument argument_;
  Diagnostics& diagnostics_;
};

// Throws Error where the arguments make no sense at `dims`: an empty range, 300 as an int8.
// `in_distribution`: as ValueReader has it.
void check_values(const ValueSpec& values, Dtype dtype, const Dims& dims, bool in_distribution);

}  // namespace warpsmith::task

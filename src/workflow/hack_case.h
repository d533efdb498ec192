// A case of a hack database as it lies on disk: <database>/<id8>-<kind>/{case.yaml, source files}.
#pragma once

#include <string_view>

namespace warpsmith::workflow {

inline constexpr std::string_view kHackSchema = "warpsmith.hack/1";
inline constexpr std::string_view kHackFile = "case.yaml";

// Whether a candidate's path means a file below the case's folder, other than case.yaml.
bool stays_inside(std::string_view path);

}  // namespace warpsmith::workflow

// What NVRTC is asked about a candidate, for whatever target.
#pragma once

#include <string>
#include <string_view>

#include "../common/compile_unit.h"
#include "protocol.h"

namespace warpsmith::toolchain {

// Without targets. Throws SourceProblem on what may not be in a source.
NvrtcRequest make_nvrtc_request(const Candidate& candidate, const ModuleNames& names);
// Of a request's source, the candidate's own: its options stand in front as directives.
std::string_view own_text(std::string_view request_source);
// The options that every candidate has, as they enter the cache key.
std::string nvrtc_options_id();

}  // namespace warpsmith::toolchain

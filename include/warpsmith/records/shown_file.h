// How messages name the one file of a candidate.
#pragma once

#include <string>

#include "warpsmith/records/candidate.h"

namespace warpsmith {

// A dataset's candidate: its file there, as `origin.detail` has it (`ok/host.cu`). Any other: the first eight
// digits of its id, by which `hacks`, exports and the report find it, and its file (`3f9a12bc/kernel.cu`).
// Empty for a candidate of several files: messages name these by their own paths.
std::string shown_file(const Candidate& candidate);

// `message` with shown_file() in place of the path that the file has in the candidate. Compilers and devices
// know that path alone: what they make is shared by all candidates of the same source.
std::string name_shown_file(const std::string& message, const Candidate& candidate);

}  // namespace warpsmith

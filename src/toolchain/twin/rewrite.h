// A candidate's source as C++ for the twin: launch context handed on as a hidden first parameter,
// `__shared__` placed in the block's storage (rewrite_shared.h), pointer casts looked at for alignment
// (rewrite_casts.h). Lines stay where they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scan.h"
#include "source_edits.h"

namespace warpsmith::toolchain {

struct Rewritten {
  std::string text;
  std::map<int, std::vector<Insertion>> insertions;  // by line
};

// Throws SourceProblem.
Rewritten rewrite(const CleanSource& source, const Scan& scan);
// Column of the candidate for one of the rewritten text.
int original_column(const Rewritten& rewritten, int line, int column);

}  // namespace warpsmith::toolchain

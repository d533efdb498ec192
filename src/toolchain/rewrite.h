// A candidate's source as C++ for the twin: launch context handed on as a hidden first parameter,
// `__shared__` placed in the block's storage, pointer casts looked at for alignment, a table of the kernels
// at the end. Lines stay where they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scan.h"

namespace warpsmith::toolchain {

// What was put into a line, to find a column of the candidate again.
struct Insertion {
  int column;  // in the rewritten line, from 1
  int added;   // characters; negative where some were taken away
};

struct Rewritten {
  std::string text;
  std::map<int, std::vector<Insertion>> insertions;  // by line
  std::set<std::string, std::less<>> split;          // kernels that do a whole block in one call
};

struct ModuleNames {
  std::vector<std::string> kernels;  // name expressions
  std::vector<std::string> symbols;
};

// `split`: kernels that wait become loops over threads where they can (split.h). Throws SourceProblem.
Rewritten rewrite(const CleanSource& source, const Scan& scan, bool split);
std::string module_table(const Scan& scan, const CleanSource& source, const Rewritten& rewritten,
                         const ModuleNames& names);
int original_column(const Rewritten& rewritten, int line, int column);

}  // namespace warpsmith::toolchain

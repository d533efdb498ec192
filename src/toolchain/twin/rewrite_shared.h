// `__shared__` variables of a candidate as references into the block's storage.
#pragma once

#include "scan.h"
#include "source_edits.h"

namespace warpsmith::toolchain {

// Those of a function that needs the context, and those of the file that it mentions. Throws SourceProblem.
void rewrite_shared(const CleanSource& source, const Scan& scan, const Function& f, SourceEdits& edits);
// Declarations outside functions: what is left of them is a type for each variable, which tells its storage
// apart.
void rewrite_file_shared(const CleanSource& source, const Scan& scan, SourceEdits& edits);

}  // namespace warpsmith::toolchain

// Shifts: a GPU gives 0, or the sign, where a number is shifted by as many places as it has bits or more; C++
// and CPUs leave that open. `a << b` becomes `a << wstw_shl << b` (cuda_twin.h has the operators), so that
// what binds tighter and what does not stays as the candidate wrote it.
#pragma once

#include <set>
#include <string>

#include "scan.h"
#include "source_edits.h"

namespace warpsmith::toolchain {

// Names behind which a `<` opens template arguments: the candidate's templates and the twin's.
std::set<std::string, std::less<>> template_names(const CleanSource& source);

// All shifts of a source, or of a macro in it. Those by a number below 32 stay as they are.
void rewrite_shifts(const CleanSource& source, const std::set<std::string, std::less<>>& templates,
                    SourceEdits& edits);

}  // namespace warpsmith::toolchain

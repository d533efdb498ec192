# Writes OUT, the definitions of kVersionText and build(), from VERSION, TORCH and CUDA and from the commit that SOURCE is at. Run at each
# build; the file changes only where its text does.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=8 --exclude=* OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
# Empty where it is not known, or not built with.
string(REGEX REPLACE "^unknown$" "" known_commit "${commit}")
string(REGEX REPLACE "^(torch |without torch)" "" torch_number "${TORCH}")
string(REGEX REPLACE "^(CUDA |without CUDA)" "" cuda_number "${CUDA}")
file(CONFIGURE OUTPUT ${OUT} CONTENT [=[#include "version.h"

namespace warpsmith::cli {

const char* const kVersionText = "warpsmith @VERSION@ (commit @commit@, @TORCH@, @CUDA@)";

Build build() { return {"@VERSION@", "@known_commit@", "@torch_number@", "@cuda_number@"}; }

}  // namespace warpsmith::cli
]=] @ONLY)

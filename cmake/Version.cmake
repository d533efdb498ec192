# Writes OUT, the definition of kVersionText, from VERSION, TORCH and CUDA and from the commit that SOURCE is at. Run at each
# build; the file changes only where its text does.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=8 --exclude=* OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [=[#include "version.h"

namespace warpsmith::cli {

const char* const kVersionText = "warpsmith @VERSION@ (commit @commit@, @TORCH@, @CUDA@)";

}  // namespace warpsmith::cli
]=] @ONLY)

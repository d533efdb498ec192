#include "refused.h"

namespace warpsmith::measure {

std::string host_code_refused(process::SandboxLevel level, bool unsandboxed) {
  if (unsandboxed || process::guards_files(level)) return "";
  return "no sandbox here keeps host code from the user's files: that wants bubblewrap, or Landlock (Linux "
         "5.13); --unsandboxed goes on without";
}

}  // namespace warpsmith::measure

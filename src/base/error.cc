#include "warpsmith/base/error.h"

#include <cerrno>
#include <cstring>

namespace warpsmith {

Error Error::with_context(std::string_view context) const {
  return Error(std::string(context) + ": " + what(), exit_code_, error_number_);
}

Error system_error(std::string_view what, int error_number) {
  return Error(std::string(what) + ": " + std::strerror(error_number), kExitEnvironment, error_number);
}

bool is_disk_full(const Error& error) {
  return error.error_number() == ENOSPC || error.error_number() == EDQUOT;
}

std::string to_string(const Diagnostic& d) {
  std::string out = d.file;
  if (d.line > 0) out += ":" + std::to_string(d.line) + ":" + std::to_string(d.column);
  if (!out.empty()) out += ": ";
  out += d.message;
  if (!d.hint.empty()) out += " (" + d.hint + ")";
  return out;
}

namespace {
std::string join(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    if (!out.empty()) out += "\n";
    out += to_string(d);
  }
  return out;
}
}  // namespace

InvalidInput::InvalidInput(Diagnostics diagnostics)
    : Error(join(diagnostics), kExitUsage), diagnostics_(std::move(diagnostics)) {}

}  // namespace warpsmith

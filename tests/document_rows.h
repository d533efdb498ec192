// Tables of a format document, to be compared with what they describe.
#pragma once

#include <sstream>
#include <string>

#include "warpsmith/base/files.h"

namespace warpsmith {

// The rows that begin with "| `" of the first table below the line that begins with `above`.
inline std::string document_rows(const std::string& document, const std::string& above) {
  std::istringstream in(read_file(fs::path(WARPSMITH_SOURCE_DIR) / document));
  std::string rows;
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(above))
      here = true;
    else if (here && line.starts_with("| `"))
      rows += line + "\n";
    else if (!rows.empty())
      break;
  }
  return rows;
}

}  // namespace warpsmith

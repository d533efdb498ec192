#include "warpsmith/base/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>

#include "warpsmith/base/error.h"

namespace warpsmith {

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::string name = (std::filesystem::temp_directory_path() / ("warpsmith-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) throw system_error("cannot make folder " + name, errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!keep_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace warpsmith

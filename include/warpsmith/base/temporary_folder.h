// A folder of one's own, gone with everything in it when its object is.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith {

class TemporaryFolder {
 public:
  // Below the system's folder for such; its name begins with "warpsmith-<purpose>-". Throws Error.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  void keep() { keep_ = true; }  // it stays behind
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

}  // namespace warpsmith

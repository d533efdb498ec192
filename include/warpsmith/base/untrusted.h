// Reading what others wrote: people's datasets, records of any program, files that a disk has damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith {

// What lies at `path` is not what should: no regular file, no JSON, or a line of another form. Nothing is
// wrong with this machine.
class BadContent : public Error {
 public:
  BadContent(std::filesystem::path path, const std::string& message, int error_number = 0)
      : Error(message, kExitEnvironment, error_number), path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A regular file, open to be read; those of /proc count. Opening never waits: for a FIFO, a device or a
// folder it throws BadContent; where there is none or it cannot be opened, Error with its errno. Move-only.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }  // when it was opened; 0 in /proc
  void seek(std::uint64_t offset);
  std::size_t read(char* to, std::size_t bytes);  // 0: the end. Throws Error
  int descriptor() const { return fd_; }          // ours, for as long as this lives

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// The whole of a regular file; BadContent where it is larger than `most` bytes.
std::string read_file_within(const std::filesystem::path& path, std::uint64_t most);

// Where the first byte stands that is no part of a character in UTF-8 (RFC 3629); the text's size where there
// is none.
std::size_t first_not_utf8(std::string_view text);

// Lists and objects within each other that JSON may have, at most: the library recurses over them.
inline constexpr int kDeepestJson = 256;

// Gives the JSON object or list in `path` to `use`. BadContent, naming the file, where it is neither or `use`
// cannot take its values (Json::exception).
void use_json(const std::filesystem::path& path, const std::function<void(const Json&)>& use);

// The same for what can be made anew, or done without: a file of which that throws BadContent is renamed to
// <path>.damaged and `warn` is told. False where nothing was used.
bool use_json_or_set_aside(const std::filesystem::path& path, const std::function<void(const Json&)>& use,
                           const std::function<void(const std::string&)>& warn);

// Renames `path` to <path>.damaged, over one that is there. Says in words what became of it: "kept as
// x.damaged", or why it still lies there.
std::string set_aside_damaged(const std::filesystem::path& path);

}  // namespace warpsmith

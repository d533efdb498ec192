#include "piece_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"

namespace warpsmith::learn {

PieceFile::PieceFile(const std::filesystem::path& folder, std::int64_t pieces, std::int64_t piece_bytes,
                     bool direct)
    : folder_(folder), piece_bytes_((piece_bytes + kBlock - 1) / kBlock * kBlock) {
  std::filesystem::create_directories(folder);
  const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
  if (direct) fd_ = ::open(folder.c_str(), flags | O_DIRECT, 0600);
  if (fd_ < 0) fd_ = ::open(folder.c_str(), flags, 0600);
  if (fd_ < 0)
    throw system_error("cannot make a file for the optimiser's states in " + folder.string(), errno);
  const std::int64_t bytes = pieces * piece_bytes_;
  if (const int error = ::posix_fallocate(fd_, 0, bytes); error != 0) {
    ::close(fd_);
    throw system_error("no room for " + format_size(static_cast<std::uint64_t>(bytes)) +
                           " of the optimiser's states in " + folder.string(),
                       error);
  }
}

PieceFile::~PieceFile() { ::close(fd_); }

template <typename Move>
void PieceFile::each(std::int64_t piece, const std::vector<at::Tensor>& tensors, const char* doing,
                     const Move& move) const {
  std::int64_t offset = piece * piece_bytes_;
  for (const at::Tensor& tensor : tensors) {
    auto* const memory = static_cast<char*>(tensor.data_ptr());
    const std::int64_t bytes = (static_cast<std::int64_t>(tensor.nbytes()) + kBlock - 1) / kBlock * kBlock;
    for (std::int64_t at = 0; at < bytes;) {
      const ssize_t moved = move(fd_, memory + at, static_cast<std::size_t>(bytes - at), offset + at);
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0)
        throw system_error(std::string("cannot ") + doing + " the optimiser's states in " + folder_.string(),
                           moved < 0 ? errno : EIO);
      at += moved;
    }
    offset += bytes;
  }
}

void PieceFile::read(std::int64_t piece, const std::vector<at::Tensor>& tensors) const {
  each(piece, tensors, "read", [](auto... all) { return ::pread(all...); });
}

void PieceFile::write(std::int64_t piece, const std::vector<at::Tensor>& tensors) const {
  each(piece, tensors, "write", [](auto... all) { return ::pwrite(all...); });
}

}  // namespace warpsmith::learn

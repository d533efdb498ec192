// Pieces of equal size in a file that has no name: it goes with the process, however that ends.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace warpsmith::learn {

class PieceFile {
 public:
  // `direct`: past the page cache; where the file system cannot do that, through it. Throws Error where there
  // is no room for all pieces in `folder`.
  PieceFile(const std::filesystem::path& folder, std::int64_t pieces, std::int64_t piece_bytes, bool direct);
  ~PieceFile();
  PieceFile(const PieceFile&) = delete;
  PieceFile& operator=(const PieceFile&) = delete;
  // All of `tensors`, one behind the other; the memory of each is whole blocks of kBlock, and
  // begins at one where the file is `direct`. Safe to be called
  // by several threads, of pieces that differ. Throws Error.
  void read(std::int64_t piece, const std::vector<at::Tensor>& tensors) const;
  void write(std::int64_t piece, const std::vector<at::Tensor>& tensors) const;
  static constexpr std::int64_t kBlock = 4096;

 private:
  template <typename Move>
  void each(std::int64_t piece, const std::vector<at::Tensor>& tensors, const char* doing,
            const Move& move) const;

  std::filesystem::path folder_;
  std::int64_t piece_bytes_;
  int fd_ = -1;
};

}  // namespace warpsmith::learn

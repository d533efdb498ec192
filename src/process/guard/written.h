// What a child writes to the folders that are its own, looked at from outside while it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace warpsmith::guard {

constexpr int kMostDepth = 64;                   // of folders below each of the child's
constexpr std::uint64_t kMostFiles = 4'000'000;  // that are looked at where no limit is set

// Counts entries of folders, and what is allocated to them: a hole in a file costs nothing, a file of several
// names counts once. No link is followed. Folders of ours that their owner may not read get their rights
// back.
class WrittenFiles {
 public:
  // Opens the folders, those that are there, and notes what lies in them: that is not the child's. 0: no
  // limit.
  WrittenFiles(const std::vector<std::string>& folders, std::uint64_t bytes, std::uint64_t files);
  ~WrittenFiles();
  WrittenFiles(const WrittenFiles&) = delete;
  WrittenFiles& operator=(const WrittenFiles&) = delete;

  // The limit that is passed, null where none is: `file_bytes`, `file_count`, `folder_depth`, or
  // `closed_folder` where a folder cannot be read. Where the disk has lost more room than the limit, files
  // that descendants of this process have open and that have no name are counted too.
  const char* look();

  // Whether folders changed during the last look: something may have been moved past it.
  bool changing() const { return changing_; }

 private:
  struct Folder {
    int fd;
    dev_t device;
    std::uint64_t
        room;  // of its file system; when that shrinks by more than bytes_, open files are looked at
  };
  bool room_was_lost();

  std::vector<Folder> folders_;
  std::uint64_t bytes_, files_;
  std::uint64_t bytes_before_ = 0, files_before_ = 0;
  bool changing_ = false;
};

}  // namespace warpsmith::guard

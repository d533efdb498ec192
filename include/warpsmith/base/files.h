// Files: whole reads, atomic writes, durable appends. Every failure throws Error with the path and the cause;
// a full disk is recognisable by is_disk_full().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace warpsmith {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path);

// The file holds either its old content or all of the new, also after a power cut: written beside, fsynced,
// renamed.
void write_file_atomic(const fs::path& path, std::string_view content);
// The same of its parts, one behind the other.
void write_parts_atomic(const fs::path& path, std::span<const std::string_view> parts);

// Creates `path` with `content` only if nothing is there; false if something is. Exclusive also over NFS.
bool create_file_exclusive(const fs::path& path, std::string_view content);

// Makes a folder and its parents. Throws Error where that cannot be done.
void make_folders(const fs::path& path);

// Makes a folder whose parent exists; false if it is there already. Atomic: of two callers one gets true.
bool make_folder_exclusive(const fs::path& path);

void sync_folder(const fs::path& path);
void sync_file(const fs::path& path);  // what another library wrote

// Append-only file. One append() is one write(2): on a local file system, readers see whole appends or a cut
// last one. Not thread-safe. Move-only; the destructor closes without fsync.
class AppendFile {
 public:
  explicit AppendFile(const fs::path& path);  // creates or opens at the end
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;

  void append(std::string_view bytes);
  void sync();  // fdatasync; cheap when nothing was appended since the last
  std::uint64_t size() const { return size_; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  bool dirty_ = false;
};

// A whole-file advisory lock (flock), for exclusion within one host. Held until destroyed.
class FileLock {
 public:
  // Waits for the lock; creates the file, writable by everybody, if it is missing.
  explicit FileLock(const fs::path& path);
  // Nothing where another holds it.
  static std::optional<FileLock> try_lock(const fs::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;

 private:
  FileLock() = default;
  void open(const fs::path& path);
  bool lock(const fs::path& path, int operation);  // false: another holds it

  int fd_ = -1;
};

// A folder that is whole or is not there: `fill` writes into one beside it, <name>.partial-<pid>, which then
// takes its place; what stood there is removed. `fill` sees to it that its files are on disk.
void write_folder_whole(const fs::path& folder, const std::function<void(const fs::path&)>& fill);

// The folder of the running program, symbolic links resolved: job programs lie beside the controller.
fs::path program_folder();
// The file of that name there, or one folder up, where a test or a benchmark runs; empty where there is none.
fs::path beside_programs(const std::string& name);

}  // namespace warpsmith

#include "warpsmith/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

// Less what the caller's umask takes away.
constexpr mode_t kFileMode = 0666, kFolderMode = 0777;

Error file_error(std::string_view doing, const fs::path& path, int error_number) {
  return system_error("cannot " + std::string(doing) + " " + path.string(), error_number);
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw file_error("write", path, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Closes on leaving the scope; for the few functions that hold a descriptor briefly.
struct Closer {
  int fd;
  ~Closer() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

// Not one of a terminal or a FIFO, which would be waited for.
InputFile::InputFile(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (fd_ < 0) throw file_error("read", path_, errno);
  struct stat info {};
  const int why = ::fstat(fd_, &info) != 0 ? errno : 0;
  if (why == 0 && S_ISREG(info.st_mode)) {
    size_ = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
    return;
  }
  ::close(fd_);
  if (why != 0) throw file_error("read", path_, why);
  if (S_ISDIR(info.st_mode)) throw BadContent(path_, file_error("read", path_, EISDIR).what(), EISDIR);
  throw BadContent(path_, "cannot read " + path_.string() + ": it is no regular file");
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::seek(std::uint64_t offset) {
  if (::lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) throw file_error("read", path_, errno);
}

std::size_t InputFile::read(char* to, std::size_t bytes) {
  for (;;) {
    const ssize_t n = ::read(fd_, to, bytes);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) throw file_error("read", path_, errno);
  }
}

std::string read_file_within(const fs::path& path, std::uint64_t most) {
  InputFile file(path);
  const auto too_large = [&] {
    return BadContent(path, "cannot read " + path.string() + ": it is larger than " + format_size(most));
  };
  if (file.size() > most) throw too_large();
  try {
    std::string out;
    // Its size when it was opened, and one byte more to meet the end; files in /proc say 0, others may grow
    // meanwhile.
    out.resize(file.size() + 1);
    for (std::size_t have = 0;;) {
      const std::size_t n = file.read(out.data() + have, out.size() - have);
      have += n;
      if (have > most) throw too_large();
      if (n == 0) {
        out.resize(have);
        return out;
      }
      if (have == out.size()) out.resize(std::max<std::size_t>(2 * have, 1 << 16));
    }
  } catch (const std::bad_alloc&) {
    throw Error("cannot read " + path.string() + ": it does not fit into memory");
  }
}

std::string read_file(const fs::path& path) {
  return read_file_within(path, std::numeric_limits<std::uint64_t>::max());
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  write_parts_atomic(path, {&content, 1});
}

void write_parts_atomic(const fs::path& path, std::span<const std::string_view> parts) {
  const fs::path part = path.string() + ".part" + std::to_string(::gettid());
  {
    // What lies there is an old process's, or, in a folder that others may write to, a link to elsewhere.
    ::unlink(part.c_str());
    const Closer file{::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)};
    if (file.fd < 0) throw file_error("write", part, errno);
    try {
      for (const std::string_view content : parts) write_all(file.fd, content, part);
      if (::fsync(file.fd) != 0) throw file_error("write", part, errno);
    } catch (...) {
      ::unlink(part.c_str());
      throw;
    }
  }
  if (::rename(part.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(part.c_str());
    throw file_error("write", path, why);
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

bool create_file_exclusive(const fs::path& path, std::string_view content) {
  const Closer file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)};
  if (file.fd < 0) {
    if (errno == EEXIST) return false;
    throw file_error("create", path, errno);
  }
  write_all(file.fd, content, path);
  if (::fsync(file.fd) != 0) throw file_error("write", path, errno);
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
  return true;
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error && !fs::is_directory(path)) throw file_error("make folder", path, error.value());
}

bool make_folder_exclusive(const fs::path& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0) return true;
  if (errno == EEXIST) return false;
  throw file_error("make folder", path, errno);
}

void sync_folder(const fs::path& path) {
  const Closer folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.fd < 0) throw file_error("open folder", path, errno);
  if (::fsync(folder.fd) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw file_error("sync folder", path, errno);
}

void sync_file(const fs::path& path) {
  const Closer file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw file_error("open", path, errno);
  if (::fsync(file.fd) != 0) throw file_error("sync", path, errno);
}

AppendFile::AppendFile(const fs::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
  if (fd_ < 0) throw file_error("append to", path, errno);
  struct stat info {};
  if (::fstat(fd_, &info) == 0) size_ = static_cast<std::uint64_t>(info.st_size);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      dirty_(other.dirty_) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = other.size_;
    dirty_ = other.dirty_;
  }
  return *this;
}

void AppendFile::append(std::string_view bytes) {
  write_all(fd_, bytes, path_);
  size_ += bytes.size();
  dirty_ = true;
}

void AppendFile::sync() {
  if (!dirty_) return;
  if (::fdatasync(fd_) != 0) throw file_error("sync", path_, errno);
  dirty_ = false;
}

void FileLock::open(const fs::path& path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd_ >= 0) {
    (void)::fchmod(fd_, kFileMode);  // the umask must not keep other users out
    return;
  }
  // Without O_CREAT: it may fail for another user's file in a sticky folder (fs.protected_regular).
  const int create_error = errno;
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw file_error("open lock", path, create_error == EEXIST ? errno : create_error);
}

bool FileLock::lock(const fs::path& path, int operation) {
  while (::flock(fd_, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    throw file_error("lock", path, errno);
  }
  return true;
}

FileLock::FileLock(const fs::path& path) : FileLock() {
  open(path);
  lock(path, LOCK_EX);
}

std::optional<FileLock> FileLock::try_lock(const fs::path& path) {
  FileLock lock;
  lock.open(path);
  if (!lock.lock(path, LOCK_EX | LOCK_NB)) return std::nullopt;
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

void write_folder_whole(const fs::path& folder, const std::function<void(const fs::path&)>& fill) {
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();  // "runs/x/" -> "runs/x"
  const fs::path parent = place.has_parent_path() ? place.parent_path() : fs::path(".");
  const fs::path partial = place.string() + ".partial-" + std::to_string(::getpid());
  make_folders(parent);
  fs::remove_all(partial);
  make_folders(partial);
  fill(partial);
  sync_folder(partial);
  fs::remove_all(place);
  fs::rename(partial, place);
  sync_folder(parent);
}

fs::path program_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error("cannot find the folder of this program: " + error.message());
  return self.parent_path();
}

fs::path beside_programs(const std::string& name) {
  const fs::path here = program_folder();
  for (const fs::path& folder : {here, here.parent_path()})
    if (path_exists(folder / name)) return folder / name;
  return {};
}

}  // namespace warpsmith

#include "written.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "tree.h"

namespace warpsmith::guard {

namespace {

constexpr std::uint64_t kNone = ~0ull;
constexpr int kMostDescriptors = 1 << 16;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

void give_rights_back(int fd, const struct stat& info) {
  if ((info.st_mode & S_IRWXU) != S_IRWXU) fchmod(fd, (info.st_mode & 07777) | S_IRWXU);
}

// -1 and errno where it cannot be opened.
int open_folder(int parent, const char* name) {
  const int fd = openat(parent, name, kFolder);
  if (fd >= 0 || errno != EACCES) return fd;
  const int closed = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (closed < 0) return -1;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", closed);
  const int opened = chmod(path, S_IRWXU) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  const int error = errno;
  close(closed);
  errno = error;
  return opened;
}

std::uint64_t room_of(int fd) {
  struct statvfs system {};
  return fstatvfs(fd, &system) == 0 ? std::uint64_t{system.f_bfree} * system.f_frsize : 0;
}

bool earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

// One look. Ends at the first limit that is passed.
class Look {
 public:
  Look(std::uint64_t most_bytes, std::uint64_t most_files)
      : most_bytes_(most_bytes), most_files_(most_files) {
    // The clock that the kernel notes changes by.
    clock_gettime(CLOCK_REALTIME_COARSE, &begin_);
  }

  // Folder `name` of `parent`, with all below it.
  void enter(int parent, const char* name, int depth) {
    if (depth > kMostDepth) {
      over_ = "folder_depth";
      return;
    }
    const int fd = open_folder(parent, name);
    if (fd < 0) return fail();
    struct stat info {};
    fstat(fd, &info);
    if (!seen_.emplace(info.st_dev, info.st_ino).second) {
      close(fd);
      return;
    }
    give_rights_back(fd, info);
    if (depth > 0) add(info, 1);
    DIR* const folder = fdopendir(fd);
    if (folder == nullptr) {
      changing_ = true;
      close(fd);
      return;
    }
    while (over_ == nullptr) {
      const dirent* const entry = readdir(folder);
      if (entry == nullptr) break;
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
        take(fd, entry->d_name, depth);
    }
    // What was moved from here to where the look had been has left its mark on this folder, or its name was
    // read and then not found.
    if (fstat(fd, &info) == 0 && !earlier(info.st_ctim, begin_)) changing_ = true;
    closedir(folder);
  }

  // Files without a name on these devices.
  void add_open_files(const std::set<dev_t>& devices) {
    int left = kMostDescriptors;
    for (const pid_t pid : process::descendants(getpid())) {
      char path[32];
      std::snprintf(path, sizeof path, "/proc/%d/fd", static_cast<int>(pid));
      DIR* const folder = opendir(path);
      if (folder == nullptr) continue;
      while (const dirent* entry = over_ == nullptr && --left > 0 ? readdir(folder) : nullptr) {
        struct stat info {};
        if (fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode) &&
            info.st_nlink == 0 && devices.contains(info.st_dev) &&
            seen_.emplace(info.st_dev, info.st_ino).second)
          add(info, 0);
      }
      closedir(folder);
    }
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t files() const { return files_; }
  const char* over() const { return over_; }
  bool changing() const { return changing_; }

 private:
  void take(int fd, const char* name, int depth) {
    struct stat info {};
    if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return fail();
    if (S_ISDIR(info.st_mode)) return enter(fd, name, depth + 1);
    if (info.st_nlink > 1 && !seen_.emplace(info.st_dev, info.st_ino).second) info.st_blocks = 0;
    add(info, 1);
  }

  void add(const struct stat& info, std::uint64_t files) {
    bytes_ += static_cast<std::uint64_t>(info.st_blocks) * 512;
    files_ += files;
    if (bytes_ > most_bytes_) over_ = "file_bytes";
    if (files_ > most_files_) over_ = "file_count";
  }

  void fail() {
    if (errno == EACCES || errno == EPERM)
      over_ = "closed_folder";
    else
      changing_ = true;  // most likely it has gone
  }

  std::uint64_t most_bytes_, most_files_, bytes_ = 0, files_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_;  // folders, and files of several names
  const char* over_ = nullptr;
  bool changing_ = false;
  timespec begin_{};
};

}  // namespace

WrittenFiles::WrittenFiles(const std::vector<std::string>& folders, std::uint64_t bytes, std::uint64_t files)
    : bytes_(bytes), files_(files) {
  Look look(kNone, kMostFiles);
  for (const std::string& folder : folders) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0) continue;
    folders_.push_back({fd, info.st_dev, room_of(fd)});
    look.enter(fd, ".", 0);
  }
  bytes_before_ = look.bytes();
  files_before_ = look.files();
}

WrittenFiles::~WrittenFiles() {
  for (const Folder& folder : folders_) close(folder.fd);
}

const char* WrittenFiles::look() {
  Look look(bytes_ > 0 ? bytes_before_ + bytes_ : kNone, files_before_ + (files_ > 0 ? files_ : kMostFiles));
  std::set<dev_t> devices;
  for (const Folder& folder : folders_) {
    devices.insert(folder.device);
    struct stat info {};
    if (fstat(folder.fd, &info) == 0) give_rights_back(folder.fd, info);
    if (look.over() == nullptr) look.enter(folder.fd, ".", 0);
  }
  if (look.over() == nullptr && room_was_lost()) look.add_open_files(devices);
  changing_ = look.changing();
  return look.over();
}

// Others write too: after each look for it, a quarter of the limit has to be lost before the next.
bool WrittenFiles::room_was_lost() {
  if (bytes_ == 0) return false;
  bool lost = false;
  for (Folder& folder : folders_) {
    const std::uint64_t now = room_of(folder.fd);
    folder.room = std::max(folder.room, now);
    if (folder.room - now <= bytes_) continue;
    lost = true;
    folder.room = now + bytes_ / 4 * 3;
  }
  return lost;
}

}  // namespace warpsmith::guard

// What the machine tells about a shard beside its exit status.
#pragma once

#include <cstdint>
#include <filesystem>

namespace warpsmith::executor {

// How often the kernel's out-of-memory killer has struck, on this machine since it started. 0 where it does
// not say.
std::uint64_t oom_kills();

// No room for another megabyte, or another file, where `path` lies.
bool disk_is_full(const std::filesystem::path& path);

// Bytes of the regular files below `folder`; what vanishes meanwhile counts nothing.
std::uint64_t bytes_below(const std::filesystem::path& folder);

}  // namespace warpsmith::executor

// Landlock's system calls by number: C libraries have no wrappers, older headers not even the numbers.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace warpsmith::process {

inline constexpr long kLandlockCreateRuleset = 444, kLandlockAddRule = 445, kLandlockRestrictSelf = 446;

// The kernel's Landlock version, 0 where it has none or it is off.
inline int landlock_abi() {
  const long version = syscall(kLandlockCreateRuleset, nullptr, 0, 1);
  return version < 0 ? 0 : static_cast<int>(version);
}

}  // namespace warpsmith::process

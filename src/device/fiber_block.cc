#include "fiber_block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace warpsmith::device {

namespace {

constexpr std::size_t kStaticBytes = 256 << 10;  // all static shared variables of one module
constexpr std::size_t kDynamicBytes = 256 << 10;
constexpr std::size_t kSharedGuard = 64 << 10;

FailHandler fail_handler = nullptr;
std::atomic<std::uint32_t> static_used{0};

}  // namespace

void set_fail_handler(FailHandler handler) { fail_handler = handler; }

void fail_launch(int failure, const char* message) {
  if (fail_handler != nullptr) fail_handler(failure, message);
  std::abort();
}

void place_shared(unsigned* slot, unsigned bytes, unsigned align) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != 0) return;
  const std::uint32_t at = (static_used.load() + align - 1) / align * align;
  if (at + bytes > kStaticBytes)
    fail_launch(kWstwOutOfShared, "static shared memory of all kernels together is over 256 KiB");
  static_used.store(at + bytes);
  __atomic_store_n(slot, at + 1, __ATOMIC_RELEASE);
}

Mapping::Mapping(std::size_t size, std::size_t guard) : bytes(size) {
  void* p = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED ||
      ::mprotect(static_cast<char*>(p) + guard, size - 2 * guard, PROT_READ | PROT_WRITE) != 0)
    fail_launch(kWstwOutOfShared, "no memory for shared memory or stacks");
  base = static_cast<char*>(p);
}

Mapping::~Mapping() { ::munmap(base, bytes); }

Arena::Arena() : mapping(kStaticBytes + kDynamicBytes + 2 * kSharedGuard, kSharedGuard) {
  std::memset(shared(), 0xFF, kStaticBytes);  // variables get their places later
}

char* Arena::shared() const { return mapping.base + kSharedGuard; }

char* Arena::dynamic(std::uint32_t bytes) const {
  return mapping.base + mapping.bytes - kSharedGuard - (bytes + 15) / 16 * 16;
}

void Arena::poison(std::uint32_t dynamic_bytes) const {
  std::memset(shared(), 0xFF, static_used.load());
  if (dynamic_bytes) std::memset(dynamic(dynamic_bytes), 0xFF, dynamic_bytes);
}

}  // namespace warpsmith::device

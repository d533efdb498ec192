// What a TwinSession and its child share: a memory file, [control][plan][operands of every set], and one that
// the child can only read: of the same places, those of inputs. The parent writes plan and operands; the
// child answers in the control block. All offsets are from the start of a file.
//
// All that the child can write it may write at any time. The parent waits for words, copies bounded text and
// numbers, and looks at outputs when the child has been stopped.
//
// One request at a time: the parent fills in the command and raises `request`; the child answers by setting
// `response` to it. A run has a step more, so that waking the child is not timed: it sets `ready`, and waits
// for `go`.
//
// With a processor for each, whoever waits spins first. On one processor (`one_processor`) nobody spins: a
// spinning child would take its slices out of what its parent times next, and a spinning parent those of the
// child. A run then holds two switches between processes, 2 to 5 us in all.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpsmith::device {

inline constexpr std::uint32_t kProtocol = 2;
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kControlBytes = 4096;
inline constexpr std::uint64_t kPlanBytes = 1 << 20;     // at kControlBytes
inline constexpr std::uint64_t kGuardBytes = 256 << 10;  // between operands; address space only
inline constexpr std::size_t kMessageBytes = 512;

enum class Command : std::uint32_t { kPrepare = 1, kRun = 2 };

// Why the child could not do it. kFault: a signal, see `signal` … `region`.
enum class Answer : std::uint32_t { kDone, kLaunchError, kUnsupported, kOutOfMemory, kFault, kBroken };

// Where a faulting address lies, as far as the child knows.
enum class Region : std::uint32_t { kUnknown, kStack, kSharedMemory };

struct Control {
  std::uint32_t protocol;
  // Set by the parent before the child starts.
  std::uint32_t one_processor;
  std::int32_t inputs_fd, socket_fd;  // on the socket the child says, by one byte, which process it is
  std::atomic<std::uint32_t> request, ready, go, response, parent_sleeps;
  Command command;
  std::uint32_t first_set, sets;
  std::uint64_t file_bytes;  // size of either memory file
  std::uint64_t base;        // where the child has mapped them, one over the other
  std::atomic<std::uint32_t> answer;
  std::int32_t signal, code, system_call;
  std::uint64_t address;
  Region region;
  std::uint32_t step;  // in the plan, that ran or failed
  char message[kMessageBytes];
};
static_assert(sizeof(Control) <= kControlBytes);

// The plan: a WirePlan, then its arrays, then names.
struct WireOperand {
  std::uint64_t offset, bytes;              // of the data in set 0
  std::uint64_t pages_offset, pages_bytes;  // what is mapped around it
  std::uint32_t writable, reserved;
};
enum class WireArgKind : std::uint32_t { kPointer, kInteger, kFloat };
struct WireArg {
  WireArgKind kind;
  std::uint32_t bytes;  // 8 for pointers
  std::uint64_t value;  // number of the operand, or the bits
};
enum class WireStepKind : std::uint32_t { kLaunch, kFill, kCopy, kConst };
struct WireStep {
  WireStepKind kind;
  std::uint32_t line;
  std::uint32_t name, name_bytes;  // of the kernel or symbol; offset among the names
  std::uint32_t grid[3], block[3];
  std::uint64_t dynamic_bytes;
  std::uint32_t cooperative;
  std::uint32_t first_arg, arg_count;
  std::uint32_t destination, source;  // operands
  std::uint64_t pattern;              // kFill: `pattern_bytes` of it, again and again
  std::uint32_t pattern_bytes, reserved;
};
struct WirePlan {
  std::uint32_t operand_count, step_count, arg_count, name_bytes;
  std::uint64_t set_bytes;  // from an operand of one set to that of the next
  std::uint32_t sets, reserved;
};

void wait_on_word(const std::atomic<std::uint32_t>& word, std::uint32_t seen, double seconds);  // futex
void wake_word(const std::atomic<std::uint32_t>& word);
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace warpsmith::device

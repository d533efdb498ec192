// What a shared object of tier `extension` and the child that loads it say to each other. Plain C++17:
// candidates see this file, in front of the headers that stand in for torch's
// (src/toolchain/extension/torch.h).
#pragma once

#include <cstdint>

#define WARPSMITH_EXTENSION_ENTRY "warpsmith_extension_v1"

namespace warpsmith_extension {

constexpr uint32_t kAbi = 1;
constexpr int kMostDims = 8;
constexpr int kMostTensors = 64;
constexpr int kMessageBytes = 512;

// As torch numbers its dtypes.
enum class Scalar : int32_t {
  kByte = 0,
  kChar = 1,
  kShort = 2,
  kInt = 3,
  kLong = 4,
  kHalf = 5,
  kFloat = 6,
  kDouble = 7,
  kBool = 11,
  kBFloat16 = 15,
  kFloat8_e5m2 = 23,
  kFloat8_e4m3fn = 24,
};

// Contiguous, on the device.
struct PlainTensor {
  void* data;
  int64_t sizes[kMostDims];
  int32_t dims;
  Scalar dtype;
};

struct PlainScalar {
  int32_t is_float;
  double real;
  int64_t integer;
};

// What the child does for tensors. Nothing here throws.
struct Services {
  uint32_t abi;
  // Null where there is no room.
  void* (*allocate)(uint64_t bytes, const int64_t* sizes, int32_t dims, Scalar dtype);
  void (*release)(void* memory);
  // `count` times the lowest `width` bytes (1, 2, 4, 8) of `pattern`; and a copy on the device. Both are
  // enqueued on the default stream; not 0: an error of CUDA's.
  int (*fill)(void* memory, uint64_t pattern, uint32_t width, uint64_t count);
  int (*copy)(void* to, const void* from, uint64_t bytes);
};

enum class Status : int32_t { kDone = 0, kNoForward, kArguments, kThrew, kOutOfMemory, kResult };

struct Frame {
  const PlainTensor* inputs;
  const PlainScalar* scalars;
  int32_t input_count, scalar_count;
  PlainTensor outputs[kMostTensors];  // what forward returned; alive until the next call
  int32_t output_count;
  Status status;
  char message[kMessageBytes];
};

// kBind: once, before the first call. kCall: forward(). kDrop: the outputs of the last call are needed no
// more.
enum class Action : int32_t { kBind = 0, kCall = 1, kDrop = 2 };
using Entry = void (*)(Action, const Services*, Frame*);

}  // namespace warpsmith_extension

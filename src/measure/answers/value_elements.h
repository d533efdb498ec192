// How the elements of a tensor are made from the pools (values.h says what they are made of), for the host
// and for the harness's kernel alike, so that both make the same values. NVRTC gets this text in front of
// kernels.cu: nothing is included here, and all of it is C++ that both compilers know.
#pragma once

#ifdef __CUDACC__
#define WARPSMITH_ANYWHERE __host__ __device__ inline
#else
#define WARPSMITH_ANYWHERE inline
#endif

namespace warpsmith::measure {

using Word = unsigned long long;  // 64 bits

// Primes of one size, small enough for both pools to stay in a second-level cache. Behind its end a pool
// begins again for kPoolOverhang elements: what a block takes of it lies side by side.
constexpr unsigned kFirstPool = 32749, kSecondPool = 32719;
constexpr unsigned kValueBlock = 256;  // elements of the flat index that have their places together
constexpr unsigned kPoolOverhang = kValueBlock - 1;

constexpr unsigned kLanes = 32;                              // of a warp
constexpr unsigned kElementsAThread = kValueBlock / kLanes;  // of a block

// A tensor that the kernel fills. Kinds and dtypes by their numbers (ValueDraw::Kind, task::Dtype), memory by
// its addresses; the pools are those of the kind.
struct GpuDraw {
  Word key;
  Word pool_a, pool_b, out, count;
  long long low;
  Word range;
  float base, x_scale, y_scale;
  unsigned kind, dtype;
};
struct GpuDraws {
  GpuDraw draws[32];
};
static_assert(sizeof(GpuDraw) == 80 && sizeof(GpuDraws) <= 4096, "all of it is one kernel's argument");

// SplitMix64, as mix64() of base/random.h.
WARPSMITH_ANYWHERE constexpr Word mix_of(Word x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Where a block begins in both pools, and what is turned over in the first one's bits. Element j of the block
// is made of pool a[first + j] and pool b[second + j].
struct BlockPlaces {
  unsigned first, second, mask;
};
WARPSMITH_ANYWHERE constexpr BlockPlaces places_of(Word key, Word block) {
  const Word h = mix_of(key + block * 0x9E3779B97F4A7C15ull);
  return {static_cast<unsigned>((h >> 32) * kFirstPool >> 32),
          static_cast<unsigned>((h & 0xFFFFFFFFu) * kSecondPool >> 32),
          static_cast<unsigned>(mix_of(h) >> 32)};
}

// Each operation rounded by itself: no compiler may make one of two.
WARPSMITH_ANYWHERE float sum_of(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
WARPSMITH_ANYWHERE float product_of(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

WARPSMITH_ANYWHERE float normal_of(float x, float y, float base, float x_scale, float y_scale) {
  return sum_of(sum_of(base, product_of(x_scale, x)), product_of(y_scale, y));
}
WARPSMITH_ANYWHERE constexpr unsigned bits_of(unsigned x, unsigned y, unsigned mask) {
  return (x ^ mask) + y;
}
WARPSMITH_ANYWHERE float uniform_of(unsigned bits, float base, float step) {
  return sum_of(base, product_of(step, static_cast<float>(static_cast<int>(bits >> 8))));
}
WARPSMITH_ANYWHERE constexpr long long integer_of(unsigned bits, long long low, Word range) {
  return low + static_cast<long long>((bits * range) >> 32);
}
WARPSMITH_ANYWHERE float step_of(unsigned bits, float base, float step, Word count) {
  return sum_of(base, product_of(step, static_cast<float>(integer_of(bits, 0, count))));
}
WARPSMITH_ANYWHERE constexpr int bernoulli_of(unsigned bits, Word range) { return bits < range ? 1 : 0; }

// What thread `thread` of `threads` (whole warps) makes of `count` elements: a warp has every so many-th
// block, and a lane of it every 32nd element of the block, so that a warp's loads and stores lie side by
// side. Calls make(element, place in pool a, place in pool b, mask).
template <typename Make>
WARPSMITH_ANYWHERE void for_elements_of(Word thread, Word threads, Word key, Word count, Make make) {
  const unsigned lane = static_cast<unsigned>(thread % kLanes);
  for (Word block = thread / kLanes; block * kValueBlock < count; block += threads / kLanes) {
    const BlockPlaces at = places_of(key, block);
    const Word begin = block * kValueBlock, left = count - begin;
    const unsigned length = left < kValueBlock ? static_cast<unsigned>(left) : kValueBlock;
    for (unsigned k = 0; k < kElementsAThread; ++k) {
      const unsigned j = lane + k * kLanes;
      if (j < length) make(begin + j, at.first + j, at.second + j, at.mask);
    }
  }
}

}  // namespace warpsmith::measure

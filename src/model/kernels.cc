// The copy for any CPU, and the choice between copies.
#include "kernels_loops.h"

namespace warpsmith::model {

#if defined(__x86_64__)
// kernels_avx2.cc
template <typename T>
const Kernels<T>& kernels_avx2();
extern template const Kernels<float>& kernels_avx2<float>();
extern template const Kernels<double>& kernels_avx2<double>();
#endif

template <typename T>
const Kernels<T>& kernels() {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return kernels_avx2<T>();
#endif
  return kTable<T>;
}

template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

}  // namespace warpsmith::model

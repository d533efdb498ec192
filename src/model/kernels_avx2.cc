// The copy for AVX2 and FMA; src/model/CMakeLists.txt gives this file its flags.
#if defined(__x86_64__)
#include "kernels_loops.h"

namespace warpsmith::model {

template <typename T>
const Kernels<T>& kernels_avx2() {
  return kTable<T>;
}

template const Kernels<float>& kernels_avx2<float>();
template const Kernels<double>& kernels_avx2<double>();

}  // namespace warpsmith::model
#endif

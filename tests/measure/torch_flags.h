// What torch may do with float32 and with sums, as its flags have it.
#pragma once

#include <ATen/Context.h>

#include <type_traits>

namespace warpsmith::measure {

// Older torches say it as a bool, newer ones in three words, of which the first is yes.
template <typename T>
bool is_allowed(T reduction) {
  if constexpr (std::is_same_v<T, bool>)
    return reduction;
  else
    return static_cast<int>(reduction) == 0;
}

inline bool is_strict() {
  const at::Context& torch = at::globalContext();
  return !torch.allowTF32CuBLAS() && !torch.allowTF32CuDNN() &&
         !is_allowed(torch.allowFP16ReductionCuBLAS()) && !is_allowed(torch.allowBF16ReductionCuBLAS());
}

// All but cuBLAS's TF32, which the environment may allow.
inline bool is_torch_default() {
  const at::Context& torch = at::globalContext();
  return torch.allowTF32CuDNN() && is_allowed(torch.allowFP16ReductionCuBLAS()) &&
         is_allowed(torch.allowBF16ReductionCuBLAS());
}

}  // namespace warpsmith::measure

#include "matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>

#include "warpsmith/base/error.h"

namespace warpsmith::measure {

namespace {

at::ScalarType type_of(task::Dtype dtype) {
  switch (dtype) {
    case task::Dtype::kFloat64:
      return at::kDouble;
    case task::Dtype::kFloat32:
      return at::kFloat;
    case task::Dtype::kFloat16:
      return at::kHalf;
    case task::Dtype::kBfloat16:
      return at::kBFloat16;
    default:
      throw Error("no matrix product of type " + std::string(task::to_string(dtype)));
  }
}

// TF32 allowed or not, for as long as this lives.
class Tf32 {
 public:
  explicit Tf32(bool allowed) : before_(at::globalContext().allowTF32CuBLAS()) {
    at::globalContext().setAllowTF32CuBLAS(allowed);
  }
  ~Tf32() {
    try {
      at::globalContext().setAllowTF32CuBLAS(before_);
    } catch (...) {  // it has just been set
    }
  }
  Tf32(const Tf32&) = delete;
  Tf32& operator=(const Tf32&) = delete;

 private:
  bool before_;
};

}  // namespace

void MatrixProduct::enqueue() const {
  try {
    const c10::InferenceMode inference;
    const Tf32 setting(tf32);
    const at::TensorOptions options = at::TensorOptions(type_of(dtype)).device(at::Device(at::kCUDA, 0));
    const auto matrix = [&](device::GpuAddress address) {
      return at::from_blob(reinterpret_cast<void*>(address), {size, size}, options);
    };
    at::Tensor to = matrix(out);
    at::mm_out(to, matrix(a), matrix(b));
  } catch (const c10::Error& e) {
    throw Error(std::string("a matrix product with torch: ") + e.what_without_backtrace());
  }
}

}  // namespace warpsmith::measure

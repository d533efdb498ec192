// What stands in for torch's headers in candidates of tier `extension`: the part of its tensors that kernels
// are written with, none of its operators. Nothing of torch is linked; memory comes from the child that calls
// `forward`. Small on purpose: with torch's own headers a plain kernel takes 40 s to build.
#pragma once

// A candidate's options may define T, N and the like before this file comes: parameters of templates have
// longer names.

#include <cuda_runtime_api.h>

// Candidates take for granted what torch's headers bring along.
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__CUDACC__)
#define WARPSMITH_BOTH __host__ __device__ __forceinline__
#else
#define WARPSMITH_BOTH inline
#endif

namespace c10 {

namespace ws = ::warpsmith_extension;

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
struct OutOfMemoryError : Error {
  using Error::Error;
};

namespace detail {

inline uint32_t bits_of(float f) {
  uint32_t bits;
  __builtin_memcpy(&bits, &f, 4);
  return bits;
}
inline float float_of(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}
inline unsigned short half_of(float f) {
  const uint32_t bits = bits_of(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned short>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<unsigned short>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: rounded by float's own addition
    const uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    return static_cast<unsigned short>(sign | rounded);
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<unsigned short>(sign | ((magnitude + 0xc8000fffu + odd) >> 13));
}
inline float float_of_half(unsigned short h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float f = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    return sign != 0 ? -f : f;
  }
  return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace detail

struct alignas(2) Half {
  unsigned short x;
  Half() = default;
#if defined(__CUDA_ARCH__)
  WARPSMITH_BOTH Half(float f) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f)); }
  WARPSMITH_BOTH operator float() const {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
    return f;
  }
#else
  WARPSMITH_BOTH Half(float f) : x(detail::half_of(f)) {}
  WARPSMITH_BOTH operator float() const { return detail::float_of_half(x); }
#endif
  WARPSMITH_BOTH Half& operator+=(Half o) { return *this = Half(float(*this) + float(o)); }
  WARPSMITH_BOTH Half& operator-=(Half o) { return *this = Half(float(*this) - float(o)); }
  WARPSMITH_BOTH Half& operator*=(Half o) { return *this = Half(float(*this) * float(o)); }
  WARPSMITH_BOTH Half& operator/=(Half o) { return *this = Half(float(*this) / float(o)); }
};

struct alignas(2) BFloat16 {
  unsigned short x;
  BFloat16() = default;
#if defined(__CUDA_ARCH__)
  WARPSMITH_BOTH BFloat16(float f) {
    const unsigned bits = __float_as_uint(f);
    x = f != f ? 0x7fc0 : static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  }
  WARPSMITH_BOTH operator float() const { return __uint_as_float(static_cast<unsigned>(x) << 16); }
#else
  WARPSMITH_BOTH BFloat16(float f) {
    const uint32_t bits = detail::bits_of(f);
    x = f != f ? 0x7fc0 : static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  }
  WARPSMITH_BOTH operator float() const { return detail::float_of(static_cast<uint32_t>(x) << 16); }
#endif
  WARPSMITH_BOTH BFloat16& operator+=(BFloat16 o) { return *this = BFloat16(float(*this) + float(o)); }
  WARPSMITH_BOTH BFloat16& operator-=(BFloat16 o) { return *this = BFloat16(float(*this) - float(o)); }
  WARPSMITH_BOTH BFloat16& operator*=(BFloat16 o) { return *this = BFloat16(float(*this) * float(o)); }
  WARPSMITH_BOTH BFloat16& operator/=(BFloat16 o) { return *this = BFloat16(float(*this) / float(o)); }
};

enum class ScalarType : int32_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Undefined = -1,
};

inline const char* toString(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
      return "Byte";
    case ScalarType::Char:
      return "Char";
    case ScalarType::Short:
      return "Short";
    case ScalarType::Int:
      return "Int";
    case ScalarType::Long:
      return "Long";
    case ScalarType::Half:
      return "Half";
    case ScalarType::Float:
      return "Float";
    case ScalarType::Double:
      return "Double";
    case ScalarType::Bool:
      return "Bool";
    case ScalarType::BFloat16:
      return "BFloat16";
    case ScalarType::Float8_e5m2:
      return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn:
      return "Float8_e4m3fn";
    default:
      return "Undefined";
  }
}

inline int64_t elementSize(ScalarType type) {
  switch (type) {
    case ScalarType::Short:
    case ScalarType::Half:
    case ScalarType::BFloat16:
      return 2;
    case ScalarType::Int:
    case ScalarType::Float:
      return 4;
    case ScalarType::Long:
    case ScalarType::Double:
      return 8;
    default:
      return 1;
  }
}

inline bool isFloatingType(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
         type == ScalarType::BFloat16 || type == ScalarType::Float8_e5m2 || type == ScalarType::Float8_e4m3fn;
}
inline bool isIntegralType(ScalarType type, bool with_bool = false) {
  return !isFloatingType(type) && (with_bool || type != ScalarType::Bool);
}

template <typename WsT>
struct CppTypeToScalarType {
  static constexpr ScalarType value = ScalarType::Undefined;
};
#define WARPSMITH_SCALAR(type, name)                      \
  template <>                                             \
  struct CppTypeToScalarType<type> {                      \
    static constexpr ScalarType value = ScalarType::name; \
  };
WARPSMITH_SCALAR(unsigned char, Byte)
WARPSMITH_SCALAR(signed char, Char)
WARPSMITH_SCALAR(short, Short)
WARPSMITH_SCALAR(int, Int)
WARPSMITH_SCALAR(long, Long)
WARPSMITH_SCALAR(long long, Long)
WARPSMITH_SCALAR(::c10::Half, Half)
WARPSMITH_SCALAR(float, Float)
WARPSMITH_SCALAR(double, Double)
WARPSMITH_SCALAR(bool, Bool)
WARPSMITH_SCALAR(::c10::BFloat16, BFloat16)
#undef WARPSMITH_SCALAR

// A view of numbers that stay where they are.
template <typename WsT>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const WsT& one) : data_(&one), size_(1) {}
  ArrayRef(const WsT* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(std::initializer_list<WsT> list) : data_(list.begin()), size_(list.size()) {}
  ArrayRef(const std::vector<WsT>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t WsN>
  ArrayRef(const std::array<WsT, WsN>& a) : data_(a.data()), size_(WsN) {}
  const WsT* begin() const { return data_; }
  const WsT* end() const { return data_ + size_; }
  const WsT* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const WsT& front() const { return data_[0]; }
  const WsT& back() const { return data_[size_ - 1]; }
  const WsT& operator[](size_t i) const { return data_[i]; }
  const WsT& at(size_t i) const {
    if (i >= size_) throw Error("ArrayRef: index out of range");
    return data_[i];
  }
  ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  ArrayRef slice(size_t from) const { return {data_ + from, size_ - from}; }
  std::vector<WsT> vec() const { return {begin(), end()}; }
  bool equals(ArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (data_[i] != o.data_[i]) return false;
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const WsT* data_ = nullptr;
  size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;

namespace detail {

inline std::string text_of(const char* s) { return s; }
inline std::string text_of(const std::string& s) { return s; }
inline std::string text_of(ScalarType t) { return toString(t); }
inline std::string text_of(IntArrayRef list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i != 0 ? ", " : "") + std::to_string(list[i]);
  return out + "]";
}
template <typename WsT, typename = std::enable_if_t<std::is_arithmetic_v<WsT>>>
std::string text_of(WsT value) {
  return std::to_string(value);
}
template <typename... WsT>
std::string join(const WsT&... parts) {
  return (std::string() + ... + text_of(parts));
}
[[noreturn]] inline void fail(const char* condition, const std::string& words) {
  throw Error(words.empty() ? std::string("Expected ") + condition + " to be true" : words);
}

}  // namespace detail

template <typename... WsT>
std::string str(const WsT&... parts) {
  return detail::join(parts...);
}

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
using DeviceIndex = int8_t;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
struct Device {
  DeviceType type_ = DeviceType::CUDA;
  DeviceIndex index_ = 0;
  Device(DeviceType type, DeviceIndex index = 0) : type_(type), index_(index) {}
  Device(const char*) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool operator==(const Device& o) const { return type_ == o.type_ && index_ == o.index_; }
  bool operator!=(const Device& o) const { return !(*this == o); }
};

enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve };

struct TensorOptions {
  ScalarType dtype_ = ScalarType::Float;
  Device device_{DeviceType::CUDA};
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions dtype(ScalarType type) const {
    TensorOptions o = *this;
    o.dtype_ = type;
    return o;
  }
  template <typename WsT>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<WsT>::value);
  }
  TensorOptions device(Device d) const {
    TensorOptions o = *this;
    o.device_ = d;
    return o;
  }
  TensorOptions device(DeviceType type, DeviceIndex index = 0) const { return device(Device(type, index)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType type) { return TensorOptions(type); }
inline TensorOptions requires_grad(bool) { return {}; }

class Scalar {
 public:
  template <typename WsT, typename = std::enable_if_t<std::is_arithmetic_v<WsT>>>
  Scalar(WsT value)
      : real_(static_cast<double>(value)),
        integer_(static_cast<int64_t>(value)),
        floating_(std::is_floating_point_v<WsT>) {}
  template <typename WsT>
  WsT to() const {
    return floating_ ? static_cast<WsT>(real_) : static_cast<WsT>(integer_);
  }
  double toDouble() const { return to<double>(); }
  int64_t toLong() const { return to<int64_t>(); }

 private:
  double real_;
  int64_t integer_;
  bool floating_;
};

}  // namespace c10

#define TORCH_CHECK(condition, ...)                                                      \
  do {                                                                                   \
    if (!(condition)) ::c10::detail::fail(#condition, ::c10::detail::join(__VA_ARGS__)); \
  } while (0)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " is not " #b)
#define TORCH_CHECK_TYPE TORCH_CHECK
#define TORCH_CHECK_VALUE TORCH_CHECK
#define AT_ERROR(...) ::c10::detail::fail("", ::c10::detail::join("", __VA_ARGS__))
#define TORCH_WARN(...) ((void)0)
#define C10_CUDA_CHECK(call)                                                                               \
  do {                                                                                                     \
    const cudaError_t warpsmith_error = (call);                                                            \
    if (warpsmith_error == cudaErrorMemoryAllocation) throw ::c10::OutOfMemoryError("CUDA out of memory"); \
    TORCH_CHECK(warpsmith_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(warpsmith_error));      \
  } while (0)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define TORCH_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_UNUSED __attribute__((unused))
#define C10_HOST_DEVICE WARPSMITH_BOTH

// The child's side of tensors.
namespace warpsmith_extension {

inline const Services* services = nullptr;

// Memory with a count of its owners. Input tensors have none.
struct Storage {
  void* memory;
  int owners;
};

inline Storage* new_storage(const int64_t* sizes, int32_t dims, Scalar dtype, uint64_t bytes) {
  if (services == nullptr) throw ::c10::Error("tensors can be made inside of forward() alone");
  void* const memory = services->allocate(bytes, sizes, dims, dtype);
  if (memory == nullptr)
    throw ::c10::OutOfMemoryError("out of memory: " + std::to_string(bytes) + " bytes were asked for");
  return new Storage{memory, 1};
}
inline void keep(Storage* s) {
  if (s != nullptr) __atomic_add_fetch(&s->owners, 1, __ATOMIC_RELAXED);
}
inline void drop(Storage* s) {
  if (s == nullptr || __atomic_sub_fetch(&s->owners, 1, __ATOMIC_ACQ_REL) != 0) return;
  services->release(s->memory);
  delete s;
}
inline void check_cuda(int error) {
  if (error != 0) throw ::c10::Error("CUDA error " + std::to_string(error));
}

}  // namespace warpsmith_extension

namespace at {

using namespace ::c10;

// Of the old `tensor.type()`.
struct DeprecatedTypeProperties {
  ScalarType type;
  ScalarType scalarType() const { return type; }
  bool is_cuda() const { return true; }
  operator ScalarType() const { return type; }
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const ws::PlainTensor& plain)
      : data_(static_cast<char*>(plain.data)),
        dims_(plain.dims),
        dtype_(static_cast<ScalarType>(plain.dtype)),
        defined_(true) {
    set_sizes(IntArrayRef(plain.sizes, static_cast<size_t>(plain.dims)));
  }
  Tensor(const Tensor& o) { take(o), ws::keep(storage_); }
  Tensor(Tensor&& o) noexcept { take(o), o.storage_ = nullptr, o.defined_ = false; }
  Tensor& operator=(const Tensor& o) {
    ws::keep(o.storage_);
    ws::drop(storage_);
    take(o);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    if (this == &o) return *this;
    ws::drop(storage_);
    take(o);
    o.storage_ = nullptr;
    o.defined_ = false;
    return *this;
  }
  ~Tensor() { ws::drop(storage_); }

  static Tensor make(IntArrayRef sizes, const TensorOptions& options) {
    TORCH_CHECK(options.device_.is_cuda(), "tensors are made on the GPU alone");
    TORCH_CHECK(sizes.size() <= static_cast<size_t>(ws::kMostDims), "at most 8 dimensions");
    Tensor t;
    t.dims_ = static_cast<int32_t>(sizes.size());
    t.dtype_ = options.dtype_;
    for (const int64_t n : sizes) TORCH_CHECK(n >= 0, "a negative size: ", sizes);
    t.set_sizes(sizes);
    t.storage_ = ws::new_storage(t.sizes_, t.dims_, static_cast<ws::Scalar>(t.dtype_),
                                 static_cast<uint64_t>(t.nbytes()));
    t.data_ = static_cast<char*>(t.storage_->memory);
    t.defined_ = true;
    return t;
  }

  bool defined() const { return defined_; }
  int64_t dim() const { return dims_; }
  int64_t ndimension() const { return dims_; }
  IntArrayRef sizes() const { return {sizes_, static_cast<size_t>(dims_)}; }
  IntArrayRef strides() const { return {strides_, static_cast<size_t>(dims_)}; }
  int64_t size(int64_t dim) const { return sizes_[index_of(dim)]; }
  int64_t stride(int64_t dim) const { return strides_[index_of(dim)]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < dims_; ++i) n *= sizes_[i];
    return n;
  }
  int64_t element_size() const { return elementSize(dtype_); }
  int64_t itemsize() const { return element_size(); }
  int64_t nbytes() const { return numel() * element_size(); }
  int64_t storage_offset() const { return 0; }
  ScalarType scalar_type() const { return dtype_; }
  ScalarType dtype() const { return dtype_; }
  DeprecatedTypeProperties type() const { return {dtype_}; }
  Device device() const { return Device(DeviceType::CUDA); }
  int64_t get_device() const { return 0; }
  bool is_cuda() const { return true; }
  bool is_cpu() const { return false; }
  bool is_floating_point() const { return isFloatingType(dtype_); }
  bool requires_grad() const { return false; }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return true; }
  TensorOptions options() const { return TensorOptions(dtype_); }
  Layout layout() const { return Layout::Strided; }
  bool is_same(const Tensor& o) const { return data_ == o.data_; }

  void* data_ptr() const { return data_; }
  const void* const_data_ptr() const { return data_; }
  void* mutable_data_ptr() const { return data_; }
  template <typename WsT>
  WsT* data_ptr() const {
    using Plain = std::remove_cv_t<WsT>;
    constexpr ScalarType kType = CppTypeToScalarType<Plain>::value;
    if (kType != ScalarType::Undefined)
      TORCH_CHECK(kType == dtype_, "expected scalar type ", kType, " but found ", dtype_);
    else
      TORCH_CHECK(static_cast<int64_t>(sizeof(Plain)) == element_size(),
                  "a pointer to elements of another size than ", dtype_);
    return reinterpret_cast<WsT*>(data_);
  }
  template <typename WsT>
  const WsT* const_data_ptr() const {
    return data_ptr<WsT>();
  }
  template <typename WsT>
  WsT* mutable_data_ptr() const {
    return data_ptr<WsT>();
  }
  template <typename WsT>
  WsT* data() const {
    return data_ptr<WsT>();
  }

  // Every tensor here is contiguous.
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return *this; }
  Tensor detach() const { return *this; }
  Tensor cuda() const { return *this; }
  Tensor view(IntArrayRef sizes) const {
    Tensor t = *this;
    int64_t known = 1, rest = -1, shape[ws::kMostDims];
    TORCH_CHECK(sizes.size() <= static_cast<size_t>(ws::kMostDims), "at most 8 dimensions");
    for (size_t i = 0; i < sizes.size(); ++i) {
      shape[i] = sizes[i];
      if (sizes[i] == -1)
        rest = static_cast<int64_t>(i);
      else
        known *= sizes[i];
    }
    if (rest >= 0 && known > 0) shape[rest] = numel() / known, known *= shape[rest];
    TORCH_CHECK(known == numel(), "shape ", sizes, " is invalid for input of size ", numel());
    t.dims_ = static_cast<int32_t>(sizes.size());
    t.set_sizes(IntArrayRef(shape, sizes.size()));
    return t;
  }
  Tensor reshape(IntArrayRef sizes) const { return view(sizes); }
  Tensor view_as(const Tensor& o) const { return view(o.sizes()); }
  Tensor reshape_as(const Tensor& o) const { return view(o.sizes()); }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const {
    const int64_t first = dims_ == 0 ? 0 : index_of(from), last = dims_ == 0 ? 0 : index_of(to);
    std::vector<int64_t> shape;
    int64_t merged = 1;
    for (int64_t i = 0; i < dims_; ++i) {
      if (i < first || i > last)
        shape.push_back(sizes_[i]);
      else if (merged *= sizes_[i], i == last)
        shape.push_back(merged);
    }
    if (dims_ == 0) shape.push_back(1);
    return view(shape);
  }
  Tensor unsqueeze(int64_t dim) const {
    std::vector<int64_t> shape = sizes().vec();
    shape.insert(shape.begin() + (dim < 0 ? dim + dims_ + 1 : dim), 1);
    return view(shape);
  }
  Tensor squeeze(int64_t dim) const {
    std::vector<int64_t> shape = sizes().vec();
    const int64_t i = index_of(dim);
    if (shape[static_cast<size_t>(i)] == 1) shape.erase(shape.begin() + i);
    return view(shape);
  }
  Tensor squeeze() const {
    std::vector<int64_t> shape;
    for (const int64_t n : sizes())
      if (n != 1) shape.push_back(n);
    return view(shape);
  }
  // Along the first dimension, where a part is contiguous.
  Tensor slice(int64_t from, int64_t to) const {
    TORCH_CHECK(dims_ > 0 && from >= 0 && from <= to && to <= sizes_[0], "slice: out of range");
    Tensor t = *this;
    t.data_ += from * strides_[0] * element_size();
    t.sizes_[0] = to - from;
    return t;
  }
  Tensor narrow(int64_t dim, int64_t from, int64_t count) const {
    TORCH_CHECK(index_of(dim) == 0, "narrow: the first dimension alone");
    return slice(from, from + count);
  }
  Tensor select(int64_t dim, int64_t index) const {
    TORCH_CHECK(index_of(dim) == 0, "select: the first dimension alone");
    return slice(index, index + 1).squeeze(0);
  }
  Tensor operator[](int64_t index) const { return select(0, index); }

  Tensor& zero_() { return fill_bits(0); }
  Tensor& fill_(const c10::Scalar& value) { return fill_bits(pattern_of(value, dtype_)); }
  Tensor& copy_(const Tensor& from) {
    TORCH_CHECK(from.dtype_ == dtype_ && from.numel() == numel(),
                "copy_: between tensors of one type and size alone");
    ws::check_cuda(ws::services->copy(data_, from.data_, static_cast<uint64_t>(nbytes())));
    return *this;
  }
  Tensor clone() const {
    Tensor t = make(sizes(), options());
    t.copy_(*this);
    return t;
  }
  ws::PlainTensor plain() const {
    ws::PlainTensor p{};
    p.data = data_;
    p.dims = dims_;
    p.dtype = static_cast<ws::Scalar>(dtype_);
    for (int i = 0; i < dims_; ++i) p.sizes[i] = sizes_[i];
    return p;
  }

 private:
  int64_t index_of(int64_t dim) const {
    const int64_t i = dim < 0 ? dim + dims_ : dim;
    TORCH_CHECK(i >= 0 && i < dims_, "Dimension out of range: ", dim, " of ", dims_);
    return i;
  }
  void set_sizes(IntArrayRef sizes) {
    int64_t stride = 1;
    for (int i = dims_ - 1; i >= 0; --i) {
      sizes_[i] = sizes[static_cast<size_t>(i)];
      strides_[i] = stride;
      stride *= sizes_[i] > 0 ? sizes_[i] : 1;
    }
  }
  void take(const Tensor& o) {
    storage_ = o.storage_;
    data_ = o.data_;
    dims_ = o.dims_;
    dtype_ = o.dtype_;
    defined_ = o.defined_;
    for (int i = 0; i < o.dims_; ++i) sizes_[i] = o.sizes_[i], strides_[i] = o.strides_[i];
  }
  template <typename WsT>
  static uint64_t bits(WsT value) {
    uint64_t b = 0;
    __builtin_memcpy(&b, &value, sizeof value);
    return b;
  }
  static uint64_t pattern_of(const c10::Scalar& value, ScalarType type) {
    switch (type) {
      case ScalarType::Float:
        return bits(value.to<float>());
      case ScalarType::Double:
        return bits(value.to<double>());
      case ScalarType::Half:
        return bits(Half(value.to<float>()).x);
      case ScalarType::BFloat16:
        return bits(BFloat16(value.to<float>()).x);
      case ScalarType::Bool:
        return value.toDouble() != 0 ? 1 : 0;
      default:
        TORCH_CHECK(!isFloatingType(type), "fill: not of 8-bit floats");
        return static_cast<uint64_t>(value.toLong());
    }
  }
  Tensor& fill_bits(uint64_t pattern) {
    ws::check_cuda(ws::services->fill(data_, pattern, static_cast<uint32_t>(element_size()),
                                      static_cast<uint64_t>(numel())));
    return *this;
  }

  ws::Storage* storage_ = nullptr;
  char* data_ = nullptr;
  int64_t sizes_[ws::kMostDims], strides_[ws::kMostDims];
  int32_t dims_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  bool defined_ = false;
};

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) {
  return Tensor::make(sizes, options);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return std::move(empty(sizes, options).zero_());
}
inline Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) {
  return std::move(empty(sizes, options).fill_(value));
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) { return full(sizes, 1, options); }
inline Tensor empty_like(const Tensor& t) { return empty(t.sizes(), t.options()); }
inline Tensor empty_like(const Tensor& t, const TensorOptions& options) { return empty(t.sizes(), options); }
inline Tensor zeros_like(const Tensor& t) { return zeros(t.sizes(), t.options()); }
inline Tensor zeros_like(const Tensor& t, const TensorOptions& options) { return zeros(t.sizes(), options); }
inline Tensor full_like(const Tensor& t, const Scalar& value) { return full(t.sizes(), value, t.options()); }
inline Tensor ones_like(const Tensor& t) { return full_like(t, 1); }

using ::c10::kCPU;
using ::c10::kCUDA;

namespace cuda {

class CUDAStream {
 public:
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(nullptr)); }
  DeviceIndex device_index() const { return 0; }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp p;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&p, 0));
    return p;
  }();
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(int) { return getCurrentDeviceProperties(); }
class CUDAGuard {
 public:
  template <typename WsT>
  explicit CUDAGuard(const WsT&) {}
};
using OptionalCUDAGuard = CUDAGuard;

}  // namespace cuda

inline std::optional<Device> device_of(const Tensor& t) { return t.device(); }

}  // namespace at

namespace c10 {
namespace cuda {
using namespace ::at::cuda;
}
using std::nullopt;
using std::optional;
}  // namespace c10

#define WARPSMITH_DTYPE(constant, name) constexpr c10::ScalarType constant = c10::ScalarType::name;
#define WARPSMITH_DTYPES                     \
  WARPSMITH_DTYPE(kByte, Byte)               \
  WARPSMITH_DTYPE(kUInt8, Byte)              \
  WARPSMITH_DTYPE(kChar, Char)               \
  WARPSMITH_DTYPE(kInt8, Char)               \
  WARPSMITH_DTYPE(kShort, Short)             \
  WARPSMITH_DTYPE(kInt16, Short)             \
  WARPSMITH_DTYPE(kInt, Int)                 \
  WARPSMITH_DTYPE(kInt32, Int)               \
  WARPSMITH_DTYPE(kLong, Long)               \
  WARPSMITH_DTYPE(kInt64, Long)              \
  WARPSMITH_DTYPE(kHalf, Half)               \
  WARPSMITH_DTYPE(kFloat16, Half)            \
  WARPSMITH_DTYPE(kFloat, Float)             \
  WARPSMITH_DTYPE(kFloat32, Float)           \
  WARPSMITH_DTYPE(kDouble, Double)           \
  WARPSMITH_DTYPE(kFloat64, Double)          \
  WARPSMITH_DTYPE(kBool, Bool)               \
  WARPSMITH_DTYPE(kBFloat16, BFloat16)       \
  WARPSMITH_DTYPE(kFloat8_e5m2, Float8_e5m2) \
  WARPSMITH_DTYPE(kFloat8_e4m3fn, Float8_e4m3fn)
namespace at {
WARPSMITH_DTYPES
}
namespace torch {
using namespace ::at;
using ::c10::kStrided;
using IntArrayRef = ::c10::IntArrayRef;
template <typename WsT>
using optional = std::optional<WsT>;
namespace cuda {
inline void synchronize(int = -1) { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
}  // namespace cuda
}  // namespace torch

// Dispatch over dtypes, as torch's.
#define WARPSMITH_CASE(enumerator, type, ...) \
  case ::c10::ScalarType::enumerator: {       \
    using scalar_t = type;                    \
    return __VA_ARGS__();                     \
  }
#define WARPSMITH_DISPATCH(TYPE, NAME, ...)                            \
  [&] {                                                                \
    const ::c10::ScalarType warpsmith_type = TYPE;                     \
    switch (warpsmith_type) {                                          \
      __VA_ARGS__                                                      \
      default:                                                         \
        AT_ERROR(NAME, " not implemented for '", warpsmith_type, "'"); \
    }                                                                  \
  }()
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...) WARPSMITH_DISPATCH(TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  WARPSMITH_DISPATCH(TYPE, NAME,                    \
                     WARPSMITH_CASE(Double, double, __VA_ARGS__) WARPSMITH_CASE(Float, float, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...)                                               \
  WARPSMITH_DISPATCH(TYPE, NAME,                                                                           \
                     WARPSMITH_CASE(Double, double, __VA_ARGS__) WARPSMITH_CASE(Float, float, __VA_ARGS__) \
                         WARPSMITH_CASE(Half, ::c10::Half, __VA_ARGS__))
#define WARPSMITH_TYPE_Half ::c10::Half
#define WARPSMITH_TYPE_BFloat16 ::c10::BFloat16
#define WARPSMITH_TYPE_Bool bool
#define WARPSMITH_AND_CASE(enumerator, ...)                         \
  case ::c10::ScalarType(enumerator): {                             \
    using scalar_t = ::warpsmith_extension::cpp_type_t<enumerator>; \
    return __VA_ARGS__();                                           \
  }
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...)                                                 \
  WARPSMITH_DISPATCH(TYPE, NAME,                                                                           \
                     WARPSMITH_CASE(Double, double, __VA_ARGS__) WARPSMITH_CASE(Float, float, __VA_ARGS__) \
                         WARPSMITH_AND_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                             \
  WARPSMITH_DISPATCH(TYPE, NAME,                                                                           \
                     WARPSMITH_CASE(Double, double, __VA_ARGS__) WARPSMITH_CASE(Float, float, __VA_ARGS__) \
                         WARPSMITH_AND_CASE(A, __VA_ARGS__) WARPSMITH_AND_CASE(B, __VA_ARGS__))
#define WARPSMITH_INTEGERS(...)               \
  WARPSMITH_CASE(Byte, uint8_t, __VA_ARGS__)  \
  WARPSMITH_CASE(Char, int8_t, __VA_ARGS__)   \
  WARPSMITH_CASE(Short, int16_t, __VA_ARGS__) \
  WARPSMITH_CASE(Int, int32_t, __VA_ARGS__)   \
  WARPSMITH_CASE(Long, int64_t, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  WARPSMITH_DISPATCH(TYPE, NAME, WARPSMITH_INTEGERS(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...)                                                             \
  WARPSMITH_DISPATCH(TYPE, NAME,                                                                           \
                     WARPSMITH_CASE(Double, double, __VA_ARGS__) WARPSMITH_CASE(Float, float, __VA_ARGS__) \
                         WARPSMITH_INTEGERS(__VA_ARGS__))

// How forward() is found and called.
namespace warpsmith_extension {

template <::c10::ScalarType Type>
struct CppType;
template <>
struct CppType<::c10::ScalarType::Half> {
  using type = ::c10::Half;
};
template <>
struct CppType<::c10::ScalarType::BFloat16> {
  using type = ::c10::BFloat16;
};
template <>
struct CppType<::c10::ScalarType::Bool> {
  using type = bool;
};
template <::c10::ScalarType Type>
using cpp_type_t = typename CppType<Type>::type;

struct Registered {
  const char* name;
  void (*function)();
  void (*call)(void (*)(), Frame*);
};
inline std::vector<Registered>& registered() {
  static std::vector<Registered> list;
  return list;
}
inline std::vector<::at::Tensor>& results() {
  static std::vector<::at::Tensor> list;
  return list;
}

inline void say(Frame* frame, Status status, const char* words) {
  frame->status = status;
  int i = 0;
  for (; words[i] != '\0' && i + 1 < kMessageBytes; ++i) frame->message[i] = words[i];
  frame->message[i] = '\0';
}

inline void add_result(const ::at::Tensor& t) { results().push_back(t); }
inline void add_result(const std::vector<::at::Tensor>& list) {
  for (const ::at::Tensor& t : list) results().push_back(t);
}
template <size_t WsN>
void add_result(const std::array<::at::Tensor, WsN>& list) {
  for (const ::at::Tensor& t : list) results().push_back(t);
}
template <typename... WsT>
void add_result(const std::tuple<WsT...>& tuple) {
  std::apply([](const auto&... t) { (add_result(t), ...); }, tuple);
}

template <typename WsT>
struct Argument {
  using Plain = std::remove_cv_t<std::remove_reference_t<WsT>>;
  static constexpr bool kTensor =
      std::is_same_v<Plain, ::at::Tensor> || std::is_same_v<Plain, std::optional<::at::Tensor>>;
  static_assert(kTensor || std::is_arithmetic_v<Plain>,
                "forward() takes torch::Tensor, and numbers for the task's scalars");
  static Plain from(const Frame* frame, int tensors_before, int scalars_before) {
    if constexpr (kTensor) {
      return Plain(::at::Tensor(frame->inputs[tensors_before]));
    } else {
      const PlainScalar& s = frame->scalars[scalars_before];
      return s.is_float != 0 ? static_cast<Plain>(s.real) : static_cast<Plain>(s.integer);
    }
  }
};

template <typename WsR, typename... WsA>
struct Call {
  static constexpr int tensors_before(int n) {
    constexpr bool kinds[] = {Argument<WsA>::kTensor..., false};
    int count = 0;
    for (int i = 0; i < n; ++i) count += kinds[i] ? 1 : 0;
    return count;
  }
  template <size_t... WsI>
  static WsR invoke(WsR (*function)(WsA...), Frame* frame, std::index_sequence<WsI...>) {
    std::tuple<typename Argument<WsA>::Plain...> arguments{
        Argument<WsA>::from(frame, tensors_before(static_cast<int>(WsI)),
                            static_cast<int>(WsI) - tensors_before(static_cast<int>(WsI)))...};
    return function(static_cast<WsA>(std::get<WsI>(arguments))...);
  }
  static void call(void (*function)(), Frame* frame) {
    constexpr int tensors = tensors_before(static_cast<int>(sizeof...(WsA))),
                  scalars = static_cast<int>(sizeof...(WsA)) - tensors;
    if (tensors != frame->input_count || scalars > frame->scalar_count) {
      const std::string words = "forward() takes " + std::to_string(tensors) + " tensors and " +
                                std::to_string(scalars) + " numbers; the task has " +
                                std::to_string(frame->input_count) + " inputs and " +
                                std::to_string(frame->scalar_count) + " scalars";
      return say(frame, Status::kArguments, words.c_str());
    }
    add_result(invoke(reinterpret_cast<WsR (*)(WsA...)>(function), frame, std::index_sequence_for<WsA...>()));
  }
};

template <typename WsR, typename... WsA>
void add(const char* name, WsR (*function)(WsA...)) {
  static_assert(!std::is_void_v<WsR>, "forward() returns a tensor, or several");
  registered().push_back({name, reinterpret_cast<void (*)()>(function), &Call<WsR, WsA...>::call});
}
template <typename WsF, typename = std::enable_if_t<std::is_class_v<WsF>>>
void add(const char* name, WsF lambda) {
  add(name, +lambda);
}

inline std::vector<void (*)()>& binders() {
  static std::vector<void (*)()> list;
  return list;
}
struct AtLoad {
  explicit AtLoad(void (*binder)()) { binders().push_back(binder); }
};

inline const Registered* find_forward() {
  for (const Registered& r : registered())
    if (__builtin_strcmp(r.name, "forward") == 0) return &r;
  return registered().size() == 1 ? &registered().front() : nullptr;
}

inline void call_forward(Frame* frame) {
  const Registered* const forward = find_forward();
  results().clear();
  frame->output_count = 0;
  frame->status = Status::kDone;
  if (forward == nullptr) return say(frame, Status::kNoForward, "no function is named `forward`");
  try {
    forward->call(forward->function, frame);
    // (Where there is no driver nothing can have been launched.)
    if (const cudaError_t error = cudaGetLastError();
        error != cudaSuccess && error != cudaErrorInsufficientDriver)
      return say(frame, Status::kThrew, (std::string("CUDA error: ") + cudaGetErrorString(error)).c_str());
    if (frame->status != Status::kDone) return;
    if (results().size() > static_cast<size_t>(kMostTensors))
      return say(frame, Status::kResult, "too many results");
    for (const ::at::Tensor& t : results()) {
      if (!t.defined()) return say(frame, Status::kResult, "an undefined tensor was returned");
      frame->outputs[frame->output_count++] = t.plain();
    }
  } catch (const ::c10::OutOfMemoryError& e) {
    say(frame, Status::kOutOfMemory, e.what());
  } catch (const std::bad_alloc&) {
    say(frame, Status::kOutOfMemory, "out of host memory");
  } catch (const std::exception& e) {
    say(frame, Status::kThrew, e.what());
  } catch (...) {
    say(frame, Status::kThrew, "an exception of another type than std::exception");
  }
}

}  // namespace warpsmith_extension

extern "C" __attribute__((weak, used, visibility("default"))) inline void warpsmith_extension_v1(
    ::warpsmith_extension::Action action, const ::warpsmith_extension::Services* services,
    ::warpsmith_extension::Frame* frame) {
  using namespace ::warpsmith_extension;
  if (action == Action::kBind) {
    ::warpsmith_extension::services = services;
    frame->status = Status::kDone;
    for (void (*binder)() : binders()) binder();
    if (find_forward() == nullptr) say(frame, Status::kNoForward, "no function is named `forward`");
  } else if (action == Action::kCall) {
    call_forward(frame);
  } else {
    results().clear();
  }
}

#define WARPSMITH_EXPORT(function)                          \
  namespace {                                               \
  const ::warpsmith_extension::AtLoad warpsmith_export([] { \
    ::warpsmith_extension::add("forward", &function);       \
  });                                                       \
  }

// pybind11, as far as a module names its functions.
namespace pybind11 {
struct arg {
  explicit arg(const char*) {}
  template <typename WsT>
  arg& operator=(const WsT&) {
    return *this;
  }
};
template <typename... WsT>
struct call_guard {};
struct gil_scoped_release {};
class module_ {
 public:
  template <typename WsF, typename... More>
  module_& def(const char* name, WsF&& f, const More&...) {
    ::warpsmith_extension::add(name, std::forward<WsF>(f));
    return *this;
  }
  std::string& doc() { return doc_; }

 private:
  std::string doc_;
};
using module = module_;
}  // namespace pybind11
namespace py = pybind11;

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME warpsmith_module
#endif
#define PYBIND11_MODULE(name, variable)                             \
  static void warpsmith_module_body(::pybind11::module_& variable); \
  namespace {                                                       \
  const ::warpsmith_extension::AtLoad warpsmith_module_loaded([] {  \
    ::pybind11::module_ module;                                     \
    warpsmith_module_body(module);                                  \
  });                                                               \
  }                                                                 \
  static void warpsmith_module_body(::pybind11::module_& variable)

#ifdef WARPSMITH_CUBLAS
#include <cublas_v2.h>
#define TORCH_CUDABLAS_CHECK(call)                                     \
  do {                                                                 \
    const cublasStatus_t warpsmith_status = (call);                    \
    TORCH_CHECK(warpsmith_status == CUBLAS_STATUS_SUCCESS,             \
                "cuBLAS error: ", static_cast<int>(warpsmith_status)); \
  } while (0)
namespace at {
namespace cuda {
// Float32 as float32: TF32 is off unless the candidate turns it on.
inline cublasHandle_t getCurrentCUDABlasHandle() {
  static cublasHandle_t handle = [] {
    cublasHandle_t h;
    TORCH_CUDABLAS_CHECK(cublasCreate(&h));
    return h;
  }();
  return handle;
}
}  // namespace cuda
}  // namespace at
#endif
#undef WARPSMITH_DTYPES
#undef WARPSMITH_DTYPE

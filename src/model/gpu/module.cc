// The module warpsmith-gpu.so: see fused.h. Kernels are in kernels.cu, made by the NVRTC that torch brings.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <nvrtc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "attention.h"
#include "library.h"
#include "nccl.h"
#include "warpsmith/base/error.h"
#include "warpsmith/model/fused.h"

extern const char model_kernels[];

namespace warpsmith::model {

namespace {

// NVRTC and the driver, by way of the library that torch loads them with.
struct Functions {
  Library library{"libcaffe2_nvrtc.so"};
#define WARPSMITH_FUNCTION(name) decltype(::name)* name = library.find<decltype(::name)>(#name)
  WARPSMITH_FUNCTION(nvrtcCreateProgram);
  WARPSMITH_FUNCTION(nvrtcCompileProgram);
  WARPSMITH_FUNCTION(nvrtcGetProgramLogSize);
  WARPSMITH_FUNCTION(nvrtcGetProgramLog);
  WARPSMITH_FUNCTION(nvrtcGetCUBINSize);
  WARPSMITH_FUNCTION(nvrtcGetCUBIN);
  WARPSMITH_FUNCTION(nvrtcDestroyProgram);
  WARPSMITH_FUNCTION(cuModuleLoadData);
  WARPSMITH_FUNCTION(cuModuleGetFunction);
  WARPSMITH_FUNCTION(cuLaunchKernel);
  WARPSMITH_FUNCTION(cuGetErrorName);
#undef WARPSMITH_FUNCTION
};

void check(const Functions& f, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  f.cuGetErrorName(result, &name);
  throw Error(std::string(what) + ": " + (name == nullptr ? std::to_string(result) : name));
}

std::vector<char> compile(const Functions& f, std::int64_t width) {
  const cudaDeviceProp* const device = at::cuda::getCurrentDeviceProperties();
  nvrtcProgram program = nullptr;
  const auto must = [&](nvrtcResult result) {
    if (result == NVRTC_SUCCESS) return;
    std::string log;
    std::size_t size = 0;
    if (program != nullptr && f.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
      log.resize(size - 1);
      f.nvrtcGetProgramLog(program, log.data());
    }
    throw Error("NVRTC refuses the model's kernels (" + std::to_string(result) + "): " + log);
  };
  must(f.nvrtcCreateProgram(&program, model_kernels, "model_kernels.cu", 0, nullptr, nullptr));
  const std::string options[] = {
      "--gpu-architecture=sm_" + std::to_string(10 * device->major + device->minor), "-std=c++17",
      "-DWIDTH=" + std::to_string(width)};
  const char* words[] = {options[0].c_str(), options[1].c_str(), options[2].c_str()};
  must(f.nvrtcCompileProgram(program, 3, words));
  std::size_t size = 0;
  must(f.nvrtcGetCUBINSize(program, &size));
  std::vector<char> cubin(size);
  must(f.nvrtcGetCUBIN(program, cubin.data()));
  f.nvrtcDestroyProgram(&program);
  return cubin;
}

// Kernels for rows of one width.
struct Kernels {
  Kernels(const Functions& f, std::int64_t width) {
    const std::vector<char> cubin = compile(f, width);
    CUmodule module = nullptr;
    check(f, f.cuModuleLoadData(&module, cubin.data()), "the model's kernels cannot be loaded");
    const auto find = [&](CUfunction& function, const char* name) {
      check(f, f.cuModuleGetFunction(&function, module, name), name);
    };
    find(add_norm, "ws_add_norm");
    find(norm_backward, "ws_norm_backward");
    find(swiglu, "ws_swiglu");
    find(swiglu_backward, "ws_swiglu_backward");
    find(turn, "ws_turn");
    find(log_probabilities, "ws_log_probabilities");
    find(log_probabilities_backward, "ws_log_probabilities_backward");
    find(draw, "ws_draw");
    find(decode, "ws_decode");
    find(adamw, "ws_adamw");
  }
  CUfunction add_norm, norm_backward, swiglu, swiglu_backward, turn, log_probabilities,
      log_probabilities_backward, draw, decode, adamw;
};

class CudaGraph : public StepGraph {
 public:
  void record(const std::function<void()>& step) override {
    const c10::cuda::CUDAStream now = c10::cuda::getCurrentCUDAStream();
    now.synchronize();
    // The default stream cannot be recorded.
    const c10::cuda::CUDAStreamGuard other(c10::cuda::getStreamFromPool());
    graph_.capture_begin();
    step();
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

// As in kernels.cu.
struct Turn {
  const void *queries, *keys, *values;
  void *to_queries, *to_keys, *to_values;
  std::int64_t queries_row, keys_row, values_row, to_queries_row, to_keys_row, to_values_row;
  const std::int64_t *positions, *places;
  const void *cosine, *sine;
  int heads, kv_heads, half;
  float sign;
  int copy_values;
};
struct Decode {
  const void *queries, *keys, *values;
  void *out, *parts, *arrived;
  const void* used;
  std::int64_t queries_row, length;
  int heads, kv_heads, size, splits;
  float scale;
};
struct Rates {
  float size, root, decay, factor, beta1, beta2, epsilon;
};

constexpr int kThreads = 256;  // kernels.cu
constexpr int kRowThreads = 1024;
constexpr std::int64_t kFewRows = 256;
constexpr int kDecodeThreads = 128, kKeys = 64, kMostSharers = 16, kWidestHead = 128;

// Of a block of ws_decode: keys, values, queries and their shares.
std::int64_t decode_memory(std::int64_t sharers, std::int64_t size) {
  return kKeys * (size + 8) * 2 + kKeys * size * 2 + sharers * size * 4 + sharers * kKeys * 4;
}

template <typename T = void>
T* data(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

class OnGpu : public Fused {
 public:
  bool is_new_enough() const override { return at::cuda::getCurrentDeviceProperties()->major >= 8; }
  void make_nccl_id(unsigned char (&id)[128]) const override { nccl::make_id(id); }
  std::unique_ptr<Collective> make_collective(const unsigned char (&id)[128], int rank,
                                              int size) const override {
    return nccl::connect(id, rank, size);
  }
  std::unique_ptr<StepGraph> make_step_graph() const override { return std::make_unique<CudaGraph>(); }

  void add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, double epsilon,
                const at::Tensor& sum, const at::Tensor& normed, const at::Tensor& scale) const override {
    const std::int64_t rows = x.size(0), width = x.size(1);
    launch(kernels(width).add_norm, (rows + teams(width) - 1) / teams(width), kThreads, data(x), data(y),
           data(weight), data(sum), data(normed), data(scale), rows, static_cast<float>(epsilon));
  }

  at::Tensor norm_backward(const at::Tensor& sum, const at::Tensor& scale, const at::Tensor& weight,
                           const at::Tensor& dnormed, const at::Tensor& dsum,
                           const at::Tensor& dx) const override {
    const std::int64_t rows = sum.size(0), width = sum.size(1), team = teams(width);
    const std::int64_t blocks = std::min<std::int64_t>(
        2 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount, (rows + team - 1) / team);
    const at::Tensor parts = at::empty({blocks * team, width}, scale.options());
    launch(kernels(width).norm_backward, blocks, kThreads, data(sum), data(scale), data(weight),
           data(dnormed), data(dsum), data(dx), data(parts), rows);
    return parts.sum(0).to(at::kBFloat16);
  }

  void swiglu(const at::Tensor& gate_up, const at::Tensor& out) const override {
    // Of few rows each is a block's one pass.
    const unsigned most = out.size(0) < kFewRows ? kRowThreads : kThreads;
    launch(kernels(kAnyWidth).swiglu, out.size(0), threads_for(out.size(1), most), data(gate_up), data(out),
           out.size(1));
  }

  void swiglu_backward(const at::Tensor& gate_up, const at::Tensor& dout,
                       const at::Tensor& dgate_up) const override {
    launch(kernels(kAnyWidth).swiglu_backward, dout.size(0), threads_for(dout.size(1)), data(gate_up),
           data(dout), data(dgate_up), dout.size(1));
  }

  void turn(const TurnedHeads& from, const TurnedHeads& to, const at::Tensor& positions,
            const at::Tensor& places, const at::Tensor& cosine, const at::Tensor& sine,
            int sign) const override {
    const Turn t{data(from.queries),
                 data(from.keys),
                 data(from.values),
                 data(to.queries),
                 data(to.keys),
                 data(to.values),
                 from.queries.stride(0),
                 from.keys.stride(0),
                 from.values.stride(0),
                 to.queries.stride(0),
                 to.keys.stride(0),
                 to.values.stride(0),
                 data<std::int64_t>(positions),
                 data<std::int64_t>(places),
                 data(cosine),
                 data(sine),
                 static_cast<int>(from.queries.size(1)),
                 static_cast<int>(from.keys.size(1)),
                 static_cast<int>(cosine.size(1)),
                 static_cast<float>(sign),
                 from.values.data_ptr() != to.values.data_ptr()};
    const std::int64_t work = (t.heads + t.kv_heads) * t.half;
    launch(kernels(kAnyWidth).turn, from.queries.size(0), threads_for(work), t);
  }

  void log_probabilities(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& gradients,
                         const at::Tensor& out, const at::Tensor& logsums) const override {
    launch(kernels(kAnyWidth).log_probabilities, logits.size(0), kRowThreads, data(logits), data(targets),
           data(gradients), data(out), data(logsums), logits.size(1));
  }

  void log_probabilities_backward(const at::Tensor& logits, const at::Tensor& targets,
                                  const at::Tensor& gradients, const at::Tensor& logsums) const override {
    launch(kernels(kAnyWidth).log_probabilities_backward, logits.size(0), kRowThreads, data(logits),
           data(targets), data(gradients), data(logsums), logits.size(1));
  }

  void draw(const at::Tensor& logits, const at::Tensor& uniforms, const at::Tensor& step, double temperature,
            const at::Tensor& token, const at::Tensor& tokens,
            const at::Tensor& log_probabilities) const override {
    launch(kernels(kAnyWidth).draw, logits.size(0), kRowThreads, data(logits), data(uniforms), data(step),
           data(token), data(tokens), data(log_probabilities), logits.size(1),
           static_cast<float>(temperature > 0 ? 1 / temperature : 0));
  }

  bool attends_to_cache(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const override {
    return size % 8 == 0 && size <= kWidestHead && heads % kv_heads == 0 && heads / kv_heads <= kMostSharers;
  }

  void attend_to_cache(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       std::int64_t length, const at::Tensor& used, double scale,
                       const at::Tensor& out) const override {
    const std::int64_t sequences = queries.size(0), heads = queries.size(1), size = queries.size(2);
    const std::int64_t kv_heads = keys.size(1), sharers = heads / kv_heads, pairs = sequences * kv_heads;
    const std::int64_t splits = (length + kKeys - 1) / kKeys;
    if (!arrived_.defined() || arrived_.numel() < pairs)
      arrived_ = at::zeros({pairs}, used.options().dtype(at::kInt));
    const at::Tensor parts =
        at::empty({pairs * splits * sharers * (size + 2)}, queries.options().dtype(at::kFloat));
    constexpr double kLog2E = 1.4426950408889634;
    const Decode d{data(queries),
                   data(keys),
                   data(values),
                   data(out),
                   data(parts),
                   data(arrived_),
                   data(used),
                   queries.stride(0),
                   length,
                   static_cast<int>(heads),
                   static_cast<int>(kv_heads),
                   static_cast<int>(size),
                   static_cast<int>(splits),
                   static_cast<float>(scale * kLog2E)};
    launch_with(decode_memory(sharers, size), kernels(kAnyWidth).decode, pairs * splits, kDecodeThreads, d);
  }

  bool attends_packed(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const override {
    return attention_.serves(heads, kv_heads, size);
  }
  bool attend_packed(const TurnedHeads& heads, const Ragged& ragged, double scale, const at::Tensor& out,
                     const at::Tensor& sums) const override {
    return attention_.forward(heads, ragged, scale, out, sums);
  }
  void attend_packed_backward(const TurnedHeads& heads, const Ragged& ragged, double scale,
                              const at::Tensor& out, const at::Tensor& sums, const at::Tensor& dout,
                              const TurnedHeads& gradients) const override {
    attention_.backward(heads, ragged, scale, out, sums, dout, gradients);
  }

  void adamw(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& master,
             const at::Tensor& first, const at::Tensor& second, const at::Tensor& decays,
             const AdamRates& r) const override {
    const auto t = static_cast<double>(r.steps);
    const Rates rates{static_cast<float>(r.rate / (1 - std::pow(r.beta1, t))),
                      static_cast<float>(1 / std::sqrt(1 - std::pow(r.beta2, t))),
                      static_cast<float>(r.rate * r.decay),
                      static_cast<float>(r.factor),
                      static_cast<float>(r.beta1),
                      static_cast<float>(r.beta2),
                      static_cast<float>(r.epsilon)};
    const std::int64_t n = weights.numel();
    launch(kernels(kAnyWidth).adamw, (n / 8 + kThreads - 1) / kThreads, kThreads, data(weights),
           data(gradients), data(master), data(first), data(second), data(decays), n, rates);
  }

 private:
  static constexpr std::int64_t kAnyWidth = 0;  // of kernels that norm nothing

  static std::int64_t teams(std::int64_t width) { return width <= 1024 ? kThreads / 32 : 1; }
  // Threads of a block whose row is `elements` long: whole warps.
  static unsigned threads_for(std::int64_t elements, unsigned most = kThreads) {
    return static_cast<unsigned>(std::clamp<std::int64_t>((elements / 8 + 31) / 32 * 32, 32, most));
  }

  const Kernels& kernels(std::int64_t width) const {
    if (width == kAnyWidth && !by_width_.empty()) return by_width_.begin()->second;
    const auto found = by_width_.find(width);
    if (found != by_width_.end()) return found->second;
    return by_width_.emplace(width, Kernels(functions_, width == kAnyWidth ? 8 : width)).first->second;
  }

  template <typename... Arguments>
  void launch(CUfunction kernel, std::int64_t blocks, unsigned threads, Arguments... arguments) const {
    launch_with(0, kernel, blocks, threads, arguments...);
  }
  // With so many bytes of dynamic shared memory.
  template <typename... Arguments>
  void launch_with(std::int64_t shared, CUfunction kernel, std::int64_t blocks, unsigned threads,
                   Arguments... arguments) const {
    if (blocks == 0) return;
    void* places[] = {&arguments...};
    check(functions_,
          functions_.cuLaunchKernel(kernel, static_cast<unsigned>(blocks), 1, 1, threads, 1, 1,
                                    static_cast<unsigned>(shared), c10::cuda::getCurrentCUDAStream().stream(),
                                    places, nullptr),
          "a kernel of the model cannot be launched");
  }

  Functions functions_;
  mutable PackedAttention attention_;
  mutable at::Tensor arrived_;  // of ws_decode: made before a step is recorded, for some run as they are
  mutable std::map<std::int64_t, Kernels> by_width_;
};

}  // namespace

}  // namespace warpsmith::model

extern "C" const warpsmith::model::Fused* warpsmith_make_fused() { return new warpsmith::model::OnGpu; }

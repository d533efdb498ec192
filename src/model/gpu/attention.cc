#include "attention.h"

#ifdef WARPSMITH_HAS_CUDNN_FRONTEND

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <ATen/ops/empty.h>
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <compare>
#include <string>
#include <unordered_map>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"

// Where cudnn_frontend takes cuDNN's functions from: the library that torch has loaded.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace warpsmith::model {

namespace {

namespace fe = cudnn_frontend;
using Operand = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr int kHopper = 9;
constexpr std::size_t kOldestCudnn = 90600;  // the first whose sums may be packed as rows are
constexpr std::int64_t kWidestHead = 128;

enum Id : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOut,
  kSums,
  kQueriesGradient,
  kKeysGradient,
  kValuesGradient,
  kOutGradient,
  kLengths,
  kQkvOffsets,
  kOutOffsets,
  kSumsOffsets,
};

void check(fe::error_t result, const char* what) {
  if (result.is_bad()) throw Error(std::string(what) + ": " + result.get_message());
}

}  // namespace

struct PackedAttention::Key {
  bool backward;
  std::int64_t segments, longest, tokens, heads, kv_heads, size, row;  // row: elements between rows of qkv
  double scale;
  auto operator<=>(const Key&) const = default;
};

struct PackedAttention::Plan {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;

  explicit Plan(const Key& key) : key_(key) {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    lengths = numbers(kLengths, key.segments, fe::DataType_t::INT32);
    for (const auto& [offsets, id] :
         {std::pair(&qkv_offsets, kQkvOffsets), {&out_offsets, kOutOffsets}, {&sums_offsets, kSumsOffsets}})
      *offsets = numbers(id, key.segments + 1, fe::DataType_t::INT64);
    queries = graph.tensor(rows(kQueries, key.heads, key.row, qkv_offsets));
    keys = graph.tensor(rows(kKeys, key.kv_heads, key.row, qkv_offsets));
    values = graph.tensor(rows(kValues, key.kv_heads, key.row, qkv_offsets));
  }

  template <typename Attributes>
  Attributes with_mask(Attributes attributes) const {
    attributes.set_attn_scale(static_cast<float>(key_.scale))
        .set_padding_mask(true)
        .set_seq_len_q(lengths)
        .set_seq_len_kv(lengths)
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0)
        .set_max_total_seq_len_q(key_.tokens)
        .set_max_total_seq_len_kv(key_.tokens);
    return attributes;
  }

  // Heads of packed rows, `row` elements apart.
  fe::graph::Tensor_attributes rows(Id id, std::int64_t heads, std::int64_t row,
                                    const Operand& offsets) const {
    return fe::graph::Tensor_attributes()
        .set_uid(id)
        .set_dim({key_.segments, heads, key_.longest, key_.size})
        .set_stride({key_.longest * row, key_.size, row, 1})
        .set_ragged_offset(offsets);
  }
  fe::graph::Tensor_attributes out_rows(Id id) const {
    return rows(id, key_.heads, key_.heads * key_.size, out_offsets);
  }
  fe::graph::Tensor_attributes sums_rows() const {
    return fe::graph::Tensor_attributes()
        .set_uid(kSums)
        .set_dim({key_.segments, key_.heads, key_.longest, 1})
        .set_stride({key_.longest * key_.heads, 1, key_.heads, 1})
        .set_data_type(fe::DataType_t::FLOAT)
        .set_ragged_offset(sums_offsets);
  }
  static void as_output(const Operand& operand, fe::graph::Tensor_attributes like) {
    operand->set_output(true)
        .set_uid(like.get_uid())
        .set_dim(like.get_dim())
        .set_stride(like.get_stride())
        .set_ragged_offset(like.get_ragged_offset());
  }

  void build() {
    check(graph.build(at::native::getCudnnHandle(), {fe::HeurMode_t::A}), "cuDNN's attention");
    check(graph.get_workspace_size(workspace), "cuDNN's attention");
  }

  void run(std::unordered_map<std::int64_t, void*> places, const TurnedHeads& heads,
           const Ragged& ragged) const {
    const auto put = [&](Id id, const at::Tensor& x) { places.emplace(id, x.data_ptr()); };
    put(kQueries, heads.queries);
    put(kKeys, heads.keys);
    put(kValues, heads.values);
    put(kLengths, ragged.lengths);
    put(kQkvOffsets, ragged.qkv);
    put(kOutOffsets, ragged.out);
    put(kSumsOffsets, ragged.sums);
    const at::Tensor memory = at::empty({workspace}, heads.queries.options().dtype(at::kByte));
    check(graph.execute(at::native::getCudnnHandle(), places, memory.data_ptr()), "cuDNN's attention");
  }

  Operand lengths, qkv_offsets, out_offsets, sums_offsets, queries, keys, values;

 private:
  Operand numbers(Id id, std::int64_t n, fe::DataType_t type) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(id)
                            .set_dim({n, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(type));
  }
  Key key_;
};

namespace {

// Key of a batch's plan.
template <typename Key>
Key key_of(bool backward, const TurnedHeads& heads, const Ragged& ragged, double scale) {
  return {backward,
          ragged.lengths.size(0),
          ragged.longest,
          power_of_two(heads.queries.size(0)),
          heads.queries.size(1),
          heads.keys.size(1),
          heads.queries.size(2),
          heads.queries.stride(0),
          scale};
}

}  // namespace

PackedAttention::PackedAttention() {
  if (at::cuda::getCurrentDeviceProperties()->major < kHopper) return;
  fe::cudnn_dlhandle = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle == nullptr) {
    log_warning(std::string("attention goes on by FlashAttention 2, slower: ") + ::dlerror());
    return;
  }
  usable_ = fe::detail::get_backend_version() >= kOldestCudnn;
}

PackedAttention::~PackedAttention() = default;

bool PackedAttention::serves(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const {
  return usable_ && size % 8 == 0 && size <= kWidestHead && heads % kv_heads == 0;
}

template <typename Make>
PackedAttention::Plan* PackedAttention::plan(const Key& key, const Make& make) {
  std::unique_ptr<Plan>& known = plans_[key];
  if (known) return known.get();
  auto plan = std::make_unique<Plan>(key);
  make(*plan);
  plan->build();
  known = std::move(plan);
  return known.get();
}

bool PackedAttention::forward(const TurnedHeads& heads, const Ragged& ragged, double scale,
                              const at::Tensor& out, const at::Tensor& sums) {
  const std::lock_guard lock(mutex_);
  if (!usable_) return false;
  const Plan* forward = nullptr;
  try {
    forward = plan(key_of<Key>(false, heads, ragged, scale), [](Plan& p) {
      const auto [o, s] = p.graph.sdpa(p.queries, p.keys, p.values,
                                       p.with_mask(fe::graph::SDPA_attributes().set_generate_stats(true)));
      Plan::as_output(o, p.out_rows(kOut));
      Plan::as_output(s, p.sums_rows());
      s->set_data_type(fe::DataType_t::FLOAT);
    });
    // So that a forward pass has a backward pass.
    plan(key_of<Key>(true, heads, ragged, scale), [&](Plan& p) {
      const auto [q, k, v] =
          p.graph.sdpa_backward(p.queries, p.keys, p.values, p.graph.tensor(p.out_rows(kOut)),
                                p.graph.tensor(p.out_rows(kOutGradient)), p.graph.tensor(p.sums_rows()),
                                p.with_mask(fe::graph::SDPA_backward_attributes()));
      const std::int64_t row = heads.queries.stride(0), own = heads.queries.size(1), kv = heads.keys.size(1);
      Plan::as_output(q, p.rows(kQueriesGradient, own, row, p.qkv_offsets));
      Plan::as_output(k, p.rows(kKeysGradient, kv, row, p.qkv_offsets));
      Plan::as_output(v, p.rows(kValuesGradient, kv, row, p.qkv_offsets));
    });
  } catch (const std::exception& error) {
    usable_ = false;
    log_warning(std::string("attention goes on by FlashAttention 2, slower: ") + error.what());
    return false;
  }
  forward->run({{kOut, out.data_ptr()}, {kSums, sums.data_ptr()}}, heads, ragged);
  return true;
}

void PackedAttention::backward(const TurnedHeads& heads, const Ragged& ragged, double scale,
                               const at::Tensor& out, const at::Tensor& sums, const at::Tensor& dout,
                               const TurnedHeads& gradients) {
  const std::lock_guard lock(mutex_);
  plans_.at(key_of<Key>(true, heads, ragged, scale))
      ->run({{kOut, out.data_ptr()},
             {kSums, sums.data_ptr()},
             {kOutGradient, dout.data_ptr()},
             {kQueriesGradient, gradients.queries.data_ptr()},
             {kKeysGradient, gradients.keys.data_ptr()},
             {kValuesGradient, gradients.values.data_ptr()}},
            heads, ragged);
}

}  // namespace warpsmith::model

#else

namespace warpsmith::model {

struct PackedAttention::Key {
  auto operator<=>(const Key&) const = default;
};
struct PackedAttention::Plan {};
PackedAttention::PackedAttention() = default;
PackedAttention::~PackedAttention() = default;
bool PackedAttention::serves(std::int64_t, std::int64_t, std::int64_t) const { return false; }
bool PackedAttention::forward(const TurnedHeads&, const Ragged&, double, const at::Tensor&,
                              const at::Tensor&) {
  return false;
}
void PackedAttention::backward(const TurnedHeads&, const Ragged&, double, const at::Tensor&,
                               const at::Tensor&, const at::Tensor&, const TurnedHeads&) {}

}  // namespace warpsmith::model

#endif

#include "packing.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "warpsmith/base/error.h"

namespace warpsmith::model {

namespace {

// Position of each token in its sequence: behind its prefix, if it has one.
std::vector<std::int64_t> positions_of(const PackedBatch& batch) {
  std::vector<std::int64_t> positions(batch.tokens.size());
  for (const Segment& segment : batch.segments) {
    const std::int64_t start =
        segment.prefix < 0 ? 0 : batch.segments[static_cast<std::size_t>(segment.prefix)].length;
    for (std::int64_t i = 0; i < segment.length; ++i)
      positions[static_cast<std::size_t>(segment.begin + i)] = start + i;
  }
  return positions;
}

void add_keys(Packing& packing, at::Device device) {
  std::vector<std::int64_t> key_rows;
  std::vector<int> query_ends = {0}, key_ends = {0};
  bool shared = false;
  const auto add = [&](const Segment& segment) {
    const std::size_t size = key_rows.size();
    key_rows.resize(size + static_cast<std::size_t>(segment.length));
    std::iota(key_rows.begin() + static_cast<std::ptrdiff_t>(size), key_rows.end(), segment.begin);
  };
  for (const Segment& segment : packing.segments) {
    shared = shared || segment.prefix >= 0;
    if (segment.prefix >= 0) add(packing.segments[static_cast<std::size_t>(segment.prefix)]);
    add(segment);
    query_ends.push_back(query_ends.back() + static_cast<int>(segment.length));
    key_ends.push_back(static_cast<int>(key_rows.size()));
    packing.most_queries = std::max(packing.most_queries, segment.length);
    packing.most_keys =
        std::max<std::int64_t>(packing.most_keys, *(key_ends.end() - 1) - *(key_ends.end() - 2));
  }
  if (shared) packing.key_rows = at::tensor(key_rows, at::kLong).to(device);
  packing.query_ends = at::tensor(query_ends, at::kInt).to(device);
  packing.key_ends = at::tensor(key_ends, at::kInt).to(device);
}

void add_ragged(Packing& packing, at::Device device) {
  const auto [heads, kv_heads, size] = packing.shape;
  if (packing.segments.empty() || packing.key_rows.defined() || at::globalContext().deterministicAlgorithms())
    return;
  const Fused* const fused = fused_for(at::TensorOptions(device).dtype(at::kBFloat16));
  if (fused == nullptr || !fused->attends_packed(heads, kv_heads, size)) return;
  std::vector<int> lengths;
  std::vector<std::int64_t> begins;
  for (const Segment& segment : packing.segments) {
    lengths.push_back(static_cast<int>(segment.length));
    begins.push_back(segment.begin);
  }
  lengths.resize(static_cast<std::size_t>(power_of_two(std::ssize(lengths))));
  begins.resize(lengths.size() + 1, packing.tokens.size(0));
  const at::Tensor rows = at::tensor(begins, at::kLong).to(device);
  packing.ragged = {at::tensor(lengths, at::kInt).to(device), rows * ((heads + 2 * kv_heads) * size),
                    rows * (heads * size), rows * heads, power_of_two(packing.most_queries)};
}

}  // namespace

void append_group(PackedBatch& batch, const std::vector<Token>& prompt,
                  const std::vector<std::vector<Token>>& completions) {
  const auto size = [&] { return static_cast<std::int64_t>(batch.tokens.size()); };
  const auto prefix = static_cast<std::int64_t>(batch.segments.size());
  batch.segments.push_back({size(), static_cast<std::int64_t>(prompt.size()), -1});
  batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
  const std::int64_t last = size() - 1;
  for (const std::vector<Token>& completion : completions) {
    if (completion.empty()) continue;
    const std::int64_t begin = size();
    // The last token is only asked for, never attended to.
    batch.tokens.insert(batch.tokens.end(), completion.begin(), completion.end() - 1);
    if (size() > begin) batch.segments.push_back({begin, size() - begin, prefix});
    for (std::size_t i = 0; i < completion.size(); ++i)
      batch.rows.push_back(i == 0 ? last : begin + static_cast<std::int64_t>(i) - 1);
    batch.targets.insert(batch.targets.end(), completion.begin(), completion.end());
  }
}

void append_sequence(PackedBatch& batch, const std::vector<Token>& prompt,
                     const std::vector<Token>& completion) {
  if (completion.empty()) return;
  const auto begin = static_cast<std::int64_t>(batch.tokens.size());
  const auto length = static_cast<std::int64_t>(prompt.size() + completion.size()) - 1;
  batch.segments.push_back({begin, length, -1});
  batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
  batch.tokens.insert(batch.tokens.end(), completion.begin(), completion.end() - 1);
  for (std::size_t i = 0; i < completion.size(); ++i)
    batch.rows.push_back(begin + static_cast<std::int64_t>(prompt.size() + i) - 1);
  batch.targets.insert(batch.targets.end(), completion.begin(), completion.end());
}

Packing make_packing(const PackedBatch& batch, const DecoderSettings& settings, at::Device device) {
  for (const Token token : batch.tokens)
    if (token < 0 || token >= settings.vocabulary)
      throw Error("token " + std::to_string(token) + " is not in the vocabulary");
  const std::vector<std::int64_t> positions = positions_of(batch);
  for (const std::int64_t position : positions)
    if (position >= settings.context)
      throw Error("a sequence of more than " + std::to_string(settings.context) +
                  " tokens (the model's context)");
  const auto numbers = [&](const auto& values) {
    return at::tensor(std::vector<std::int64_t>(values.begin(), values.end()), at::kLong).to(device);
  };
  Packing packing;
  packing.tokens = numbers(batch.tokens);
  packing.positions = numbers(positions);
  packing.rows = numbers(batch.rows);
  packing.targets = numbers(batch.targets);
  packing.segments = batch.segments;
  packing.shape = {settings.heads, settings.kv_heads, settings.head_dim()};
  add_keys(packing, device);
  if (settings.latent.kv_rank == 0) add_ragged(packing, device);
  return packing;
}

}  // namespace warpsmith::model

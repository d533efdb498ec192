// Where an optimiser's states lie (master weights and two moments), and how they come to the weights.
//
// They lie beside the weights, on the host, or in a file. What lies elsewhere is cut into pieces. On a GPU
// each piece is copied there, updated by the same kernels, and copied back, on streams of their own: the
// copies of one piece overlap the others' (ZeRO-Offload, Ren et al. 2021, updates on the host instead; Fuyou,
// Liao et al. 2024, keeps states on NVMe). So numbers do not depend on where states lie.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "warpsmith/learn/moments.h"
#include "warpsmith/model/gpu_memory.h"

namespace warpsmith::learn {

struct StatesPlan {
  std::int64_t beside = 0;  // elements whose states lie beside the weights: the first ones
  // Of the others: a file in this folder; empty: the host's memory.
  std::filesystem::path folder;
  // Elements of a piece; a multiple of Moments::kAtATime.
  std::int64_t piece = model::kStatesPiece;
};

class States {
 public:
  // For all of `weights`, which is flat. `master`: their values in float32, on any device; undefined where
  // the weights are float32: then they are the master. `first`, `second`: moments in float32, on any device;
  // undefined: all zero. Throws Error where there is no room.
  States(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& first,
         const at::Tensor& second, bool in_bytes, const StatesPlan& plan);
  ~States();
  States(States&&) noexcept;
  States& operator=(States&&) noexcept;

  // Begins to bring the first pieces, which each() would do otherwise.
  void fetch();
  // Of elements begin … begin + count: where the weights are, in float32, to be changed in place.
  struct Run {
    std::int64_t begin, count;
    at::Tensor master, first, second;
  };
  // `update` for each run, in order. What it enqueues is all that it does.
  void each(const std::function<void(const Run&)>& update);

  enum class Which { kMaster, kFirst, kSecond };
  // At most Moments::kAtATime elements from `begin` on, a multiple of that, in float32: on the CPU or beside
  // the weights, perhaps a view of what is there. Waits for updates.
  at::Tensor read(Which which, std::int64_t begin) const;
  // The masters that are the weights themselves are not counted.
  struct Bytes {
    std::int64_t beside = 0, host = 0, disk = 0;
    std::int64_t all() const { return beside + host + disk; }
  };
  Bytes bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "1.6 GiB beside the weights, 30.2 GiB on the host"
std::string to_string(const States::Bytes& bytes);

}  // namespace warpsmith::learn

#include "warpsmith/learn/states.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "piece_file.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"

namespace warpsmith::learn {

namespace {

constexpr std::int64_t kSlots = model::kStatesPieces;  // on the GPU
constexpr std::int64_t kBuffers = 4;                   // … and in the host's memory, of those in a file

// States of some elements. `master`: undefined where the weights are it.
struct Data {
  at::Tensor master;
  Moments first, second;

  Data() = default;
  Data(std::int64_t n, bool with_master, bool in_bytes, const at::TensorOptions& options)
      : master(with_master ? at::empty({n}, options.dtype(at::kFloat)) : at::Tensor()),
        first(n, in_bytes, true, options),
        second(n, in_bytes, false, options) {}
  Data first_of(std::int64_t n) const {
    Data some;
    if (master.defined()) some.master = master.narrow(0, 0, n);
    some.first = first.first_of(n);
    some.second = second.first_of(n);
    return some;
  }
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all = first.tensors();
    for (const at::Tensor& one : second.tensors()) all.push_back(one);
    if (master.defined()) all.push_back(master);
    return all;
  }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const at::Tensor& one : tensors()) sum += static_cast<std::int64_t>(one.nbytes());
    return sum;
  }
  void copy_from(const Data& other) const {
    const std::vector<at::Tensor> to = tensors(), from = other.tensors();
    for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i], true);
  }
};

struct Piece {
  std::int64_t begin = 0, count = 0;
  Data data;  // on the host; nothing of what is in a file
};

// Copies of a GPU's beside its work: one stream for each direction.
struct Lanes {
  explicit Lanes(c10::Device device)
      : guard(device.type()),
        in(guard.getStreamFromGlobalPool(device)),
        out(guard.getStreamFromGlobalPool(device)) {
    for (std::int64_t slot = 0; slot < kSlots; ++slot) {
      came.emplace_back(device.type());
      updated.emplace_back(device.type());
      left.emplace_back(device.type());
    }
  }
  c10::impl::VirtualGuardImpl guard;
  c10::Stream in, out;
  std::vector<c10::Event> came, updated, left;  // by slot
};

}  // namespace

struct States::State {
  at::Tensor weights;
  bool with_master, in_bytes;
  std::int64_t piece = 0;
  Data beside;  // of the first elements
  std::int64_t beside_count = 0;
  std::vector<Piece> pieces;
  std::optional<Lanes> lanes;
  std::vector<Data> slots;
  // Of a file: what is in memory of it, by buffer. A buffer's next read waits for its last write.
  std::optional<PieceFile> file;
  std::vector<Data> buffers;
  std::vector<std::shared_future<void>> reads, writes;
  Data looked_at;                     // a copy of …
  std::int64_t looked_at_piece = -1;  // … this piece of the file, for read()
  bool fetched = false;

  State(const at::Tensor& the_weights, const at::Tensor& master, const at::Tensor& first,
        const at::Tensor& second, bool bytes, const StatesPlan& plan)
      : weights(the_weights), with_master(master.defined()), in_bytes(bytes) {
    const at::NoGradGuard no_grad;
    const std::int64_t n = weights.numel(), grain = Moments::kAtATime;
    if (plan.piece % grain != 0 || plan.piece < grain) throw Error("pieces of whole runs of moments");
    piece = std::min(plan.piece, (n + grain - 1) / grain * grain);
    beside_count = plan.beside >= n ? n : std::max<std::int64_t>(0, plan.beside) / grain * grain;
    const auto take = [&](const Data& to, std::int64_t begin, std::int64_t count) {
      const auto part = [&](const at::Tensor& from) {
        return from.defined() ? from.narrow(0, begin, count) : at::Tensor();
      };
      fill(to, part(master), part(first), part(second));
    };
    if (beside_count > 0) {
      beside = Data(beside_count, with_master, in_bytes, weights.options());
      take(beside, 0, beside_count);
    }
    for (std::int64_t at = beside_count; at < n; at += piece)
      pieces.push_back({at, std::min(piece, n - at), {}});
    if (pieces.empty()) return;
    const bool on_gpu = !weights.is_cpu();
    const at::TensorOptions host = host_memory();
    if (on_gpu) {
      lanes.emplace(weights.device());
      for (std::int64_t i = 0; i < std::min<std::int64_t>(kSlots, count()); ++i)
        slots.emplace_back(piece, with_master, in_bytes, weights.options());
    }
    if (plan.folder.empty()) {
      for (Piece& one : pieces) {
        one.data = Data(one.count, with_master, in_bytes, host);
        take(one.data, one.begin, one.count);
      }
      return;
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(kBuffers, count()); ++i)
      buffers.emplace_back(piece, with_master, in_bytes, host);
    file.emplace(plan.folder, count(), buffers.front().bytes(), on_gpu);
    for (std::int64_t i = 0; i < count(); ++i) {
      const Piece& one = pieces[at(i)];
      const Data memory = buffers.front().first_of(one.count);
      take(memory, one.begin, one.count);
      file->write(i, memory.tensors());
    }
    reads.resize(buffers.size());
    writes.resize(buffers.size());
  }

  ~State() {
    try {
      settle();
    } catch (const std::exception&) {
      // Nobody wants these states any more.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Of the host's, what a GPU can copy from and a file be read to.
  at::TensorOptions host_memory() const {
    return at::TensorOptions(at::kCPU).pinned_memory(!weights.is_cpu());
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t count() const { return static_cast<std::int64_t>(pieces.size()); }
  std::size_t slot(std::int64_t i) const { return at(i % std::max<std::int64_t>(1, std::ssize(slots))); }
  std::size_t buffer(std::int64_t i) const { return at(i % std::ssize(buffers)); }

  static void fill(const Data& to, const at::Tensor& master, const at::Tensor& first,
                   const at::Tensor& second) {
    if (to.master.defined()) to.master.copy_(master);
    for (const auto& [moments, values] : {std::pair(to.first, first), std::pair(to.second, second)}) {
      if (!values.defined()) {
        for (at::Tensor one : moments.tensors()) one.zero_();
        continue;
      }
      Moments writable = moments;
      for (std::int64_t begin = 0; begin < values.numel(); begin += Moments::kAtATime) {
        const std::int64_t n = std::min(Moments::kAtATime, values.numel() - begin);
        writable.put(begin, values.narrow(0, begin, n).to(moments.tensors().front().device(), at::kFloat));
      }
    }
  }

  // In the host's memory.
  Data host(std::int64_t i) const {
    const Piece& one = pieces[at(i)];
    return file ? buffers[buffer(i)].first_of(one.count) : one.data;
  }

  void begin_read(std::int64_t i) {
    if (!file || i >= count()) return;
    reads[buffer(i)] =
        std::async(std::launch::async, [this, i, before = writes[buffer(i)], memory = host(i)] {
          if (before.valid()) before.get();
          file->read(i, memory.tensors());
        }).share();
  }

  void begin_write(std::int64_t i) {
    if (!file) return;
    writes[buffer(i)] = std::async(std::launch::async, [this, i, memory = host(i)] {
                          if (lanes) lanes->left[slot(i)].synchronize();
                          file->write(i, memory.tensors());
                        }).share();
  }

  // Has a piece copied to its slot, when the one before has left that.
  void bring(std::int64_t i) {
    if (i >= count()) return;
    if (file) reads[buffer(i)].get();
    if (!lanes) return;
    const c10::StreamGuard guard(lanes->in);
    lanes->left[slot(i)].block(lanes->in);
    slots[slot(i)].first_of(pieces[at(i)].count).copy_from(host(i));
    lanes->came[slot(i)].record(lanes->in);
  }

  void take_back(std::int64_t i) {
    if (lanes) {
      const c10::StreamGuard guard(lanes->out);
      lanes->updated[slot(i)].block(lanes->out);
      host(i).copy_from(slots[slot(i)].first_of(pieces[at(i)].count));
      lanes->left[slot(i)].record(lanes->out);
    }
    begin_write(i);
  }

  void fetch() {
    if (std::exchange(fetched, true)) return;
    for (std::int64_t i = 0; i < std::ssize(buffers); ++i) begin_read(i);
    for (std::int64_t i = 0; lanes && i < std::ssize(slots); ++i) bring(i);
  }

  void update(const Data& data, std::int64_t begin, std::int64_t count,
              const std::function<void(const Run&)>& work) const {
    // In bytes a part at a time: only its moments are there in float32.
    const std::int64_t each = in_bytes ? Moments::kAtATime : count;
    for (std::int64_t from = 0; from < count; from += each) {
      const std::int64_t n = std::min(each, count - from);
      const Run run{begin + from, n,
                    with_master ? data.master.narrow(0, from, n) : weights.narrow(0, begin + from, n),
                    data.first.read(from, n), data.second.read(from, n)};
      work(run);
      Moments(data.first).put(from, run.first);
      Moments(data.second).put(from, run.second);
    }
  }

  void each(const std::function<void(const Run&)>& work) {
    fetch();
    looked_at_piece = -1;
    if (beside_count > 0) update(beside, 0, beside_count, work);
    for (std::int64_t i = 0; i < count(); ++i) {
      const Piece& one = pieces[at(i)];
      if (lanes) {
        const c10::Stream main = lanes->guard.getStream(weights.device());
        lanes->came[slot(i)].block(main);
        update(slots[slot(i)].first_of(one.count), one.begin, one.count, work);
        lanes->updated[slot(i)].record(main);
      } else {
        bring(i);
        update(host(i), one.begin, one.count, work);
      }
      take_back(i);
      if (file) begin_read(i + std::ssize(buffers));
      if (lanes) bring(i + std::ssize(slots));
    }
    fetched = false;
  }

  // Until all that was updated is where it belongs.
  void settle() {
    for (std::size_t s = 0; lanes && s < slots.size(); ++s) lanes->left[s].synchronize();
    for (const std::shared_future<void>& one : reads)
      if (one.valid()) one.wait();
    for (const std::shared_future<void>& one : writes)
      if (one.valid()) one.get();
  }
};

States::States(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& first,
               const at::Tensor& second, bool in_bytes, const StatesPlan& plan)
    : state_(std::make_unique<State>(weights, master, first, second, in_bytes, plan)) {}
States::~States() = default;
States::States(States&&) noexcept = default;
States& States::operator=(States&&) noexcept = default;

void States::fetch() { state_->fetch(); }
void States::each(const std::function<void(const Run&)>& update) { state_->each(update); }

at::Tensor States::read(Which which, std::int64_t begin) const {
  State& s = *state_;
  const std::int64_t n = s.weights.numel(), count = std::min(Moments::kAtATime, n - begin);
  if (begin % Moments::kAtATime != 0 || begin >= n) throw Error("states are read in whole runs of moments");
  if (which == Which::kMaster && !s.with_master) return s.weights.narrow(0, begin, count);
  const auto values_of = [&](const Data& data, std::int64_t from) {
    if (which == Which::kMaster) return data.master.narrow(0, from, count);
    return (which == Which::kFirst ? data.first : data.second).read(from, count);
  };
  if (begin < s.beside_count) return values_of(s.beside, begin);
  s.settle();
  const std::int64_t i = (begin - s.beside_count) / s.piece, from = (begin - s.beside_count) % s.piece;
  if (!s.file) return values_of(s.pieces[State::at(i)].data, from);
  // In memory of its own, which begins at a page as the buffers' does: those hold what was fetched.
  if (s.looked_at_piece != i) {
    s.looked_at = Data(s.piece, s.with_master, s.in_bytes, s.host_memory());
    s.file->read(i, s.looked_at.first_of(s.pieces[State::at(i)].count).tensors());
    s.looked_at_piece = i;
  }
  return values_of(s.looked_at, from);
}

States::Bytes States::bytes() const {
  const State& s = *state_;
  Bytes bytes;
  if (s.beside_count > 0) bytes.beside += s.beside.bytes();
  for (const Data& one : s.slots) bytes.beside += one.bytes();
  for (const Data& one : s.buffers) bytes.host += one.bytes();
  for (const Piece& one : s.pieces) {
    if (s.file)
      bytes.disk += s.buffers.front().first_of(one.count).bytes();
    else
      bytes.host += one.data.bytes();
  }
  return bytes;
}

std::string to_string(const States::Bytes& bytes) {
  std::string words;
  const auto add = [&](std::int64_t some, const char* where) {
    if (some <= 0) return;
    words += (words.empty() ? "" : ", ") + format_size(static_cast<std::uint64_t>(some)) + " " + where;
  };
  add(bytes.beside, "beside the weights");
  add(bytes.host, "on the host");
  add(bytes.disk, "in a file");
  return words;
}

}  // namespace warpsmith::learn

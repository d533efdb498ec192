// Where the results of a candidate's calls come to lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "protocol.h"

namespace warpsmith::device {

// Of memory that is asked for by its size alone.
inline constexpr auto kAnyDtype = static_cast<warpsmith_extension::Scalar>(-1);

// An output that a candidate makes by the same allocation in each call gets its place in the parent's memory
// at once, so that nothing has to be copied: torch's caching allocator charges nothing for an output either.
// Which allocation that is, is learnt from the call before: one that was given back by its end. A tensor that
// the candidate keeps is never given such a place, and a place that is held is not given twice: at another
// shape the same number may be of another allocation.
class Places {
 public:
  void begin(std::vector<void*> places, std::vector<WireTensor> outputs) {
    places_ = std::move(places);
    outputs_ = std::move(outputs);
    made_.clear();
    counts_.clear();
    results_.clear();
  }
  // Null: nothing of the parent's.
  void* place_for(std::uint64_t bytes, warpsmith_extension::Scalar dtype) {
    const Key key{bytes, dtype, counts_[{bytes, dtype}]++};
    last_ = key;
    const auto found = learnt_.find(key);
    if (found == learnt_.end() || found->second >= outputs_.size()) return nullptr;
    const WireTensor& output = outputs_[found->second];
    const bool same_dtype = output.dtype == dtype || dtype == kAnyDtype;
    void* const place = places_[found->second];
    return output.bytes == bytes && same_dtype && !is_held(place) ? place : nullptr;
  }
  void note(void* memory) { made_.push_back({memory, last_, false}); }
  void note_release(const void* memory) {
    for (Made& m : made_)
      if (m.memory == memory) m.released = true;
  }
  // Of several that had this memory one after the other it is the last.
  void note_result(std::size_t output, const void* memory) {
    const auto last =
        std::find_if(made_.rbegin(), made_.rend(), [&](const Made& m) { return m.memory == memory; });
    if (last != made_.rend()) results_[last->key] = output;
  }
  // After the results were dropped.
  void learn() {
    learnt_.clear();
    for (const Made& m : made_)
      if (const auto found = results_.find(m.key); found != results_.end() && m.released)
        learnt_[m.key] = found->second;
    results_.clear();
  }

 private:
  struct Key {
    std::uint64_t bytes;
    warpsmith_extension::Scalar dtype;
    int number;  // among those of the call with these bytes and dtype
    bool operator<(const Key& o) const {
      return std::tie(bytes, dtype, number) < std::tie(o.bytes, o.dtype, o.number);
    }
  };
  struct Made {
    void* memory;
    Key key;
    bool released;
  };
  bool is_held(const void* memory) const {
    return std::any_of(made_.begin(), made_.end(),
                       [&](const Made& m) { return m.memory == memory && !m.released; });
  }

  std::vector<void*> places_;
  std::vector<WireTensor> outputs_;
  std::vector<Made> made_;
  std::map<std::pair<std::uint64_t, warpsmith_extension::Scalar>, int> counts_;
  std::map<Key, std::size_t> learnt_, results_;
  Key last_{};
};

}  // namespace warpsmith::device

#include "calls.h"

namespace warpsmith::measure {

EagerCalls::EagerCalls(const Reference& reference, const task::Dims& dims, const GpuAddresses& inputs,
                       int row)
    : row_(row) {
  for (auto begin = inputs.begin(); begin != inputs.end(); begin += row)
    rows_.push_back({reference.bind(dims, {begin, begin + row}), 0, {}});
}

void EagerCalls::run(int first, int count) {
  Row& row = row_of(first);
  row.first = first % row_;
  row.calls.run(row.first, count);
}

std::vector<std::span<const std::byte>> EagerCalls::output_memory(int first, int) const {
  return row_of(first).last_outputs;
}

void EagerCalls::drop_outputs(int first) {
  Row& row = row_of(first);
  row.last_outputs = row.calls.output_memory();
  row.calls.drop_outputs();
}

std::vector<Comparison> EagerCalls::compare(int call, const Reference::Calls& right,
                                            const std::vector<double>& bounds) const {
  const Row& row = row_of(call);
  return right.compare(0, row.calls, call % row_ - row.first, bounds);
}

}  // namespace warpsmith::measure

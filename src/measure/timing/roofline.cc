#include "roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

namespace {

constexpr double kMargin = 0.9;  // see read_floor_ns()

// A cost of the task at `dims`; nothing where it has none or it makes no sense there.
std::optional<double> cost_at(const std::optional<task::Expression>& cost, const task::Dims& dims) {
  if (!cost) return std::nullopt;
  try {
    const double value = cost->evaluate_real(task::dims_scope(dims));
    if (std::isfinite(value) && value >= 0) return value;
  } catch (const task::ExpressionError&) {
  }
  return std::nullopt;
}

// FLOP a second that the floating inputs allow; 0: not known.
double rate_of(const task::Task& task, const DeviceSpeeds& speeds) {
  double rate = 0;
  for (const task::TensorSpec& input : task.inputs) {
    if (!task::is_floating(input.dtype)) continue;
    const auto found = speeds.flop_s.find(input.dtype);
    if (found == speeds.flop_s.end()) return 0;
    rate = std::max(rate, found->second);
  }
  return rate;
}

// Gaps need not be read, and an element that is repeated only once.
std::uint64_t distinct_bytes(const task::TensorSpec& tensor, const task::Dims& dims) {
  const std::uint64_t all = tensor_bytes(tensor, dims);
  if (tensor.strides.empty()) return all;
  const std::vector<std::int64_t> shape = task::shape_at(tensor, dims),
                                  strides = task::strides_at(tensor, dims);
  std::uint64_t bytes = task::size_of(tensor.dtype);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (strides[i] != 0 || shape[i] == 0) bytes *= static_cast<std::uint64_t>(shape[i]);
  return std::min(bytes, all);
}

}  // namespace

double compulsory_bytes(const task::Task& task, const task::Dims& dims) {
  std::uint64_t bytes = output_bytes(task, dims);
  for (const auto* tensors : {&task.inputs, &task.state})
    for (const task::TensorSpec& input : *tensors) bytes += distinct_bytes(input, dims);
  const auto all = static_cast<double>(bytes);
  return std::min(all, cost_at(task.bytes, dims).value_or(all));
}

double compulsory_read_bytes(const task::Task& task, const task::Dims& dims) {
  // A module's weights are the same in each call of a row, and may lie in a cache.
  std::uint64_t others = output_bytes(task, dims);
  for (const task::TensorSpec& weights : task.state) others += distinct_bytes(weights, dims);
  return std::max(0.0, compulsory_bytes(task, dims) - static_cast<double>(others));
}

double read_floor_ns(const task::Task& task, const task::Dims& dims, double read_bytes_s) {
  return read_bytes_s > 0 ? kMargin * compulsory_read_bytes(task, dims) / read_bytes_s * 1e9 : 0;
}

DeviceSpeeds speeds_of(const Ceilings& ceilings, const std::string& math) {
  DeviceSpeeds speeds;
  for (const char* figure : {kReadBandwidth, kCopyBandwidth})
    if (const CeilingFigure* f = ceilings.find(figure)) speeds.bytes_s = std::max(speeds.bytes_s, f->median);
  const std::array<std::pair<task::Dtype, const char*>, 4> rates = {
      {{task::Dtype::kFloat64, kFloat64Rate},
       {task::Dtype::kFloat32, math == "torch_default" ? kTf32Rate : kFloat32Rate},
       {task::Dtype::kBfloat16, kBfloat16Rate},
       {task::Dtype::kFloat16, kFloat16Rate}}};
  for (const auto& [dtype, figure] : rates)
    if (const CeilingFigure* f = ceilings.find(figure)) speeds.flop_s[dtype] = f->median;
  return speeds;
}

std::optional<Roofline> roofline_of(const task::Task& task, const task::Dims& dims,
                                    const DeviceSpeeds& speeds) {
  Roofline roofline;
  if (speeds.bytes_s > 0) roofline = {compulsory_bytes(task, dims) / speeds.bytes_s * 1e9, "memory"};
  const double rate = rate_of(task, speeds);
  if (const auto flops = cost_at(task.flops, dims); flops && rate > 0 && *flops / rate * 1e9 > roofline.ns)
    roofline = {*flops / rate * 1e9, "compute"};
  if (!(roofline.ns > 0)) return std::nullopt;
  return roofline;
}

void write_roofline(const std::optional<Roofline>& roofline, Measurement& m) {
  m.roofline_ns = roofline ? std::optional(roofline->ns) : std::nullopt;
  m.roofline_bound = roofline ? roofline->bound : "";
}

bool beats_its_flops(const Measurement& m) {
  return m.roofline_bound == "compute" && roofline_share(m).value_or(0) > 1;
}

}  // namespace warpsmith::measure

#include "oracle.h"

#include <algorithm>

#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kManyDrawn = 1 << 20;  // bytes
constexpr double kTimeout = 60;                // seconds: of work of the harness

std::uint64_t bytes_drawn_by_host(const task::Task& task, const CheckCase& check) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < task.inputs.size(); ++i)
    if (ValueSource::drawn_by_host(values_of(task, i, check.distribution), check.dims))
      bytes += tensor_bytes(task.inputs[i], check.dims);
  return bytes;
}

}  // namespace

struct GpuOracle::Shape {
  Shape(const GpuHarness& harness, const Reference& reference, const task::Dims& dims)
      : fresh(harness, reference, dims),
        own(reference.bind(dims, fresh.sets())),
        right(reference.bind_oracle(dims, fresh.sets())),
        rounded(reference.bind_rounded(dims, fresh.sets())) {}
  GpuFreshInputs fresh;
  Reference::Calls own, right, rounded;
};

GpuOracle::GpuOracle(const GpuHarness& harness, const task::Task& task, const Reference& reference,
                     std::uint64_t seed, std::uint64_t budget_bytes)
    : Oracle(task, reference, harness.source(), seed, budget_bytes), harness_(harness) {}

GpuOracle::~GpuOracle() = default;

GpuOracle::Shape& GpuOracle::shape_of(const task::Dims& dims) {
  std::unique_ptr<Shape>& shape = shapes_[dims];
  if (!shape) shape = std::make_unique<Shape>(harness_, reference(), dims);
  return *shape;
}

void GpuOracle::fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const {
  GpuInputs values(reference(), check.dims);
  values.add(seed(), use_of(check), check.distribution, inputs);
  values.fill(harness_);
  values.release_memory();
}

GpuFreshInputs& GpuOracle::draw(const CheckCase& check) {
  GpuFreshInputs& fresh = shape_of(check.dims).fresh;
  fresh.draw(seed(), use_of(check), check.distribution);
  fresh.release_memory();
  return fresh;
}

std::optional<std::size_t> GpuOracle::changed_input(const CheckCase& check, const InputSets& sets) {
  return draw(check).changed(sets);
}

Asked GpuOracle::ask(const CheckCase& check) {
  if (!is_large(task(), check.dims)) return Oracle::ask(check);
  Shape& shape = shape_of(check.dims);
  draw(check);
  shape.right.run(0, 1);
  draw(check);  // a reference that works in place has changed them
  shape.own.run(0, 1);
  Asked asked;
  asked.bounds = shape.own.default_bounds(shape.right, &asked.decidable);
  if (!asked.decidable) asked.undecidable_because = misses(shape.own.outputs(0), shape.right.outputs(0));
  if (reference().rounds_to_tf32()) {
    shape.own.drop_outputs();
    draw(check);
    shape.rounded.run(0, 1);
    const std::vector<double> rounded = shape.rounded.tf32_bounds(shape.right);
    for (std::size_t i = 0; i < rounded.size(); ++i) asked.bounds[i] = std::max(asked.bounds[i], rounded[i]);
    shape.rounded.drop_outputs();
  }
  for (std::size_t i = 0; i < asked.bounds.size(); ++i) asked.bounds[i] = bound_of(i, asked.bounds[i]);
  shape.own.drop_outputs();
  shape.right.drop_outputs();
  reference().release_memory();
  return asked;
}

std::vector<Compared> GpuOracle::compare_on_host(const CheckCase& check, const OutputSets& sets) {
  std::vector<std::vector<std::byte>> memory;
  OutputSets on_host;
  for (const auto& outputs : sets) {
    auto& copies = on_host.emplace_back();
    for (const std::span<const std::byte> output : outputs) {
      memory.emplace_back(output.size());
      device::download(memory.back().data(), region_of(output).address, output.size());
      copies.emplace_back(memory.back());
    }
  }
  harness_.gpu().settle(kTimeout);
  return Oracle::compare(check, on_host);
}

std::vector<Compared> GpuOracle::compare(const CheckCase& check, const OutputSets& sets) {
  if (!is_large(task(), check.dims)) return compare_on_host(check, sets);
  const std::vector<double> bounds = asked(check).bounds;
  Shape& shape = shape_of(check.dims);
  draw(check);
  shape.right.run(0, 1);
  std::vector<Compared> all(bounds.size());
  for (const auto& outputs : sets) {
    const std::vector<Comparison> compared = shape.right.compare(0, outputs, bounds);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].with_right.push_back(compared[i]);
  }
  if (sets.size() > 1) {
    const std::vector<Comparison> apart = reference().compare(check.dims, sets[1], sets[0], bounds);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].agree = apart[i].agrees;
  }
  shape.right.drop_outputs();
  reference().release_memory();
  return all;
}

std::vector<CheckCase> gpu_check_cases(const task::Task& task, int seeds) {
  std::vector<CheckCase> cases = check_cases(task, seeds);
  std::erase_if(cases, [&](const CheckCase& check) {
    return is_large(task, check.dims) &&
           (check.seed > 0 || (check.distribution >= 0 && bytes_drawn_by_host(task, check) > kManyDrawn));
  });
  return cases;
}

}  // namespace warpsmith::measure

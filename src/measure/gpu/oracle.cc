#include "oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "answers/samples.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kManyDrawn = 1 << 20;   // bytes
constexpr double kTimeout = 60;                 // seconds: of work of the harness
constexpr std::uint64_t kPiece = 512ull << 20;  // bytes of a piece's inputs and outputs
constexpr std::uint64_t kFew = 4ull << 30;      // … of the samples that are looked at together

std::uint64_t bytes_drawn_by_host(const task::Task& task, const CheckCase& check) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < task.inputs.size(); ++i)
    if (ValueSource::drawn_by_host(values_of(task, i, check.distribution), check.dims))
      bytes += tensor_bytes(task.inputs[i], check.dims);
  return bytes;
}

}  // namespace

struct GpuOracle::Piece {
  task::Dims dims;
  std::int64_t first = 0;  // of its samples
  Reference::Calls right, rounded;
};

struct GpuOracle::Shape {
  Shape(GpuOracle& oracle, const task::Dims& dims)
      : fresh(oracle.harness_, oracle.reference(), dims),
        own(oracle.reference().bind_near(dims, fresh.sets())),
        pieces(oracle.pieces_of(dims, fresh.sets())) {}
  // Its inputs need no drawing anew while it is in pieces: these work on copies alone (batch()).
  bool is_whole() const { return pieces.size() == 1; }
  GpuFreshInputs fresh;
  Reference::Calls own;
  std::vector<Piece> pieces;
};

GpuOracle::GpuOracle(const GpuHarness& harness, const task::Task& task, const Reference& reference,
                     std::uint64_t seed, std::uint64_t budget_bytes)
    : Oracle(task, reference, harness.source(), seed, budget_bytes), harness_(harness) {}

GpuOracle::~GpuOracle() = default;

GpuOracle::Shape& GpuOracle::shape_of(const task::Dims& dims) {
  std::unique_ptr<Shape>& shape = shapes_[dims];
  if (!shape) shape = std::make_unique<Shape>(*this, dims);
  return *shape;
}

const std::string& GpuOracle::batch() {
  if (!batch_) {
    std::string batch = batch_dim(task());
    const auto dims = batch.empty() ? std::nullopt : few_samples(task(), batch, kFew);
    if (!dims || !answers_each_sample(*dims, batch)) batch.clear();
    batch_ = std::move(batch);
  }
  return *batch_;
}

void GpuOracle::forget_float64() {
  shapes_.clear();
  batch_.reset();
  reference().release_memory();
}

bool GpuOracle::answers_each_sample(const task::Dims& dims, const std::string& batch) {
  GpuFreshInputs inputs(harness_, reference(), dims);
  inputs.draw(seed(), random_key({name_key("samples")}));
  inputs.release_memory();
  const bool each = measure::answers_each_sample(reference(), dims, batch, inputs.sets().front());
  reference().release_memory();
  return each;
}

std::vector<GpuOracle::Piece> GpuOracle::pieces_of(const task::Dims& dims, const InputSets& inputs) {
  const std::uint64_t bytes = input_bytes(task(), dims) + output_bytes(task(), dims);
  std::vector<Piece> pieces;
  const auto add = [&](const task::Dims& its_dims, std::int64_t first, const InputSets& its_inputs) {
    pieces.push_back({its_dims, first, reference().bind_oracle(its_dims, its_inputs),
                      reference().bind_rounded(its_dims, its_inputs)});
  };
  if (bytes <= 2 * kPiece || batch().empty()) {
    add(dims, 0, inputs);
    return pieces;
  }
  const std::int64_t samples = dims.at(batch());
  const auto a_piece = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(samples) * static_cast<double>(kPiece) /
                                   static_cast<double>(bytes)));
  for (std::int64_t first = 0; first < samples; first += a_piece) {
    const std::int64_t count = std::min(a_piece, samples - first);
    add(with_samples(dims, batch(), count), first,
        {part_of(task().inputs, dims, batch(), inputs.front(), first, count)});
  }
  return pieces;
}

std::uint64_t GpuOracle::first_byte(std::size_t output, const task::Dims& dims, const Piece& piece) const {
  if (piece.first == 0) return 0;
  return static_cast<std::uint64_t>(piece.first) *
         tensor_bytes(task().outputs[output], with_samples(dims, *batch_, 1));
}

std::span<const std::byte> GpuOracle::part_of_output(std::size_t output, const task::Dims& dims,
                                                     const Piece& piece,
                                                     std::span<const std::byte> whole) const {
  return whole.subspan(first_byte(output, dims, piece), tensor_bytes(task().outputs[output], piece.dims));
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
  shape.own.run(0, 1);
  shape.own.keep_outputs();
  draw(check);  // a reference that works in place has changed them
  Asked asked;
  asked.bounds.assign(task().outputs.size(), 0);
  const auto raise = [&](const std::vector<double>& bounds) {
    for (std::size_t i = 0; i < bounds.size(); ++i) asked.bounds[i] = std::max(asked.bounds[i], bounds[i]);
  };
  for (Piece& piece : shape.pieces) {
    const Reference::Calls own = shape.own.part(piece.dims, piece.first);
    piece.right.run(0, 1);
    bool decidable = true;
    raise(own.default_bounds(piece.right, &decidable));
    if (!decidable && asked.decidable) {
      asked.decidable = false;
      asked.undecidable_because = misses(own.outputs(0), piece.right.outputs(0));
      if (!shape.is_whole()) asked.undecidable_because += fmt::format(", from sample {} on", piece.first);
    }
    if (reference().rounds_to_tf32()) {
      if (shape.is_whole()) draw(check);
      piece.rounded.run(0, 1);
      raise(piece.rounded.tf32_bounds(piece.right));
      piece.rounded.drop_outputs();
    }
    piece.right.drop_outputs();
  }
  for (std::size_t i = 0; i < asked.bounds.size(); ++i) asked.bounds[i] = bound_of(i, asked.bounds[i]);
  shape.own.drop_outputs();
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
  std::vector<Compared> all(bounds.size());
  for (Compared& output : all) output.with_right.resize(sets.size());
  for (Piece& piece : shape.pieces) {
    piece.right.run(0, 1);
    for (std::size_t set = 0; set < sets.size(); ++set) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Comparison compared = piece.right.compare_output(
            0, i, part_of_output(i, check.dims, piece, sets[set].at(i)), bounds[i]);
        const std::uint64_t first = first_byte(i, check.dims, piece) / task::size_of(task().outputs[i].dtype);
        add_part(all[i].with_right[set], compared, static_cast<std::int64_t>(first));
      }
    }
    piece.right.drop_outputs();
  }
  if (sets.size() > 1) {
    const std::vector<Comparison> apart = reference().compare(check.dims, sets[1], sets[0], bounds);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].agree = apart[i].agrees;
  }
  reference().release_memory();
  return all;
}

std::vector<AnswerFacts> GpuOracle::facts(const CheckCase& check) {
  if (!is_large(task(), check.dims)) return Oracle::facts(check);
  const std::vector<double> bounds = asked(check).bounds;
  Shape& shape = shape_of(check.dims);
  std::vector<AnswerFacts> all(bounds.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    all[i] = {bounds[i], kInfinity, -kInfinity, {}};
    for (std::size_t j = 0; j < task().inputs.size(); ++j)
      all[i].is_input.push_back(may_be(j, i, check.dims));
  }
  draw(check);
  for (Piece& piece : shape.pieces) {
    piece.right.run(0, 1);
    if (shape.is_whole()) draw(check);  // a reference that works in place has changed them
    const std::vector<std::pair<double, double>> ranges = piece.right.ranges(0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      AnswerFacts& facts = all[i];
      // A NaN stays: it is the second argument that is taken where they cannot be compared.
      facts.least = std::isnan(facts.least) ? facts.least : std::min(ranges[i].first, facts.least);
      facts.most = std::isnan(facts.most) ? facts.most : std::max(ranges[i].second, facts.most);
      for (std::size_t j = 0; j < facts.is_input.size(); ++j) {
        if (!facts.is_input[j]) continue;
        const std::span<const std::byte> input = shape.fresh.sets().front().at(j);
        facts.is_input[j] =
            piece.right.compare_output(0, i, part_of_output(i, check.dims, piece, input), bounds[i]).agrees;
      }
    }
    piece.right.drop_outputs();
  }
  reference().release_memory();
  return all;
}

std::optional<bool> GpuOracle::needs(const CheckCase& check, std::size_t input) {
  if (!is_large(task(), check.dims)) return Oracle::needs(check, input);
  const std::vector<double> bounds = asked(check).bounds;
  Shape& shape = shape_of(check.dims);
  GpuFreshInputs others(harness_, reference(), check.dims);
  others.draw(seed(), use_of_others(), check.distribution);
  others.release_memory();
  GpuFreshInputs& inputs = draw(check);
  InputSets changed = inputs.sets();
  changed.front().at(input) = others.sets().front().at(input);
  if (!inputs.changed(changed)) return std::nullopt;
  bool needed = false;
  std::vector<Piece> other = pieces_of(check.dims, changed);
  for (std::size_t i = 0; i < other.size() && !needed; ++i) {
    Reference::Calls &right = shape.pieces[i].right, &apart = other[i].right;
    right.run(0, 1);
    if (shape.is_whole()) draw(check);                   // a reference that works in place has changed them
    if (shape.is_whole()) reference().release_memory();  // these may be as large as the GPU
    apart.run(0, 1);
    for (const Comparison& compared : right.compare(0, apart, 0, bounds)) needed |= !compared.agrees;
    right.drop_outputs();
    apart.drop_outputs();
  }
  reference().release_memory();
  return needed;
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

// Inputs and right answers for programs whose operands lie on the GPU.
//
// Inputs are drawn on the device. Answers of small shapes are made once and kept on the host, where a
// candidate's outputs are compared with them. Answers of large shapes (is_large(); 25 million numbers as
// doubles) would take seconds to make, carry and compare there: they are made on the device behind each
// candidate's call, compared there, and given back to the driver before anything else of a candidate runs.
// Answers of over 1 GiB with their inputs are made some samples of the batch at a time, where the reference
// answers each sample for itself (answers/samples.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness.h"
#include "inputs.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

class GpuOracle : public Oracle {
 public:
  // `reference` runs on the GPU. All that is referred to must outlive it. `budget_bytes`: of the answers on
  // the host.
  GpuOracle(const GpuHarness& harness, const task::Task& task, const Reference& reference, std::uint64_t seed,
            std::uint64_t budget_bytes);
  ~GpuOracle() override;
  // These work on the device, and wait (fill() does not).
  void fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const override;
  std::optional<std::size_t> changed_input(const CheckCase& check, const InputSets& sets) override;
  std::vector<Compared> compare(const CheckCase& check, const OutputSets& sets) override;
  std::vector<AnswerFacts> facts(const CheckCase& check) override;
  std::optional<bool> needs(const CheckCase& check, std::size_t input) override;

 private:
  struct Piece;  // of a call: all of it, or some of its samples
  struct Shape;  // inputs drawn anew at one shape, and the reference's calls on them
  std::vector<Piece> pieces_of(const task::Dims& dims, const InputSets& inputs);
  const std::string& batch();  // the dim by which answers may be cut; or empty
  bool answers_each_sample(const task::Dims& dims, const std::string& batch);
  std::uint64_t first_byte(std::size_t output, const task::Dims& dims, const Piece& piece) const;
  std::span<const std::byte> part_of_output(std::size_t output, const task::Dims& dims, const Piece& piece,
                                            std::span<const std::byte> whole) const;
  Shape& shape_of(const task::Dims& dims);
  GpuFreshInputs& draw(const CheckCase& check);
  Asked ask(const CheckCase& check) override;
  void forget_float64() override;
  std::vector<Compared> compare_on_host(const CheckCase& check, const OutputSets& sets);

  const GpuHarness& harness_;
  std::optional<std::string> batch_;
  std::map<task::Dims, std::unique_ptr<Shape>> shapes_;
};

// What check_cases() gives for a GPU, without what large shapes need not repeat: seeds but the first, for a
// timed call has a seed of its own and is compared in full, too; and distributions of over 1 MiB that only
// the host can draw (sorted rows, uneven choices), which are asked at every smaller shape.
std::vector<CheckCase> gpu_check_cases(const task::Task& task, int seeds);

}  // namespace warpsmith::measure

// Values that the harness's kernel makes on a GPU are those that the host makes, bit by bit. Skips where
// there is no GPU; values_test.cc has the kernel's way through a tensor without one.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "gpu/harness.h"
#include "gpu/inputs.h"
#include "plain_task.h"
#include "scratch.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::measure {
namespace {

task::ValueSpec spec(const std::string& kind, const std::vector<std::string>& arguments) {
  task::ValueSpec values;
  values.kind = kind;
  for (const std::string& argument : arguments) values.arguments.push_back(task::Expression::parse(argument));
  return values;
}

// Filled at once, and ahead: as the host's draws are prepared, wherever in memory the inputs lie.
TEST(GpuValues, PreparedInputsAreThoseOfTheHostsDraws) {
  std::optional<device::Gpu> gpu;
  try {
    load_torch_cuda();
    gpu.emplace();
  } catch (const Error& e) {
    GTEST_SKIP() << "no GPU to test on: " << e.what();
  }
  configure_torch(1);
  const auto target = toolchain::target_of_capability(gpu->facts().major, gpu->facts().minor);
  ASSERT_TRUE(target) << "no target is known for this GPU";
  const Scratch scratch;
  const ValueSource source;
  const GpuHarness harness(*gpu, harness_cubin(to_string(*target), scratch.path(), true), source);
  const auto square = [](const char* name) { return tensor(name, task::Dtype::kFloat32, {"N", "N"}); };
  task::Task task = make_task("def forward(A, B, C):\n  return A + B + C\n",
                              {square("A"), square("B"), square("C")}, {square("out")});
  task.inputs[0].offset = task::Expression::parse("1");
  task.inputs[2].values = spec("permutation", {});
  task.inputs[2].dtype = task::Dtype::kInt64;
  task.prepare =
      "def prepare(B, A):\n  return B.softmax(0).cumsum(1).view(-1).cumsum(0).view_as(B), A.matmul(A.t())\n";
  task.prepared = {1, 0};
  const Reference reference(task, Place::kGpu);
  for (const std::int64_t n : {1, 7, 300}) {
    const task::Dims dims = {{"N", n}};
    GpuInputs inputs(reference, dims);
    const GpuOperands operands(harness, input_specs(task, dims), 5);
    for (const int sets : {2, 3}) {
      const int first = sets == 2 ? 0 : 2;
      for (int set = first; set < first + sets; ++set)
        inputs.add(static_cast<std::uint64_t>(set), operands, set);
      if (sets == 3) inputs.fill_ahead(harness);
      inputs.fill(harness);
    }
    for (int set = 0; set < 5; ++set) {
      std::vector<std::vector<std::byte>> right, made;
      for (const task::TensorSpec& input : task.inputs) right.emplace_back(tensor_bytes(input, dims));
      fill_inputs(source, reference, dims, -1, static_cast<std::uint64_t>(set), 0,
                  {right.begin(), right.end()});
      for (std::size_t i = 0; i < right.size(); ++i) {
        made.emplace_back(right[i].size());
        device::download(made.back().data(), operands.address(set, i), made.back().size());
        gpu->settle(10);
        EXPECT_EQ(made[i], right[i]) << "N " << n << ", set " << set << ", input " << i;
      }
    }
  }
}

TEST(GpuValues, AreThoseOfTheHost) {
  std::optional<device::Gpu> gpu;
  try {
    load_torch_cuda();
    gpu.emplace();
  } catch (const Error& e) {
    GTEST_SKIP() << "no GPU to test on: " << e.what();
  }
  const auto target = toolchain::target_of_capability(gpu->facts().major, gpu->facts().minor);
  ASSERT_TRUE(target) << "no target is known for this GPU";
  const Scratch scratch;
  const ValueSource source;
  const GpuHarness harness(*gpu, harness_cubin(to_string(*target), scratch.path(), true), source);
  const task::ValueSpec kinds[] = {spec("normal", {"0.1", "1.5"}), spec("uniform", {"-1", "2"}),
                                   spec("integers", {"0", "100"}), spec("bernoulli", {"0.3"}),
                                   spec("choice", {"1", "0"}),     spec("ones", {}),
                                   spec("permutation", {})};
  for (int dtype = 0; dtype <= static_cast<int>(task::Dtype::kBool); ++dtype)
    for (const task::ValueSpec& values : kinds) {
      task::TensorSpec tensor;
      tensor.dtype = static_cast<task::Dtype>(dtype);
      // In one launch, as large and small inputs of a call are.
      const std::vector<std::vector<std::int64_t>> shapes = {{1}, {33}, {255}, {257}, {5003}, {7, 10003}};
      std::vector<device::GpuMemory> memory;
      std::vector<GpuFill> fills;
      for (const auto& shape : shapes) {
        const auto elements =
            static_cast<std::uint64_t>(shape.front() * (shape.size() > 1 ? shape.back() : 1));
        const std::uint64_t bytes = elements * task::size_of(tensor.dtype);
        memory.emplace_back(bytes);
        fills.push_back({&values,
                         tensor.dtype,
                         &shape,
                         1000 * elements + static_cast<std::uint64_t>(dtype),
                         {memory.back().address(), bytes}});
      }
      harness.kernels().fill(fills, {});
      for (std::size_t i = 0; i < fills.size(); ++i) {
        std::vector<std::byte> made(fills[i].to.bytes), right(fills[i].to.bytes);
        device::download(made.data(), fills[i].to.address, made.size());
        gpu->settle(10);
        source.fill(values, tensor.dtype, shapes[i], {}, fills[i].key, right);
        EXPECT_EQ(made, right) << values.kind << ", dtype " << dtype << ", tensor " << i;
      }
    }
}

}  // namespace
}  // namespace warpsmith::measure

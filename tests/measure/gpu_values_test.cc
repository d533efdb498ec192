// Values that the harness's kernel makes on a GPU are those that the host makes, bit by bit. Skips where
// there is no GPU; values_test.cc has the kernel's way through a tensor without one.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "gpu/harness.h"
#include "scratch.h"
#include "warpsmith/measure/harness_cubin.h"
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
  const task::ValueSpec kinds[] = {spec("normal", {"0.1", "1.5"}),
                                   spec("uniform", {"-1", "2"}),
                                   spec("integers", {"0", "100"}),
                                   spec("bernoulli", {"0.3"}),
                                   spec("choice", {"1", "0"}),
                                   spec("ones", {}),
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

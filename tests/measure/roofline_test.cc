// Floors and rooflines of tasks on invented devices.
#include "timing/roofline.h"

#include <gtest/gtest.h>

#include "task_folder.h"

namespace warpsmith::measure {
namespace {

// 1 MiB of x in, 4 KiB of out; `extra` are further lines of the file.
std::string row_sum(const std::string& extra, const std::string& dtype = "float32") {
  return "schema: warpsmith.task/1\ntitle: t\nlevel: 1\nsplit: extra\nops: [row_sum]\ndims: [M, N]\n"
         "inputs:\n  x: {role: data, dtype: " +
         dtype +
         ", shape: [M, N], values: \"integers(0, 9)\"}\n"
         "outputs:\n  out: {dtype: float32, shape: [M]}\n"
         "reference: |\n  def forward(x: Tensor) -> Tensor:\n    return x.sum(1)\n"
         "timing:\n  - {M: 1024, N: 256}\nhidden:\n  - {M: 1, N: 1}\n" +
         extra;
}

constexpr double kIn = 4.0 * 1024 * 256, kOut = 4.0 * 1024;

struct Case {
  explicit Case(const std::string& yaml)
      : folder("roofline", yaml.c_str()), task(folder.task()), dims(task.timing.front()) {}
  TaskFolder folder;
  task::Task task;
  task::Dims dims;
};

TEST(CompulsoryBytes, AreThoseOfTheOperandsOrWhatTheTaskSays) {
  const Case plain(row_sum(""));
  EXPECT_EQ(compulsory_bytes(plain.task, plain.dims), kIn + kOut);
  EXPECT_EQ(compulsory_read_bytes(plain.task, plain.dims), kIn);
  const Case half(row_sum("bytes: 2 * M * N + 4 * M\n"));
  EXPECT_EQ(compulsory_bytes(half.task, half.dims), kIn / 2 + kOut);
  EXPECT_EQ(compulsory_read_bytes(half.task, half.dims), kIn / 2);
  const Case more(row_sum("bytes: 100 * M * N\n"));
  EXPECT_EQ(compulsory_bytes(more.task, more.dims), kIn + kOut) << "no more than there is";
  const Case less(row_sum("bytes: 8\n"));
  EXPECT_EQ(compulsory_read_bytes(less.task, less.dims), 0) << "less than the outputs alone";
}

TEST(ReadFloor, CountsReadsWithAMargin) {
  const Case one(row_sum(""));
  EXPECT_NEAR(read_floor_ns(one.task, one.dims, 1e12), 0.9 * kIn / 1e3, 1e-6);
  EXPECT_EQ(read_floor_ns(one.task, one.dims, 0), 0) << "nobody is blamed where nothing was measured";
}

Ceilings h200() {
  Ceilings c;
  c.figures[kReadBandwidth] = {4.3e12, 4.2e12, 4.4e12, 5, ""};
  c.figures[kCopyBandwidth] = {4.0e12, 3.9e12, 4.1e12, 5, ""};
  c.figures[kFloat32Rate] = {50e12, 49e12, 51e12, 5, ""};
  c.figures[kTf32Rate] = {400e12, 390e12, 410e12, 5, ""};
  c.figures[kBfloat16Rate] = {700e12, 690e12, 710e12, 5, ""};
  return c;
}

TEST(Speeds, OfAGpu) {
  const DeviceSpeeds strict = speeds_of(h200(), "strict");
  EXPECT_EQ(strict.bytes_s, 4.3e12);
  EXPECT_EQ(strict.flop_s.at(task::Dtype::kFloat32), 50e12);
  EXPECT_EQ(strict.flop_s.at(task::Dtype::kBfloat16), 700e12);
  EXPECT_FALSE(strict.flop_s.contains(task::Dtype::kFloat16)) << "what was not measured is not known";
  EXPECT_EQ(speeds_of(h200(), "torch_default").flop_s.at(task::Dtype::kFloat32), 400e12);
  EXPECT_EQ(speeds_of({}, "strict").bytes_s, 0);
}

TEST(RooflineOfATask, IsTheLargerOfBytesAndFlops) {
  const DeviceSpeeds speeds = speeds_of(h200(), "strict");
  const Case memory(row_sum("flops: M * N\n"));
  const auto low = roofline_of(memory.task, memory.dims, speeds);
  ASSERT_TRUE(low);
  EXPECT_EQ(low->bound, "memory");
  EXPECT_NEAR(low->ns, (kIn + kOut) / 4300, 1e-6);
  const Case compute(row_sum("flops: 1000 * M * N\n"));
  const auto high = roofline_of(compute.task, compute.dims, speeds);
  ASSERT_TRUE(high);
  EXPECT_EQ(high->bound, "compute");
  EXPECT_NEAR(high->ns, 1000 * kIn / 4 / 50e3, 1e-6);
  Measurement m;
  m.rounds = 35;
  m.candidate_ns = 2 * high->ns;
  write_roofline(high, m);
  EXPECT_NEAR(*roofline_share(m), 0.5, 1e-12);
  EXPECT_FALSE(beats_its_flops(m));
  m.candidate_ns = 0.9 * high->ns;
  EXPECT_TRUE(beats_its_flops(m));
  write_roofline(low, m);
  m.candidate_ns = 0.5 * low->ns;
  EXPECT_FALSE(beats_its_flops(m)) << "of memory there is a floor";
  write_roofline(std::nullopt, m);
  EXPECT_EQ(m.roofline_ns, std::nullopt);
  EXPECT_EQ(m.roofline_bound, "");
}

TEST(RooflineOfATask, WithoutARateMemoryAloneCounts) {
  const std::string flops = "flops: 1000000 * M * N\n";
  for (const char* dtype : {"float16", "float8_e4m3", "int32"}) {
    const Case other(row_sum(flops, dtype));
    const auto roofline = roofline_of(other.task, other.dims, speeds_of(h200(), "strict"));
    ASSERT_TRUE(roofline) << dtype;
    EXPECT_EQ(roofline->bound, "memory") << dtype;
  }
  const Case one(row_sum(flops));
  EXPECT_EQ(roofline_of(one.task, one.dims, {.bytes_s = 1e12})->bound, "memory")
      << "of a CPU there is no rate";
  EXPECT_FALSE(roofline_of(one.task, one.dims, {}));
}

}  // namespace
}  // namespace warpsmith::measure

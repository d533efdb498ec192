#include "warpsmith/method/augment.h"

#include <gtest/gtest.h>

#include <set>

#include "warpsmith/method/source_text.h"

namespace warpsmith::method {
namespace {

constexpr const char* kTree = R"(// plan: launch k<<<M, 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  __shared__ float p[256];
  int j = threadIdx.x;
  float a = 0.f;
  for (int c = j; c < N; c += 256) a += x[blockIdx.x * N + c];
  p[j] = a;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (j < h) p[j] += p[j + h];
    __syncthreads();
  }
  if (j == 0) out[blockIdx.x] = p[0];
}
)";

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [from, to] : changes)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

std::vector<std::string> details(const std::vector<Variant>& variants) {
  std::vector<std::string> out;
  for (const Variant& v : variants) out.push_back(v.detail);
  return out;
}

TEST(Augment, NothingAskedForNothingMade) {
  EXPECT_TRUE(augment(kTree, {}, 1).empty());
  EXPECT_TRUE(augment(kTree, {.variants = 5}, 1).empty());
  EXPECT_TRUE(augment(kTree, {.variants = 0, .rename_identifiers = true, .block_sizes = {64}}, 1).empty());
}

TEST(Augment, BlockSizeChangesInPlanAndCodeWithTheTreesHalf) {
  const auto variants = augment(kTree, {.variants = 5, .block_sizes = {64, 256, 512}}, 1);
  ASSERT_EQ(details(variants), (std::vector<std::string>{"block 256 -> 64", "block 256 -> 512"}));
  EXPECT_EQ(variants[0].source, replaced(kTree, {{"128", "32"}, {"256", "64"}}));
  EXPECT_EQ(variants[1].source, replaced(replaced(kTree, {{"256", "512"}}), {{"128", "256"}}));
}

TEST(Augment, NoMoreThanAskedFor) {
  EXPECT_EQ(
      augment(kTree, {.variants = 1, .rename_identifiers = true, .block_sizes = {64, 128, 512}}, 1).size(),
      1u);
}

TEST(Augment, BlockInALet) {
  const char* source =
      "// plan: let B = 128\n// plan: launch k<<<cdiv(N, B), B>>>(out)\nvoid k(float* out) { out[128] = "
      "1.28f; }\n";
  const auto variants = augment(source, {.variants = 5, .block_sizes = {256}}, 1);
  ASSERT_EQ(variants.size(), 1u);
  EXPECT_EQ(variants[0].source,
            "// plan: let B = 256\n// plan: launch k<<<cdiv(N, B), B>>>(out)\nvoid k(float* out) { out[256] "
            "= 1.28f; }\n");
}

TEST(Augment, SquareBlocksTakeSquares) {
  const char* source =
      "// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 16)), dim3(16, 16)>>>(out)\nvoid k() { int t[16]; }\n";
  EXPECT_EQ(details(augment(source, {.variants = 5, .block_sizes = {64, 128, 1024}}, 1)),
            (std::vector<std::string>{"block 16x16 -> 8x8", "block 16x16 -> 32x32"}));
}

TEST(Augment, OblongBlocksTakeOtherShapes) {
  const char* source = "// plan: launch k<<<1, dim3(32, 8)>>>(out)\nvoid k() { int t[32][8]; }\n";
  const auto variants = augment(source, {.variants = 5, .block_sizes = {256}}, 1);
  ASSERT_EQ(details(variants), (std::vector<std::string>{"block 32x8 -> 16x16", "block 32x8 -> 64x4"}));
  EXPECT_EQ(variants[1].source, "// plan: launch k<<<1, dim3(64, 4)>>>(out)\nvoid k() { int t[64][4]; }\n");
}

TEST(Augment, WarpsAndSingleThreadsKeepTheirSize) {
  EXPECT_TRUE(
      augment(
          "// plan: launch k<<<M, 32>>>(x)\nvoid k(float* x) { x[0] = __shfl_xor_sync(~0u, x[0], 16); }\n",
          {.variants = 5, .block_sizes = {64}}, 1)
          .empty());
  EXPECT_TRUE(augment("// plan: launch k<<<1, 1>>>(x)\nvoid k(float* x) { x[0] = 1; }\n",
                      {.variants = 5, .block_sizes = {64}}, 1)
                  .empty());
}

TEST(Augment, RenamingIsConsistentAndSparesTheTasksNames) {
  const char* source = R"(// plan: temp t float32[N]
// plan: launch k1<<<cdiv(N, 256), 256>>>(x, t, N)
// plan: launch k2<<<cdiv(N, 256), 256>>>(t, out, N)
extern "C" __global__ void k1(const float* x, float* t, int N) { int i = threadIdx.x; t[i] = expf(x[i]); }
extern "C" __global__ void k2(const float* t, float* out, int N) { int i = threadIdx.x; out[i] = t[i]; }
)";
  const auto variants = augment(source, {.variants = 6, .rename_identifiers = true}, 3);
  ASSERT_EQ(variants.size(), 6u);
  std::set<std::string> distinct = {layout_normal_form(source)};
  for (const Variant& v : variants) {
    EXPECT_EQ(v.detail, "renamed");
    EXPECT_EQ(normal_form(v.source), normal_form(source)) << v.source;  // the same program
    EXPECT_TRUE(distinct.insert(layout_normal_form(v.source)).second) << v.source;
    // The plan's arguments are the task's names.
    EXPECT_NE(v.source.find(">>>(x, "), std::string::npos) << v.source;
    EXPECT_NE(v.source.find(", out, N)\nextern"), std::string::npos) << v.source;
    EXPECT_NE(v.source.find("expf("), std::string::npos);
    EXPECT_EQ(v.source.find("k1"), std::string::npos);
    EXPECT_EQ(v.source.find(" i = "), std::string::npos);
  }
}

TEST(Augment, IsAFunctionOfItsKey) {
  const AugmentOptions options{.variants = 4, .rename_identifiers = true, .block_sizes = {64}};
  const auto a = augment(kTree, options, 1), again = augment(kTree, options, 1),
             b = augment(kTree, options, 2);
  ASSERT_EQ(a.size(), 4u);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].source, again[i].source);
  EXPECT_EQ(a[0].source, b[0].source);  // no random number in it
  EXPECT_NE(a[1].source, b[1].source);
}

}  // namespace
}  // namespace warpsmith::method

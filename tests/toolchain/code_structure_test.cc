// Machine code without names and constants: what counts as another program, for the CPU twin and for GPUs.
#include "warpsmith/toolchain/code_structure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "copy_task.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {
namespace {

// "cpu", or a target.
class CodeStructure : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("warpsmith-code-structure-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Of a kernel that is `body`, with parameters x, out and N.
  std::string of(const std::string& body) {
    const Candidate candidate =
        make_plan_candidate("t", "// plan: launch k<<<1, 32>>>(x, out, N)\n" + body, {});
    CompileOptions options;
    options.cache = folder_;
    const CompileResult result =
        GetParam() == "cpu" ? compile_for_host(candidate, copy_task(), options)
                            : compile_for_gpu(candidate, copy_task(), *parse_gpu_target(GetParam()), options);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
    return result.verdict == Verdict::kOk ? code_structure(result.binary) : "";
  }

  fs::path folder_;
};

constexpr const char* kBase = R"(__global__ void k(const float* x, float* out, int N) {
  for (int i = threadIdx.x; i < N; i += 32) {
    float a = x[i] * 2.5f;
    float b = expf(x[i]);
    out[i] = a + b;
  }
})";

TEST_P(CodeStructure, DeadCodeOtherNamesConstantsAndOrderOfLinesMakeNothingNew) {
  const std::string base = of(kBase);
  ASSERT_NE(base, "");
  EXPECT_EQ(base, of(R"(__global__ void k(const float* from, float* to, int count) {
  float never = 0.0f;
  for (int place = threadIdx.x; place < count; place += 32) {
    float second = expf(from[place]);
    float unused = second * from[place];
    float first = from[place] * 3.75f;
    never += unused;
    to[place] = first + second;
  }
})"));
}

TEST_P(CodeStructure, OtherWorkIsAnotherProgram) {
  const std::string base = of(kBase);
  ASSERT_NE(base, "");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kBase;
    text.replace(text.find(from), from.size(), to);
    return of(text);
  };
  EXPECT_NE(base, with("a + b", "a * b"));
  EXPECT_NE(base, with("a + b", "a - b"));
  EXPECT_NE(base, with("expf", "sinf"));
  EXPECT_NE(base, with("x[i] * 2.5f", "x[N - 1 - i]"));
  EXPECT_NE(base, with("a + b;", "fmaxf(a + b, 0.0f);"));
}

TEST_P(CodeStructure, WhatIsNoBinaryHasNone) {
  fs::create_directories(folder_);
  write_file_atomic(folder_ / "text", "no binary");
  EXPECT_EQ(code_structure(folder_ / "text"), "");
  EXPECT_THROW(code_structure(folder_ / "none"), Error);
  // Cut short, wherever that is: nothing, or what is left of it.
  ASSERT_NE(of(kBase), "not compiled");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string file = read_file(entry.path());
    if (!file.starts_with("\x7f"
                          "ELF"))
      continue;
    for (std::size_t size = 0; size < file.size(); size += 97) {
      write_file_atomic(folder_ / "text", file.substr(0, size));
      (void)code_structure(folder_ / "text");
    }
  }
}

std::vector<std::string> devices() {
  std::vector<std::string> all = {"cpu"};
#ifdef WARPSMITH_TEST_NVRTC
  all.insert(all.end(), {"sm_80", "sm_90a", "sm_120a"});
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, CodeStructure, ::testing::ValuesIn(devices()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace warpsmith::toolchain

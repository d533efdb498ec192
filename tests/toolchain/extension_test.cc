// Candidates of tier `extension`: what is refused before any compiler, how messages read, and real
// compilations where nvcc is.
#include "warpsmith/toolchain/extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "common/object_code.h"
#include "nvcc/log.h"
#include "nvcc/source.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHead = "#include <torch/extension.h>\n";
constexpr const char* kForward =
    "__global__ void k(const float* x, float* o, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) "
    "o[i] = x[i]; }\n"
    "torch::Tensor forward(torch::Tensor x) {\n"
    "  auto out = torch::empty_like(x);\n"
    "  const int n = static_cast<int>(x.numel());\n"
    "  k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);\n"
    "  return out;\n"
    "}\n";

Candidate candidate_of(std::vector<SourceFile> files, std::vector<std::string> options = {}) {
  Candidate c;
  c.task = "gelu";
  c.tier = Tier::kExtension;
  c.files = std::move(files);
  c.options = std::move(options);
  c.id = candidate_id(c);
  return c;
}
Candidate candidate_of(const std::string& source) { return candidate_of({{"kernel.cu", source}}); }

// ---- what is refused

struct Refused {
  const char* text;   // behind the first include, from line 2
  const char* words;  // of the message
};

TEST(ExtensionSource, WhatIsRefused) {
  const Refused rows[] = {
      {"#include \"/etc/passwd\"\n", "only CUDA's and C++'s own headers"},
      {"#include </etc/passwd>\n", "only CUDA's and C++'s own headers"},
      {"#include \"../other/file.h\"\n", "only CUDA's and C++'s own headers"},
      {"#include <sys/socket.h>\n", "only CUDA's and C++'s own headers"},
      {"#include <filesystem>\n", "only CUDA's and C++'s own headers"},
      {"#include \"missing.cuh\"\n", "only CUDA's and C++'s own headers"},
      {"#define FILE_NAME <vector>\n#include FILE_NAME\n", "#include wants <name>"},
      {"#include_next <vector>\n", "include_next"},
      {"#embed \"/etc/passwd\"\n", "#embed"},
      {"#line 7 \"/etc/passwd\"\n", "#line"},
      {"#if __has_include(\"/etc/passwd\")\n#endif\n", "__has_include"},
      {"#pragma GCC dependency \"/etc/passwd\"\n", "dependency"},
      {"import <vector>;\n", "`import`"},
      {"asm(\".incbin \\\"/etc/passwd\\\"\");\n", ".incbin"},
      {"const char* s = R\"(text)\";\n", "raw strings"},
      {"%:include \"/etc/passwd\"\n", "digraphs"},
  };
  for (const Refused& row : rows) {
    try {
      read_extension(candidate_of(std::string(kHead) + row.text + kForward));
      ADD_FAILURE() << row.text;
    } catch (const ExtensionProblem& p) {
      EXPECT_EQ(p.path, "kernel.cu");
      EXPECT_GE(p.problem.line, 2) << row.text;
      EXPECT_THAT(p.problem.message, HasSubstr(row.words)) << row.text;
    }
  }
}

TEST(ExtensionSource, NamesOfFiles) {
  const auto problem = [](const std::string& path) {
    try {
      read_extension(candidate_of({{path, std::string(kHead) + kForward}}));
    } catch (const ExtensionProblem& p) {
      return p.problem.message;
    }
    return std::string();
  };
  for (const char* path : {"kernel.cu", "a/b/main.cpp", "x-y_z.cc"}) EXPECT_EQ(problem(path), "") << path;
  for (const char* path :
       {"/etc/x.cu", "../x.cu", "a/../../x.cu", ".x.cu", "-o.cu", "a b.cu", "x.so", "x.o", "kernel", "",
        "warpsmith_headers/torch/extension.cu", "a//b.cu", "a/-b.cu", "@x.cu"})
    EXPECT_THAT(problem(path), HasSubstr("is no name of a source file")) << path;
  const std::string part(100, 'a');
  EXPECT_EQ(problem(part + "/" + part.substr(3) + ".cu"), "");
  for (const std::string& path : {part + ".cu", part + "b/x.cu", std::string(5000, 'x') + ".cu",
                                  part + "/" + part + "/" + part + "/" + part + "/x.cu"}) {
    EXPECT_THAT(problem(path), HasSubstr("is no name of a source file"));
    EXPECT_LT(problem(path).size(), 200u);
  }
}

TEST(ExtensionSource, AFileIsNoFolder) {
  try {
    read_extension(candidate_of(
        {{"kernel.cu", std::string(kHead) + kForward}, {"a.h/b.h", ""}, {"a.h.h", ""}, {"a.h", ""}}));
    ADD_FAILURE();
  } catch (const ExtensionProblem& p) {
    EXPECT_EQ(p.path, "a.h");
    EXPECT_EQ(p.problem.message, "a file cannot be the folder of another one");
  }
}

TEST(ExtensionSource, ForwardIsFoundOrNamed) {
  const ExtensionSources plain = read_extension(candidate_of(std::string(kHead) + kForward));
  EXPECT_THAT(plain.files[0].content, HasSubstr("WARPSMITH_EXPORT(forward)"));
  const std::string named =
      std::string(kHead) + "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", &f); }\n";
  EXPECT_THAT(read_extension(candidate_of(named)).files[0].content, Not(HasSubstr("WARPSMITH_EXPORT")));
  try {
    read_extension(candidate_of(std::string(kHead) + "torch::Tensor forward(torch::Tensor x);\n"));
    ADD_FAILURE();
  } catch (const ExtensionProblem& p) {
    EXPECT_THAT(p.problem.message, HasSubstr("no function `forward`"));
  }
  // It is exported where it is defined.
  const ExtensionSources two = read_extension(
      candidate_of({{"a.cu", "void launch() {}\n"}, {"b.cpp", std::string(kHead) + kForward}}));
  EXPECT_THAT(two.files[0].content, Not(HasSubstr("EXPORT")));
  EXPECT_THAT(two.files[1].content, HasSubstr("EXPORT"));
  EXPECT_EQ(two.units, (std::vector<std::string>{"a.cu", "b.cpp"}));
}

TEST(ExtensionSource, LibrariesThatItWants) {
  const auto wants = [](const std::string& more) {
    return read_extension(candidate_of(kHead + more + kForward)).libraries;
  };
  EXPECT_TRUE(wants("").empty());
  EXPECT_EQ(wants("#include <cublas_v2.h>\n"), (std::set<std::string>{"cublas"}));
  EXPECT_EQ(wants("#include <cublasLt.h>\n#include \"cudnn.h\"\n"),
            (std::set<std::string>{"cublasLt", "cudnn"}));
  EXPECT_EQ(wants("inline auto h() { return at::cuda::getCurrentCUDABlasHandle(); }\n"),
            (std::set<std::string>{"cublas"}));
}

// ---- messages

TEST(ExtensionLog, OfEveryProgram) {
  const std::vector<std::string> files = {"kernel.cu", "main.cpp"};
  const auto read = [&](const std::string& log) { return readable_nvcc_log(log, files, 4096); };
  EXPECT_EQ(read("kernel.cu(4): error: identifier \"oops\" is undefined\n    int i = oops; o[i] = "
                 "twice(x[i]) +\n            ^\n\n"
                 "1 error detected in the compilation of \"kernel.cu\".\n"),
            "kernel.cu:4:11: error: identifier \"oops\" is undefined\n");
  EXPECT_EQ(read("main.cpp: In function 'f':\nmain.cpp:2:49: error: 'y' was not declared in this scope\n"),
            "main.cpp:2:49: error: 'y' was not declared in this scope\n");
  EXPECT_EQ(read("kernel.cu:2:10: fatal error: nofile.h: No such file or directory\n"),
            "kernel.cu:2:10: error: nofile.h: No such file or directory\n");
  EXPECT_EQ(read("warpsmith_headers/warpsmith/tensors.h(927): error: static assertion failed with "
                 "\"forward() takes\"\n    static_assert(1);\n    ^\n"
                 "          detected during:\n"
                 "            instantiation of class \"A\" at line 941\n"
                 "            instantiation of \"void add()\" at line 5 of kernel.cu\n\n"),
            "kernel.cu:5:1: error: static assertion failed with \"forward() takes\"\n");
  EXPECT_EQ(read("ptxas /tmp/tmpxft_1.ptx, line 21; error   : Instruction 'wgmma.fence' not supported on "
                 ".target 'sm_80'\n"
                 "ptxas fatal   : Ptx assembly aborted due to errors\n"),
            "kernel.cu: error: Instruction 'wgmma.fence' not supported on .target 'sm_80'\n");
  EXPECT_EQ(read("/usr/bin/ld: /tmp/x.o: in function `forward(at::Tensor)':\nt.cpp:(.text+0x120): undefined "
                 "reference to `other(float)'\n"
                 "collect2: error: ld returned 1 exit status\n"),
            "kernel.cu: error: undefined reference to `other(float)'\n");
  EXPECT_EQ(read("kernel.cu(2): Error: Formal parameter space overflowed in function k\n"),
            "kernel.cu:2:1: error: Formal parameter space overflowed in function k\n");
  EXPECT_EQ(read("nvcc error   : something in /usr/local/x\n"), "kernel.cu: error: the compiler failed\n");
}

// ---- with nvcc

class ExtensionCompiler : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = extension_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
    options_.cache = fs::temp_directory_path() / ("warpsmith-extension-test-" + std::to_string(::getpid()));
    options_.timeout_s = 100;
    options_.unsandboxed = true;
    task_.id = "gelu";
  }
  void TearDown() override { fs::remove_all(options_.cache); }
  CompileResult compile(const Candidate& c, const std::string& target = "sm_90a") {
    return compile_extension(c, task_, *parse_gpu_target(target), options_);
  }
  CompileResult compile(const std::string& source) {
    return compile(candidate_of(std::string(kHead) + source));
  }

  CompileOptions options_;
  task::Task task_;
};

TEST_F(ExtensionCompiler, APlainKernelForEveryTargetAndFromTheCache) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const CompileResult made = compile(candidate_of(std::string(kHead) + kForward), target);
    ASSERT_EQ(made.verdict, Verdict::kOk) << made.log;
    EXPECT_FALSE(made.cached);
    EXPECT_EQ(made.binary.extension(), ".so");
    EXPECT_EQ(read_extension_facts(made.binary).target, target);
    EXPECT_TRUE(read_extension_facts(made.binary).libraries.empty());
    const CompileResult again = compile(candidate_of(std::string(kHead) + kForward), target);
    EXPECT_TRUE(again.cached);
    EXPECT_EQ(again.binary, made.binary);
    RecordProperty(target, std::to_string(made.seconds));
  }
}

constexpr const char* kKernels =
    "__global__ void shared(float* x) { __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; "
    "__syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; }\n"
    "__global__ void __launch_bounds__(1024, 2) spills(float* x) { float v[100];\n"
    "  for (int i = 0; i < 100; i++) v[i] = x[i * threadIdx.x];\n"
    "  for (int j = 0; j < 9; j++) for (int i = 0; i < 100; i++) v[i] = v[i] * v[(i + 7) % 100] + v[(i + 50) "
    "% "
    "100];\n"
    "  for (int i = 0; i < 100; i++) x[i * 77 + threadIdx.x] = v[i]; }\n";
constexpr const char* kMatrix =
    "#include <mma.h>\nusing namespace nvcuda;\n"
    "__global__ void matrix(const half* a, float* c) {\n"
    "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> l;\n"
    "  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> r;\n"
    "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> s;\n"
    "  wmma::fill_fragment(s, 0.f);\n  wmma::load_matrix_sync(l, a, 16);\n"
    "  wmma::load_matrix_sync(r, a, 16);\n  wmma::mma_sync(s, l, r, s);\n"
    "  wmma::store_matrix_sync(c, s, 16, wmma::mem_row_major);\n}\n";

TEST_F(ExtensionCompiler, WhatTheMachineCodeTells) {
  const auto code_of = [&](const std::vector<SourceFile>& files, const std::string& target) {
    const CompileResult made = compile(candidate_of(files), target);
    EXPECT_EQ(made.verdict, Verdict::kOk) << made.log;
    return read_extension_facts(made.binary).code;
  };
  const CodeFacts plain = code_of({{"kernel.cu", std::string(kHead) + kForward}}, "sm_90a");
  EXPECT_EQ(plain.tensor_cores, false);
  EXPECT_GT(plain.registers, 4);
  EXPECT_LT(plain.registers, 64);
  EXPECT_EQ(plain.shared_bytes, 0);
  EXPECT_EQ(plain.spill_bytes, 0);
  for (const char* target : {"sm_80", "sm_90a", "sm_100a"}) {
    const CodeFacts several =
        code_of({{"kernel.cu", std::string(kHead) + kKernels + kForward}, {"b.cu", kMatrix}}, target);
    EXPECT_EQ(several.tensor_cores, true) << target;
    EXPECT_EQ(several.registers, 32) << "bounded by __launch_bounds__";
    EXPECT_EQ(several.shared_bytes, 256);
    EXPECT_GT(several.spill_bytes, 100);
  }
  const CompileResult none = compile("torch::Tensor forward(torch::Tensor x) { return x.clone(); }\n");
  EXPECT_EQ(to_json(read_extension_facts(none.binary).code).dump(), "{}") << "no kernel of its own";
}

TEST_F(ExtensionCompiler, ItsObjectsAreReadWithinTheirBounds) {
  const CompileResult made =
      compile(candidate_of({{"kernel.cu", std::string(kHead) + kKernels + kForward}, {"b.cu", kMatrix}}));
  ASSERT_EQ(made.verdict, Verdict::kOk) << made.log;
  const std::string object = read_file(made.binary);
  const auto read = [](const std::string& bytes) {
    ObjectCode code;
    add_object(bytes, *parse_gpu_target("sm_90a"), &code);
    return facts_of(code, "");
  };
  EXPECT_EQ(read(object).registers, 32);
  for (std::size_t size = 0; size < object.size(); size += object.size() / 50)
    EXPECT_EQ(read(object.substr(0, size)).registers, std::nullopt);
  const std::size_t begin = object.find(std::string("\x50\xed\x55\xba\x01\x00", 6));
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < begin + 36000; at += 101) {
    std::string flipped = object;
    flipped[at] = static_cast<char>(~flipped[at]);
    read(flipped);
  }
}

// Of modules and distributions: `nvcc` in PATH is a script that lies in a folder of links.
class ExtensionCompilerByAScript : public ExtensionCompiler {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("warpsmith-nvcc-script-" + std::to_string(::getpid()));
    const char* path = std::getenv("PATH");
    fs::path real = "/usr/local/cuda/bin/nvcc";
    for (const std::string& place : split(path != nullptr ? path : "", ':'))
      if (fs::exists(fs::path(place) / "nvcc")) {
        real = fs::path(place) / "nvcc";
        break;
      }
    if (!fs::exists(real)) GTEST_SKIP() << "nvcc is not here";
    make_folders(folder_ / "bin");
    fs::create_directory_symlink("/usr/lib", folder_ / "lib64");
    write_file_atomic(folder_ / "bin/nvcc", "#!/bin/sh\nexec " + real.string() + " \"$@\"\n");
    fs::permissions(folder_ / "bin/nvcc", fs::perms::owner_all);
    ::setenv("WARPSMITH_NVCC", (folder_ / "bin/nvcc").c_str(), 1);
    ExtensionCompiler::SetUp();
  }
  void TearDown() override {
    ExtensionCompiler::TearDown();
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(ExtensionCompilerByAScript, TheToolkitIsFound) {
  const CompileResult made = compile(candidate_of(std::string(kHead) + kForward));
  EXPECT_EQ(made.verdict, Verdict::kOk) << made.log;
}

TEST_F(ExtensionCompiler, InputsWithStridesAreUnsupported) {
  task_.inputs.emplace_back().name = "x";
  task_.inputs.back().shape = task_.inputs.back().strides = {task::Expression::parse("2")};
  const CompileResult made = compile(kForward);
  EXPECT_EQ(made.verdict, Verdict::kUnsupported);
  EXPECT_THAT(made.log, HasSubstr("input `x` has strides"));
}

TEST_F(ExtensionCompiler, MistakesWithTheCandidatesOwnPlaces) {
  const CompileResult r = compile(
      "__global__ void k(float* o) { o[0] = oops; }\n"
      "torch::Tensor forward(torch::Tensor x) {\n"
      "  std::string s = 3.0;\n"
      "  return x.frobnicate();\n"
      "}\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_THAT(r.log, HasSubstr("kernel.cu:2:38: error: identifier \"oops\" is undefined"));
  EXPECT_THAT(r.log, HasSubstr("kernel.cu:4:19: error: "));
  EXPECT_THAT(r.log, HasSubstr("kernel.cu:5:12: error: class \"at::Tensor\" has no member \"frobnicate\""));
  EXPECT_THAT(r.log, Not(HasSubstr("/tmp")));
  EXPECT_THAT(r.log, Not(HasSubstr("warpsmith_headers")));
}

TEST_F(ExtensionCompiler, SeveralFilesOfBothCompilers) {
  const std::vector<SourceFile> files = {
      {"kernels/scale.cu",
       "#include \"scale.cuh\"\n__global__ void k(const float* x, float* o, int n, float s) { int i = "
       "blockIdx.x * 256 + threadIdx.x; if "
       "(i < n) o[i] = x[i] * s; }\n"
       "void launch(const float* x, float* o, int n, float s, cudaStream_t stream) { k<<<(n + 255) / 256, "
       "256, 0, stream>>>(x, o, n, s); }\n"},
      {"kernels/scale.cuh",
       "#pragma once\n#include <cuda_runtime.h>\nvoid launch(const float*, float*, int, float, "
       "cudaStream_t);\n"},
      {"main.cpp", std::string(kHead) + "#include <ATen/cuda/CUDAContext.h>\n#include "
                                        "<c10/cuda/CUDAGuard.h>\n#include \"kernels/scale.cuh\"\n"
                                        "std::vector<at::Tensor> scaled(const torch::Tensor& x, double s) {\n"
                                        "  const at::cuda::OptionalCUDAGuard guard(device_of(x));\n"
                                        "  auto o = torch::empty(x.sizes(), x.options());\n"
                                        "  launch(x.data_ptr<float>(), o.data_ptr<float>(), x.numel(), s, "
                                        "at::cuda::getCurrentCUDAStream());\n"
                                        "  return {o.view({-1, 2}).reshape_as(x)};\n}\n"
                                        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"forward\", "
                                        "&scaled, \"text\", py::arg(\"x\"), py::arg(\"s\") = 1.0); }\n"}};
  const CompileResult r = compile(candidate_of(files));
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
  std::vector<SourceFile> broken = files;
  broken[2].content += "int x = y;\n";
  const CompileResult bad = compile(candidate_of(broken));
  EXPECT_EQ(bad.verdict, Verdict::kCompileError);
  EXPECT_THAT(bad.log, HasSubstr("main.cpp:12:9: error: "));
  broken = files;
  broken[1].content += "#error \"told\"\n";
  EXPECT_THAT(compile(candidate_of(broken)).log, HasSubstr("kernels/scale.cuh:4:2: error: "));
}

TEST_F(ExtensionCompiler, TheUsualPartsOfTorch) {
  const CompileResult r = compile(
      "#include <ATen/ATen.h>\n#include <cuda_fp16.h>\n"
      "template <typename T> __global__ void k(const T* x, T* o, int64_t n) { int64_t i = threadIdx.x; if (i "
      "< n) { T v = x[i]; v += x[i]; o[i] = "
      "static_cast<T>(static_cast<float>(v) * 2.f); } }\n"
      "std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x, const at::Tensor& w, "
      "c10::optional<torch::Tensor> b, int64_t n, "
      "double eps, bool flag) {\n"
      "  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), \"x \", x.sizes(), \" \", 3, x.scalar_type(), eps);\n"
      "  TORCH_CHECK(x.dtype() == torch::kFloat32 || x.scalar_type() == at::kHalf);\n"
      "  auto options = "
      "torch::TensorOptions().dtype(torch::kFloat32).device(x.device()).requires_grad(false);\n"
      "  auto a = torch::empty({x.size(0), w.size(-1)}, options), z = torch::zeros_like(x), f = "
      "torch::full({4, 2}, 2.5, x.options());\n"
      "  auto v = a.view({-1}).unsqueeze(0).squeeze(0).flatten().contiguous();\n"
      "  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), \"k\", ([&] { k<scalar_t><<<1, "
      "256>>>(x.data_ptr<scalar_t>(), "
      "z.data_ptr<scalar_t>(), x.numel()); }));\n"
      "  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "
      "\"k\", [&] { k<scalar_t><<<1, 256, 0, "
      "at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<scalar_t>(), z.data_ptr<scalar_t>(), x.numel()); });\n"
      "  auto h = reinterpret_cast<const __half*>(x.data_ptr()); (void)h; (void)f; (void)b; (void)flag; "
      "(void)n;\n"
      "  C10_CUDA_KERNEL_LAUNCH_CHECK();\n  C10_CUDA_CHECK(cudaGetLastError());\n"
      "  return {v, z.clone()};\n}\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
}

// As programs for older versions of torch are written.
TEST_F(ExtensionCompiler, TheOldPartsOfTorch) {
  const CompileResult r = compile(
      "#include <torch/types.h>\n#include <torch/extension.h>\n"
      "template <typename T> __global__ void k(const T* x, T* o) { o[0] = x[0] > -FLT_MAX ? T(1) : T(0); }\n"
      "torch::Tensor forward(torch::Tensor x) {\n"
      "  TORCH_CHECK(x.type().is_cuda(), \"x must be a CUDA tensor\");\n"
      "  auto o = torch::zeros({4}, torch::dtype(torch::kFloat32).device(torch::kCUDA));\n"
      "  auto p = torch::empty({std::max(1, 4)}, torch::device(torch::kCUDA).dtype(x.dtype()));\n"
      "  AT_DISPATCH_FLOATING_TYPES(x.type(), \"k\", ([&] { k<scalar_t><<<1, 1>>>(x.data<scalar_t>(), "
      "o.data<scalar_t>()); }));\n"
      "  return p;\n}\n");
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
}

TEST_F(ExtensionCompiler, CublasIsLinked) {
  const CompileResult r = compile(
      "#include <cublas_v2.h>\n"
      "torch::Tensor forward(torch::Tensor a, torch::Tensor b) {\n"
      "  auto o = torch::empty({a.size(0), b.size(1)}, a.options());\n  const float one = 1, zero = 0;\n"
      "  cublasHandle_t h = at::cuda::getCurrentCUDABlasHandle();\n"
      "  TORCH_CUDABLAS_CHECK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, b.size(1), a.size(0), a.size(1), "
      "&one, b.data_ptr<float>(), b.size(1), "
      "a.data_ptr<float>(), a.size(1), &zero, o.data_ptr<float>(), b.size(1)));\n  return o;\n}\n");
  if (r.verdict == Verdict::kUnsupported) GTEST_SKIP() << r.log;
  ASSERT_EQ(r.verdict, Verdict::kOk) << r.log;
  EXPECT_EQ(read_extension_facts(r.binary).libraries, (std::vector<std::string>{"cublas"}));
}

TEST_F(ExtensionCompiler, CudnnIsLinked) {
  const CompileResult r =
      compile(std::string("#include <cudnn.h>\ninline size_t v() { cudnnHandle_t h; cudnnCreate(&h); return "
                          "cudnnGetVersion(); }\n") +
              "size_t kept = 0;\ntorch::Tensor forward(torch::Tensor x) { kept = v(); return x.clone(); }\n");
  if (r.verdict == Verdict::kUnsupported) GTEST_SKIP() << r.log;
  EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
}

TEST_F(ExtensionCompiler, WhatIsDeclaredAndNotDefined) {
  const CompileResult r =
      compile("void other(float);\ntorch::Tensor forward(torch::Tensor x) { other(1); return x; }\n");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_EQ(r.log, "kernel.cu: error: undefined reference to `other(float)'\n");
}

TEST_F(ExtensionCompiler, WhatTheTargetLacksIsNoMistake) {
  const std::string source = std::string(kHead) +
                             "__global__ void w() { asm volatile(\"wgmma.fence.sync.aligned;\"); }\n" +
                             kForward;
  EXPECT_EQ(compile(candidate_of(source), "sm_80").verdict, Verdict::kUnsupported);
  EXPECT_EQ(compile(candidate_of(source), "sm_90a").verdict, Verdict::kOk);
}

TEST_F(ExtensionCompiler, ACompilerThatTakesTooLongIsEnded) {
  options_.timeout_s = 0.2;  // less than any takes
  const CompileResult r = compile(kForward);
  EXPECT_EQ(r.verdict, Verdict::kCompileTimeout) << r.log;
  EXPECT_THAT(r.log, HasSubstr("kernel.cu: the compiler took over 0 s"));
}

TEST_F(ExtensionCompiler, OptionsAndOtherTiers) {
  EXPECT_EQ(compile(candidate_of({{"k.cu", std::string(kHead) + "static_assert(N == 3);\n" + kForward}},
                                 {"-DN=3", "--use_fast_math", "-lineinfo", "-maxrregcount=64"}))
                .log,
            "");
  const CompileResult bad =
      compile(candidate_of({{"k.cu", std::string(kHead) + kForward}}, {"-Xcompiler=-fplugin=x"}));
  EXPECT_EQ(bad.verdict, Verdict::kCompileError);
  EXPECT_THAT(bad.log, HasSubstr("k.cu:1:1: error: unknown compile option"));
  EXPECT_EQ(compile(make_plan_candidate("gelu", "", {})).verdict, Verdict::kUnsupported);
  EXPECT_THROW(compile(candidate_of(std::string(kHead) + kForward), "sm_52"), Error);
}

TEST_F(ExtensionCompiler, ADamagedEntryIsMadeAgain) {
  const Candidate c = candidate_of(std::string(kHead) + kForward);
  const CompileResult made = compile(c);
  std::ofstream(made.binary, std::ios::app) << "x";
  EXPECT_FALSE(compile(c).cached);
  EXPECT_TRUE(compile(c).cached);
}

TEST(ExtensionToolchain, WithoutNvccItSaysSo) {
  if (extension_toolchain_lacks().empty()) GTEST_SKIP() << "nvcc is here";
  CompileOptions options;
  options.cache = fs::temp_directory_path();
  const CompileResult r = compile_extension(candidate_of(std::string(kHead) + kForward), task::Task(),
                                            *parse_gpu_target("sm_90a"), options);
  EXPECT_EQ(r.verdict, Verdict::kUnsupported);
  EXPECT_THAT(r.log, HasSubstr("nvcc"));
}

}  // namespace
}  // namespace warpsmith::toolchain

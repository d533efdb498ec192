#include "warpsmith/method/source_text.h"

#include <gtest/gtest.h>

namespace warpsmith::method {
namespace {

constexpr const char* kRelu = R"(// plan: let B = 256
// plan: launch k<<<cdiv(N, B), B>>>(x, out, N)
// one thread an element
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;  // element
  if (i < N) out[i] = fmaxf(x[i], 1.5e-3f);
}
)";

TEST(Tokenise, JoinGivesTheSourceBack) {
  for (const std::string& source :
       {std::string(kRelu), std::string(""), std::string("a /* open"), std::string("\"open\nnext"),
        std::string("// plan:"), std::string("for s in 0..clog2(N)"),
        std::string("x<-y->z::w 0x1p-3f 1.f .5 'c' \\ \x80")})
    EXPECT_EQ(join(tokenise(source)), source);
}

TEST(Tokenise, NumbersAndPlanRanges) {
  std::vector<std::string> numbers;
  for (const Token& t : tokenise("1.5e-3f 0xffu .5 1.f 7-2\n// plan: for s in 0..12\n"))
    if (t.kind == TokenKind::kNumber) numbers.push_back(t.text);
  EXPECT_EQ(numbers, (std::vector<std::string>{"1.5e-3f", "0xffu", ".5", "1.f", "7", "2", "0", "12"}));
}

TEST(DeclaredNames, KernelsParametersLocalsAndLists) {
  const DeclaredNames names = declared_names(tokenise(R"(// plan: let T = 4
// plan: temp part float32[N]
// plan: for s in 0..3
__device__ float add(float a, float b) { return a + b; }
template <int TILE> __global__ void k(const float* __restrict__ x, float4* y, int N) {
  __shared__ float buf[256];
  float u = add(x[0], 2), v, w[3] = {1, 2};
  for (int i = 0, n = N; i < n; i++) y[i].x = u * v;
}
)"));
  EXPECT_EQ(names.code, (std::set<std::string>{"add", "a", "b", "TILE", "k", "x", "y", "N", "buf", "u", "v",
                                               "w", "i", "n"}));
  EXPECT_EQ(names.plan, (std::set<std::string>{"T", "part", "s"}));
}

TEST(DeclaredNames, MembersOfAStructAreLeftAlone) {
  const DeclaredNames names =
      declared_names(tokenise("struct P { float m; float q; }; void f(P a) { a.m = 1; float z = 2; }"));
  EXPECT_FALSE(names.code.contains("m"));
  EXPECT_TRUE(names.code.contains("z"));
}

TEST(LayoutNormalForm, IgnoresCommentsAndSpaceOnly) {
  const std::string same = R"(// plan: let   B = 256
//   plan: launch k<<<cdiv(N,B), B>>>(x,out,N)
extern "C" __global__ void k(const float *x, float *out, int N)
{ int i = blockIdx.x*256 + threadIdx.x; if (i<N) out[i] = fmaxf(x[i], 1.5e-3f); }
)";
  EXPECT_EQ(layout_normal_form(same), layout_normal_form(kRelu));
  std::string other = kRelu;
  other.replace(other.find("let B = 256"), 11, "let B = 128");
  EXPECT_NE(layout_normal_form(other), layout_normal_form(kRelu));
}

struct FormCase {
  const char* why;
  const char* a;
  const char* b;
  bool equal;
};

TEST(NormalForm, TextCases) {
  const FormCase cases[] = {
      {"locals renamed", "void k(int n) { int a = n; }", "void k(int m) { int b = m; }", true},
      {"constants changed", "void k() { int a = 128; }", "void k() { int a = 256; }", true},
      {"kernel renamed, plan too", "// plan: launch k<<<1, 2>>>()\nvoid k() {}",
       "// plan: launch f<<<1, 2>>>()\nvoid f() {}", true},
      {"another intrinsic", "void k(float a) { a = fmaxf(a, 0); }", "void k(float a) { a = fminf(a, 0); }",
       false},
      {"another operator", "void k(int a, int b) { a = a + b; }", "void k(int a, int b) { a = a * b; }",
       false},
      {"another variable used", "void k(int a, int b) { a = a; }", "void k(int a, int b) { a = b; }", false},
      {"another axis", "void k() { int a = threadIdx.x; }", "void k() { int a = threadIdx.y; }", false},
      {"equal and different constants", "void k() { int a = 1 + 1; }", "void k() { int a = 1 + 2; }", false},
      {"a parameter renamed in one of two kernels", "void a(int n) { n++; } void b(int n) { n--; }",
       "void a(int n) { n++; } void b(int m) { m--; }", true},
      {"another order of the plan's arguments", "// plan: launch k<<<1, 2>>>(x, y)\nvoid k(int a, int b) {}",
       "// plan: launch k<<<1, 2>>>(x, x)\nvoid k(int a, int b) {}", false},
      {"own helper renamed", "float f(float a) { return a; } void k(float b) { f(b); }",
       "float g(float a) { return a; } void k(float b) { g(b); }", true},
  };
  for (const FormCase& c : cases)
    EXPECT_EQ(normal_form(c.a) == normal_form(c.b), c.equal) << c.why << "\n" << normal_form(c.a);
}

TEST(PythonForm, TextCases) {
  const FormCase cases[] = {
      {"a variable renamed", "def f(x):\n  y = x + 1\n  return y\n", "def f(x):\n  z = x + 1\n  return z\n",
       true},
      {"a parameter and a helper renamed", "def g(a):\n  return a\ndef forward(x):\n  return g(x)\n",
       "def h(b):\n  return b\ndef forward(y):\n  return h(y)\n", true},
      {"another constant", "def f(x):\n  return x * 2\n", "def f(x):\n  return x * 3\n", true},
      {"comments, empty lines, a docstring, wider indents", "def f(x):\n  return x\n",
       "# what\ndef f(x):\n\n    \"\"\"what\"\"\"\n    return x  # why\n", true},
      {"a line that is broken in brackets", "y = f(1, 2)\n", "y = f(1,\n      2)\n", true},
      {"a member of self renamed", "class M:\n  def f(self):\n    self.a = 1\n    return self.a\n",
       "class N:\n  def f(self):\n    self.b = 1\n    return self.b\n", true},
      {"another operator of torch", "import torch\ny = torch.relu(x)\n", "import torch\ny = torch.gelu(x)\n",
       false},
      {"another argument's name", "y = torch.sum(x, dim=1)\n", "y = torch.sum(x, out=1)\n", false},
      {"another variable used", "def f(a, b):\n  return a\n", "def f(a, b):\n  return b\n", false},
      {"another depth", "for i in r:\n  x = i\ny = x\n", "for i in r:\n  x = i\n  y = x\n", false},
      {"another text", "x = load(name='a')\n", "x = load(name='b')\n", false},
      {"CUDA within, names renamed", "s = \"\"\"__global__ void k(int n) { int a = n; }\"\"\"\n",
       "s = r\"\"\"__global__ void k(int m) { int b = m; }\"\"\"\n", true},
      {"CUDA within, another intrinsic", "s = \"\"\"__global__ void k(float a) { a = fmaxf(a, 0); }\"\"\"\n",
       "s = \"\"\"__global__ void k(float a) { a = fminf(a, 0); }\"\"\"\n", false},
  };
  for (const FormCase& c : cases)
    EXPECT_EQ(normal_form(c.a, Language::kPython) == normal_form(c.b, Language::kPython), c.equal)
        << c.why << "\n"
        << normal_form(c.a, Language::kPython) << "\n"
        << normal_form(c.b, Language::kPython);
}

TEST(PythonForm, LayoutKeepsNames) {
  const std::string program = "def f(x):\n  return x + 1\n";
  EXPECT_EQ(layout_normal_form(program, Language::kPython),
            layout_normal_form("def f( x ):  # what\n\n    return x+1\n", Language::kPython));
  EXPECT_NE(layout_normal_form(program, Language::kPython),
            layout_normal_form("def f(y):\n  return y + 1\n", Language::kPython));
  EXPECT_EQ(language_of("a/model.py"), Language::kPython);
  EXPECT_EQ(language_of("kernel.cu"), Language::kCuda);
}

// Whatever the text, it has a form.
TEST(PythonForm, NeverFails) {
  for (const char* text : {"", "\"", "\"\"\"", "\"\"\"x", "'", "x = \\", "(((", ")))", "\t\tx", "r'", "0.e+",
                           "#", "self.", ".", "\"\\"})
    EXPECT_NO_THROW(normal_form(text, Language::kPython)) << text;
}

}  // namespace
}  // namespace warpsmith::method

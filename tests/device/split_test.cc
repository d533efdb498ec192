// Kernels whose threads wait give the same as loops over threads (src/toolchain/split.h) as on fibers: what
// is a thread's own stays its own.
#include <gtest/gtest.h>

#include <numeric>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct Row {
  const char* name;
  const char* before;  // what stands in front of the kernel
  const char* body;    // of k(const int* in, int* out, int n); one block, `in` holds 0…255, `n` is 256
  std::function<int(int)> expected;
};

// `volatile` in its body keeps a kernel on fibers.
Outcome run(const Row& row, bool fibers) {
  Case c;
  c.source = std::string("// plan: fill out 0\n// plan: launch k<<<1, 256>>>(in, out, 256)\n") + row.before +
             "\n__global__ void k(const int* in, int* out, int n) {" +
             (fibers ? " volatile int on_fibers = 0; (void)on_fibers; " : " ") +
             "__shared__ int s[256]; int t = threadIdx.x; s[t] = in[t]; " + row.body + " }\n";
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 0);
  c.inputs["in"] = tensor(in);
  c.outputs["out"] = tensor(std::vector<int>(256));
  return run_case(c);
}

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    for (const bool fibers : {true, false}) {
      SCOPED_TRACE(std::string(row.name) + (fibers ? ", on fibers" : ""));
      const Outcome outcome = run(row, fibers);
      EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
      if (outcome.verdict != Verdict::kOk) continue;
      const std::vector<int> out = values<int>(outcome.outputs.at("out"));
      for (int i = 0; i < 256; ++i)
        if (out[static_cast<std::size_t>(i)] != row.expected(i)) {
          ADD_FAILURE() << "element " << i << " is " << out[static_cast<std::size_t>(i)] << " and not "
                        << row.expected(i);
          break;
        }
    }
}

int same(int i) { return i; }
int twice(int i) { return 2 * i; }
int other_end(int i) { return 255 - i; }

TEST(Split, AVariableThatIsChangedOutOfSight) {
  check({
      {"by a reference parameter", "__device__ void add(int& a, int v) { a += v; }",
       "int a = 0; __syncthreads(); add(a, t); __syncthreads(); out[t] = a;", same},
      {"by a reference parameter behind others",
       "template <class A, class B> __device__ void add(A v, B w, int& a) { a += v * w; }",
       "int a = 0; __syncthreads(); add<int, int>(t, 1, a); __syncthreads(); out[t] = a;", same},
      {"by a parameter whose type hides the reference",
       "typedef int& ref;\n__device__ void add(ref a, int v) { a += v; }",
       "int a = 0; __syncthreads(); add(a, t); __syncthreads(); out[t] = a;", same},
      {"by a parameter pack",
       "template <class... T> __device__ void clear(T&... a) { ((a += threadIdx.x), ...); }",
       "int a = 0, b = 0; __syncthreads(); clear(a, b); __syncthreads(); out[t] = a + b;", twice},
      {"by a member", "", "int2 a = {0, 0}; __syncthreads(); a.x = t; __syncthreads(); out[t] = a.x;", same},
      {"by a method", "struct Sum { int v; __device__ void add(int w) { v += w; } };",
       "Sum a = {0}; __syncthreads(); a.add(t); __syncthreads(); out[t] = a.v;", same},
      {"by an operator", "__device__ void operator+=(int2& a, int v) { a.x += v; }",
       "int2 a = {0, 0}; __syncthreads(); a += t; __syncthreads(); out[t] = a.x;", same},
      {"by an operator that looks harmless", "__device__ void operator<<(int2& a, int v) { a.x += v; }",
       "int2 a = {0, 0}; __syncthreads(); a << t; __syncthreads(); out[t] = a.x;", same},
      {"through a reference", "",
       "int a = 0; __syncthreads(); { int& r = a; r = t; } __syncthreads(); out[t] = a;", same},
      {"through a reference beside others", "",
       "int a = 0; __syncthreads(); { int b = 1, &r = a; r = t * b; } __syncthreads(); out[t] = a;", same},
      {"through auto& and a condition", "",
       "int a = 0, b = 0; __syncthreads(); { auto& r = t % 2 ? a : b; r = t; } __syncthreads(); out[t] = a + "
       "b;",
       same},
      {"one end of a condition", "",
       "int a = 0, b = 0; __syncthreads(); (t % 2 ? a : b) = t; __syncthreads(); out[t] = a + b;", same},
      {"in parentheses", "", "int a = 0; __syncthreads(); (a) = t; __syncthreads(); out[t] = a;", same},
      {"behind a comma", "", "int a = 0; __syncthreads(); (t, a) = t; __syncthreads(); out[t] = a;", same},
      {"by a cast to a reference", "",
       "int a = 0; __syncthreads(); (unsigned&)a = t; __syncthreads(); out[t] = a;", same},
      {"by a named cast to a reference", "",
       "int a = 0; __syncthreads(); static_cast<int&>(a) = t; __syncthreads(); out[t] = a;", same},
      {"by its address after a cast", "",
       "int a = 0; __syncthreads(); *(unsigned*)&a = t; __syncthreads(); out[t] = a;", same},
      {"by its address as an argument", "__device__ void set(int* a, int v) { *a = v; }",
       "int a = 0; __syncthreads(); set(&a, t); __syncthreads(); out[t] = a;", same},
      {"by a functor", "struct Set { __device__ void operator()(int& a, int v) const { a = v; } };",
       "int a = 0; __syncthreads(); Set()(a, t); __syncthreads(); out[t] = a;", same},
      {"by a functor that has a name",
       "struct Set { __device__ void operator()(int& a, int v) const { a = v; } };",
       "Set set = {}; int a = 0; __syncthreads(); set(a, t); __syncthreads(); out[t] = a;", same},
      {"by a struct that holds a reference", "struct Ref { int& r; __device__ void set(int v) { r = v; } };",
       "int a = 0; __syncthreads(); { Ref r = {a}; r.set(t); } __syncthreads(); out[t] = a;", same},
      {"by a lambda", "",
       "int a = 0; __syncthreads(); { auto f = [&] { a = t; }; f(); } __syncthreads(); out[t] = a;", same},
      {"in a macro", "#define SET(a, v) a = v",
       "int a = 0; __syncthreads(); SET(a, t); __syncthreads(); out[t] = a;", same},
      {"under a macro's name", "#define A a",
       "int a = 0; __syncthreads(); A = t; __syncthreads(); out[t] = a;", same},
      {"a parameter by reference", "__device__ void add(int& a, int v) { a += v; }",
       "add(n, t); __syncthreads(); out[t] = n - 256;", same},
      {"a parameter in a structured binding", "",
       "int2 a = {0, 0}; __syncthreads(); { auto& [b, c] = a; b = t; c = t; } __syncthreads(); out[t] = a.x "
       "+ a.y;",
       twice},
  });
}

TEST(Split, NamesThatMeanSeveralThings) {
  check({
      {"a counter hidden by another in its loop", "",
       "int a = 0; __syncthreads(); for (int j = 0; j < 2; ++j) { s[t] += 1; __syncthreads(); { int j = t; "
       "if (j == 3) "
       "a += 1; __syncthreads(); } } out[t] = s[t] - 2 + 0 * a;",
       same},
      {"a counter, and a variable of its name behind the loop", "",
       "for (int j = 0; j < 2; ++j) { s[t] += 1; __syncthreads(); } int j = t; __syncthreads(); out[t] = j;",
       same},
      {"a variable, and a counter of its name", "",
       "int j = t; __syncthreads(); for (int j = 0; j < 2; ++j) { s[t] += j; __syncthreads(); } out[t] = j + "
       "s[t] - 1;",
       twice},
      {"a variable without a value of a counter's name", "",
       "for (int j = 0; j < 2; ++j) { __syncthreads(); { int j; j = t; __syncthreads(); out[t] = j; } }",
       same},
      {"a variable of a parameter's name", "", "__syncthreads(); { int n = t; __syncthreads(); out[t] = n; }",
       same},
      {"shared memory of a variable's name", "",
       "int a = t; __syncthreads(); { __shared__ int a[256]; a[255 - t] = t; __syncthreads(); out[t] = a[t]; "
       "} "
       "__syncthreads(); s[t] = a;",
       other_end},
      {"a uniform variable of a variable's name", "",
       "int a = t; __syncthreads(); { int a = n; __syncthreads(); s[t] = a; } __syncthreads(); out[t] = a + "
       "s[t] - "
       "256;",
       same},
      {"a constant of the file, then a variable of its name", "__device__ const int a = 7;",
       "int b = a; int a = t; __syncthreads(); out[t] = a + b - 7;", same},
      {"a variable in the head of an `if`", "",
       "if (int a = t; a >= 0) s[t] = a + 1; __syncthreads(); int a = t; __syncthreads(); out[t] = a + s[t] "
       "- t - 1;",
       same},
      {"decltype", "",
       "int a = t; __syncthreads(); decltype(a) b = a; b += 1; __syncthreads(); out[t] = a + 0 * b;", same},
      {"an alias of who I am", "#define WHO threadIdx",
       "__syncthreads(); if (WHO.x < 32) { int v = __shfl_xor_sync(~0u, t, 0); s[t] = v; } __syncthreads(); "
       "out[t] = "
       "s[t];",
       same},
  });
}

TEST(Split, AddressesThatOutliveABarrier) {
  check({
      {"a pointer", "", "int a = t; int* p = &a; __syncthreads(); out[t] = *p;", same},
      {"a pointer by a cast", "", "int a = t; unsigned* p = (unsigned*)&a; __syncthreads(); out[t] = *p;",
       same},
      {"an array", "", "int a[2]; a[0] = t; a[1] = t; int* p = a; __syncthreads(); out[t] = p[0] + p[1];",
       twice},
      {"a row of an array", "", "int a[2][2]; a[1][0] = t; int* p = a[1]; __syncthreads(); out[t] = p[0];",
       same},
      {"an element", "", "int a[2]; a[1] = t; int* p = &a[1]; __syncthreads(); out[t] = *p;", same},
      {"an aligned array", "", "alignas(16) int a[4]; a[0] = t; int* p = a; __syncthreads(); out[t] = *p;",
       same},
      {"an array in a struct", "struct Four { int e[4]; };",
       "Four a; a.e[1] = t; int* p = a.e + 1; __syncthreads(); out[t] = *p;", same},
      {"from a function by reference",
       "__device__ const int* less(const int& a, const int& b) { return a < b ? &a : &b; }",
       "int a = t, b = 255 - t; const int* p = less(a, b); __syncthreads(); out[t] = *p;",
       [](int i) { return std::min(i, 255 - i); }},
      {"from a method", "struct One { int v; __device__ int* at() { return &v; } };",
       "One a; a.v = t; int* p = a.at(); __syncthreads(); out[t] = *p;", same},
      {"through a reference", "", "int a = t; int& r = a; int* p = &r; __syncthreads(); out[t] = *p;", same},
      {"a reference", "", "int a = t; int& r = a; __syncthreads(); r += t; out[t] = a;", twice},
      {"in a struct", "struct View { int* p; };",
       "int a[2]; a[0] = t; View v = {a}; __syncthreads(); out[t] = v.p[0];", same},
      {"in a loop", "",
       "int* p = nullptr; int b = 0; for (int j = 0; j < 3; ++j) { int a = t; p = &a; __syncthreads(); b += "
       "*p; } out[t] "
       "= b;",
       [](int i) { return 3 * i; }},
  });
}

TEST(Split, OtherOrdersOfThings) {
  check({
      {"a struct begins anew in each round", "struct Sum { int v = 1; };",
       "int b = 0; for (int j = 0; j < 3; ++j) { Sum a; a.v += t; __syncthreads(); b += a.v; "
       "__syncthreads(); } out[t] "
       "= b - 3;",
       [](int i) { return 3 * i; }},
      {"an array of structs does, too", "struct Sum { int v = 1; };",
       "int b = 0; for (int j = 0; j < 3; ++j) { Sum a[2]; a[1].v += t; __syncthreads(); b += a[1].v; "
       "__syncthreads(); "
       "} out[t] = b - 3;",
       [](int i) { return 3 * i; }},
      {"a value before a comma goes into the shuffle behind it", "",
       "int a = 0, b = 0; __syncthreads(); a = t, b = __shfl_sync(~0u, a, 3); out[t] = b;",
       [](int i) { return i / 32 * 32 + 3; }},
      {"two shuffles that ask nothing of each other", "",
       "int a = t, b = t; a += __shfl_xor_sync(~0u, a, 1), b -= __shfl_xor_sync(~0u, b, 1); out[t] = a + b;",
       twice},
      {"a division that no thread reaches", "",
       "int d = 0; if (n == 256) { out[t] = t; return; } int q = n / (n - 256); __syncthreads(); out[t] = q "
       "+ d;",
       same},
      {"a struct whose end does something", "struct Add { int* p; __device__ ~Add() { *p += 1; } };",
       "int a = t; { Add add = {&a}; s[t] = *add.p; __syncthreads(); } __syncthreads(); out[t] = a + s[t] - "
       "t - 1;",
       same},
      {"an increment through an index", "",
       "int a[2] = {0}; int j = 0; a[j++] = t; __syncthreads(); a[j] = t; out[t] = a[0] + a[1] + j - 1;",
       twice},
      {"atomics on shared memory", "",
       "__shared__ int c; if (t == 0) c = 0; __syncthreads(); atomicAdd(&c, 1); __syncthreads(); out[t] = c "
       "+ t - 256;",
       same},
      {"atomics on a parameter's memory", "", "__syncthreads(); atomicAdd(&out[t], t); __syncthreads();",
       same},
  });
}

TEST(Split, LargeVariables) {
  const auto kernel = [](int elements) {
    return "int a[" + std::to_string(elements) + "]; for (int j = 0; j < " + std::to_string(elements) +
           "; ++j) a[j] = t; __syncthreads(); out[t] = a[t];";
  };
  const std::string small = kernel(256), large = kernel(8192);
  check({{"1 KiB", "", small.c_str(), same}, {"32 KiB", "", large.c_str(), same}});
}

// 160 KB a thread: over the end of a fiber's stack, and over more than a page of it at once.
TEST(Split, AnArrayThatNoStackHoldsIsACrash) {
  const Row row{"a large array", "__device__ void wait() { __syncthreads(); }",
                "float v[40000]; for (int j = 0; j < 40000; ++j) v[j] = in[(t + j) % n]; wait(); "
                "out[t] = (int)v[t] + (int)v[8191 - t];",
                same};
  const Outcome outcome = run(row, true);
  EXPECT_EQ(outcome.verdict, Verdict::kCrash) << outcome.detail;
  EXPECT_NE(outcome.detail.find("stack"), std::string::npos) << outcome.detail;
}

}  // namespace
}  // namespace warpsmith::device

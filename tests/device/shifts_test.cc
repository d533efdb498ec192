// Shifts by as many places as a number has bits, and more, give on the CPU twin what a GPU gives: 0, or the
// sign. The same in loops that g++ vectorises, in their last elements, and where g++ knows the places.
#include <gtest/gtest.h>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

std::int64_t left32(std::int64_t v, std::int64_t n) {
  const auto places = static_cast<std::uint32_t>(n);
  return static_cast<std::int32_t>(places < 32 ? static_cast<std::uint32_t>(v) << places : 0u);
}
std::int64_t right32(std::int64_t v, std::int64_t n) {
  const auto places = std::min(static_cast<std::uint32_t>(n), 31u);
  return static_cast<std::int32_t>(v) >> places;
}
std::int64_t right32u(std::int64_t v, std::int64_t n) {
  const auto places = static_cast<std::uint32_t>(n);
  return places < 32 ? static_cast<std::uint32_t>(v) >> places : 0u;
}
std::int64_t left64(std::int64_t v, std::int64_t n) {
  const auto places = static_cast<std::uint32_t>(n);
  return static_cast<std::int64_t>(places < 64 ? static_cast<std::uint64_t>(v) << places : 0u);
}
std::int64_t right64(std::int64_t v, std::int64_t n) {
  return v >> std::min(static_cast<std::uint32_t>(n), 63u);
}

struct ShiftRow {
  const char* statements;  // of int v and int n, into long long r
  std::int64_t (*right)(std::int64_t v, std::int64_t n);
  const char* front = "";
};

constexpr std::int64_t kElements = 67;
std::int64_t value(std::int64_t i) { return i % 5 == 0 ? -i * 1000003 - 1 : i * 7000001 + 3; }
std::int64_t places(std::int64_t i) { return i % 9 == 8 ? -i : i; }

// In a plain kernel, and in one whose threads wait.
void check(const ShiftRow& row, bool waits) {
  SCOPED_TRACE(std::string(row.statements) + (waits ? ", behind a barrier" : ""));
  Case c;
  c.source = std::string("// plan: launch k<<<1, 128>>>(v, n, out, N)\n") + row.front +
             "\n__global__ void k(const int* vs, const int* ns, long long* out, int N) {\n  int i = "
             "threadIdx.x;\n" +
             (waits ? "  __shared__ int s[128]; s[i] = i < N ? ns[i] : 0; __syncthreads();\n" : "") +
             "  if (i < N) {\n    int v = vs[i], n = " + (waits ? "s[i]" : "ns[i]") +
             "; long long r = 0;\n    " + row.statements + "\n    out[i] = r;\n  }\n}\n";
  std::vector<std::int32_t> v, n;
  for (std::int64_t i = 0; i < kElements; ++i) {
    v.push_back(static_cast<std::int32_t>(value(i)));
    n.push_back(static_cast<std::int32_t>(places(i)));
  }
  c.inputs["v"] = tensor(v);
  c.inputs["n"] = tensor(n);
  c.outputs["out"] = tensor(std::vector<std::int64_t>(kElements));
  c.dims["N"] = kElements;
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  const auto out = values<std::int64_t>(outcome.outputs.at("out"));
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], row.right(v[i], n[i])) << v[i] << " by " << n[i] << " places";
}

TEST(Shifts, GiveWhatAGpuGives) {
  const auto other_left = [](std::int64_t v, std::int64_t n) { return left32(v, 32 - n); };
  const ShiftRow rows[] = {
      {"r = v << n;", left32},
      {"r = v >> n;", right32},
      {"r = (unsigned)v >> n;", right32u},
      {"r = (long long)v << n;", left64},
      {"r = (long long)v >> n;", right64},
      {"r = (long long)((unsigned long long)v << (unsigned)n);", left64},
      {"v <<= n; r = v;", left32},
      {"v >>= n; r = v;", right32},
      {"unsigned u = v; u >>= n; r = u;", right32u},
      {"long long w = v; w <<= n; r = w;", left64},
      {"r = v << 32 - n;", other_left},
      {"r = v << n + 0 * n;", left32},
      {"r = 1 + (v << n) - 1;", left32},
      {"r = v << (n << 0);", left32},
      {"int a[2] = {n, v}; r = a[1] << a[0];", left32},
      {"auto f = [&](int q) { return v << q; }; r = f(n);", left32},
      {"r = n > 40 || n < 0 ? v << 40 - 0 * n : v << n;", left32},
      {"r = shl(v, n);", left32, "__device__ int shl(int a, int b) { return a << b; }"},
      {"r = SHL(v, n);", left32, "#define SHL(a, b) ((a) << (b))"},
      {"r = v BY n;", right32, "#define BY >>"},
      {"r = shr<int, Pair<Pair<int>>>(v, n);", right32,
       "template <class T> struct Pair { T a; };\n"
       "template <class T, class P> __device__ T shr(T a, int b) { P p; p.a.a = b; return a >> p.a.a; }"},
      {"r = by<48>(v) + left32(v, n);", left32,
       "template <int N> __device__ int by(int a) { return a << N; }\n"
       "__device__ int left32(int a, int b) { return a << b; }"},
      {"struct { short a; unsigned char b; } s = {(short)v, (unsigned char)n}; r = n < 0 ? v << n : "
       "(v << s.b);",
       left32},
      {"r = Bits{v} << n;", left32,
       "struct Bits { int v; };\n__device__ int operator<<(Bits b, int n) { return b.v << n; }"},
      {"Bits b{v}; b <<= n; r = b.v;", left32,
       "struct Bits { int v; __device__ Bits& operator<<=(int n) { v = v << n; return *this; } };"},
      {"enum { kOne = 1 }; const int size = 1 << kOne; int a[1 << kOne] = {v, n}; r = a[size - 2] << "
       "a[kOne];",
       left32},
      {"r = kTwo == 2 && BIT(kPlace) == 8 ? v << n : 0;", left32,
       "constexpr int kPlace = 3, kTwo = 1 << kPlace - 2;\n#define THREE 3\n#define BIT(n) (1 << (n))\n"
       "#if BIT(THREE) != 8\n#error shifts of directives\n#endif"},
      {"r = v < (n >> kZero) && (v >> n) > v ? right(v, n) : right(v, n);", right32,
       "constexpr int kZero = 0;\n__device__ int right(int a, int b) { return a >> b; }"},
      {"volatile int w = v; w <<= n; r = w;", left32},
      {"r = v; int q = (int)r; *&q >>= n; r = q;", right32},
  };
  for (const ShiftRow& row : rows) {
    check(row, false);
    if (row.right != left64) check(row, true);
  }
}

TEST(Shifts, FunnelShiftsClampOrWrapAsTheirNamesSay) {
  check({"r = (int)__funnelshift_lc(0u, (unsigned)v, n);", left32}, false);
  check({"r = (long long)__funnelshift_rc((unsigned)v, 0u, n);", right32u}, false);
  check({"r = (int)__funnelshift_l(0u, (unsigned)v, n);",
         [](std::int64_t v, std::int64_t n) { return left32(v, n & 31); }},
        false);
}

}  // namespace
}  // namespace warpsmith::device

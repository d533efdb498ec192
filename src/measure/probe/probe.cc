#include "probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "fingerprint.h"
#include "matrix_product.h"
#include "timing/judge.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/time.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 30;  // seconds
constexpr int kTries = 6;        // of a repeat whose calls were not enqueued in time
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::array<unsigned, 3> kBlocksAnSm = {4, 8, 32};

struct Effort {
  int repeats, launches_idle;
  std::vector<std::uint64_t> l2_sizes;  // of a buffer, in sizes of L2
  double longest_product_ns;
  std::int64_t largest_matrix;
};
const Effort kShort{
    .repeats = 5, .launches_idle = 21, .l2_sizes = {16}, .longest_product_ns = 20e6, .largest_matrix = 8192};
const Effort kThorough{.repeats = 15,
                       .launches_idle = 101,
                       .l2_sizes = {8, 16, 32},
                       .longest_product_ns = 60e6,
                       .largest_matrix = 16384};

CeilingFigure figure_of(const std::vector<double>& values, std::string how) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {stats::median(values), *low, *high, static_cast<int>(values.size()), std::move(how)};
}

void keep_better(CeilingFigure& best, CeilingFigure figure) {
  if (figure.median > best.median) best = std::move(figure);
}

class Probe {
 public:
  Probe(GpuHarness& harness, const Effort& effort) : harness_(harness), effort_(effort) {}

  CeilingFigure reading() {
    return over_sizes(1, [this](std::uint64_t bytes, CeilingFigure& best) {
      const device::GpuMemory from(bytes);
      device::fill_bytes(from.address(), 0x5A, bytes);
      for (const unsigned blocks : kBlocksAnSm)
        keep_better(best, bandwidth(bytes, bytes, fmt::format("{} blocks an SM", blocks),
                                    [&] { harness_.kernels().read_memory(from.address(), bytes, blocks); }));
    });
  }

  CeilingFigure copying() {
    return over_sizes(2, [this](std::uint64_t bytes, CeilingFigure& best) {
      const device::GpuMemory from(bytes), to(bytes);
      device::fill_bytes(from.address(), 0x5A, bytes);
      for (const unsigned blocks : kBlocksAnSm)
        keep_better(best, bandwidth(bytes, 2 * bytes, fmt::format("{} blocks an SM", blocks), [&] {
                      harness_.kernels().copy_memory(to.address(), from.address(), bytes, blocks);
                    }));
      keep_better(best, bandwidth(bytes, 2 * bytes, "the driver's copy",
                                  [&] { device::copy(to.address(), from.address(), bytes); }));
    });
  }

  CeilingFigure products(task::Dtype dtype, bool tf32) {
    CeilingFigure best;
    double rate = 0;  // of the size before; the first only says what the next may take
    for (std::int64_t size = 1024; size <= effort_.largest_matrix; size *= 2) {
      MatrixProduct product{.dtype = dtype, .tf32 = tf32, .size = size};
      const double expected_ns = rate > 0 ? product.flop() / rate * 1e9 : 0;
      if (expected_ns > effort_.longest_product_ns) break;
      if (3 * product.matrix_bytes() > harness_.gpu().facts().memory_bytes / 8) break;
      const device::GpuMemory a(product.matrix_bytes()), b(product.matrix_bytes()),
          out(product.matrix_bytes());
      product.a = a.address();
      product.b = b.address();
      product.out = out.address();
      fill(product, product.a, 1);
      fill(product, product.b, 2);
      const std::vector<double> ns = times(size == 1024 ? 1 : effort_.repeats, [&] { product.enqueue(); });
      std::vector<double> rates;
      for (const double t : ns) rates.push_back(product.flop() / t * 1e9);
      rate = stats::median(rates);
      keep_better(best, figure_of(rates, fmt::format("{0} x {0}", size)));
    }
    return best;
  }

  CeilingFigure launching_queued() {
    constexpr int kLaunches = 100;
    std::vector<double> ns = times(effort_.repeats, [this] {
      for (int i = 0; i < kLaunches; ++i) harness_.kernels().launch_nothing();
    });
    for (double& t : ns) t /= kLaunches;
    return figure_of(ns, fmt::format("{} in a row", kLaunches));
  }

  CeilingFigure launching_idle() {
    std::vector<double> ns;
    for (int i = 0; i <= effort_.launches_idle; ++i) {
      const GpuTimes times = harness_.clock().time_idle(
          [this] {
            harness_.kernels().launch_nothing();
            return device::GpuOutcome{};
          },
          kTimeout);
      must_be(times.outcome);
      if (i > 0) ns.push_back(times.queued_ns);  // the first loads the kernel
    }
    return figure_of(ns, "between two events");
  }

  Fingerprint fingerprint() {
    return fingerprint_of(
        harness_, [this](const std::function<void()>& enqueue) { return times(effort_.repeats, enqueue); });
  }

 private:
  static void must_be(const device::GpuOutcome& outcome) {
    if (!outcome.ok())
      throw device::GpuError("while the GPU's ceilings were measured: " + outcome.detail, outcome);
  }

  // For each size that fits `buffers` times into an eighth of the GPU's memory.
  template <typename Measure>
  CeilingFigure over_sizes(std::uint64_t buffers, Measure measure) {
    const device::Gpu& gpu = harness_.gpu();
    CeilingFigure best;
    for (const std::uint64_t l2_sizes : effort_.l2_sizes) {
      const std::uint64_t wanted = l2_sizes * std::max(gpu.facts().l2_bytes, 8 * kMiB);
      const std::uint64_t bytes = std::min(wanted, gpu.facts().memory_bytes / 8 / buffers) / kMiB * kMiB;
      measure(bytes, best);
    }
    return best;
  }

  template <typename Enqueue>
  CeilingFigure bandwidth(std::uint64_t buffer, std::uint64_t moved, const std::string& how,
                          Enqueue enqueue) {
    std::vector<double> rates;
    for (const double ns : times(effort_.repeats, enqueue))
      rates.push_back(static_cast<double>(moved) / ns * 1e9);
    return figure_of(rates, fmt::format("{} MiB, {}", buffer / kMiB, how));
  }

  // Nanoseconds of what `enqueue` enqueues, after one to warm up.
  std::vector<double> times(int repeats, const std::function<void()>& enqueue) {
    enqueue();
    must_be(harness_.gpu().wait(kTimeout));
    std::vector<double> ns;
    for (int i = 0; i < repeats; ++i) {
      GpuTimes taken;
      for (int tries = 0; tries < kTries; ++tries) {
        taken = harness_.clock().time_queued(
            [&] {
              enqueue();
              return device::GpuOutcome{};
            },
            kTimeout);
        must_be(taken.outcome);
        if (!taken.late) break;
      }
      if (!taken.late) ns.push_back(std::max(1.0, taken.queued_ns));
    }
    if (ns.empty())
      throw Error("this host was too slow to keep the GPU's queue filled: no ceiling can be measured");
    return ns;
  }

  void fill(const MatrixProduct& product, device::GpuAddress matrix, std::uint64_t key) const {
    const task::ValueSpec normal = {"normal", {task::Expression::constant(0), task::Expression::constant(1)}};
    const std::vector<std::int64_t> shape = {product.size, product.size};
    const GpuFill fill{.values = &normal,
                       .dtype = product.dtype,
                       .shape = &shape,
                       .key = random_key({name_key("probe"), key}),
                       .to = {matrix, product.matrix_bytes()}};
    harness_.kernels().fill({&fill, 1}, {});
  }

  GpuHarness& harness_;
  const Effort& effort_;
};

}  // namespace

GpuState state_of(const process::GpuReading& reading) {
  return {reading.sm_clock_mhz, reading.memory_clock_mhz, reading.temperature_c, reading.power_w,
          reading.reasons ? process::clock_reason_words(*reading.reasons) : ""};
}

CeilingFigure probe_reading(GpuHarness& harness) { return Probe(harness, kShort).reading(); }

Ceilings probe_gpu(GpuHarness& harness, const process::GpuWatch* watch, bool thorough) {
  const double begin = seconds_now();
  const device::GpuFacts& gpu = harness.gpu().facts();
  Ceilings c;
  c.name = gpu.name;
  c.uuid = gpu.uuid;
  c.driver = gpu.driver;
  c.host = process::host_name();
  c.major = gpu.major;
  c.minor = gpu.minor;
  c.sms = gpu.sms;
  c.l2_bytes = gpu.l2_bytes;
  c.memory_bytes = gpu.memory_bytes;
  c.date = utc_now();
  c.thorough = thorough;
  if (watch != nullptr) {
    c.settings = watch->settings();
    c.before = state_of(watch->read());
  }
  Probe probe(harness, thorough ? kThorough : kShort);
  c.figures[kLaunchIdle] = probe.launching_idle();
  c.figures[kLaunchQueued] = probe.launching_queued();
  c.figures[kReadBandwidth] = probe.reading();
  c.figures[kCopyBandwidth] = probe.copying();
  const struct {
    const char* figure;
    task::Dtype dtype;
    bool tf32;
  } rates[] = {{kFloat64Rate, task::Dtype::kFloat64, false},
               {kFloat32Rate, task::Dtype::kFloat32, false},
               {kTf32Rate, task::Dtype::kFloat32, true},
               {kBfloat16Rate, task::Dtype::kBfloat16, false},
               {kFloat16Rate, task::Dtype::kFloat16, false}};
  for (const auto& rate : rates)
    if (CeilingFigure figure = probe.products(rate.dtype, rate.tf32); figure.median > 0)
      c.figures[rate.figure] = std::move(figure);
  c.fingerprint = probe.fingerprint();
  if (watch != nullptr) c.after = state_of(watch->read());
  c.seconds = seconds_now() - begin;
  return c;
}

}  // namespace warpsmith::measure

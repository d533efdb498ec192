#include "warpsmith/records/gpu_doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace warpsmith {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024, kTera = 1e12;

// By NVIDIA's data sheets. A type may be sold in several forms.
struct Form {
  const char* type;
  int major, minor, sms;
  double memory_gib, bandwidth;  // bytes a second
};
constexpr std::array<Form, 15> kForms = {{
    {"A100", 8, 0, 108, 40, 1.555e12},
    {"A100", 8, 0, 108, 80, 2.039e12},
    {"H100", 9, 0, 132, 80, 3.35e12},  // SXM
    {"H100", 9, 0, 114, 80, 2.0e12},   // PCIe
    {"H100", 9, 0, 132, 94, 3.9e12},   // NVL
    {"H200", 9, 0, 132, 141, 4.8e12},
    {"H20", 9, 0, 78, 96, 4.0e12},
    {"H20", 9, 0, 78, 141, 4.8e12},
    {"L4", 8, 9, 58, 24, 0.3e12},
    {"L40", 8, 9, 142, 48, 0.864e12},
    {"L40S", 8, 9, 142, 48, 0.864e12},
    {"RTX3090", 8, 6, 82, 24, 0.936e12},
    {"RTX4090", 8, 9, 128, 24, 1.008e12},
    {"B200", 10, 0, 148, 180, 7.7e12},
    {"B200", 10, 0, 148, 192, 8.0e12},
}};
// Firmware and ECC take some of the memory; a kernel reaches so much of the bandwidth of the data sheet,
// where nothing slows the GPU down.
constexpr double kLeastMemory = 0.88, kMostMemory = 1.03, kLeastBandwidth = 0.7, kMostBandwidth = 1.04;
// Between GPUs of one label.
constexpr double kLikeMemory = 1.03, kLikeSpeed = 1.15, kLikeShare = 1.5, kLikeEdge = 1.6;

using Reasons = std::vector<std::string>;

double reading(const Ceilings& gpu) {
  const CeilingFigure* figure = gpu.find(kReadBandwidth);
  return figure == nullptr ? 0 : figure->median;
}

double fingerprint_figure(const Ceilings& gpu, const char* name) {
  if (!gpu.fingerprint) return 0;
  const auto it = gpu.fingerprint->figures.find(name);
  return it == gpu.fingerprint->figures.end() ? 0 : it->second;
}

bool within(double value, double low, double high) { return value <= 0 || (value >= low && value <= high); }

// "an H100", "a B200"
std::string with_article(const std::string& type) {
  const bool vowel = type.find_first_of("AHLR") == 0;  // as their letters are spoken
  return (vowel ? "an " : "a ") + type;
}

Reasons against_form(const Ceilings& gpu, const Form& form) {
  Reasons out;
  const std::string one = with_article(form.type);
  if (gpu.major > 0 && (gpu.major != form.major || gpu.minor != form.minor))
    out.push_back(fmt::format("it has compute capability {}.{}, and {} has {}.{}", gpu.major, gpu.minor, one,
                              form.major, form.minor));
  if (gpu.sms > 0 && gpu.sms != form.sms)
    out.push_back(fmt::format("it has {} SMs, and {} has {}", gpu.sms, one, form.sms));
  const double memory = static_cast<double>(gpu.memory_bytes) / kGiB;
  if (!within(memory, kLeastMemory * form.memory_gib, kMostMemory * form.memory_gib))
    out.push_back(fmt::format("it has {:.1f} GiB of memory, and {} has {:g}", memory, one, form.memory_gib));
  const double read = reading(gpu);
  if (!within(read, kLeastBandwidth * form.bandwidth, kMostBandwidth * form.bandwidth))
    out.push_back(fmt::format("it reads {:.2f} TB/s, {} the {:.2f} of {}", read / kTera,
                              read > form.bandwidth ? "above" : "far below", form.bandwidth / kTera, one));
  return out;
}

// How far memory and bandwidth are from the form's, as a factor's logarithm.
double distance(const Ceilings& gpu, const Form& form) {
  const auto of = [](double value, double wanted) {
    return value > 0 ? std::abs(std::log(value / wanted)) : 0;
  };
  return of(static_cast<double>(gpu.memory_bytes) / kGiB, form.memory_gib) + of(reading(gpu), form.bandwidth);
}

// Against the form of the type that it is most like; nothing where the type is not known.
std::optional<Reasons> against_type(const Ceilings& gpu, const std::string& type) {
  std::optional<Reasons> least;
  double nearest = 0;
  for (const Form& form : kForms) {
    if (form.type != type) continue;
    Reasons reasons = against_form(gpu, form);
    const double far = distance(gpu, form);
    if (least && std::pair(least->size(), nearest) <= std::pair(reasons.size(), far)) continue;
    least = std::move(reasons);
    nearest = far;
  }
  return least;
}

std::string looks_like(const Ceilings& gpu, const std::string& type) {
  for (const Form& form : kForms)
    if (form.type != type && against_form(gpu, form).empty()) return with_article(form.type);
  return "";
}

std::string counted(std::size_t n) {
  return n == 1 ? "another probe of this kind" : fmt::format("{} other probes of this kind", n);
}

// Whether `value` and the median of the others differ by more than a factor; those that do not know it are
// left out.
void compare(const std::string& what, double value, std::vector<double> others, double factor, double unit,
             Reasons& out) {
  std::erase_if(others, [](double other) { return !(other > 0); });
  if (others.empty() || !(value > 0)) return;
  std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
                   others.end());
  const double usual = others[others.size() / 2];
  if (value <= usual * factor && usual <= value * factor) return;
  out.push_back(fmt::format("{} is {:.4g}, and {:.4g} of {}", what, value / unit, usual / unit,
                            counted(others.size())));
}

Reasons against_figures(const Ceilings& gpu, std::span<const Ceilings> others) {
  struct Compared {
    const char* what;
    std::function<double(const Ceilings&)> of;
    double factor, unit;
  };
  const auto figure = [](const char* name) {
    return [name](const Ceilings& c) { return fingerprint_figure(c, name); };
  };
  const Compared all[] = {
      {"the number of its SMs", [](const Ceilings& c) { return static_cast<double>(c.sms); }, 1, 1},
      {"its memory in GiB", [](const Ceilings& c) { return static_cast<double>(c.memory_bytes); },
       kLikeMemory, kGiB},
      {"its L2 in MiB", [](const Ceilings& c) { return static_cast<double>(c.l2_bytes); }, kLikeMemory,
       1024 * 1024},
      {"what it reads in TB/s", reading, kLikeSpeed, kTera},
      {"the clock of its SMs at work in MHz", figure(kSmClock), kLikeSpeed, 1e6},
      {"the rate of float64 by that of float32", figure(kFloat64Share), kLikeShare, 1},
      {"what it reads from L2 in MiB", figure(kL2Edge), kLikeEdge, 1024 * 1024},
  };
  Reasons out;
  for (const Compared& one : all) {
    std::vector<double> values;
    for (const Ceilings& other : others) values.push_back(one.of(other));
    compare(one.what, one.of(gpu), std::move(values), one.factor, one.unit, out);
  }
  return out;
}

struct Bits {
  std::vector<std::string> differ;  // patterns
  std::size_t of = 0;               // probes that were compared
};

// A pattern differs where more of the others share another one than have this one.
Bits compare_bits(const Ceilings& gpu, std::span<const Ceilings> others) {
  Bits out;
  if (!gpu.fingerprint) return out;
  const auto comparable = [&gpu](const Ceilings& other) {
    return other.fingerprint && other.fingerprint->code == gpu.fingerprint->code;
  };
  out.of = static_cast<std::size_t>(std::count_if(others.begin(), others.end(), comparable));
  for (const auto& [name, digest] : gpu.fingerprint->patterns) {
    std::map<std::string, int> seen;
    for (const Ceilings& other : others)
      if (comparable(other))
        if (const auto it = other.fingerprint->patterns.find(name); it != other.fingerprint->patterns.end())
          ++seen[it->second];
    const int own = seen.contains(digest) ? seen.at(digest) : 0;
    if (std::any_of(seen.begin(), seen.end(), [own](const auto& one) { return one.second > own; }))
      out.differ.push_back(name);
  }
  return out;
}

}  // namespace

bool has_data_sheet(const std::string& type) {
  return std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) { return form.type == type; });
}

std::vector<std::string> gpu_doubts(const Ceilings& gpu, const std::string& type,
                                    std::span<const Ceilings> others) {
  Reasons out;
  const std::optional<Reasons> by_type = against_type(gpu, type);
  if (by_type && !by_type->empty()) {
    out = *by_type;
    if (const std::string like = looks_like(gpu, type); !like.empty())
      out.back() += "; it looks like " + like;
  }
  for (std::string& reason : against_figures(gpu, others)) out.push_back(std::move(reason));
  const Bits bits = compare_bits(gpu, others);
  if (!bits.differ.empty())
    out.push_back(
        fmt::format("it computes other bits than {}: {}", counted(bits.of), fmt::join(bits.differ, ", ")));
  else if (!out.empty() && bits.of > 0)
    out.push_back(
        fmt::format("it computes the same bits as {}: the chip may be of the same design, as those of "
                    "H100, H200 and H20 are, which memory, clocks and number of SMs alone tell apart",
                    counted(bits.of)));
  return out;
}

}  // namespace warpsmith

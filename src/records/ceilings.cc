#include "warpsmith/records/ceilings.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

// Three significant digits.
std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

// A number of `figure` in the unit that people read it in.
std::string in_its_unit(const std::string& figure, double value) {
  return three_digits(figure.ends_with("_ns") ? value / 1e3 : value / 1e12);
}

std::string unit_of(const std::string& figure) {
  if (figure.ends_with("_ns")) return "us";
  return figure.ends_with("_bytes_s") ? "TB/s" : "TFLOP/s";
}

std::string state_text(const GpuState& s) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (s.sm_clock_mhz) add("SMs at " + std::to_string(*s.sm_clock_mhz) + " MHz");
  if (s.memory_clock_mhz) add("memory at " + std::to_string(*s.memory_clock_mhz) + " MHz");
  if (s.temperature_c) add(std::to_string(*s.temperature_c) + " C");
  if (s.power_w) add(three_digits(*s.power_w) + " W");
  if (!s.clock_reasons.empty()) add("clocks kept down by: " + s.clock_reasons);
  return text.empty() ? "not told" : text;
}

std::string fingerprint_text(const Fingerprint& f) {
  std::string out;
  for (const auto& [name, digest] : f.patterns) out += (out.empty() ? "" : ", ") + name + " " + digest;
  out = "bits: " + (out.empty() ? "none" : out) + "\n";
  if (const auto it = f.figures.find(kFloat64Share); it != f.figures.end())
    out += "float64 multiply-adds: " + three_digits(100 * it->second) + " % of the rate of float32\n";
  if (const auto it = f.figures.find(kSmClock); it != f.figures.end())
    out += "SMs at work: " + three_digits(it->second / 1e6) + " MHz\n";
  if (const auto it = f.figures.find(kL2Edge); it != f.figures.end())
    out += "read from L2: up to " + format_size(static_cast<std::uint64_t>(it->second)) + "\n";
  return out;
}

}  // namespace

const CeilingFigure* Ceilings::find(const std::string& figure) const {
  const auto it = figures.find(figure);
  return it == figures.end() ? nullptr : &it->second;
}

const Fields<CeilingFigure>& fields_of(const CeilingFigure&) {
  using F = CeilingFigure;
  constexpr Presence kNeeded = Presence::kNeeded, kWritten = Presence::kWritten;
  static const Fields<F> fields = {
      field("median", &F::median, {.meaning = "median of the repeats", .presence = kNeeded}),
      field("low", &F::low, {.meaning = "the least of the repeats", .presence = kNeeded}),
      field("high", &F::high, {.meaning = "the most of the repeats", .presence = kNeeded}),
      field("repeats", &F::repeats, {.meaning = "number of repeats", .presence = kWritten}),
      field("how", &F::how, {.meaning = "the sizes that gave the best figure", .presence = kWritten}),
  };
  return fields;
}

const Fields<Fingerprint>& fields_of(const Fingerprint&) {
  using F = Fingerprint;
  constexpr Presence kWritten = Presence::kWritten;
  static const Fields<F> fields = {
      field("code", &F::code, {.meaning = "digest of the kernels that made it", .presence = kWritten}),
      field("patterns", &F::patterns,
            {.meaning = "digests of the bits of fixed computations, by name", .presence = kWritten}),
      field("figures", &F::figures, {.meaning = "speeds and sizes by name, below", .presence = kWritten}),
  };
  return fields;
}

const Fields<Ceilings>& ceilings_fields() {
  using C = Ceilings;
  constexpr Presence kNeeded = Presence::kNeeded, kWritten = Presence::kWritten;
  static const Fields<C> fields = {
      schema_field<C>("warpsmith.ceilings/1"),
      field("name", &C::name, {.meaning = "the GPU's name, as its driver says", .presence = kNeeded}),
      field("uuid", &C::uuid, {.meaning = "UUID of the GPU", .presence = kNeeded}),
      field("driver", &C::driver, {.meaning = "CUDA version that the driver supports", .presence = kWritten}),
      field("host", &C::host, {.meaning = "name of the host", .presence = kWritten}),
      field("major", &C::major,
            {.meaning = "compute capability of the GPU",
             .presence = kWritten,
             .json = "/compute_capability/0"}),
      field("minor", &C::minor,
            {.meaning = "its second number", .presence = kWritten, .json = "/compute_capability/1"}),
      field("sms", &C::sms, {.meaning = "number of SMs", .presence = kWritten}),
      field("l2_bytes", &C::l2_bytes, {.unit = "bytes", .meaning = "size of the L2", .presence = kWritten}),
      field("memory_bytes", &C::memory_bytes,
            {.unit = "bytes", .meaning = "size of the memory", .presence = kWritten}),
      field("date", &C::date, {.meaning = "when it was measured (UTC)", .presence = kWritten}),
      field("thorough", &C::thorough,
            {.meaning = "true: by `warpsmith-probe`, with more sizes and repeats", .presence = kWritten}),
      field("seconds", &C::seconds, {.unit = "s", .meaning = "that it took", .presence = kWritten}),
      field("settings", &C::settings, {.meaning = "settings of the GPU, by NVML", .presence = kWritten}),
      field("before", &C::before, {.meaning = "state of the GPU before, by NVML"}),
      field("after", &C::after, {.meaning = "and after"}),
      field("figures", &C::figures, {.meaning = "figures by name, below", .presence = kNeeded}),
      field("kind", &C::kind, {.meaning = "GPU type that it was taken for, as the site names it"}),
      field("fingerprint", &C::fingerprint, {.meaning = "what tells chips apart, below"}),
  };
  return fields;
}

Json to_json(const Ceilings& c) { return fields_to_json(ceilings_fields(), c); }

Ceilings ceilings_from_json(const Json& json) {
  Ceilings c = record_from_json(ceilings_fields(), json, "ceilings of a GPU");
  for (const auto& [name, figure] : c.figures)
    if (!(figure.median > 0) || !std::isfinite(figure.median) || !(figure.high >= figure.median))
      throw Error("ceilings of a GPU: `" + name + "` is no figure");
  return c;
}

std::filesystem::path ceilings_path(const std::filesystem::path& folder, const std::string& uuid) {
  return folder / (uuid + ".json");
}

std::optional<Ceilings> read_ceilings(const std::filesystem::path& file, std::string* problem) {
  std::string words;
  try {
    std::error_code no_matter;
    if (std::filesystem::exists(file, no_matter)) return ceilings_from_json(read_json_file(file));
  } catch (const Error& e) {
    words = e.what();
  }
  if (problem != nullptr) *problem = words;
  return std::nullopt;
}

void write_ceilings(const std::filesystem::path& file, const Ceilings& ceilings) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  write_file_atomic(file, to_json(ceilings).dump(2) + "\n");
}

std::string ceilings_line(const Ceilings& ceilings) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kRates = {{{kFloat64Rate, "float64"},
                                                                          {kFloat32Rate, "float32"},
                                                                          {kTf32Rate, "tf32"},
                                                                          {kBfloat16Rate, "bfloat16"},
                                                                          {kFloat16Rate, "float16"}}};
  std::string line;
  const auto add = [&line](const std::string& part) { line += (line.empty() ? "" : ", ") + part; };
  if (const auto* f = ceilings.find(kReadBandwidth)) add("reads " + three_digits(f->median / 1e12) + " TB/s");
  if (const auto* f = ceilings.find(kCopyBandwidth))
    add("copies " + three_digits(f->median / 1e12) + " TB/s");
  bool rates = false;
  for (const auto& [figure, word] : kRates)
    if (const auto* f = ceilings.find(figure)) {
      add(std::string(word) + " " + three_digits(f->median / 1e12));
      rates = true;
    }
  return rates ? line + " TFLOP/s" : line;
}

std::string ceilings_text(const Ceilings& c) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kTitles = {
      {{kReadBandwidth, "reading memory"},
       {kCopyBandwidth, "copying memory"},
       {kFloat64Rate, "float64 matrices"},
       {kFloat32Rate, "float32 matrices"},
       {kTf32Rate, "float32 as TF32"},
       {kBfloat16Rate, "bfloat16 matrices"},
       {kFloat16Rate, "float16 matrices"},
       {kLaunchQueued, "launch, queued"},
       {kLaunchIdle, "launch, GPU idle"}}};
  std::string out = c.name + ", " + c.uuid + ", CUDA " + c.driver + ", capability " +
                    std::to_string(c.major) + "." + std::to_string(c.minor) + ", " + std::to_string(c.sms) +
                    " SMs, L2 " + format_size(c.l2_bytes) + ", memory " + format_size(c.memory_bytes) + "\n";
  for (const auto& [figure, title] : kTitles) {
    const CeilingFigure* f = c.find(figure);
    if (f == nullptr) continue;
    char line[256];
    std::snprintf(line, sizeof line, "%-18s %6s %-8s [%s, %s] in %d repeats; %s\n", title,
                  in_its_unit(figure, f->median).c_str(), unit_of(figure).c_str(),
                  in_its_unit(figure, f->low).c_str(), in_its_unit(figure, f->high).c_str(), f->repeats,
                  f->how.c_str());
    out += line;
  }
  if (c.fingerprint) out += fingerprint_text(*c.fingerprint);
  if (c.before) out += "before: " + state_text(*c.before) + "\n";
  if (c.after) out += "after:  " + state_text(*c.after) + "\n";
  for (const auto& [name, value] : c.settings) out += name + ": " + value + "\n";
  return out + "measured in " + three_digits(c.seconds) + " s on " + c.host + ", " + c.date + "\n";
}

}  // namespace warpsmith

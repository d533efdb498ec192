// What a GPU can do at most, as warpsmith-probe and warpsmith-measure have measured it. Kept as JSON; format:
// results/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "warpsmith/base/json.h"
#include "warpsmith/records/field.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith {

// One figure, of several repeats.
struct CeilingFigure {
  double median = 0, low = 0, high = 0;  // low, high: the least and the most of the repeats
  int repeats = 0;
  std::string how;  // "1024 MiB", "8192 x 8192": what it was measured with, the best of what was tried
};
const Fields<CeilingFigure>& fields_of(const CeilingFigure& figure);

// What tells chips apart whatever they are called. Patterns are bits of fixed computations, which chips of
// one design share (H100, H200 and H20 are one); figures are speeds and sizes. What a GPU or its driver does
// not support is not in it.
struct Fingerprint {
  std::string code;                             // digest of the kernels: patterns of others are no match
  std::map<std::string, std::string> patterns;  // name -> first 16 digits of the SHA-256 of its bits
  std::map<std::string, double> figures;
};
const Fields<Fingerprint>& fields_of(const Fingerprint& fingerprint);

// Names of a fingerprint's figures.
inline constexpr const char* kFloat64Share = "float64_share";  // rate of multiply-adds, of that of float32
inline constexpr const char* kSmClock = "sm_clock_hz";         // while it computes, by its own two clocks
inline constexpr const char* kL2Edge = "l2_edge_bytes";        // memory of that size is read as fast as L2

// Names of figures. Bytes a second: those of memory, read and written ones together. FLOP a second: of the
// product of two square matrices, 2 n^3 of them.
inline constexpr const char* kReadBandwidth = "read_bytes_s";
inline constexpr const char* kCopyBandwidth = "copy_bytes_s";
inline constexpr const char* kFloat64Rate = "float64_flop_s";
inline constexpr const char* kFloat32Rate = "float32_flop_s";  // without TF32
inline constexpr const char* kTf32Rate = "tf32_flop_s";        // float32 operands
inline constexpr const char* kBfloat16Rate = "bfloat16_flop_s";
inline constexpr const char* kFloat16Rate = "float16_flop_s";
inline constexpr const char* kLaunchQueued = "launch_queued_ns";  // of an empty kernel in a row of them
inline constexpr const char* kLaunchIdle = "launch_idle_ns";  // of one from an idle GPU, between two events

struct Ceilings {
  std::string name, uuid, driver, host;  // of the GPU; `driver`: CUDA version that it supports
  int major = 0, minor = 0, sms = 0;
  std::uint64_t l2_bytes = 0, memory_bytes = 0;
  std::string date;       // "2026-05-01T12:00:00Z"
  bool thorough = false;  // by warpsmith-probe; false: the short form, by warpsmith-measure
  double seconds = 0;     // that it took
  std::optional<GpuState> before, after;
  std::map<std::string, std::string> settings;  // of the GPU, by NVML
  std::map<std::string, CeilingFigure> figures;
  std::string kind;  // the GPU type that it was taken for, as the site names it; empty: not told
  std::optional<Fingerprint> fingerprint;

  const CeilingFigure* find(const std::string& figure) const;
};
const Fields<Ceilings>& ceilings_fields();
Json to_json(const Ceilings& ceilings);
// Throws Error where it is none, or of another schema.
Ceilings ceilings_from_json(const Json& json);

// <folder>/<uuid>.json
std::filesystem::path ceilings_path(const std::filesystem::path& folder, const std::string& uuid);
// Those kept in `file`; nothing where there is no such file, and where it is no good (`problem`, if given,
// says why).
std::optional<Ceilings> read_ceilings(const std::filesystem::path& file, std::string* problem = nullptr);
void write_ceilings(const std::filesystem::path& file, const Ceilings& ceilings);

// "reads 4.32 TB/s, copies 4.11 TB/s, float32 51.2, tf32 390, bfloat16 702, float16 688 TFLOP/s": what is
// known of these.
std::string ceilings_line(const Ceilings& ceilings);
// All of it, for people.
std::string ceilings_text(const Ceilings& ceilings);

}  // namespace warpsmith

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

namespace {

using Capability = std::pair<int, int>;

constexpr Capability kOldest = {7, 5};  // of CUDA 13

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Upper case, in words: "nvidia_a100-sxm4" -> NVIDIA A100 SXM4.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Brands in front of a name; "RTX3090" is written in one word, too.
void drop_brands(std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 5> kBrands = {"NVIDIA", "GEFORCE", "TESLA", "QUADRO", "RTX"};
  while (!words.empty()) {
    if (std::find(kBrands.begin(), kBrands.end(), words.front()) != kBrands.end()) {
      words.erase(words.begin());
    } else if (words.front().size() > 3 && words.front().starts_with("RTX")) {
      words.front().erase(0, 3);
    } else {
      return;
    }
  }
}

constexpr std::array<std::pair<std::string_view, Capability>, 38> kTypes = {{
    {"T4", {7, 5}},     {"A100", {8, 0}},  {"A100X", {8, 0}}, {"A800", {8, 0}},   {"A30", {8, 0}},
    {"A30X", {8, 0}},   {"A40", {8, 6}},   {"A10", {8, 6}},   {"A10G", {8, 6}},   {"A10M", {8, 6}},
    {"A16", {8, 6}},    {"A2", {8, 6}},    {"A2000", {8, 6}}, {"A3000", {8, 6}},  {"A4000", {8, 6}},
    {"A4500", {8, 6}},  {"A5000", {8, 6}}, {"A5500", {8, 6}}, {"A6000", {8, 6}},  {"ORIN", {8, 7}},
    {"L4", {8, 9}},     {"L20", {8, 9}},   {"L2", {8, 9}},    {"L40", {8, 9}},    {"L40S", {8, 9}},
    {"L40G", {8, 9}},   {"H100", {9, 0}},  {"H200", {9, 0}},  {"H800", {9, 0}},   {"H20", {9, 0}},
    {"GH200", {9, 0}},  {"B100", {10, 0}}, {"B200", {10, 0}}, {"GB200", {10, 0}}, {"B300", {10, 3}},
    {"GB300", {10, 3}}, {"THOR", {11, 0}}, {"GB10", {12, 1}},
}};

// GeForce numbers of four generations: 2060 to 5090, with TI, SUPER or D behind them.
std::optional<Capability> geforce(std::string_view word) {
  if (word.size() < 4 || !std::all_of(word.begin(), word.begin() + 4, is_digit)) return std::nullopt;
  if (word.size() > 4 && is_digit(word[4])) return std::nullopt;
  if (word[1] != '0' || word[2] < '5' || word[3] != '0') return std::nullopt;
  switch (word[0]) {
    case '2':
      return Capability{7, 5};
    case '3':
      return Capability{8, 6};
    case '4':
      return Capability{8, 9};
    case '5':
      return Capability{12, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<GpuTarget> parse_gpu_target(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  GpuTarget target;
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    target.variant = text.back();
    text.remove_suffix(1);
  }
  if (text.size() < 2 || text.size() > 3 || text[0] == '0' ||
      !std::all_of(text.begin(), text.end(), is_digit))
    return std::nullopt;
  target.minor = text.back() - '0';
  for (const char c : text.substr(0, text.size() - 1)) target.major = target.major * 10 + (c - '0');
  return target;
}

std::string to_string(const GpuTarget& target) {
  std::string out = "sm_" + std::to_string(target.major) + std::to_string(target.minor);
  if (target.variant != 0) out += target.variant;
  return out;
}

// From 9.0 on a part of the instructions (wgmma, tcgen05) is for the very architecture alone.
std::optional<GpuTarget> target_of_capability(int major, int minor) {
  if (Capability{major, minor} < kOldest || minor < 0 || minor > 9 || major > 99) return std::nullopt;
  return GpuTarget{major, minor, major >= 9 ? 'a' : '\0'};
}

std::optional<GpuTarget> target_of_type(std::string_view gpu_type) {
  std::vector<std::string> words = words_of(gpu_type);
  drop_brands(words);
  if (words.empty()) return std::nullopt;
  for (const auto& [name, capability] : kTypes)
    if (words.front() == name) return target_of_capability(capability.first, capability.second);
  if (const auto capability = geforce(words.front()))
    return target_of_capability(capability->first, capability->second);
  // Workstation cards share their numbers with older ones: "RTX 6000 Ada Generation".
  for (const std::string& word : words) {
    if (word.ends_with("ADA")) return target_of_capability(8, 9);
    if (word == "BLACKWELL") return target_of_capability(12, 0);
  }
  return std::nullopt;
}

}  // namespace warpsmith::toolchain

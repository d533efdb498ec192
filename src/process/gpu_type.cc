// What NVIDIA calls its GPUs, as one word for each type.
#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

#include "warpsmith/base/text.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::process {

namespace {

std::string upper(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool has_digit(const std::string& text) { return text.find_first_of("0123456789") != std::string::npos; }

// The words of "nvidia_geforce_rtx_3090", without the makers'.
std::vector<std::string> model_words(std::string_view text) {
  static const std::set<std::string> kMakers = {"nvidia", "geforce", "tesla", "quadro", "gpu"};
  std::vector<std::string> words(1);
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  if (words.back().empty()) words.pop_back();
  while (words.size() > 1 && kMakers.contains(words.front())) words.erase(words.begin());
  return words;
}

}  // namespace

bool is_gpu_slice(std::string_view name) {
  static const std::regex slice(R"((^|.*[^a-z0-9])[1-7]g[._-]?[0-9]+gb.*)", std::regex::icase);
  return std::regex_match(name.begin(), name.end(), slice);
}

std::string known_gpu_type(std::string_view name) {
  static const std::set<std::string> kModels = {
      "a2",    "a10",   "a10g",  "a16",   "a30",  "a40",  "a100", "a100x", "a800",  "a2000", "a4000",
      "a4500", "a5000", "a5500", "a6000", "b100", "b200", "b300", "gh200", "gb200", "gb300", "h20",
      "h100",  "h200",  "h800",  "k20",   "k40",  "k80",  "l4",   "l20",   "l40",   "l40s",  "m40",
      "m60",   "p4",    "p40",   "p100",  "t4",   "t4g",  "v100", "v100s"};
  // What makes another chip, or another board, of the same number.
  static const std::set<std::string> kVariants = {"ti", "super", "ada", "d", "laptop"};
  static const std::regex series("(rtx|gtx|titan)([0-9a-z]*)"), number("([0-9]{4})(ti|super|d)?");
  if (is_gpu_slice(name)) return "";
  std::vector<std::string> words = model_words(name);
  std::erase(words, "sff");  // "RTX 4000 SFF Ada Generation"
  std::smatch part;
  if (words.empty()) return "";
  if (kModels.contains(words[0])) return upper(words[0]);
  if (std::regex_match(words[0], part, number))
    return upper((part[1].str() < "2000" ? "gtx" : "rtx") + words[0]);
  if (!std::regex_match(words[0], part, series)) return "";
  // "rtx 3090", "rtx3090 ti", "rtx a6000", "rtx pro 6000", "titan v"
  std::string model = words[0];
  std::size_t next = 1;
  if (part[2].length() == 0 && words.size() > next) {
    if (kModels.contains(words[next])) return upper(words[next]);
    model += words[next++];
    if (model == "rtxpro" && words.size() > next) model += words[next++];
  }
  while (words.size() > next && kVariants.contains(words[next])) model += words[next++];
  return has_digit(model) || part[1] == "titan" ? upper(model) : "";
}

std::string gpu_type_of(std::string_view name) {
  if (is_gpu_slice(name)) return "";
  if (std::string known = known_gpu_type(name); !known.empty()) return known;
  // The words up to the number of the model: what follows is its memory and its board.
  std::string type;
  for (const std::string& word : model_words(name)) {
    type += upper(word);
    if (has_digit(word)) break;
  }
  if (type.empty()) return "";
  type = type.substr(0, 50);
  return is_identifier(type) ? type : "GPU_" + type;
}

std::string compile_target(int major, int minor) {
  if (major <= 0) return "";
  // The `a` forms have the instructions of that generation alone (wgmma, tcgen05), which fast kernels want.
  const bool own = minor == 0 && (major == 9 || major == 10);
  return "sm_" + std::to_string(major) + std::to_string(minor) + (own ? "a" : "");
}

bool runs_on(std::string_view target, std::string_view device) {
  const auto number = [](std::string_view text) {
    int value = 0;
    for (const char c : text)
      if (std::isdigit(static_cast<unsigned char>(c)) != 0) value = 10 * value + (c - '0');
    return value;
  };
  const int wants = number(target), has = number(device);
  const bool own = target.ends_with('a');
  return wants == has || (!own && wants / 10 == has / 10 && wants < has);
}

}  // namespace warpsmith::process

#include "log.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <vector>

#include "../common/compile_unit.h"
#include "../common/cuda_log.h"
#include "../common/elf_file.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kFile = "kernel.cu";
constexpr std::string_view kNames = "__nv_name_map";  // where NVRTC looks up what the plan names

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Place of the line with the caret; the source stands above it. The number of lines where there is none.
std::size_t caret_line(const FrontEndReport& report) {
  std::size_t i = 0;
  while (i < report.below.size() &&
         (!has(report.below[i], "^") || report.below[i].find_first_not_of(" \t^") != std::string::npos))
    ++i;
  return i;
}

int column_of(const FrontEndReport& report) {
  const std::size_t i = caret_line(report);
  // NVRTC sets two blanks in front of the source.
  return i < report.below.size() ? std::max(1, static_cast<int>(report.below[i].find('^')) - 1) : 1;
}

// Of an error inside one of CUDA's headers, the place in the candidate that led there: "… at line 7 of
// kernel.cu".
int line_that_led_to(const FrontEndReport& report) {
  int line = 0;
  for (const std::string& text : report.below) {
    const std::size_t at = text.rfind(" at line ");
    if (at != std::string::npos && has(text.substr(at), " of " + std::string(kFile)))
      line = static_cast<int>(std::strtol(text.c_str() + at + 9, nullptr, 10));
  }
  return line;
}

std::string at_place(int line, int column, const std::string& message) {
  return place_of({line, column, without_folders(message), false});
}

// "_Z1ff" -> "f(float)", in a text.
std::string demangled(const std::string& text) {
  const std::size_t at = text.find("_Z");
  if (at == std::string::npos) return text;
  std::size_t end = at;
  while (end < text.size() && is_name_part(text[end])) ++end;
  const std::optional<std::string> name = demangle(text.substr(at, end - at));
  return name ? text.substr(0, at) + *name + text.substr(end) : text;
}

// What stands below an error and above the source line, such as the types of the arguments.
std::string details_of(const FrontEndReport& report) {
  const std::size_t caret = caret_line(report);
  return caret >= 2 && caret < report.below.size() ? "; " + trim(report.below.front()) : "";
}

// The plan's name: "#pragma nv_mangled_name &W" below the error.
std::string name_asked_for(const FrontEndReport& report) {
  constexpr std::string_view kAsked = "#pragma nv_mangled_name ";
  for (const std::string& line : report.below) {
    const std::size_t at = line.find(kAsked);
    if (at != std::string::npos) return trim(line.substr(at + kAsked.size()));
  }
  return "";
}

// "T" of `identifier "T" is undefined` where it stands among the template arguments of `name`.
std::string undefined_argument(const FrontEndReport& report, const std::string& name) {
  constexpr std::string_view kFront = "identifier \"", kBack = "\" is undefined";
  const std::size_t arguments = name.find('<');
  if (arguments == std::string::npos || !report.message.starts_with(kFront) ||
      !report.message.ends_with(kBack))
    return "";
  const std::string undefined =
      report.message.substr(kFront.size(), report.message.size() - kFront.size() - kBack.size());
  for (std::size_t at = name.find(undefined, arguments); at != std::string::npos;
       at = name.find(undefined, at + 1))
    if (!is_name_part(name[at - 1]) && !is_name_part(name.c_str()[at + undefined.size()])) return undefined;
  return "";
}

std::string unknown_name(const FrontEndReport& report) {
  const std::string name = name_asked_for(report);
  const std::string what =
      name.starts_with("&")
          ? "the plan fills `" + name.substr(1) +
                "`, which is no __device__ or __constant__ variable of this source"
          : "the plan launches `" + name + "`, which is no __global__ function of this source";
  const std::string argument = undefined_argument(report, name);
  if (!argument.empty())
    return at_place(1, 1,
                    what + ": template arguments are C++ text, where names of the plan mean nothing, and `" +
                        argument + "` is undefined");
  const bool plain = has(report.message, "is undefined") || has(report.message, "non-__global__");
  return at_place(1, 1, plain ? what : what + ": " + report.message);
}

// The first line of a log in no form that is known.
std::string first_words(std::string_view log) {
  for (const std::string& line : split_lines(log))
    if (!trim(line).empty() && !line.starts_with("ptxas info") && !line.starts_with("ptxas  "))
      return without_folders(trim(line));
  return "";
}

}  // namespace

std::string readable_nvrtc_log(std::string_view log, std::size_t limit) {
  std::string out, of_plan, of_assembler, last_name;
  std::set<std::string> said;
  for (const FrontEndReport& r : read_reports(log)) {
    if (!r.is_error()) continue;
    if (r.file == kFile) {
      out += at_place(r.line, column_of(r), r.message + details_of(r));
    } else if (r.file == kNames) {
      const std::string name = name_asked_for(r);
      if (name != last_name) of_plan += unknown_name(r);
      last_name = name;
    } else {
      const int line = line_that_led_to(r);
      const std::string text = line > 0 ? at_place(line, 1, r.message + details_of(r))
                                        : "kernel.cu: error: " + without_folders(r.message) + "\n";
      // A header may say the same of each of its functions.
      if (said.insert(text).second) out += text;
    }
  }
  for (const std::string& error : assembler_errors(log))
    of_assembler += "kernel.cu: error: " + without_folders(demangled(error)) + "\n";
  // What the plan names is not found either where the source has mistakes.
  if (out.empty()) out = of_plan;
  out += of_assembler;
  if (out.empty()) {
    const std::string first = first_words(log);
    out = "kernel.cu: error: the compiler failed" + (first.empty() ? "" : ": " + first) + "\n";
  }
  return cut_log(std::move(out), limit);
}

}  // namespace warpsmith::toolchain

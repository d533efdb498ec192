#include "log.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "../common/compile_unit.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kFile = "kernel.cu";
constexpr std::string_view kNames = "__nv_name_map";  // where NVRTC looks up what the plan names

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

// "kernel.cu(12): error: message", and the lines below it until the next.
struct Report {
  std::string file, kind, message;
  int line = 0;
  std::vector<std::string> below;
};

std::optional<Report> read_head(const std::string& text) {
  for (const std::string_view kind :
       {"catastrophic error", "internal error", "error", "Error", "warning", "note", "remark"}) {
    const std::size_t at = text.find("): " + std::string(kind));
    const std::size_t open = text.rfind('(', at);
    if (at == std::string::npos || open == std::string::npos || open + 1 == at) continue;
    const std::size_t colon = text.find(": ", at + 3);
    if (colon == std::string::npos) continue;
    Report r{text.substr(0, open), std::string(kind), text.substr(colon + 2), 0, {}};
    r.line = static_cast<int>(std::strtol(text.c_str() + open + 1, nullptr, 10));
    return r;
  }
  return std::nullopt;
}

std::vector<Report> read_reports(std::string_view log) {
  std::vector<Report> reports;
  for (const std::string& line : split_lines(log)) {
    std::optional<Report> head = read_head(line);
    // Notes stand between an error and the instantiations that led to it.
    if (head && head->kind == "note") continue;
    if (head)
      reports.push_back(std::move(*head));
    else if (!reports.empty())
      reports.back().below.push_back(line);
  }
  return reports;
}

// Place of the line with the caret; the source stands above it. The number of lines where there is none.
std::size_t caret_line(const Report& report) {
  std::size_t i = 0;
  while (i < report.below.size() &&
         (!has(report.below[i], "^") || report.below[i].find_first_not_of(" \t^") != std::string::npos))
    ++i;
  return i;
}

int column_of(const Report& report) {
  const std::size_t i = caret_line(report);
  // NVRTC sets two blanks in front of the source.
  return i < report.below.size() ? std::max(1, static_cast<int>(report.below[i].find('^')) - 1) : 1;
}

// Of an error inside one of CUDA's headers, the place in the candidate that led there: "… at line 7 of
// kernel.cu".
int line_that_led_to(const Report& report) {
  int line = 0;
  for (const std::string& text : report.below) {
    const std::size_t at = text.rfind(" at line ");
    if (at != std::string::npos && has(text.substr(at), " of " + std::string(kFile)))
      line = static_cast<int>(std::strtol(text.c_str() + at + 9, nullptr, 10));
  }
  return line;
}

// "/usr/include/a.h" -> "a.h": absolute paths at the beginning of words.
std::string without_folders(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && (i == 0 || has(" \"'", text.substr(i - 1, 1)))) {
      const std::size_t last_slash = text.rfind('/', text.find_first_of(" \"'", i));
      if (last_slash > i) {
        i = last_slash;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

// "_Z1ff" -> "f(float)"
std::string demangled(const std::string& text) {
  const std::size_t at = text.find("_Z");
  if (at == std::string::npos) return text;
  std::size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
    ++end;
  int status = 1;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(text.substr(at, end - at).c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return text;
  return text.substr(0, at) + name.get() + text.substr(end);
}

std::string at_place(int line, int column, const std::string& message) {
  return std::string(kFile) + ":" + std::to_string(line) + ":" + std::to_string(column) +
         ": error: " + without_folders(message) + "\n";
}

// What stands below an error and above the source line, such as the types of the arguments.
std::string details_of(const Report& report) {
  const std::size_t caret = caret_line(report);
  return caret >= 2 && caret < report.below.size() ? "; " + trim(report.below.front()) : "";
}

// The plan's name: "#pragma nv_mangled_name &W" below the error.
std::string name_asked_for(const Report& report) {
  constexpr std::string_view kAsked = "#pragma nv_mangled_name ";
  for (const std::string& line : report.below) {
    const std::size_t at = line.find(kAsked);
    if (at != std::string::npos) return trim(line.substr(at + kAsked.size()));
  }
  return "";
}

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "T" of `identifier "T" is undefined` where it stands among the template arguments of `name`.
std::string undefined_argument(const Report& report, const std::string& name) {
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

std::string unknown_name(const Report& report) {
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

// "ptxas fatal   : message", "ptxas application ptx input, line 27; error   : message": each message once, as
// inline PTX in a loop would repeat it. The last line says only that there were others.
std::vector<std::string> assembler_errors(std::string_view log) {
  std::vector<std::string> errors;
  for (const std::string& line : split_lines(log)) {
    const std::size_t colon = line.find(" : ");
    if (!line.starts_with("ptxas") || colon == std::string::npos) continue;
    const std::string head = line.substr(0, colon), message = line.substr(colon + 3);
    if ((!has(head, "error") && !has(head, "fatal")) || has(message, "aborted due to errors")) continue;
    if (std::find(errors.begin(), errors.end(), message) == errors.end()) errors.push_back(message);
  }
  return errors;
}

// NVRTC's optimiser writes "Error".
bool is_error(const Report& report) { return has(report.kind, "rror"); }

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
  for (const Report& r : read_reports(log)) {
    if (!is_error(r)) continue;
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

bool target_lacks_features(std::string_view log) {
  const std::vector<Report> reports = read_reports(log);
  const std::vector<std::string> errors = assembler_errors(log);
  return !errors.empty() && std::none_of(reports.begin(), reports.end(), is_error) &&
         std::all_of(errors.begin(), errors.end(), [](const std::string& e) {
           return has(e, "requires .target ") || has(e, "not supported on .target ");
         });
}

std::map<std::string, KernelResources> read_resources(std::string_view log) {
  std::map<std::string, KernelResources> kernels;
  KernelResources* kernel = nullptr;
  // "… 816 bytes stack frame …": the number in front of a word.
  const auto number = [](const std::string& line, std::string_view unit) -> std::uint64_t {
    const std::size_t at = line.find(unit);
    if (at == std::string::npos) return 0;
    std::size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
    return std::strtoull(line.c_str() + begin, nullptr, 10);
  };
  for (const std::string& line : split_lines(log)) {
    const std::size_t name = line.find("Compiling entry function '");
    if (name != std::string::npos) {
      const std::size_t begin = name + 26, end = line.find('\'', begin);
      if (end != std::string::npos) kernel = &kernels[line.substr(begin, end - begin)];
    } else if (kernel != nullptr && has(line, " bytes stack frame")) {
      kernel->local_bytes = number(line, " bytes stack frame");
      kernel->spill_store_bytes = number(line, " bytes spill stores");
      kernel->spill_load_bytes = number(line, " bytes spill loads");
    } else if (kernel != nullptr && has(line, " registers")) {
      kernel->registers = static_cast<int>(number(line, " registers"));
      kernel->shared_bytes = number(line, " bytes smem");
    }
  }
  return kernels;
}

}  // namespace warpsmith::toolchain

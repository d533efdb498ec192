#include "cuda_log.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

std::optional<FrontEndReport> read_head(const std::string& text) {
  for (const std::string_view kind :
       {"catastrophic error", "internal error", "error", "Error", "warning", "note", "remark"}) {
    const std::size_t at = text.find("): " + std::string(kind));
    const std::size_t open = text.rfind('(', at);
    if (at == std::string::npos || open == std::string::npos || open + 1 == at) continue;
    const std::size_t colon = text.find(": ", at + 3);
    if (colon == std::string::npos) continue;
    FrontEndReport r{text.substr(0, open), std::string(kind), text.substr(colon + 2), 0, {}};
    r.line = static_cast<int>(std::strtol(text.c_str() + open + 1, nullptr, 10));
    return r;
  }
  return std::nullopt;
}

}  // namespace

std::vector<FrontEndReport> read_reports(std::string_view log) {
  std::vector<FrontEndReport> reports;
  for (const std::string& line : split_lines(log)) {
    std::optional<FrontEndReport> head = read_head(line);
    // Notes stand between an error and the instantiations that led to it.
    if (head && head->kind == "note") continue;
    if (head)
      reports.push_back(std::move(*head));
    else if (!reports.empty())
      reports.back().below.push_back(line);
  }
  return reports;
}

// "ptxas fatal   : message", "ptxas application ptx input, line 27; error   : message". The last line says
// only that there were others.
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

bool target_lacks_features(std::string_view log) {
  const std::vector<FrontEndReport> reports = read_reports(log);
  const std::vector<std::string> errors = assembler_errors(log);
  return !errors.empty() &&
         std::none_of(reports.begin(), reports.end(), [](const FrontEndReport& r) { return r.is_error(); }) &&
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

std::string without_folders(const std::string& text, std::string_view before, std::string_view behind) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && (i == 0 || before.find(text[i - 1]) != std::string_view::npos)) {
      const std::size_t last_slash = text.rfind('/', text.find_first_of(behind, i));
      if (last_slash > i) {
        i = last_slash;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace warpsmith::toolchain

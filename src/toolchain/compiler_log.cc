#include "compiler_log.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "compile_unit.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kFile = "kernel.cu:";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

struct Place {
  int line = 0, column = 0;
  std::string rest;  // behind the place
};

// "kernel.cu:12:3: …"
bool read_place(const std::string& line, Place* place) {
  if (line.compare(0, kFile.size(), kFile) != 0) return false;
  char* end = nullptr;
  place->line = static_cast<int>(std::strtol(line.c_str() + kFile.size(), &end, 10));
  place->column = *end == ':' ? static_cast<int>(std::strtol(end + 1, &end, 10)) : 0;
  if (*end == ':') ++end;
  place->rest = trim(end);
  return true;
}

std::string with_place(const Place& place, const Rewritten& rewritten, const std::string& message) {
  return std::string(kFile) + std::to_string(place.line) + ":" +
         std::to_string(original_column(rewritten, place.line, std::max(place.column, 1))) + ": " + message;
}

}  // namespace

std::string readable_log(std::string_view compiler_output, const Rewritten& rewritten, std::size_t limit) {
  std::vector<std::string> errors, others;
  std::string homeless;  // an error in our header, waiting for the place in the candidate that led there
  for (const std::string& line : split_lines(compiler_output)) {
    Place place;
    const bool ours = read_place(line, &place);
    const std::size_t error = line.find("error: ");
    if (ours && place.rest.rfind("error: ", 0) == 0) {
      errors.push_back(with_place(place, rewritten, place.rest));
      homeless.clear();
    } else if (ours && place.rest.rfind("required from", 0) == 0) {
      // Comes before the error that it explains.
      homeless = with_place(place, rewritten, "");
    } else if (ours) {
      others.push_back(with_place(place, rewritten, place.rest));
    } else if (error != std::string::npos) {
      errors.push_back((homeless.empty() ? std::string("kernel.cu: ") : homeless) + line.substr(error));
      homeless.clear();
    }
  }
  if (errors.empty() && others.empty()) {
    std::string first(compiler_output.substr(0, compiler_output.find('\n')));
    errors.push_back("kernel.cu: error: the compiler failed" +
                     (first.empty() || first.find('/') != std::string::npos ? "" : ": " + first));
  }
  std::string log;
  for (const std::vector<std::string>* part : {&errors, &others})
    for (std::string line : *part) {
      replace_all(line, "const wstw_ctx&, ", "");
      replace_all(line, "const wstw_ctx&", "");
      log += line + "\n";
    }
  return cut_log(std::move(log), limit);
}

}  // namespace warpsmith::toolchain

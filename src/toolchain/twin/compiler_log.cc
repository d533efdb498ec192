#include "compiler_log.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <vector>

#include "../common/compile_unit.h"
#include "cuda_names.h"
#include "linker_log.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kFile = "kernel.cu:";
constexpr std::string_view kBounded = "const wstw_bounded<";

struct Place {
  int line = 0, column = 0;
  std::string rest;  // behind the place
};

// "kernel.cu:12:3: …", and not "kernel.cu: In function …".
bool read_place(const std::string& line, Place* place) {
  if (line.compare(0, kFile.size(), kFile) != 0 || line.size() == kFile.size() ||
      !std::isdigit(static_cast<unsigned char>(line[kFile.size()])))
    return false;
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

bool is_cuda_name(std::string_view name) {
  const auto capital_behind = [&](std::string_view start) {
    return name.size() > start.size() && name.starts_with(start) &&
           std::isupper(static_cast<unsigned char>(name[start.size()]));
  };
  if (capital_behind("cuda") || capital_behind("cu")) return true;
  if (name.starts_with("__v") && (name.ends_with('2') || name.ends_with('4') || name.ends_with("_relu")))
    return true;
  for (const std::string_view start : kCudaPrefixes)
    if (name.starts_with(start)) return true;
  return kCudaNames.find(" " + std::string(name) + " ") != std::string_view::npos;
}

// "'X' was not declared in this scope", "'X' is not a member of 'cg'", "'class cooperative_groups::G' has no
// member named 'X'": X.
std::string missing_name(const std::string& message) {
  const auto quoted_at = [&](std::size_t at) {
    const std::size_t end = message.find('\'', at + 1);
    return end == std::string::npos ? std::string() : message.substr(at + 1, end - at - 1);
  };
  const std::size_t first = message.find('\'');
  if (first == std::string::npos) return "";
  for (const char* words :
       {"' was not declared in this scope", "' is not a member of '", "' does not name a type"})
    if (message.find(words) == message.find('\'', first + 1)) return quoted_at(first);
  constexpr std::string_view kMember = "' has no member named ";
  const std::size_t member = message.find(kMember);
  if (member == std::string::npos || message.find("cooperative_groups::") > member) return "";
  return quoted_at(member + kMember.size());
}

// What a missing type takes with it: its variables, and syntax errors on its line.
bool follows(const Place& error, const std::string& name, const Place& missing,
             const std::string& missing_type, const std::string& text) {
  if (!name.empty()) {
    for (const std::string& line : split_lines(text)) {
      const std::vector<Token> tokens = tokens_of(line, 1);
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].text != missing_type) continue;
        // `T a, *b;`
        std::string_view before = ",";
        for (std::size_t k = i + 1; k < tokens.size() && tokens[k].text != ";" && tokens[k].text != "(";
             ++k) {
          if (tokens[k].text == name && before == ",") return true;
          if (tokens[k].text != "*" && tokens[k].text != "&" && tokens[k].text != "const")
            before = tokens[k].text;
        }
      }
    }
    return false;
  }
  return error.line == missing.line && error.rest.rfind("error: expected ", 0) == 0;
}

// The first name that the twin lacks, where nothing else is wrong.
std::optional<SourceProblem> only_cuda_names_missing(const std::vector<Place>& errors,
                                                     const Rewritten& rewritten) {
  const Place* first = nullptr;
  std::string first_name;
  for (const Place& e : errors) {
    const std::string name = missing_name(e.rest);
    if (!name.empty() && is_cuda_name(name)) {
      if (first == nullptr) {
        first = &e;
        first_name = name;
      }
      continue;
    }
    bool explained = false;
    for (const Place& other : errors) {
      const std::string missing = missing_name(other.rest);
      explained |=
          !missing.empty() && is_cuda_name(missing) && follows(e, name, other, missing, rewritten.text);
    }
    if (!explained) return std::nullopt;
  }
  if (first == nullptr) return std::nullopt;
  return SourceProblem{first->line, original_column(rewritten, first->line, std::max(first->column, 1)),
                       "the CPU twin has no " + first_name, true};
}

}  // namespace

std::string readable_log(std::string_view compiler_output, const Rewritten& rewritten, std::size_t limit) {
  std::vector<std::string> errors, others;
  std::vector<Place> places;  // of the errors; line 0: in our header
  std::string homeless;       // an error in our header, waiting for the place in the candidate that led there
  for (const std::string& line : split_lines(compiler_output)) {
    Place place;
    const bool ours = read_place(line, &place);
    const std::size_t error = line.find("error: ");
    if (ours && place.rest.rfind("error: ", 0) == 0) {
      errors.push_back(with_place(place, rewritten, place.rest));
      places.push_back(place);
      homeless.clear();
    } else if (ours && place.rest.rfind("required from", 0) == 0) {
      // Comes before the error that it explains.
      homeless = with_place(place, rewritten, "");
    } else if (ours && place.rest.rfind("warning: ", 0) != 0) {
      others.push_back(with_place(place, rewritten, place.rest));
    } else if (error != std::string::npos && line.find("ld returned ") == std::string::npos) {
      errors.push_back((homeless.empty() ? std::string("kernel.cu: ") : homeless) + line.substr(error));
      places.push_back({0, 0, line.substr(error)});
      homeless.clear();
    }
  }
  if (const std::optional<SourceProblem> problem = only_cuda_names_missing(places, rewritten)) throw *problem;
  if (errors.empty()) errors = linker_errors(compiler_output, rewritten);
  if (errors.empty() && others.empty()) {
    std::string first(compiler_output.substr(0, compiler_output.find('\n')));
    errors.push_back("kernel.cu: error: the compiler failed" +
                     (first.empty() || first.find('/') != std::string::npos ? "" : ": " + first));
  }
  std::string log;
  for (const std::vector<std::string>* part : {&errors, &others})
    for (std::string line : *part) {
      line = replaced(std::move(line), "const wstw_ctx&, ", "");
      line = replaced(std::move(line), "const wstw_ctx&", "");
      for (std::size_t at = line.find(kBounded); at != std::string::npos; at = line.find(kBounded)) {
        const std::size_t end = line.find(">&", at);
        if (end == std::string::npos) break;
        line.erase(at, end + 2 - at + (line.compare(end + 2, 2, ", ") == 0 ? 2 : 0));
      }
      log += line + "\n";
    }
  return cut_log(std::move(log), limit);
}

}  // namespace warpsmith::toolchain

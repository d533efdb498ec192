#include "optimised.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "../common/sass.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// Words of GIMPLE and of types. Its operations are in capitals, its own functions begin with a dot.
bool is_kept(std::string_view word) {
  static const std::set<std::string_view> kWords = {
      "void",     "bool",   "_Bool",    "char",     "short",    "int",      "long",   "signed",
      "unsigned", "float",  "double",   "__int128", "vector",   "sizetype", "if",     "ssizetype",
      "return",   "__bf16", "_Float16", "volatile", "restrict", "const",    "switch", "case"};
  const bool capitals =
      std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
  return word.front() == '.' || word.starts_with("__builtin") || kWords.contains(word) ||
         (capitals && word.size() > 2);
}

// ";; Function k (k, funcdef_no=984, …" names what is defined here.
std::set<std::string_view> functions_in(std::string_view dump) {
  constexpr std::string_view kHead = ";; Function ";
  std::set<std::string_view> functions;
  for (std::size_t at = dump.find(kHead); at != std::string_view::npos; at = dump.find(kHead, at)) {
    at += kHead.size();
    const std::string_view line = dump.substr(at, dump.find('\n', at) - at);
    const std::size_t open = line.rfind(" (");
    std::string_view name = line.substr(0, open);
    if (const std::size_t parameters = name.find(' '); parameters != std::string_view::npos)
      name = name.substr(0, parameters);
    functions.insert(name.substr(0, name.find('<')));
  }
  return functions;
}

// A statement with `v` for a name, `c` for a number.
std::string without_names(std::string_view line, const std::set<std::string_view>& defined) {
  std::string out;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == ' ') {
      ++at;
      continue;
    }
    if (!is_word(c)) {
      out += c;
      ++at;
      continue;
    }
    std::size_t end = at;
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    while (end < line.size() &&
           (is_word(line[end]) || (number && (line[end] == '+' || line[end] == '-') && line[end - 1] == 'e')))
      ++end;
    const std::string_view word = line.substr(at, end - at);
    const bool called = line.substr(end).starts_with(" (") && !defined.contains(word);
    if (number)
      out += 'c';
    else if (is_kept(word) || called)
      out.append(word) += ' ';
    else
      out += 'v';
    at = end;
    if (line.substr(at).starts_with("(D)")) at += 3;  // a parameter's first value
  }
  return out;
}

bool is_statement(std::string_view line) {
  return !line.empty() && !line.starts_with("<bb ") && !line.starts_with("goto ") && line != "else" &&
         !line.starts_with("# DEBUG") && line != "{" && line != "}";
}

}  // namespace

std::string structure_of_optimised(std::string_view dump) {
  const std::set<std::string_view> defined = functions_in(dump);
  std::vector<std::string> functions, statements;
  bool inside = false;  // behind the declarations of a function
  while (!dump.empty()) {
    const std::size_t end = dump.find('\n');
    std::string_view line = dump.substr(0, end);
    dump.remove_prefix(end == std::string_view::npos ? dump.size() : end + 1);
    if (line == "}") {
      functions.push_back(digest_of_parts(std::move(statements)));
      statements = {};
      inside = false;
      continue;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    inside = inside || line.starts_with("<bb ");
    if (!inside || !is_statement(line)) continue;
    // As many of them as there are values that meet, in an order of the compiler's own.
    if (line.find(" = PHI <") != std::string_view::npos) line = "PHI";
    statements.push_back(without_names(line, defined));
  }
  return digest_of_parts(std::move(functions));
}

}  // namespace warpsmith::toolchain

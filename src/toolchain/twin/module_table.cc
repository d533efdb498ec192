#include "module_table.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "guard.h"

namespace warpsmith::toolchain {

namespace {

std::string base_name(const std::string& expression) {
  std::string name = expression.substr(0, expression.find('<'));
  const std::size_t colons = name.rfind("::");
  if (colons != std::string::npos) name = name.substr(colons + 2);
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.front()))) name.erase(0, 1);
  return name;
}

// "x,out,N": the last name of each parameter.
std::string parameter_names(const Function& f, const std::vector<Token>& tokens) {
  std::string names, last;
  for (std::size_t i = f.params_open + 1; i <= f.params_close; ++i) {
    const std::string_view t = tokens[i].text;
    if (t == "," || i == f.params_close) {
      if (!last.empty()) names += (names.empty() ? "" : ",") + last;
      last.clear();
    } else if (t == "(" || t == "[") {
      i = matching(tokens, i);
    } else if (t == "<") {
      const std::size_t close = matching_angle(tokens, i);
      if (close < f.params_close) i = close;
    } else if (tokens[i].kind == TokenKind::kIdentifier && t != "__restrict__" && t != "const") {
      last = std::string(t);
    }
  }
  return names;
}

}  // namespace

namespace {

const Function* find_kernel(const Scan& scan, const std::string& name) {
  const Function* kernel = nullptr;
  for (const Function& f : scan.functions)
    if (f.is_global && f.name == name && (kernel == nullptr || f.defined())) kernel = &f;
  return kernel;
}

// Also in what macros stand for.
std::set<std::string, std::less<>> identifiers_of(const CleanSource& source) {
  std::set<std::string, std::less<>> names;
  const auto add = [&](const std::vector<Token>& tokens) {
    for (const Token& t : tokens)
      if (t.kind == TokenKind::kIdentifier) names.emplace(t.text);
  };
  add(source.tokens);
  for (const Token& t : source.tokens)
    if (t.kind == TokenKind::kDirective) add(tokens_of(t.text.substr(1), t.line));
  return names;
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "\"" + out + "\"";
}

// A line that the compiler takes for the plan's, with `text` in the column where the plan has it, so that
// its messages have that place; `sign` stands in front, `end` behind.
std::string at_place(const task::NamePlace& place, const char* sign, const std::string& text,
                     const std::string& end) {
  const auto column = static_cast<std::size_t>(std::max(place.column, 2));
  return "\n#line " + std::to_string(place.line) + " \"kernel.cu\"\n" + std::string(column - 2, ' ') + sign +
         text + end + "\n#line 1 \"plan\"\n";
}

[[noreturn]] void fail_at(const task::NamePlace& place, std::string message) {
  throw SourceProblem{place.line, place.column, std::move(message), false};
}

}  // namespace

std::string module_table(const Scan& scan, const CleanSource& source, const ModuleNames& names) {
  std::string aliases, kernels, symbols;
  for (std::size_t i = 0; i < names.kernels.size(); ++i) {
    const std::string& expression = names.kernels[i];
    const std::string base = base_name(expression);
    const Function* kernel = find_kernel(scan, base);
    if (kernel == nullptr)
      fail_at(names.place_of(expression),
              "the plan launches `" + base + "`, which is no __global__ function of this source");
    const std::string launch = "wstw_launch_" + std::to_string(i);
    const char* const kind = is_guarded(scan, source, base) ? "kWstwGuarded" : "kWstwEachThread";
    aliases += "using " + launch + " = wstw_launch<" +
               at_place(names.place_of(expression), "&", expression, std::string(", ") + kind + ">;");
    const bool waits = scan.waits.contains(base);
    kernels += "  {" + quoted(expression) + ", \"" + parameter_names(*kernel, source.tokens) + "\", " +
               launch + "::params, " + launch + "::count, " + (waits ? "1, " : "0, ") +
               (scan.grid_syncs.contains(base) ? "1, " : "0, ") +
               (waits ? "nullptr, " + launch + "::thread" : "WSTW_BLOCKS(" + launch + ")") + "},\n";
  }
  const std::set<std::string, std::less<>> known =
      names.symbols.empty() ? std::set<std::string, std::less<>>() : identifiers_of(source);
  for (std::size_t i = 0; i < names.symbols.size(); ++i) {
    const std::string& s = names.symbols[i];
    if (!known.contains(s))
      fail_at(names.place_of(s), "the plan fills `" + s + "`, which is no variable of this source");
    const std::string symbol = "wstw_symbol_" + std::to_string(i);
    aliases += "static constexpr auto& " + symbol + " =" + at_place(names.place_of(s), " ", s, ";");
    symbols += "  {\"" + s + "\", (void*)&" + symbol + ", sizeof(" + symbol + ")},\n";
  }
  // Macros of the candidate may have the names of our fields.
  return aliases +
         "#undef params\n#undef count\n#undef thread\n#undef blocks\nstatic constinit const wstw_kernel "
         "wstw_kernels[] = {\n" +
         kernels + "  {}};\n" + "static constinit const wstw_symbol wstw_symbols[] = {\n" + symbols +
         "  {}};\n" +
         "extern \"C\" __attribute__((externally_visible, visibility(\"default\"))) constinit const "
         "wstw_module WSTW_TABLE = {\n"
         "  kWstwAbi, " +
         std::to_string(names.kernels.size()) + ", " + std::to_string(names.symbols.size()) +
         ", 0, wstw_kernels, wstw_symbols, WSTW_ACCESS};\n";
}

}  // namespace warpsmith::toolchain

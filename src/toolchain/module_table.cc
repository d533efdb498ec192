#include "module_table.h"

#include <cctype>

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

std::string module_table(const Scan& scan, const CleanSource& source, const Rewritten& rewritten,
                         const ModuleNames& names) {
  std::string kernels, symbols;
  for (const std::string& expression : names.kernels) {
    const std::string base = base_name(expression);
    const Function* kernel = nullptr;
    for (const Function& f : scan.functions)
      if (f.is_global && f.name == base && (kernel == nullptr || f.defined())) kernel = &f;
    if (kernel == nullptr)
      throw SourceProblem{
          1, 1, "the plan launches `" + base + "`, which is no __global__ function of this source", false};
    const bool split = rewritten.split.contains(base);
    const std::string launch = "wstw_launch<&" + expression + ", " +
                               (split                            ? "kWstwWholeBlock"
                                : is_guarded(scan, source, base) ? "kWstwGuarded"
                                                                 : "kWstwEachThread") +
                               ">";
    const bool waits = scan.waits.contains(base) && !split;
    std::string quoted;
    for (const char c : expression)
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    kernels += "  {\"" + quoted + "\", \"" + parameter_names(*kernel, source.tokens) + "\", " + launch +
               "::params, " + launch + "::count, " + (waits ? "1, " : "0, ") +
               (scan.grid_syncs.contains(base) ? "1, " : "0, ") +
               (waits ? "nullptr, " + launch + "::thread" : launch + "::blocks, nullptr") + "},\n";
  }
  for (const std::string& s : names.symbols)
    symbols += "  {\"" + s + "\", (void*)&" + s + ", sizeof(" + s + ")},\n";
  return "static constinit const wstw_kernel wstw_kernels[] = {\n" + kernels + "  {}};\n" +
         "static constinit const wstw_symbol wstw_symbols[] = {\n" + symbols + "  {}};\n" +
         "extern \"C\" __attribute__((externally_visible, visibility(\"default\"))) constinit const "
         "wstw_module wstw_module_table = {\n"
         "  kWstwAbi, " +
         std::to_string(names.kernels.size()) + ", " + std::to_string(names.symbols.size()) +
         ", 0, wstw_kernels, wstw_symbols};\n";
}

}  // namespace warpsmith::toolchain

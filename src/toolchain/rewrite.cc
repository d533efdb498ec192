#include "rewrite.h"

#include <algorithm>
#include <cctype>

#include "guard.h"
#include "split.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kContextParameter = "const wstw_ctx& wstw_";

bool is_vector_type(std::string_view name) {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all = {"half2", "__half2", "__nv_bfloat162", "nv_bfloat162"};
    for (const char* base :
         {"float", "double", "int", "uint", "short", "ushort", "char", "uchar", "longlong", "ulonglong"})
      for (const char* n : {"2", "4"}) all.insert(std::string(base) + n);
    return all;
  }();
  return names.contains(name);
}

struct Edit {
  std::size_t offset = 0, removed = 0;
  std::string text;
  int order = 1;  // at one offset: 0 what belongs to the token before, 1 what goes before the token, 2 what
                  // replaces it
};

// Words before `(` that make it no call.
bool is_keyword_of_expression(std::string_view t) {
  return t == "return" || t == "else" || t == "do" || t == "case";
}

// A macro that is one number.
bool is_plain_macro(const Scan& scan, const CleanSource& source, std::string_view name) {
  for (const std::size_t i : scan.macros.find(name)->second) {
    const std::vector<Token> tokens = tokens_of(source.tokens[i].text.substr(1), 1);
    if (tokens.size() != 3 || tokens[2].kind != TokenKind::kNumber) return false;
  }
  return true;
}

// Whether the threads of a kernel that pass its guard are run without it. Macros may change what the source
// seems to say.
bool is_guarded(const Scan& scan, const CleanSource& source, std::string_view name) {
  const Function* kernel = nullptr;
  for (const Function& f : scan.functions) {
    if (f.name != name || !f.defined()) continue;
    if (kernel != nullptr) return false;  // of overloads and specialisations, the launch takes one
    kernel = &f;
  }
  if (kernel == nullptr || !kernel->is_global || scan.waits.contains(name)) return false;
  for (std::size_t i = kernel->body_open; i < kernel->body_close; ++i)
    if (scan.macros.contains(source.tokens[i].text) && !is_plain_macro(scan, source, source.tokens[i].text))
      return false;
  return !find_guards(source.tokens, *kernel).empty();
}

class Rewriter {
 public:
  Rewriter(const CleanSource& source, const Scan& scan, bool split)
      : source_(source), tokens_(source.tokens), scan_(scan), may_split_(split) {
    for (const Function& f : scan.functions) functions_.insert(f.name);
  }

  Rewritten run() {
    for (const Function& f : scan_.functions) rewrite_function(f);
    for (const auto& [begin, end] : scan_.file_shared) {
      std::string tags;
      for (const std::string& name : declared_names(begin, end)) tags += "struct " + tag_of(name) + "; ";
      remove(begin, end, tags);
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == TokenKind::kDirective)
        rewrite_directive(i);
      else if (tokens_[i].kind == TokenKind::kIdentifier)
        rewrite_name(tokens_, i, 0);
      if (text(i) == "(") rewrite_cast(i);
    }
    return apply();
  }

 private:
  std::string_view text(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kIdentifier;
  }
  void insert_before(std::size_t i, std::string what) {
    edits_.push_back({tokens_[i].offset, 0, std::move(what), 1});
  }
  void insert_after(std::size_t i, std::string what) {
    edits_.push_back({tokens_[i].offset + tokens_[i].text.size(), 0, std::move(what), 0});
  }
  // Blanks tokens out, newlines kept.
  void remove(std::size_t first, std::size_t last, const std::string& instead = "") {
    const std::size_t begin = tokens_[first].offset, end = tokens_[last].offset + tokens_[last].text.size();
    std::string blank = instead;
    for (std::size_t i = begin; i < end; ++i)
      if (source_.text[i] == '\n') blank += '\n';
    edits_.push_back({begin, end - begin, std::move(blank), 2});
  }
  [[noreturn]] void fail(std::size_t i, std::string message, bool unsupported) const {
    throw SourceProblem{tokens_[i].line, column_at(source_.text, tokens_[i].offset), std::move(message),
                        unsupported};
  }

  void rewrite_function(const Function& f) {
    if (f.defined() && !f.is_global && !f.is_device && !f.is_constexpr && !f.in_class)
      fail(f.name_at,
           "`" + f.name + "` is a host function: only device code is compiled (__device__ is missing)",
           false);
    if (!f.defined()) {
      if (!f.is_global && !f.is_device && !f.is_constexpr && !f.in_class && f.body_open == 0 &&
          looks_like_prototype(f))
        fail(f.name_at,
             "`" + f.name + "` is a host function: only device code is compiled (__device__ is missing)",
             false);
    }
    if (!scan_.needs_context.contains(f.name)) return;
    if (f.name == "operator" || f.name == f.class_name)
      fail(f.name_at,
           "the CPU twin has no thread indices, barriers or shared memory in " +
               std::string(f.name == "operator" ? "an operator" : "a constructor"),
           true);
    const bool no_parameters = f.params_close == f.params_open + 1;
    if (f.params_close == f.params_open + 2 && text(f.params_open + 1) == "void") {
      remove(f.params_open + 1, f.params_open + 1, std::string(kContextParameter));
    } else {
      insert_after(f.params_open, std::string(kContextParameter) + (no_parameters ? "" : ", "));
    }
    heads_.insert(f.name_at);
    if (f.defined()) {
      if (may_split_ && f.is_global) split(f);
      if (is_guarded(scan_, source_, f.name))
        for (const std::vector<Guard> guards = find_guards(tokens_, f); const Guard& g : guards) {
          const bool last = &g == &guards.back();
          insert_after(g.open, g.returns ? (last ? "WSTW_LAST_EXIT(" : "WSTW_EXIT(") : "WSTW_ENTRY(");
          insert_before(g.close, ")");
        }
      rewrite_lambdas(f.body_open, f.body_close);
      rewrite_shared(f);
    }
  }

  void split(const Function& f) {
    const std::optional<std::vector<SplitEdit>> edits = split_kernel(source_, scan_, f);
    if (!edits) return;
    split_.insert(f.name);
    for (const SplitEdit& e : *edits) {
      if (e.removes)
        remove(e.first, e.last, e.text);
      else if (e.after)
        insert_after(e.first, e.text);
      else
        insert_before(e.first, e.text);
    }
  }

  // `float f(int);` and not `float3 f(1, 2, 3);`
  bool looks_like_prototype(const Function& f) const {
    return text(f.head) != "extern" || text(f.head + 1) == "\"C\"" || is_name(f.params_open + 1) ||
           text(f.params_open + 1) == ")";
  }

  // Lambdas see the context by reference.
  void rewrite_lambdas(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (text(i) != "[" || (i > 0 && ((is_name(i - 1) && !is_keyword_of_expression(text(i - 1))) ||
                                       text(i - 1) == "]" || text(i - 1) == ")")))
        continue;
      const std::size_t close = matching(tokens_, i);
      const std::string_view next = text(close + 1);
      if (next != "(" && next != "{" && next != "__device__" && next != "mutable") continue;
      const std::string_view first = text(i + 1);
      const bool by_default = (first == "&" || first == "=") && (text(i + 2) == "]" || text(i + 2) == ",");
      if (!by_default) insert_after(i, close == i + 1 ? "&wstw_" : "&wstw_, ");
    }
  }

  // Declarations of shared variables in and before the body.
  void rewrite_shared(const Function& f) {
    std::string from_file;
    for (const auto& [begin, end] : scan_.file_shared) {
      const std::vector<std::string> names = declared_names(begin, end);
      for (std::size_t i = f.body_open; i < f.body_close; ++i)
        if (std::find(names.begin(), names.end(), text(i)) != names.end() && text(i - 1) != "." &&
            text(i - 1) != "->") {
          from_file += " " + shared_declaration(begin, end, true);
          break;
        }
    }
    if (!from_file.empty()) insert_after(f.body_open, from_file);
    for (std::size_t i = f.body_open; i < f.body_close; ++i) {
      if (text(i) != "__shared__") continue;
      std::size_t begin = i, end = i;
      while (begin > f.body_open && text(begin - 1) != ";" && text(begin - 1) != "{" &&
             text(begin - 1) != "}" && tokens_[begin - 1].kind != TokenKind::kDirective)
        --begin;
      while (end < f.body_close && text(end) != ";") {
        if (text(end) == "=") fail(end, "a __shared__ variable has no initial value", false);
        ++end;
      }
      remove(begin, end, shared_declaration(begin, end, false));
      i = end;
    }
  }

  static std::string tag_of(const std::string& name) { return "wstw_file_shared_" + name; }

  std::vector<std::string> declared_names(std::size_t begin, std::size_t end) const {
    std::vector<std::string> names;
    for (std::size_t i = begin; i < end; ++i) {
      if (text(i) == "[" || text(i) == "(")
        i = matching(tokens_, i);
      else if (is_name(i) && (text(i + 1) == "[" || text(i + 1) == ";" || text(i + 1) == ","))
        names.emplace_back(text(i));
    }
    if (names.empty()) fail(begin, "a __shared__ variable without a name", false);
    return names;
  }

  // `[extern] __shared__ T a[2], b;` as references into the block's storage.
  std::string shared_declaration(std::size_t begin, std::size_t end, bool of_file) const {
    bool dynamic = false;
    std::string type;
    std::size_t i = begin;
    for (; i < end; ++i) {
      const std::string_view t = text(i);
      if (t == "extern") {
        dynamic = true;
      } else if (t == "__shared__" || t == "static") {
      } else if (t == "__align__" || t == "alignas" || t == "__attribute__") {
        i = matching(tokens_, i + 1);
      } else if (is_name(i) && !type.empty() &&
                 (text(i + 1) == "[" || text(i + 1) == ";" || text(i + 1) == ",")) {
        break;
      } else {
        type += std::string(t) + " ";
      }
    }
    std::string out;
    while (i < end) {
      if (!is_name(i)) fail(i, "a __shared__ declaration that the CPU twin cannot read", true);
      const std::string name(text(i++));
      std::string dims, inner_dims;
      for (std::size_t n = 0; text(i) == "["; ++n) {
        const std::size_t close = matching(tokens_, i);
        std::string dim;
        for (std::size_t k = i; k <= close; ++k) dim += std::string(text(k)) + (k < close ? " " : "");
        dims += dim;
        if (n > 0) inner_dims += dim;
        i = close + 1;
      }
      if (dynamic && inner_dims.empty()) {
        out += type + "* const " + name + " = (" + type + "*)wstw_.block->dynamic; ";
      } else if (dynamic) {
        out += type + "(* const " + name + ")" + inner_dims + " = (" + type + "(*)" + inner_dims +
               ")wstw_.block->dynamic; ";
      } else {
        const std::string id = of_file ? tag_of(name) : "decltype([] {})";
        out += "auto& " + name + " = wstw_shared<" + type + dims + ", " + id + ">(wstw_); ";
      }
      if (text(i) == ",")
        ++i;
      else
        break;
    }
    if (i != end) fail(i, "a __shared__ declaration that the CPU twin cannot read", true);
    return out;
  }

  // Calls of functions that need the context hand it on. `tokens` may be those of a directive that begins at
  // `base`.
  void rewrite_name(const std::vector<Token>& tokens, std::size_t i, std::size_t base) {
    const std::string_view name = tokens[i].text;
    if (base == 0 && (name == "reinterpret_cast" || name == "static_cast")) {
      if (name == "reinterpret_cast" || names_vector_pointer(i)) remove(i, i, "wstw_reinterpret");
      return;
    }
    if (!functions_.contains(name) || !scan_.needs_context.contains(name) ||
        (base == 0 && heads_.contains(i)))
      return;
    const std::string_view before = i > 0 ? tokens[i - 1].text : std::string_view();
    std::size_t open = i + 1;
    if (open < tokens.size() && tokens[open].text == "<") {
      const std::size_t close = matching_angle(tokens, open);
      if (close < tokens.size()) open = close + 1;
    }
    if (open >= tokens.size() || tokens[open].text != "(")
      return;  // a variable of that name, or its address: g++ will say
    // `float sum(0.f)` declares a variable.
    if (i > 0 && tokens[i - 1].kind == TokenKind::kIdentifier && !is_keyword_of_expression(before)) return;
    const bool empty = open + 1 < tokens.size() && tokens[open + 1].text == ")";
    edits_.push_back({base + tokens[open].offset + 1, 0, empty ? "wstw_" : "wstw_, ", 0});
  }

  bool names_vector_pointer(std::size_t cast) const {
    if (text(cast + 1) != "<") return false;
    const std::size_t close = matching_angle(tokens_, cast + 1);
    bool vector = false, pointer = false;
    for (std::size_t i = cast + 2; i < close && i < tokens_.size(); ++i) {
      vector |= is_vector_type(text(i));
      pointer |= text(i) == "*";
    }
    return vector && pointer;
  }

  // `(const float4*)e`: e is looked at for its alignment.
  void rewrite_cast(std::size_t open) {
    if (open > 0 && is_name(open - 1) && !is_keyword_of_expression(text(open - 1)))
      return;  // a call, sizeof(…)
    const std::size_t close = matching(tokens_, open);
    if (close >= tokens_.size() || close < open + 3) return;
    if (text(close - 1) != "*" && text(close - 1) != "__restrict__" && text(close - 1) != "&") return;
    std::string type;
    bool aligned_type = false;
    std::size_t i = open + 1;
    for (; i < close && text(i) != "*" && text(i) != "&"; ++i) {
      const std::string_view t = text(i);
      if (t == "const" || t == "volatile" || t == "struct") continue;
      const bool in_list = is_name(i) || tokens_[i].kind == TokenKind::kNumber || t == "<" || t == ">" ||
                           t == "," || t == "::";
      if (!in_list) return;
      aligned_type |= is_vector_type(t) || scan_.classes.contains(t);
      type += std::string(t) + " ";
    }
    if (!aligned_type || i + 1 < close - 1) return;
    const std::string_view next = text(close + 1);
    const bool operand = is_name(close + 1) || next == "(" || next == "&" || next == "*";
    if (!operand) return;
    if (text(i) == "&") {
      // A C-style cast to a reference: `(float4&)x`.
      remove(open, close, "*(" + type + "*)(wstw_align<" + type + ">)&");
      return;
    }
    insert_after(close, "(wstw_align<" + type + ">)");
  }

  void rewrite_directive(std::size_t i) {
    const Token& t = tokens_[i];
    const std::vector<Token> tokens = tokens_of(t.text.substr(1), t.line);
    if (tokens.empty()) return;
    const auto instead = [&](std::string what) {
      edits_.push_back({t.offset, t.text.size(), std::move(what), 2});
    };
    if (tokens[0].text == "include") return instead("");
    if (tokens[0].text == "pragma") {
      if (tokens.size() < 2 || tokens[1].text != "unroll") return instead("");
      std::string count = "8";
      for (std::size_t k = 2; k < tokens.size(); ++k)
        if (tokens[k].kind == TokenKind::kNumber) count = std::string(tokens[k].text);
      if (tokens.size() > 2 && tokens[2].text != "(" && tokens[2].kind != TokenKind::kNumber) count = "8";
      return instead("#pragma GCC unroll " + count);
    }
    for (std::size_t k = 0; k < tokens.size(); ++k)
      if (tokens[k].kind == TokenKind::kIdentifier) rewrite_name(tokens, k, t.offset + 1);
  }

  Rewritten apply() {
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
      return std::pair(a.offset, a.order) < std::pair(b.offset, b.order);
    });
    Rewritten out;
    out.split = split_;
    std::size_t at = 0;
    int line = 1;
    std::size_t line_start = 0;  // in out.text
    const auto emit = [&](std::string_view piece) {
      for (const char c : piece) {
        out.text += c;
        if (c == '\n') {
          ++line;
          line_start = out.text.size();
        }
      }
    };
    for (const Edit& e : edits_) {
      if (e.offset < at) continue;  // inside something that was replaced
      emit(std::string_view(source_.text).substr(at, e.offset - at));
      if (e.text.find('\n') == std::string::npos)
        out.insertions[line].push_back({static_cast<int>(out.text.size() - line_start) + 1,
                                        static_cast<int>(e.text.size()) - static_cast<int>(e.removed)});
      emit(e.text);
      at = e.offset + e.removed;
    }
    emit(std::string_view(source_.text).substr(at));
    return out;
  }

  const CleanSource& source_;
  const std::vector<Token>& tokens_;
  const Scan& scan_;
  std::set<std::string, std::less<>> functions_;
  std::set<std::size_t> heads_;  // names of functions where they are declared
  std::vector<Edit> edits_;
  bool may_split_;
  std::set<std::string, std::less<>> split_;
};

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

Rewritten rewrite(const CleanSource& source, const Scan& scan, bool split) {
  return Rewriter(source, scan, split).run();
}

int original_column(const Rewritten& rewritten, int line, int column) {
  const auto found = rewritten.insertions.find(line);
  if (found == rewritten.insertions.end()) return column;
  int shift = 0;
  for (const Insertion& i : found->second)
    if (i.column < column) shift += std::min(i.added, column - i.column);
  return std::max(1, column - shift);
}

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

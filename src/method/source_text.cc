#include "warpsmith/method/source_text.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "python_text.h"

namespace warpsmith::method {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Words after which a name is being declared.
const std::set<std::string>& type_words() {
  static const std::set<std::string> words = {
      "void",     "bool",     "char",    "short",    "int",    "long",     "float",   "double",
      "unsigned", "signed",   "auto",    "size_t",   "half",   "half2",    "__half",  "__half2",
      "float2",   "float3",   "float4",  "int2",     "int3",   "int4",     "uint2",   "uint3",
      "uint4",    "double2",  "uchar4",  "char4",    "int8_t", "uint8_t",  "int16_t", "uint16_t",
      "int32_t",  "uint32_t", "int64_t", "uint64_t", "dim3",   "typename", "class",   "__nv_bfloat16"};
  return words;
}

// Words of C++ and CUDA that are never renamed.
const std::set<std::string>& fixed_words() {
  static const std::set<std::string> words = [] {
    std::set<std::string> w = {"alignas",   "asm",         "break",       "case",
                               "const",     "constexpr",   "continue",    "default",
                               "define",    "do",          "else",        "endif",
                               "enum",      "extern",      "false",       "for",
                               "goto",      "if",          "ifdef",       "ifndef",
                               "include",   "inline",      "namespace",   "nullptr",
                               "operator",  "pragma",      "restrict",    "return",
                               "sizeof",    "static",      "static_cast", "reinterpret_cast",
                               "struct",    "switch",      "template",    "true",
                               "typedef",   "undef",       "union",       "unroll",
                               "using",     "volatile",    "while",       "this",
                               "threadIdx", "blockIdx",    "blockDim",    "gridDim",
                               "warpSize",  "INFINITY",    "NAN",         "FLT_MAX",
                               "FLT_MIN",   "INT_MAX",     "INT_MIN",     "SMS",
                               "SMEM_MAX",  "plan",        "temp",        "launch",
                               "let",       "end",         "fill",        "copy",
                               "in",        "cooperative", "pdl",         "cluster",
                               "tensormap", "cdiv",        "min",         "max",
                               "clog2",     "aligned",     "contiguous",  "float64",
                               "float32",   "float16",     "bfloat16",    "int16",
                               "int32",     "int64",       "int8",        "uint8"};
    w.insert(type_words().begin(), type_words().end());
    return w;
  }();
  return words;
}

bool is_fixed(const std::string& name) { return name.starts_with("__") || fixed_words().contains(name); }

// One pass over a source.
class Lexer {
 public:
  explicit Lexer(std::string_view s) : s_(s) {}

  std::vector<Token> run() {
    while (i_ < s_.size()) step();
    return std::move(out_);
  }

 private:
  char at(std::size_t k) const { return k < s_.size() ? s_[k] : '\0'; }
  void take(TokenKind kind, std::size_t end) {
    end = std::min(end, s_.size());
    out_.push_back({kind, std::string(s_.substr(i_, end - i_)), in_plan_});
    i_ = end;
  }

  void step() {
    const char c = s_[i_];
    if (c == '\n' || std::isspace(static_cast<unsigned char>(c)) != 0) return space();
    if (!in_plan_ && c == '/' && at(i_ + 1) == '/') return line_comment();
    if (!in_plan_ && c == '/' && at(i_ + 1) == '*') {
      const std::size_t close = s_.find("*/", i_ + 2);
      return take(TokenKind::kComment, close == std::string_view::npos ? s_.size() : close + 2);
    }
    if (starts_name(c)) return take(TokenKind::kIdentifier, run_of(in_name));
    if (is_digit(c) || (c == '.' && is_digit(at(i_ + 1)))) return number();
    if (c == '"' || c == '\'') return quoted(c);
    take(TokenKind::kPunctuation, i_ + punctuation_length());
  }

  template <typename Predicate>
  std::size_t run_of(Predicate inside) const {
    std::size_t k = i_ + 1;
    while (k < s_.size() && inside(s_[k])) ++k;
    return k;
  }

  void space() {
    if (s_[i_] == '\n') {
      in_plan_ = false;
      return take(TokenKind::kSpace, i_ + 1);
    }
    take(TokenKind::kSpace,
         run_of([](char c) { return c != '\n' && std::isspace(static_cast<unsigned char>(c)) != 0; }));
  }

  void line_comment() {
    std::size_t k = i_ + 2;
    while (at(k) == ' ' || at(k) == '\t') ++k;
    if (s_.substr(k).starts_with("plan:")) {
      take(TokenKind::kComment, k + 5);
      in_plan_ = true;
      return;
    }
    take(TokenKind::kComment, s_.find('\n', i_));
  }

  void number() {
    std::size_t k = i_ + 1;
    while (k < s_.size() && (in_name(s_[k]) || s_[k] == '\'' || s_[k] == '.' ||
                             ((s_[k] == '+' || s_[k] == '-') && exponent_before(k)))) {
      if (s_[k] == '.' && at(k + 1) == '.') break;  // the plan's 0..n
      ++k;
    }
    take(TokenKind::kNumber, k);
  }
  bool exponent_before(std::size_t k) const {
    const bool hex = s_.substr(i_).starts_with("0x") || s_.substr(i_).starts_with("0X");
    const char e = s_[k - 1];
    return hex ? (e == 'p' || e == 'P') : (e == 'e' || e == 'E');
  }

  void quoted(char quote) {
    std::size_t k = i_ + 1;
    while (k < s_.size() && s_[k] != quote && s_[k] != '\n') k += s_[k] == '\\' ? 2 : 1;
    take(TokenKind::kString, k < s_.size() && s_[k] == quote ? k + 1 : k);
  }

  std::size_t punctuation_length() const {
    for (const std::string_view p : {"<<<", ">>>", "->", "::", "<-", ".."})
      if (s_.substr(i_).starts_with(p)) return p.size();
    return 1;
  }

  std::string_view s_;
  std::size_t i_ = 0;
  bool in_plan_ = false;
  std::vector<Token> out_;
};

// Tokens without space and comments (plan markers stay).
std::vector<const Token*> significant(const std::vector<Token>& tokens) {
  std::vector<const Token*> out;
  for (const Token& t : tokens)
    if (t.kind != TokenKind::kSpace && (t.kind != TokenKind::kComment || t.text.ends_with("plan:")))
      out.push_back(&t);
  return out;
}

bool is(const std::vector<const Token*>& tokens, std::size_t i, std::string_view text) {
  return i < tokens.size() && tokens[i]->text == text;
}

bool is_member(const std::vector<const Token*>& t, std::size_t i) {
  return i > 0 && (t[i - 1]->text == "." || t[i - 1]->text == "->" || t[i - 1]->text == "::");
}

// Whether the name at `i` follows a type, over *, & and qualifiers.
bool follows_type(const std::vector<const Token*>& t, std::size_t i) {
  while (i > 0) {
    const std::string& word = t[--i]->text;
    if (word == "*" || word == "&" || word == "const" || word == "__restrict__" || word == "restrict")
      continue;
    return type_words().contains(word) && t[i]->kind == TokenKind::kIdentifier;
  }
  return false;
}

// The names after the first in `float a = f(x, y), b, c[4];`, from the token behind the first name.
void add_list(const std::vector<const Token*>& t, std::size_t i, std::set<std::string>& names) {
  int depth = 0;
  for (; i < t.size(); ++i) {
    const std::string& word = t[i]->text;
    if (word == "(" || word == "[" || word == "{") ++depth;
    if (word == ")" || word == "]" || word == "}") --depth;
    if (depth < 0 || (depth == 0 && word == ";")) return;
    if (depth == 0 && word == "," && i + 1 < t.size() && t[i + 1]->kind == TokenKind::kIdentifier &&
        !is_fixed(t[i + 1]->text))
      names.insert(t[i + 1]->text);
  }
}

void add_code_name(const std::vector<const Token*>& t, std::size_t i, int parentheses,
                   std::set<std::string>& names) {
  static const std::set<std::string> kAfter = {"=", ";", ",", ")", "[", "(", "{", ":", ">"};
  if (is_fixed(t[i]->text) || is_member(t, i) || !follows_type(t, i)) return;
  if (i + 1 >= t.size() || !kAfter.contains(t[i + 1]->text)) return;
  names.insert(t[i]->text);
  // Inside parentheses a comma starts the next parameter, but in `for (int i = 0, n = …; …)`.
  if (t[i + 1]->text != "(" && (parentheses == 0 || is(t, i + 1, "="))) add_list(t, i + 1, names);
}

}  // namespace

std::vector<Token> tokenise(std::string_view source) { return Lexer(source).run(); }

std::string join(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& t : tokens) text += t.text;
  return text;
}

DeclaredNames declared_names(const std::vector<Token>& tokens) {
  DeclaredNames out;
  std::set<std::string> members;
  bool has_struct = false;
  int parentheses = 0;
  const auto t = significant(tokens);
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i]->plan) {
      const bool head = i > 0 && t[i - 1]->kind == TokenKind::kComment;
      if (head && (t[i]->text == "let" || t[i]->text == "temp" || t[i]->text == "for") && i + 1 < t.size())
        out.plan.insert(t[i + 1]->text);
      continue;
    }
    if (t[i]->text == "(") ++parentheses;
    if (t[i]->text == ")") --parentheses;
    if (t[i]->kind != TokenKind::kIdentifier) continue;
    has_struct = has_struct || t[i]->text == "struct";
    if (is_member(t, i)) members.insert(t[i]->text);
    add_code_name(t, i, parentheses, out.code);
  }
  if (has_struct)
    for (const std::string& name : members) out.code.erase(name);
  return out;
}

Language language_of(std::string_view path) {
  return path.ends_with(".py") ? Language::kPython : Language::kCuda;
}

std::string layout_normal_form(std::string_view source, Language language) {
  if (language == Language::kPython) return python_layout_form(source);
  std::string text;
  for (const std::vector<Token> tokens = tokenise(source); const Token* t : significant(tokens)) {
    if (t->kind == TokenKind::kComment) {
      text += "\n// plan:";
    } else {
      text += text.empty() ? "" : " ";
      text += t->text;
    }
  }
  return text;
}

namespace {

// New names in the order of first appearance. The plan's names, those of the file (kernels, helpers, globals)
// and those of each function are apart: the same program may call a parameter `x` in one kernel and `y` in
// the next.
class Renamer {
 public:
  std::string rename(const std::vector<const Token*>& t, std::size_t i) {
    const Token& token = *t[i];
    if (token.plan) {
      const bool symbol = is(t, i - 1, "launch") || is(t, i - 1, "const");
      return symbol ? fresh(file_, token.text, "f") : fresh(plan_, token.text, "p");
    }
    if (file_.contains(token.text) || (braces_ == 0 && parentheses_ == 0))
      return fresh(file_, token.text, "f");
    return fresh(function_, token.text, "v");
  }
  void see(const Token& token) {
    if (token.plan) return;
    if (token.text == "{") ++braces_;
    if (token.text == "(") ++parentheses_;
    if (token.text == ")") --parentheses_;
    if (token.text == "}" && --braces_ == 0) function_.clear();
  }

 private:
  using Names = std::map<std::string, std::string>;
  static std::string fresh(Names& names, const std::string& name, const char* prefix) {
    return names.emplace(name, prefix + std::to_string(names.size())).first->second;
  }
  Names plan_, file_, function_;
  int braces_ = 0, parentheses_ = 0;
};

}  // namespace

std::string normal_form(std::string_view source, Language language) {
  if (language == Language::kPython) return python_normal_form(source);
  const std::vector<Token> tokens = tokenise(source);
  const DeclaredNames declared = declared_names(tokens);
  const auto t = significant(tokens);
  std::map<std::string, std::string> constants;
  Renamer names;
  std::string text;
  for (std::size_t i = 0; i < t.size(); ++i) {
    std::string word = t[i]->text;
    const bool own = declared.code.contains(word) || declared.plan.contains(word);
    const bool foreign =
        is_fixed(word) || is_member(t, i) || is(t, i + 1, "::") || (is(t, i + 1, "(") && !own);
    if (t[i]->kind == TokenKind::kIdentifier && !foreign) word = names.rename(t, i);
    if (t[i]->kind == TokenKind::kNumber)
      word = constants.emplace(word, "c" + std::to_string(constants.size())).first->second;
    if (t[i]->kind == TokenKind::kComment) word = "\n// plan:";
    text += (text.empty() ? "" : " ") + word;
    names.see(*t[i]);
  }
  return text;
}

}  // namespace warpsmith::method

// Sources of Python: normal forms of programs of tier `python`.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "python_text.h"
#include "warpsmith/method/source_text.h"

namespace warpsmith::method {

namespace {

enum class Kind { kName, kNumber, kString, kPunctuation, kLine };
struct PythonToken {
  Kind kind;
  std::string text;       // of a string: what is between its quotes; of a line: its depth
  bool in_three = false;  // of a string: quotes
};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) > 127;
}
bool in_python_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_ascii_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Words that are never renamed.
const std::set<std::string>& python_words() {
  static const std::set<std::string> words = {
      "False", "None",     "True", "and",    "as",       "assert", "async",   "await",   "break",
      "class", "continue", "def",  "del",    "elif",     "else",   "except",  "finally", "for",
      "from",  "global",   "if",   "import", "in",       "is",     "lambda",  "match",   "nonlocal",
      "not",   "or",       "pass", "raise",  "return",   "try",    "while",   "with",    "yield",
      "case",  "self",     "cls",  "super",  "ModelNew", "Model",  "forward", "__init__"};
  return words;
}

// Tokens of logical lines: comments, empty lines and texts that stand alone are left out, and a line is as
// deep as its indent is among those around it.
class PythonLexer {
 public:
  explicit PythonLexer(std::string_view source) : s_(source) {}

  std::vector<PythonToken> run() {
    begin_line();
    while (i_ < s_.size()) step();
    drop_text_alone();
    return std::move(out_);
  }

 private:
  char at(std::size_t i) const { return i < s_.size() ? s_[i] : '\0'; }

  void step() {
    const char c = s_[i_];
    if (c == '#') {
      i_ = std::min(s_.find('\n', i_), s_.size());
    } else if (c == '\\' && at(i_ + 1) == '\n') {
      i_ += 2;
    } else if (c == '\n') {
      ++i_;
      if (brackets_ == 0) begin_line();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i_;
    } else if (begins_name(c)) {
      std::size_t end = i_ + 1;
      while (in_python_name(at(end))) ++end;
      const bool prefix = end - i_ <= 2 && (at(end) == '"' || at(end) == '\'');
      if (prefix) {
        i_ = end;
        return quoted();
      }
      take(Kind::kName, end);
    } else if (is_ascii_digit(c) || (c == '.' && is_ascii_digit(at(i_ + 1)))) {
      std::size_t end = i_ + 1;
      while (in_python_name(at(end)) || at(end) == '.' ||
             ((at(end) == '+' || at(end) == '-') && (at(end - 1) == 'e' || at(end - 1) == 'E')))
        ++end;
      take(Kind::kNumber, end);
    } else if (c == '"' || c == '\'') {
      quoted();
    } else {
      if (c == '(' || c == '[' || c == '{') ++brackets_;
      if (c == ')' || c == ']' || c == '}') brackets_ = std::max(0, brackets_ - 1);
      take(Kind::kPunctuation, i_ + 1);
    }
  }

  void take(Kind kind, std::size_t end) {
    out_.push_back({kind, std::string(s_.substr(i_, end - i_))});
    i_ = end;
  }

  void quoted() {
    const char quote = s_[i_];
    const bool three = at(i_ + 1) == quote && at(i_ + 2) == quote;
    const std::string mark(three ? 3 : 1, quote);
    const std::size_t begin = i_ + mark.size();
    std::size_t end = begin;
    while (end < s_.size() && s_.substr(end, mark.size()) != mark && (three || s_[end] != '\n'))
      end += s_[end] == '\\' ? 2 : 1;
    end = std::min(end, s_.size());
    out_.push_back({Kind::kString, std::string(s_.substr(begin, end - begin)), three});
    i_ = std::min(end + mark.size(), s_.size());
  }

  // At the first character of a line.
  void begin_line() {
    drop_text_alone();
    std::size_t end = i_;
    while (at(end) == ' ' || at(end) == '\t') ++end;
    const std::size_t indent = end - i_;
    if (at(end) == '\n' || at(end) == '\r' || at(end) == '#' || end >= s_.size()) return;
    while (!indents_.empty() && indents_.back() > indent) indents_.pop_back();
    if (indents_.empty() || indents_.back() < indent) indents_.push_back(indent);
    out_.push_back({Kind::kLine, std::to_string(indents_.size())});
    i_ = end;
  }

  // A line that is a text alone says nothing.
  void drop_text_alone() {
    if (out_.size() < 2 || out_.back().kind != Kind::kString || out_[out_.size() - 2].kind != Kind::kLine)
      return;
    out_.resize(out_.size() - 2);
  }

  std::string_view s_;
  std::size_t i_ = 0;
  int brackets_ = 0;
  std::vector<std::size_t> indents_;
  std::vector<PythonToken> out_;
};

bool is(const std::vector<PythonToken>& t, std::size_t i, std::string_view text) {
  return i < t.size() && t[i].kind != Kind::kString && t[i].text == text;
}

// What the module itself gives a name, and what it imports.
struct Names {
  std::set<std::string> own, members, imported;
};

Names names_of(const std::vector<PythonToken>& t) {
  Names names;
  std::string word;  // that the line begins with
  int brackets = 0;
  bool of_def = false;  // within its parameters
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i].kind == Kind::kLine) {
      word = i + 1 < t.size() ? t[i + 1].text : "";
      brackets = 0;
      of_def = false;
    }
    if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{")) ++brackets;
    if (is(t, i, ")") || is(t, i, "]") || is(t, i, "}")) of_def = --brackets > 0 && of_def;
    if (i > 0 && is(t, i - 1, "def")) of_def = true;
    if (t[i].kind != Kind::kName || python_words().contains(t[i].text)) continue;
    if (word == "import" || word == "from") {
      names.imported.insert(t[i].text);
      continue;
    }
    if (i > 0 && (is(t, i - 1, "def") || is(t, i - 1, "class"))) {
      names.own.insert(t[i].text);
      continue;
    }
    const bool member = i > 0 && is(t, i - 1, ".");
    const bool assigned = is(t, i + 1, "=") && !is(t, i + 2, "=");
    if (member) {
      if (assigned && i > 1 && is(t, i - 2, "self")) names.members.insert(t[i].text);
      continue;
    }
    const bool parameter =
        of_def && brackets == 1 && (is(t, i - 1, "(") || is(t, i - 1, ",") || is(t, i - 1, "*"));
    const bool before_comma = brackets == 0 && (is(t, i + 1, ",") || is(t, i - 1, ","));
    if (parameter || (brackets == 0 && assigned) || before_comma || (i > 0 && is(t, i - 1, "for")) ||
        (i > 0 && is(t, i - 1, "as")))
      names.own.insert(t[i].text);
  }
  return names;
}

std::string put_together(const std::vector<PythonToken>& tokens, const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    text += tokens[i].kind == Kind::kLine ? "\n" + words[i] : " " + words[i];
  return text;
}

bool is_cuda(const PythonToken& token) {
  return token.kind == Kind::kString && token.in_three &&
         (token.text.find("__global__") != std::string::npos ||
          token.text.find("torch::Tensor") != std::string::npos);
}

}  // namespace

std::string python_layout_form(std::string_view source) {
  const std::vector<PythonToken> tokens = PythonLexer(source).run();
  std::vector<std::string> words;
  for (const PythonToken& t : tokens)
    words.push_back(is_cuda(t)                ? layout_normal_form(t.text)
                    : t.kind == Kind::kString ? "\"" + t.text + "\""
                                              : t.text);
  return put_together(tokens, words);
}

std::string python_normal_form(std::string_view source) {
  const std::vector<PythonToken> t = PythonLexer(source).run();
  const Names names = names_of(t);
  std::map<std::string, std::string> own, members, constants;
  const auto fresh = [](std::map<std::string, std::string>& all, const std::string& name,
                        const char* prefix) {
    return all.emplace(name, prefix + std::to_string(all.size())).first->second;
  };
  std::vector<std::string> words;
  for (std::size_t i = 0; i < t.size(); ++i) {
    std::string word = t[i].text;
    const bool member = i > 0 && is(t, i - 1, ".");
    if (is_cuda(t[i])) {
      word = normal_form(word);
    } else if (t[i].kind == Kind::kString) {
      word = "\"" + word + "\"";
    } else if (t[i].kind == Kind::kNumber) {
      word = fresh(constants, word, "c");
    } else if (t[i].kind == Kind::kName && !python_words().contains(word)) {
      if (member && names.members.contains(word))
        word = fresh(members, word, "m");
      else if (!member && names.own.contains(word) && !names.imported.contains(word))
        word = fresh(own, word, "v");
    }
    words.push_back(std::move(word));
  }
  return put_together(t, words);
}

}  // namespace warpsmith::method

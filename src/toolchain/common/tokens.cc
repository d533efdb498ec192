#include "tokens.h"

#include <algorithm>
#include <cctype>

namespace warpsmith::toolchain {

namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
bool is_digit_or_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether the number that text[begin, at) begins goes on with text[at].
bool continues_number(std::string_view text, std::size_t at) {
  const char c = text[at], before = text[at - 1];
  if (is_digit_or_letter(c) || c == '.') return true;
  // In a hexadecimal integer `e+` ends the number for a reader, but not for the standard: neither here.
  if (c == '+' || c == '-') return before == 'e' || before == 'E' || before == 'p' || before == 'P';
  // An apostrophe between digits separates them.
  return c == '\'' && is_digit_or_letter(before) && at + 1 < text.size() && is_digit_or_letter(text[at + 1]);
}

// Joins spliced lines and blanks comments out. Newlines that a splice or a comment swallowed follow at the
// end of the logical line, so that line numbers behind it stay right.
class Cleaner {
 public:
  explicit Cleaner(std::string_view source) : source_(source) {
    out_.reserve(source.size() + 1);
    if (source_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  std::string clean() && {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\0') throw SourceProblem{line_, 1, "a NUL byte", false};
      if (c == '\\' && skip_splice()) continue;
      ++at_;
      if (c == '\n')
        end_line();
      else
        take(c);
    }
    if (state_ == kBlockComment) throw SourceProblem{line_, 1, "a comment does not end", false};
    if (state_ == kQuoted) throw SourceProblem{line_, 1, "a string does not end on its line", false};
    out_ += '\n';
    return std::move(out_);
  }

 private:
  bool next_is(char c) const { return at_ < source_.size() && source_[at_] == c; }

  // At a backslash: true where the line goes on behind it.
  bool skip_splice() {
    std::size_t j = at_ + 1;
    while (j < source_.size() && (source_[j] == ' ' || source_[j] == '\t' || source_[j] == '\r')) ++j;
    if (j >= source_.size() || source_[j] != '\n') return false;
    at_ = j + 1;
    ++owed_;
    ++line_;
    return true;
  }

  void end_line() {
    ++line_;
    if (state_ == kBlockComment) {
      ++owed_;
      return;
    }
    if (state_ == kQuoted) throw SourceProblem{line_ - 1, 1, "a string does not end on its line", false};
    word_ = kNone;
    out_.append(owed_ + 1, '\n');
    owed_ = 0;
    state_ = kCode;
  }

  void take(char c) {
    switch (state_) {
      case kCode:
        take_code(c);
        break;
      case kLineComment:
        out_ += c == '\t' ? '\t' : ' ';
        break;
      case kBlockComment:
        out_ += ' ';
        if (c == '*' && next_is('/')) {
          state_ = kCode;
          out_ += ' ';
          ++at_;
        }
        break;
      case kQuoted:
        out_ += c;
        if (c == '\\' && at_ < source_.size() && source_[at_] != '\n')
          out_ += source_[at_++];
        else if (c == quote_)
          state_ = kCode;
        break;
    }
  }

  void take_code(char c) {
    if (c == '/' && (next_is('/') || next_is('*'))) {
      state_ = next_is('/') ? kLineComment : kBlockComment;
      word_ = kNone;
      out_ += "  ";
      ++at_;
      return;
    }
    const bool separator = word_ == kNumber && c == '\'' && is_digit_or_letter(out_.back()) &&
                           at_ < source_.size() && is_digit_or_letter(source_[at_]);
    if ((c == '"' || c == '\'') && !separator) {
      state_ = kQuoted;
      quote_ = c;
    }
    out_ += c == '\r' ? ' ' : c;
    const bool goes_on = word_ == kNumber ? separator || continues_number(out_, out_.size() - 1)
                                          : word_ == kName && is_name_part(c);
    if (!goes_on)
      word_ = is_name_start(c) ? kName : std::isdigit(static_cast<unsigned char>(c)) ? kNumber : kNone;
  }

  const std::string_view source_;
  std::string out_;
  int line_ = 1;
  std::size_t at_ = 0, owed_ = 0;  // owed: newlines
  enum { kCode, kLineComment, kBlockComment, kQuoted } state_ = kCode;
  char quote_ = 0;
  enum { kNone, kName, kNumber } word_ = kNone;  // that `out_` ends with
};

// Longest first.
constexpr std::string_view kPunctuation[] = {
    "<<<", ">>>", "<<=", ">>=", "...", "<=>", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=",
    "==",  "!=",  "&&",  "||",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "##", ".*"};

[[noreturn]] void fail_at(std::string_view whole, const Token& token, std::string message) {
  const auto offset = static_cast<std::size_t>(token.text.data() - whole.data());
  throw SourceProblem{token.line, column_at(whole, offset), std::move(message), false};
}

// What compilers read in different ways, or not as we do: it would let them see text that nobody looked at.
void check_token(std::string_view whole, const Token& t, std::string_view behind) {
  if (t.kind == TokenKind::kString && (t.text.size() < 2 || t.text.back() != t.text.front()))
    fail_at(whole, t, "a string does not end on its line");
  if (t.kind == TokenKind::kNumber && !behind.empty() &&
      (behind[0] == '\'' || behind[0] == '$' || behind[0] == '\\' ||
       static_cast<unsigned char>(behind[0]) >= 0x80))
    fail_at(whole, t, "a number goes on with what is no part of it");
  if (t.text == "/" && !behind.empty() && (behind[0] == '/' || behind[0] == '*'))
    fail_at(whole, t, "a comment where none can be read");
}

// `tokens` of `text`, which is a part of `whole`.
void check_tokens(std::string_view whole, const std::vector<Token>& tokens, std::string_view text) {
  std::vector<std::size_t> angles = {0};  // `<` that may open template arguments, by level of brackets
  std::size_t all_angles = 0;
  const auto close_angles = [&](std::size_t count) {
    count = std::min(count, angles.back());
    angles.back() -= count;
    all_angles -= count;
  };
  for (const Token& t : tokens) {
    check_token(whole, t, text.substr(t.offset + t.text.size()));
    if (t.kind != TokenKind::kPunctuation) continue;
    const char c = t.text.size() == 1 ? t.text[0] : ' ';
    if (c == '(' || c == '[' || c == '{') {
      angles.push_back(0);
    } else if (c == ')' || c == ']' || c == '}') {
      close_angles(angles.back());
      if (angles.size() > 1) angles.pop_back();
    } else if (c == '<') {
      ++angles.back();
      ++all_angles;
    } else if (c == ';' || t.text == "&&" || t.text == "||") {  // none goes on behind these
      close_angles(angles.back());
    } else if (t.text.find_first_not_of('>') == std::string_view::npos) {
      close_angles(t.text.size());
    }
    if (angles.size() - 1 > kDeepestNesting || all_angles > kDeepestNesting)
      fail_at(whole, t, "brackets are nested more than " + std::to_string(kDeepestNesting) + " deep");
  }
}

}  // namespace

int column_at(std::string_view text, std::size_t offset) {
  const std::size_t start = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  if (start == std::string_view::npos || offset == 0) return static_cast<int>(offset) + 1;
  return static_cast<int>(offset - start);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view known = list.substr(0, list.find(' '));
    if (known.ends_with('/') ? name.starts_with(known) : name == known) return true;
    list.remove_prefix(std::min(known.size() + 1, list.size()));
  }
  return false;
}

bool is_keyword_of_expression(std::string_view word) {
  return is_one_of(word, {"return", "else", "do", "case"});
}

SourceProblem problem_at(const CleanSource& source, std::size_t token, std::string message,
                         bool unsupported) {
  const Token& t = source.tokens[std::min(token, source.tokens.size() - 1)];
  return {t.line, column_at(source.text, t.offset), std::move(message), unsupported};
}

std::vector<Token> tokens_of(std::string_view text, int first_line) {
  std::vector<Token> tokens;
  int line = first_line;
  bool line_start = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      line_start = true;
      ++i;
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    TokenKind kind = TokenKind::kPunctuation;
    const bool digraph_hash = text.substr(i, 2) == "%:";
    if (line_start && (c == '#' || digraph_hash)) {
      kind = TokenKind::kDirective;
      end = text.find('\n', i);
      if (end == std::string_view::npos) end = text.size();
    } else if (is_name_start(c)) {
      kind = TokenKind::kIdentifier;
      while (end < text.size() && is_name_part(text[end])) ++end;
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))) {
      kind = TokenKind::kNumber;
      while (end < text.size() && continues_number(text, end)) ++end;
    } else if (c == '"' || c == '\'') {
      kind = TokenKind::kString;
      while (end < text.size() && text[end] != c && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = end < text.size() ? end + 1 : text.size();
    } else {
      for (const std::string_view p : kPunctuation)
        if (text.substr(i, p.size()) == p) {
          end = i + p.size();
          break;
        }
    }
    line_start = false;
    tokens.push_back({kind, text.substr(i, end - i), i, line});
    i = end;
  }
  return tokens;
}

void read_tokens(std::string_view source, CleanSource* out) {
  if (source.size() > kMostSourceBytes) throw SourceProblem{1, 1, kSourceTooLarge, false};
  out->text = Cleaner(source).clean();
  out->tokens = tokens_of(out->text, 1);
  check_tokens(out->text, out->tokens, out->text);
  for (const Token& t : out->tokens)
    if (t.kind == TokenKind::kDirective)
      check_tokens(out->text, tokens_of(t.text.substr(1), t.line), t.text.substr(1));
}

}  // namespace warpsmith::toolchain

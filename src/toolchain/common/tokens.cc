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
std::string clean(std::string_view source) {
  std::string out;
  out.reserve(source.size() + 1);
  int line = 1;
  std::size_t owed = 0;  // newlines
  std::size_t i = 0;
  const auto skip_splice = [&] {  // at a backslash: true where the line goes on behind it
    std::size_t j = i + 1;
    while (j < source.size() && (source[j] == ' ' || source[j] == '\t' || source[j] == '\r')) ++j;
    if (j >= source.size() || source[j] != '\n') return false;
    i = j + 1;
    ++owed;
    ++line;
    return true;
  };
  enum { kCode, kLineComment, kBlockComment, kQuoted } state = kCode;
  char quote = 0;
  enum { kNone, kName, kNumber } word = kNone;  // that `out` ends with
  if (source.starts_with(kByteOrderMark)) i = kByteOrderMark.size();
  while (i < source.size()) {
    const char c = source[i];
    if (c == '\0') throw SourceProblem{line, 1, "a NUL byte", false};
    if (c == '\\' && skip_splice()) continue;
    if (c == '\n') {
      ++line;
      if (state == kBlockComment) {
        ++owed;
      } else {
        if (state == kQuoted) throw SourceProblem{line - 1, 1, "a string does not end on its line", false};
        word = kNone;
        out += '\n';
        out.append(owed, '\n');
        owed = 0;
        state = kCode;
      }
      ++i;
      continue;
    }
    ++i;
    switch (state) {
      case kCode:
        if (c == '/' && i < source.size() && (source[i] == '/' || source[i] == '*')) {
          state = source[i] == '/' ? kLineComment : kBlockComment;
          word = kNone;
          out += "  ";
          ++i;
        } else {
          const bool separator = word == kNumber && c == '\'' && is_digit_or_letter(out.back()) &&
                                 i < source.size() && is_digit_or_letter(source[i]);
          if ((c == '"' || c == '\'') && !separator) {
            state = kQuoted;
            quote = c;
          }
          out += c == '\r' ? ' ' : c;
          const bool goes_on = word == kNumber ? separator || continues_number(out, out.size() - 1)
                                               : word == kName && is_name_part(c);
          if (!goes_on)
            word = is_name_start(c) ? kName : std::isdigit(static_cast<unsigned char>(c)) ? kNumber : kNone;
        }
        break;
      case kLineComment:
        out += c == '\t' ? '\t' : ' ';
        break;
      case kBlockComment:
        if (c == '*' && i < source.size() && source[i] == '/') {
          state = kCode;
          out += "  ";
          ++i;
        } else {
          out += ' ';
        }
        break;
      case kQuoted:
        out += c;
        if (c == '\\' && i < source.size() && source[i] != '\n')
          out += source[i++];
        else if (c == quote)
          state = kCode;
        break;
    }
  }
  if (state == kBlockComment) throw SourceProblem{line, 1, "a comment does not end", false};
  if (state == kQuoted) throw SourceProblem{line, 1, "a string does not end on its line", false};
  out += '\n';
  return out;
}

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
  out->text = clean(source);
  out->tokens = tokens_of(out->text, 1);
  check_tokens(out->text, out->tokens, out->text);
  for (const Token& t : out->tokens)
    if (t.kind == TokenKind::kDirective)
      check_tokens(out->text, tokens_of(t.text.substr(1), t.line), t.text.substr(1));
}

}  // namespace warpsmith::toolchain

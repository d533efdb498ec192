#include "warpsmith/method/hacks.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "warpsmith/base/text.h"
#include "warpsmith/method/source_text.h"

namespace warpsmith::method {

namespace {

constexpr std::string_view kCut = " ...";

// A byte of UTF-8 that goes on with a character.
bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      if (!goes_on(c)) out += '?';
    } else {
      out += byte < ' ' || byte == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string cut(std::string line, std::size_t most) {
  if (line.size() > most) line = line.substr(0, most - std::min(most, kCut.size())).append(kCut);
  return line;
}

std::string one_blank(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  return trim(out);
}

// Marks begin with `<` or `[` and a letter, `/` or `|` right behind it. In code a blank there changes
// nothing.
std::string without_marks(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i] == '`' ? '\'' : text[i];
    if ((text[i] != '<' && text[i] != '[') || i + 1 == text.size()) continue;
    const char next = text[i + 1];
    if (std::isalpha(static_cast<unsigned char>(next)) != 0 || next == '/' || next == '|') out += ' ';
  }
  return out;
}

// The text of a program without comments and texts in quotes.
std::string bare_code(std::string_view source) {
  std::string out;
  for (const Token& token : tokenise(source)) {
    if (token.kind == TokenKind::kComment)
      out += token.text.ends_with("plan:") ? "// plan:" : " ";
    else if (token.kind == TokenKind::kString)
      out += token.text.starts_with('\'') ? "' '" : "\"\"";
    else
      out += token.text;
  }
  return out;
}

// Lines of `text`, harmless and with their indent, of at most `most` bytes in all.
std::vector<std::string> harmless_lines(std::string_view text, std::size_t most, std::size_t longest_line,
                                        bool keep_empty) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (const std::string& raw : split(text, '\n')) {
    const std::string line = quoted_line(raw, std::min(most, longest_line));
    if (line.empty() && !keep_empty) continue;
    const std::size_t indent = line.empty() ? 0 : std::min<std::size_t>(raw.find_first_not_of(" \t"), 16);
    bytes += indent + line.size() + 1;
    if (bytes > most) {
      lines.emplace_back("...");
      break;
    }
    lines.push_back(std::string(indent, ' ') + line);
  }
  return lines;
}

}  // namespace

std::string plain_line(std::string_view text, std::size_t most) { return cut(one_blank(plain(text)), most); }

std::string quoted_line(std::string_view text, std::size_t most) {
  return cut(without_marks(one_blank(plain(text))), most);
}

std::vector<std::string> quoted_code(std::string_view source, std::size_t most) {
  constexpr std::size_t kLongestLine = 120;
  return harmless_lines(bare_code(source), most, kLongestLine, false);
}

std::vector<std::string> shown_code(std::string_view source, std::size_t most) {
  return harmless_lines(source, most, most, true);
}

std::vector<HackQuote> choose_hacks(const std::vector<HackCase>& cases, const std::string& task, int most) {
  struct Kind {
    const HackCase* shown = nullptr;
    bool same_task = false;
    std::size_t count = 0, newest = 0;
  };
  std::map<std::string, Kind> kinds;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Kind& kind = kinds[cases[i].kind];
    const bool same = cases[i].candidate.task == task;
    if (same || !kind.same_task) kind.shown = &cases[i];
    kind.same_task = kind.same_task || same;
    ++kind.count;
    kind.newest = i;
  }
  std::vector<Kind> order;
  for (const auto& [name, kind] : kinds) order.push_back(kind);
  std::sort(order.begin(), order.end(), [](const Kind& a, const Kind& b) {
    if (a.same_task != b.same_task) return a.same_task;
    return a.count != b.count ? a.count > b.count : a.newest > b.newest;
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(0, most))));
  std::vector<HackQuote> quotes;
  for (const Kind& kind : order) {
    const HackCase& shown = *kind.shown;
    quotes.push_back({quoted_line(shown.kind, kLongestQuotedReason),
                      kind.same_task,
                      quoted_line(shown.reason, kLongestQuotedReason),
                      {}});
    if (shown.verdict != Verdict::kUnstable)
      quotes.back().code = quoted_code(shown.candidate.source(), kLongestQuotedSource);
  }
  return quotes;
}

}  // namespace warpsmith::method

#include "launch_plan_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "plan_statement.h"
#include "warpsmith/base/text.h"

namespace warpsmith::task {

namespace {

class KernelName {
 public:
  explicit KernelName(const Piece& name) : text_(name.text), column_(name.column) {}

  void check() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t')
        ++at_;
      else if (is_letter(c))
        take_name();
      else if (text_.substr(at_, 2) == "::")
        take_colons();
      else if (open_.empty())
        take_arguments();
      else if (is_digit(c))
        take_number();
      else if (c == '\'')
        take_character();
      else
        take_sign();
    }
    if (!open_.empty()) fail(open_.back() == '<' ? "`>` is missing" : "`)` is missing");
    if (last_ == Last::kColons) fail("a name is expected here");
  }

 private:
  enum class Last { kNothing, kName, kColons, kArguments };  // outside of template arguments

  [[noreturn]] void fail(std::string message) const {
    throw Mistake{std::move(message), column_ + static_cast<int>(at_), ""};
  }
  [[noreturn]] void fail_character() const {
    std::size_t end = at_ + 1;  // a whole character of UTF-8
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    fail("`" + std::string(text_.substr(at_, end - at_)) + "` cannot stand in the name of a kernel");
  }

  void take_name() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (open_.empty() && (last_ == Last::kName || last_ == Last::kArguments)) fail("`<<<` is missing");
    check_name_of_source({text_.substr(at_, end - at_), column_ + static_cast<int>(at_)});
    at_ = end;
    if (open_.empty()) last_ = Last::kName;
  }

  void take_colons() {
    if (open_.empty() && last_ != Last::kName && last_ != Last::kArguments) fail_character();
    at_ += 2;
    if (open_.empty()) last_ = Last::kColons;
  }

  void take_arguments() {
    if (text_[at_] != '<' || last_ != Last::kName || is_digraph()) fail_character();
    open_ += '<';
    ++at_;
  }

  // `<:` is `[`, but `<::N` begins with a name.
  bool is_digraph() const {
    const std::string_view pair = text_.substr(at_, 2), name = text_.substr(at_ + 1);
    if (pair == "<:") return !(name.starts_with("::") && name.size() > 2 && is_letter(name[2]));
    return pair == ":>" || pair == "<%" || pair == "%>" || pair == "%:";
  }

  // As C++ reads a number: letters, points, signs of exponents, and ' between digits.
  void take_number() {
    while (++at_ < text_.size()) {
      const char c = text_[at_], before = text_[at_ - 1];
      const bool exponent = before == 'e' || before == 'E' || before == 'p' || before == 'P';
      const bool separator =
          c == '\'' && is_word(before) && at_ + 1 < text_.size() && is_word(text_[at_ + 1]);
      if (c == '\'' && !separator) fail_character();
      if (!is_word(c) && c != '.' && !separator && !(exponent && (c == '+' || c == '-'))) return;
    }
  }

  void take_character() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '\'') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || end == at_ + 1) fail_character();
    at_ = end + 1;
  }

  // Within parentheses < and > compare.
  void take_sign() {
    constexpr std::array<std::string_view, 5> kPairs = {"<<", "<=", ">=", "==", "!="};
    const char c = text_[at_];
    const std::string_view pair = text_.substr(at_, 2);
    const bool comment = pair == "//" || pair == "/*";
    if (pair == "->" || pair == "??" || comment || is_digraph()) fail_character();
    if (std::find(kPairs.begin(), kPairs.end(), pair) != kPairs.end()) {
      at_ += 2;
      return;
    }
    if (std::string_view("+-*/%!~&|^?:,<>().").find(c) == std::string_view::npos) fail_character();
    if (c == '(' || (c == '<' && open_.back() == '<')) {
      open_ += c;
    } else if (c == ')' || (c == '>' && open_.back() == '<')) {
      if (open_.back() != (c == ')' ? '(' : '<')) fail_character();
      open_.pop_back();
      if (open_.empty()) last_ = Last::kArguments;
    }
    ++at_;
  }

  const std::string_view text_;
  const int column_;
  std::size_t at_ = 0;
  std::string open_;  // brackets, the innermost last
  Last last_ = Last::kNothing;
};

template <typename Visit>
void visit(const std::vector<PlanStatement>& statements, Visit each) {
  for (const PlanStatement& statement : statements) {
    each(statement);
    visit(statement.body, each);
    visit(statement.otherwise, each);
  }
}

std::vector<std::string> names_of(const std::vector<PlanStatement>& statements, PlanStatement::Kind kind) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  visit(statements, [&](const PlanStatement& statement) {
    if (statement.kind == kind && seen.insert(statement.name).second) names.push_back(statement.name);
  });
  return names;
}

}  // namespace

void check_kernel_name(const Piece& name) { KernelName(name).check(); }

void check_name_of_source(const Piece& name) {
  const std::string word(name.text);
  for (const std::string_view start : {"wstw_", "WSTW_", "kWstw"})
    if (word.starts_with(start))
      throw Mistake{"names that begin with " + std::string(start) + " belong to the twin", name.column, ""};
  for (const std::string_view refused : {"asm", "__asm", "__asm__", "__attribute__", "__attribute"})
    if (word == refused) throw Mistake{"`" + word + "` is no name of a source", name.column, ""};
}

std::string suggest_name(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kMostKnown = 1000, kLongestWord = 64;
  if (known.size() > kMostKnown || word.size() > kLongestWord) return "";
  std::vector<std::string> short_ones;
  std::copy_if(known.begin(), known.end(), std::back_inserter(short_ones),
               [](const std::string& name) { return name.size() <= kLongestWord; });
  const auto nearest = nearest_word(word, short_ones);
  return nearest ? "did you mean `" + *nearest + "`?" : "";
}

int read_swizzle(const Piece& word) {
  if (word.text.empty()) return 0;
  for (const auto& [name, bytes] : {std::pair("swizzle32", 32), {"swizzle64", 64}, {"swizzle128", 128}})
    if (word.text == name) return bytes;
  throw Mistake{"unexpected `" + std::string(word.text) + "`", word.column,
                "swizzle32, swizzle64 or swizzle128"};
}

std::vector<std::string> LaunchPlan::kernels() const {
  return statements_ ? names_of(*statements_, PlanStatement::Kind::kLaunch) : std::vector<std::string>();
}

std::vector<std::string> LaunchPlan::symbols() const {
  return statements_ ? names_of(*statements_, PlanStatement::Kind::kConst) : std::vector<std::string>();
}

std::map<std::string, NamePlace> LaunchPlan::places() const {
  std::map<std::string, NamePlace> places;
  if (!statements_) return places;
  visit(*statements_, [&](const PlanStatement& statement) {
    if (statement.kind == PlanStatement::Kind::kLaunch || statement.kind == PlanStatement::Kind::kConst)
      places.try_emplace(statement.name, NamePlace{statement.line, statement.column});
  });
  return places;
}

}  // namespace warpsmith::task

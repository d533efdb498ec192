#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "warpsmith/base/error.h"

namespace warpsmith::tokenizer {

namespace {

// Unicode's White_Space.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string words_of(int error) {
  PCRE2_UCHAR buffer[256] = {};
  (void)::pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

std::string with_white_space_written_out(std::string_view regex) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\' && i + 1 < regex.size()) {
      const char escaped = regex[++i];
      if (escaped == 's') {
        out += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
      } else if (escaped == 'S') {
        if (in_class) throw Error("`\\S` in a class of characters is not supported", kExitUsage);
        out += fmt::format("[^{}]", kWhiteSpace);
      } else {
        out += {c, escaped};
      }
      continue;
    }
    if (c == '[' && in_class) out += '\\';  // a plain character there, as it is elsewhere
    out += c;
    if (c == '[' && !in_class) {
      in_class = true;
      // A `]` that comes first is a plain one.
      if (i + 1 < regex.size() && regex[i + 1] == '^') out += regex[++i];
      if (i + 1 < regex.size() && regex[i + 1] == ']') out += regex[++i];
    } else if (c == ']') {
      in_class = false;
    }
  }
  return out;
}

struct Pattern::State {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  ~State() {
    ::pcre2_jit_stack_free(stack);
    ::pcre2_match_context_free(context);
    ::pcre2_code_free(code);
  }
};

Pattern::Pattern(const std::string& regex, bool literal) : state_(std::make_unique<State>()) {
  const std::string text = literal ? regex : with_white_space_written_out(regex);
  int error = 0;
  std::size_t at = 0;
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP);
  state_->code =
      ::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &at, nullptr);
  if (state_->code == nullptr)
    throw Error(fmt::format("the pattern cannot be read: {} at {} of `{}`", words_of(error), at, text),
                kExitUsage);
  (void)::pcre2_jit_compile(state_->code, PCRE2_JIT_COMPLETE);  // without it, it is slower
  state_->context = ::pcre2_match_context_create(nullptr);
  constexpr std::size_t kStack = 32 << 10, kMostStack = 16 << 20;
  state_->stack = ::pcre2_jit_stack_create(kStack, kMostStack, nullptr);
  if (state_->context == nullptr || state_->stack == nullptr) throw Error("no memory for a pattern");
  ::pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

void Pattern::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const std::unique_ptr<pcre2_match_data, decltype(&::pcre2_match_data_free)> found(
      ::pcre2_match_data_create_from_pattern(state_->code, nullptr), &::pcre2_match_data_free);
  if (!found) throw Error("no memory for a match");
  std::size_t from = 0, done = 0;  // where to look, and up to where it is cut
  while (from < text.size()) {
    const int count = ::pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                    from, PCRE2_NO_UTF_CHECK, found.get(), state_->context);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) throw Error("a text cannot be cut into pieces: " + words_of(count));
    const std::size_t* ends = ::pcre2_get_ovector_pointer(found.get());
    if (ends[0] == ends[1]) {  // an empty match cuts nothing: go on behind the next character
      from = ends[1] + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
      continue;
    }
    if (ends[0] > done) pieces.push_back(text.substr(done, ends[0] - done));
    pieces.push_back(text.substr(ends[0], ends[1] - ends[0]));
    from = done = ends[1];
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
}

}  // namespace warpsmith::tokenizer

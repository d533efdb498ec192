#include "own_kernels.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

namespace warpsmith::measure {

namespace {

constexpr std::size_t kMostTold = 6, kLongestTold = 80;
constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string without_comments(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i).starts_with("/*")) {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
      out += ' ';
    } else {
      out += text[i++];
    }
  }
  return out;
}

// The word that begins at or behind `at`; empty: another character comes first, or the end.
std::string_view word_at(std::string_view text, std::size_t* at) {
  while (*at < text.size() && std::isspace(static_cast<unsigned char>(text[*at])) != 0) ++*at;
  const std::size_t begin = *at;
  while (*at < text.size() && is_word(text[*at])) ++*at;
  return text.substr(begin, *at - begin);
}

// Places behind each `keyword` that stands for itself.
std::vector<std::size_t> behind_each(std::string_view text, std::string_view keyword) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(keyword); at != std::string_view::npos; at = text.find(keyword, at + 1))
    if ((at == 0 || !is_word(text[at - 1])) &&
        (at + keyword.size() == text.size() || !is_word(text[at + keyword.size()])))
      places.push_back(at + keyword.size());
  return places;
}

// Of a declaration whose `__global__` ends at `at`: the word before the first `(`, attributes with arguments
// of their own left out.
std::string declared_at(std::string_view text, std::size_t at) {
  std::string_view last;
  while (at < text.size() && text[at] != ';' && text[at] != '{') {
    if (is_word(text[at])) {
      last = word_at(text, &at);
    } else if (text[at] != '(') {
      ++at;
    } else if (last != "__launch_bounds__" && last != "__cluster_dims__" && last != "__attribute__" &&
               last != "__block_size__" && last != "__maxnreg__") {
      return std::string(last);
    } else {
      int open = 0;
      do {
        open += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
        ++at;
      } while (at < text.size() && open > 0);
    }
  }
  return {};
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && plain ? plain.get() : name;
}

// "void at::native::k<int, (a)2>(float*)" → "at::native::k".
std::string plain_name(const std::string& name) {
  const std::string text = demangled(name);
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && std::string_view(text).substr(i).starts_with(kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (text[i] == '<' || text[i] == '(') {
      if (text[i] == '(' && depth == 0) break;  // its parameters
      ++depth;
    } else if (text[i] == '>' || text[i] == ')') {
      --depth;
    } else if (depth == 0) {
      if (text[i] == ' ')
        out.clear();  // behind the type that it returns
      else
        out += text[i];
    }
  }
  return out.empty() ? text : out;
}

}  // namespace

OwnKernels::OwnKernels(const Candidate& candidate) {
  for (const SourceFile& file : candidate.files) {
    // In Python `//` divides, and a text like "csrc/*.cu" begins no comment.
    const std::string text = file.path.ends_with(".py") ? file.content : without_comments(file.content);
    for (const std::size_t at : behind_each(text, "__global__"))
      if (std::string name = declared_at(text, at); !name.empty()) kernels_.push_back(std::move(name));
    for (std::size_t at : behind_each(text, "namespace"))
      for (;;) {  // `namespace a::b {`
        const std::string_view name = word_at(text, &at);
        if (name.empty()) break;
        namespaces_.emplace_back(name);
        if (!std::string_view(text).substr(at).starts_with("::")) break;
        at += 2;
      }
    if (text.find("triton") == std::string::npos) continue;
    for (const std::size_t at : behind_each(text, "jit"))
      if (std::size_t def = text.find("def ", at); def != std::string::npos) {
        def += 4;
        kernels_.emplace_back(word_at(text, &def));
      }
  }
}

bool OwnKernels::has(const std::string& name) const {
  const std::string plain = plain_name(name);
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= plain.size();) {
    const std::size_t end = std::min(plain.find("::", begin), plain.size());
    parts.push_back(plain.substr(begin, end - begin));
    begin = end + 2;
  }
  const auto in = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  return in(kernels_, parts.back()) &&
         std::all_of(parts.begin(), parts.end() - 1,
                     [&](const std::string& part) { return part == kAnonymous || in(namespaces_, part); });
}

std::optional<double> OwnKernels::share_of(const std::vector<device::ExtensionKernel>& kernels) const {
  double own = 0, all = 0;
  for (const device::ExtensionKernel& kernel : kernels) {
    all += static_cast<double>(kernel.ns);
    if (has(kernel.name)) own += static_cast<double>(kernel.ns);
  }
  return all > 0 ? std::optional(own / all) : std::nullopt;
}

std::string OwnKernels::told(const std::vector<device::ExtensionKernel>& kernels) const {
  double all = 0;
  for (const device::ExtensionKernel& kernel : kernels) all += static_cast<double>(kernel.ns);
  std::string text;
  for (std::size_t i = 0; i < std::min(kernels.size(), kMostTold); ++i)
    text += fmt::format("{}{}{} {:.0f} %", i == 0 ? "" : ", ", has(kernels[i].name) ? "own " : "",
                        plain_name(kernels[i].name).substr(0, kLongestTold),
                        100 * static_cast<double>(kernels[i].ns) / all);
  if (kernels.size() > kMostTold) text += fmt::format(", {} more", kernels.size() - kMostTold);
  return text;
}

}  // namespace warpsmith::measure

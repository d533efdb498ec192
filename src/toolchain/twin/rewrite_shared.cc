#include "rewrite_shared.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

std::string tag_of(const std::string& name) { return "wstw_file_shared_" + name; }

std::vector<std::string> declared_names(const CleanSource& source, std::size_t begin, std::size_t end) {
  std::vector<std::string> names;
  for (std::size_t i = begin; i < end; ++i) {
    if (source.token_text(i) == "[" || source.token_text(i) == "(")
      i = matching(source.tokens, i);
    else if (source.is_name(i) && (source.token_text(i + 1) == "[" || source.token_text(i + 1) == ";" ||
                                   source.token_text(i + 1) == ","))
      names.emplace_back(source.token_text(i));
  }
  if (names.empty()) throw problem_at(source, begin, "a __shared__ variable without a name", false);
  return names;
}

// A declaration `[extern] __shared__ T a[2], b;` up to its first name.
struct SharedType {
  bool dynamic = false;
  std::string type;
  std::string definition;  // of a type that is defined here
  std::size_t behind = 0;  // the first name
};

SharedType shared_type(const CleanSource& source, std::size_t begin, std::size_t end, bool of_file) {
  SharedType out;
  std::size_t i = begin;
  for (; i < end; ++i) {
    const std::string_view t = source.token_text(i);
    if (t == "extern") {
      out.dynamic = true;
    } else if (t == "__shared__" || t == "static") {
    } else if (t == "__align__" || t == "alignas" || t == "__attribute__") {
      i = matching(source.tokens, i + 1);
    } else if (t == "{") {
      // A type that is defined here comes first; one without a name gets one.
      const std::size_t close = matching(source.tokens, i);
      if (of_file || close >= end)
        throw problem_at(source, i,
                         "the CPU twin has no type in a __shared__ declaration outside of functions", true);
      const bool nameless = source.token_text(i - 1) == "struct" || source.token_text(i - 1) == "union" ||
                            source.token_text(i - 1) == "class";
      if (nameless) out.type += "wstw_unnamed_" + std::to_string(begin) + " ";
      out.definition = out.type;
      for (; i < close; ++i) {
        if (source.tokens[i].kind == TokenKind::kDirective)
          throw problem_at(source, i, "the CPU twin has no directives in a __shared__ declaration", true);
        out.definition += std::string(source.token_text(i)) + " ";
      }
      out.definition += "}; ";
    } else if (source.is_name(i) && !out.type.empty() &&
               (source.token_text(i + 1) == "[" || source.token_text(i + 1) == ";" ||
                source.token_text(i + 1) == ",")) {
      break;
    } else {
      out.type += std::string(t) + " ";
    }
  }
  out.behind = i;
  return out;
}

// The declaration as references into the block's storage.
std::string shared_declaration(const CleanSource& source, std::size_t begin, std::size_t end, bool of_file) {
  const SharedType of = shared_type(source, begin, end, of_file);
  const std::string& type = of.type;
  std::string out = of.definition;
  std::size_t i = of.behind;
  while (i < end) {
    if (!source.is_name(i))
      throw problem_at(source, i, "a __shared__ declaration that the CPU twin cannot read", true);
    const std::string name(source.token_text(i++));
    std::string dims, inner_dims;
    for (std::size_t n = 0; source.token_text(i) == "["; ++n) {
      const std::size_t close = matching(source.tokens, i);
      std::string dim;
      for (std::size_t k = i; k <= close; ++k)
        dim += std::string(source.token_text(k)) + (k < close ? " " : "");
      dims += dim;
      if (n > 0) inner_dims += dim;
      i = close + 1;
    }
    if (of.dynamic && inner_dims.empty()) {
      out += type + "* const " + name + " = (" + type + "*)wstw_.block->dynamic; ";
    } else if (of.dynamic) {
      out += type + "(* const " + name + ")" + inner_dims + " = (" + type + "(*)" + inner_dims +
             ")wstw_.block->dynamic; ";
    } else {
      const std::string id = of_file ? tag_of(name) : "decltype([] {})";
      out += "auto& " + name + " = wstw_shared<" + type + dims + ", " + id + ">(wstw_); ";
    }
    if (source.token_text(i) == ",")
      ++i;
    else
      break;
  }
  if (i != end) throw problem_at(source, i, "a __shared__ declaration that the CPU twin cannot read", true);
  return out;
}

}  // namespace

void rewrite_shared(const CleanSource& source, const Scan& scan, const Function& f, SourceEdits& edits) {
  std::string from_file;
  for (const auto& [begin, end] : scan.file_shared) {
    const std::vector<std::string> names = declared_names(source, begin, end);
    for (std::size_t i = f.body_open; i < f.body_close; ++i)
      if (std::find(names.begin(), names.end(), source.token_text(i)) != names.end() &&
          source.token_text(i - 1) != "." && source.token_text(i - 1) != "->") {
        from_file += " " + shared_declaration(source, begin, end, true);
        break;
      }
  }
  if (!from_file.empty()) edits.insert_after(f.body_open, from_file);
  for (std::size_t i = f.body_open; i < f.body_close; ++i) {
    if (source.token_text(i) != "__shared__") continue;
    std::size_t begin = i, end = i;
    while (begin > f.body_open && source.token_text(begin - 1) != ";" &&
           source.token_text(begin - 1) != "{" && source.token_text(begin - 1) != "}" &&
           source.tokens[begin - 1].kind != TokenKind::kDirective)
      --begin;
    while (end < f.body_close && source.token_text(end) != ";") {
      if (source.token_text(end) == "{") end = std::min(matching(source.tokens, end), f.body_close);
      if (source.token_text(end) == "=")
        throw problem_at(source, end, "a __shared__ variable has no initial value", false);
      ++end;
    }
    edits.remove(begin, end, shared_declaration(source, begin, end, false));
    i = end;
  }
}

void rewrite_file_shared(const CleanSource& source, const Scan& scan, SourceEdits& edits) {
  for (const auto& [begin, end] : scan.file_shared) {
    std::string tags;
    for (const std::string& name : declared_names(source, begin, end))
      tags += "struct " + tag_of(name) + "; ";
    edits.remove(begin, end, tags);
  }
}

}  // namespace warpsmith::toolchain

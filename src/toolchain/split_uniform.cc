#include "split_uniform.h"

#include <algorithm>

#include "split_use.h"

namespace warpsmith::toolchain {

UniformNames::UniformNames(const KernelText& kernel, const std::vector<Local>& locals,
                           std::vector<Statement>& statements)
    : k_(kernel), locals_(locals) {
  read_parameters();
  read_statements(statements);
  // What needs a variable stands behind it.
  for (std::size_t i = entries_.size(); i-- > 0;) entries_[i].needed = find_need(entries_[i]);
}

bool UniformNames::contains(std::string_view name, std::size_t at) const { return find(name, at) != nullptr; }

bool UniformNames::is_needed(std::string_view name, std::size_t at) const {
  const Entry* const entry = find(name, at);
  return entry != nullptr && entry->needed;
}

bool UniformNames::find_need(const Entry& entry) const {
  const auto mentioned = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = std::max(first, entry.first); i <= std::min(last, entry.last); ++i)
      if (k_.text(i) == entry.name && k_.text(i - 1) != "." && k_.text(i - 1) != "->") return true;
    return false;
  };
  for (std::size_t i = entry.first; i < entry.last; ++i) {
    if (k_.text(i) != "for" && k_.text(i) != "if") continue;
    const std::size_t head = k_.text(i + 1) == "constexpr" ? i + 2 : i + 1;
    if (k_.text(head) == "(" && mentioned(head, matching(k_.tokens, head)) &&
        k_.any_waits(i, k_.end_of_statement(i)))
      return true;
  }
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
    return other.needed && mentioned(other.value_first, other.value_last);
  });
}

const UniformNames::Entry* UniformNames::find(std::string_view name, std::size_t at) const {
  for (const Entry& e : entries_)
    if (e.name == name && at >= e.first && at <= e.last) return &e;
  return nullptr;
}

const Local& UniformNames::local(std::size_t at) const {
  for (const Local& l : locals_)
    if (l.at == at) return l;
  throw NotSplit{};
}

// Whether the name means nothing else where it means this.
bool UniformNames::is_alone(const Local& local) const {
  return std::none_of(locals_.begin(), locals_.end(), [&](const Local& other) {
    return other.name == local.name && other.at != local.at &&
           ((other.at > local.at && other.at <= local.last) ||
            (local.at > other.at && local.at <= other.last));
  });
}

void UniformNames::read_parameters() {
  for (const Local& p : locals_) {
    if (!p.is_parameter) continue;
    bool is_pointer = k_.text(p.at + 1) == "[";
    for (std::size_t i = p.at - 1; i > k_.function.params_open && k_.text(i) != ","; --i)
      is_pointer = is_pointer || k_.text(i) == "*";
    // A block has one set of parameters here, and not one a thread.
    if (is_changed(k_, p.name, k_.function.body_open, k_.function.body_close, is_pointer)) throw NotSplit{};
    if (is_alone(p)) entries_.push_back({p.name, p.at, p.last});
  }
  if (k_.function.is_template && k_.text(k_.function.head) == "template")
    for (std::size_t i = k_.function.head + 2; i < k_.function.name_at && k_.text(i) != ">"; ++i)
      if (k_.is_name(i)) template_names_.insert(std::string(k_.text(i)));
}

// The same for all threads of a block: numbers, what the block is, variables that are.
bool UniformNames::is_uniform(std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i <= last; ++i) {
    const std::string_view t = k_.text(i);
    if (t == "[" || t == "->") return false;
    if (!k_.is_name(i)) continue;
    if (k_.text(i - 1) == ".") continue;
    if (t == "threadIdx") return false;
    if (k_.text(i + 1) == "(") {
      if (t != "min" && t != "max") return false;
      for (const Function& f : k_.scan.functions)
        if (f.name == t) return false;
    }
    if (t == "blockIdx" || t == "blockDim" || t == "gridDim" || t == "warpSize" || t == "min" || t == "max" ||
        t == "int" || t == "unsigned" || t == "long" || t == "float" || t == "const" || t == "true" ||
        t == "false" || is_constant(t))
      continue;
    if (find(t, i) == nullptr && !template_names_.contains(t)) return false;
  }
  return !may_trap(first, last);
}

// A macro that is a number.
bool UniformNames::is_constant(std::string_view macro) const {
  const auto found = k_.scan.macros.find(macro);
  if (found == k_.scan.macros.end()) return false;
  for (const std::size_t m : found->second) {
    const std::vector<Token> tokens = tokens_of(k_.text(m).substr(1), 1);
    if (tokens.size() != 3) return false;
    if (tokens[2].kind != TokenKind::kNumber && (tokens[2].text == macro || !is_constant(tokens[2].text)))
      return false;
  }
  return true;
}

// The block evaluates it once even where all threads have returned: no division by what they may have been
// kept from, nothing read from where they would not.
bool UniformNames::may_trap(std::size_t first, std::size_t last) const {
  bool returns = false;
  for (std::size_t i = k_.function.body_open; i < first && !returns; ++i) returns = k_.text(i) == "return";
  if (!returns) return false;
  for (std::size_t i = first; i <= last; ++i) {
    const std::string_view t = k_.text(i), next = k_.text(i + 1);
    const bool is_value = k_.is_name(i - 1) || k_.text(i - 1) == ")" || k_.text(i - 1) == "]" ||
                          k_.tokens[i - 1].kind == TokenKind::kNumber;
    if (t == "*" && !is_value) return true;
    if (t != "/" && t != "%" && t != "/=" && t != "%=") continue;
    if (k_.tokens[i + 1].kind != TokenKind::kNumber && next != "blockDim" && next != "gridDim" &&
        next != "warpSize" && !is_constant(next) && !template_names_.contains(next))
      return true;
  }
  return false;
}

bool UniformNames::is_uniform_variable(const Statement& s, const Declarator& d) const {
  if (d.equals == 0 || !d.dims.empty() || !d.stars.empty()) return false;
  const std::vector<Token> type_words = tokens_of(s.type, 1);
  for (const Token& word : type_words)
    if (k_.scan.classes.contains(word.text)) return false;
  const Local& l = local(d.name_at);
  return is_uniform(d.equals + 1, d.last) && is_alone(l) && !is_changed(k_, d.name, d.last + 1, l.last);
}

void UniformNames::read_statements(std::vector<Statement>& statements) {
  for (Statement& s : statements) {
    if (s.kind == Statement::Kind::kDeclaration) {
      for (const Declarator& d : s.declarators)
        if (is_uniform_variable(s, d))
          entries_.push_back({d.name, d.name_at, local(d.name_at).last, d.equals + 1, d.last});
    } else if (s.kind == Statement::Kind::kFor) {
      if (!read_counter(s)) throw NotSplit{};
      s.uniform = true;
    } else if (s.kind == Statement::Kind::kIf) {
      s.uniform = is_uniform(s.head_open + 1, s.head_close - 1);
    }
    read_statements(s.body);
  }
}

// `for (int h = e; h > e; h /= e)`, all of it uniform.
bool UniformNames::read_counter(const Statement& s) {
  std::size_t i = s.head_open + 1;
  while (k_.text(i) == "int" || k_.text(i) == "unsigned" || k_.text(i) == "long" || k_.text(i) == "size_t")
    ++i;
  if (i == s.head_open + 1 || !k_.is_name(i) || k_.text(i + 1) != "=") return false;
  const std::size_t first_end = k_.end_of_statement(i);
  const std::size_t second_end = k_.end_of_statement(first_end + 1);
  for (std::size_t k = i + 2; k < s.head_close; ++k)
    if (k_.text(k) == "," && (k < first_end || k > second_end)) return false;
  if (!is_uniform(i + 2, first_end - 1) || !is_alone(local(i))) return false;
  entries_.push_back({std::string(k_.text(i)), i, s.last});
  // Nobody leaves such a loop early. Loops inside a region may.
  return is_uniform(first_end + 1, second_end - 1) && is_uniform(second_end + 1, s.head_close - 1) &&
         !is_changed(k_, k_.text(i), s.head_close + 1, s.last);
}

}  // namespace warpsmith::toolchain

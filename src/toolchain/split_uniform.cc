#include "split_uniform.h"

namespace warpsmith::toolchain {

UniformNames::UniformNames(const KernelText& kernel, std::vector<Statement>& statements) : k_(kernel) {
  read_parameters();
  read_statements(statements);
}

void UniformNames::read_parameters() {
  std::string last;
  for (std::size_t i = k_.function.params_open + 1; i <= k_.function.params_close; ++i) {
    if (k_.text(i) == "," || i == k_.function.params_close) {
      if (!last.empty()) names_.insert(last);
      last.clear();
    } else if (k_.is_name(i)) {
      last = std::string(k_.text(i));
    }
  }
  // A block has one set of parameters here, and not one a thread.
  for (const std::string& name : names_)
    if (k_.is_changed(name, k_.function.body_open, k_.function.body_close)) throw NotSplit{};
  if (k_.function.is_template && k_.text(k_.function.head) == "template")
    for (std::size_t i = k_.function.head + 2; i < k_.function.name_at && k_.text(i) != ">"; ++i)
      if (k_.is_name(i)) template_names_.insert(std::string(k_.text(i)));
}

// The same for all threads of a block: numbers, what the block is, variables that are.
bool UniformNames::is_uniform(std::size_t first, std::size_t last, const Names& also) const {
  for (std::size_t i = first; i <= last; ++i) {
    const std::string_view t = k_.text(i);
    if (t == "[" || t == "->") return false;
    if (!k_.is_name(i)) continue;
    if (k_.text(i - 1) == ".") continue;
    if (t == "threadIdx" || (k_.text(i + 1) == "(" && t != "min" && t != "max")) return false;
    if (t == "blockIdx" || t == "blockDim" || t == "gridDim" || t == "warpSize" || t == "min" || t == "max" ||
        t == "int" || t == "unsigned" || t == "long" || t == "float" || t == "const" || t == "true" ||
        t == "false" || k_.scan.macros.contains(t))
      continue;
    if (!names_.contains(t) && !also.contains(t) && !template_names_.contains(t)) return false;
  }
  return true;
}

void UniformNames::read_statements(std::vector<Statement>& statements) {
  for (Statement& s : statements) {
    if (s.kind == Statement::Kind::kDeclaration) {
      for (const Declarator& d : s.declarators)
        if (d.equals != 0 && d.dims.empty() && d.stars.empty() && is_uniform(d.equals + 1, d.last) &&
            !k_.is_changed(d.name, d.last + 1, k_.function.body_close) && !twice(d.name))
          names_.insert(d.name);
    } else if (s.kind == Statement::Kind::kFor) {
      const std::string counter = loop_counter(s);
      if (counter.empty()) throw NotSplit{};
      names_.insert(counter);
      s.uniform = true;
    } else if (s.kind == Statement::Kind::kIf) {
      s.uniform = is_uniform(s.head_open + 1, s.head_close - 1);
    }
    read_statements(s.body);
  }
}

// Whether it is declared more than once, as far as can be seen.
bool UniformNames::twice(const std::string& name) const {
  int n = 0;
  for (std::size_t i = k_.function.body_open; i < k_.function.body_close; ++i)
    if (k_.text(i) == name && (k_.is_name(i - 1) || k_.text(i - 1) == "*") && k_.text(i + 1) == "=") ++n;
  return n > 1;
}

// `for (int h = e; h > e; h /= e)`, all of it uniform: its counter's name. Else empty.
std::string UniformNames::loop_counter(const Statement& s) const {
  std::size_t i = s.head_open + 1;
  while (k_.text(i) == "int" || k_.text(i) == "unsigned" || k_.text(i) == "long" || k_.text(i) == "size_t")
    ++i;
  if (i == s.head_open + 1 || !k_.is_name(i) || k_.text(i + 1) != "=") return "";
  const std::string counter(k_.text(i));
  const std::size_t first_end = k_.end_of_statement(i);
  const std::size_t second_end = k_.end_of_statement(first_end + 1);
  for (std::size_t k = i + 2; k < first_end; ++k)
    if (k_.text(k) == ",") return "";
  if (!is_uniform(i + 2, first_end - 1) || !is_uniform(first_end + 1, second_end - 1, {counter}) ||
      !is_uniform(second_end + 1, s.head_close - 1, {counter}))
    return "";
  for (std::size_t k = second_end + 1; k < s.head_close; ++k)
    if (k_.text(k) == ",") return "";
  if (k_.is_changed(counter, s.head_close + 1, s.last)) return "";
  // Nobody leaves such a loop early. Loops inside a region may.
  return counter;
}

}  // namespace warpsmith::toolchain

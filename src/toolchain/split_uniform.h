// What is the same for all threads of a block: a loop or a branch around a barrier must hang on nothing else.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_text.h"
#include "split_locals.h"
#include "split_statements.h"

namespace warpsmith::toolchain {

class UniformNames {
 public:
  // The kernel's parameters, variables and loop counters that are. Sets `uniform` of the loops and branches
  // among `statements`. Throws NotSplit where a loop that holds a barrier is not uniform, or a parameter is
  // changed.
  UniformNames(const KernelText& kernel, const std::vector<Local>& locals,
               std::vector<Statement>& statements);

  // What the name means at token `at` is uniform.
  bool contains(std::string_view name, std::size_t at) const;
  // … and a condition or a loop around regions hangs on it, maybe by way of other variables.
  bool is_needed(std::string_view name, std::size_t at) const;

 private:
  struct Entry {
    std::string name;
    std::size_t first = 0, last = 0;              // where the name means it
    std::size_t value_first = 1, value_last = 0;  // of a variable: its initial value
    bool needed = false;
  };
  using Names = std::set<std::string, std::less<>>;
  void read_parameters();
  void read_statements(std::vector<Statement>& statements);
  bool is_uniform_variable(const Statement& s, const Declarator& d) const;
  bool is_uniform(std::size_t first, std::size_t last) const;
  bool is_constant(std::string_view macro) const;
  bool may_trap(std::size_t first, std::size_t last) const;
  bool find_need(const Entry& entry) const;
  const Entry* find(std::string_view name, std::size_t at) const;
  const Local& local(std::size_t at) const;
  bool is_alone(const Local& local) const;
  bool read_counter(const Statement& s);

  const KernelText& k_;
  const std::vector<Local>& locals_;
  std::vector<Entry> entries_;
  Names template_names_;
};

}  // namespace warpsmith::toolchain

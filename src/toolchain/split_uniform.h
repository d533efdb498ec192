// What is the same for all threads of a block: a loop or a branch around a barrier must hang on nothing else.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_text.h"
#include "split_statements.h"

namespace warpsmith::toolchain {

class UniformNames {
 public:
  // The kernel's parameters, variables and loop counters that are. Sets `uniform` of the loops and branches
  // among `statements`. Throws NotSplit where a loop that holds a barrier is not uniform, or a parameter is
  // changed.
  UniformNames(const KernelText& kernel, std::vector<Statement>& statements);

  bool contains(std::string_view name) const { return names_.contains(name); }

 private:
  using Names = std::set<std::string, std::less<>>;
  void read_parameters();
  void read_statements(std::vector<Statement>& statements);
  bool is_uniform(std::size_t first, std::size_t last, const Names& also = {}) const;
  bool twice(const std::string& name) const;
  std::string loop_counter(const Statement& s) const;

  const KernelText& k_;
  Names names_, template_names_;
};

}  // namespace warpsmith::toolchain

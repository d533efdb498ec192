// A kernel cut into regions: pieces between the places where threads wait, each of which becomes a loop over
// threads. And the variables that cross a region's end.
#pragma once

#include <string>
#include <vector>

#include "split_locals.h"
#include "split_statements.h"
#include "split_uniform.h"

namespace warpsmith::toolchain {

// A variable declared between regions.
struct Variable {
  std::string name, type, dims;
  std::size_t scope_first = 0, scope_last = 0;  // tokens where the name means it
  int region = -1;                              // that declares it
  bool is_private = false;  // lives across the region's end: an array with an element a thread
  int id = 0;
  const Statement* statement = nullptr;    // its declaration
  const Declarator* declarator = nullptr;  // none: of a form that can only stay where it is
  bool is_reference = false;

  bool is_mentioned(const KernelText& kernel, std::size_t from, std::size_t to) const;
};

struct Region {
  std::size_t first = 0, last = 0;
  int mask = 0;                          // innermost branch that not all threads take; 0: none
  const Statement* puts = nullptr;       // shuffles whose values are laid down at its end
  bool empty = false;                    // has no statement, only puts
  const Statement* condition = nullptr;  // computes the mask `made`
  int made = 0;
};

// Points into the statements.
struct RegionPlan {
  std::vector<Region> regions;
  std::vector<Variable> variables;
  std::vector<const Statement*> unbraced;  // loops and branches whose body gets braces
  bool returns = false;                    // a thread may end before the others
  int masks = 0;
};

// `edits` gets the changes of barriers and `return`s. Throws NotSplit.
RegionPlan plan_regions(const KernelText& kernel, const std::vector<Local>& locals,
                        const UniformNames& uniform, const std::vector<Statement>& statements,
                        std::vector<SplitEdit>& edits);

}  // namespace warpsmith::toolchain

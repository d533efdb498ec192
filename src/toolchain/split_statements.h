// The body of a kernel that waits, as statements of the kinds that the splitter (split.h) knows.
#pragma once

#include <string>
#include <vector>

#include "kernel_text.h"
#include "split.h"

namespace warpsmith::toolchain {

struct Declarator {
  std::string name;
  std::size_t first = 0, name_at = 0, last = 0;  // tokens; `first` includes stars
  std::size_t equals = 0;                        // 0: no initial value
  std::string stars, dims;
};

struct Shuffle {
  std::size_t name_at = 0, close = 0;
  std::string value, source;  // texts
};

struct Statement {
  // Plain ones and declarations do not wait; `for`, `if` and blocks hold something that does.
  enum class Kind { kPlain, kDeclaration, kShared, kBarrier, kShuffles, kFor, kIf, kBlock };
  Kind kind = Kind::kPlain;
  std::size_t first = 0, last = 0;            // tokens, both included
  std::size_t head_open = 0, head_close = 0;  // for, if
  std::vector<Statement> body;
  bool braced = false, uniform = false;  // uniform: set by UniformNames
  std::size_t type_last = 0;             // declarations
  std::string type;
  std::vector<Declarator> declarators;
  std::vector<Shuffle> shuffles;
};

// Those of the kernel's body; `edits` gets the changes that are clear by now. Throws NotSplit.
std::vector<Statement> read_statements(const KernelText& kernel, std::vector<SplitEdit>& edits);

}  // namespace warpsmith::toolchain

// Words of a launch plan. Those of the source, kernels and symbols, go into what a compiler is given, next to
// tables of our own.
#pragma once

#include <string>
#include <vector>

#include "plan_text.h"

namespace warpsmith::task {

// A qualified name, perhaps with template arguments: names, numbers, characters in ' ', signs, parentheses.
// Nothing that has statements, ends the expression or begins another. Throws Mistake at its place.
void check_kernel_name(const Piece& name);

// Throws Mistake where the name is one of the harness's own, or none that a source can declare.
void check_name_of_source(const Piece& name);

// "did you mean `x`?", or nothing: also among many names, or long ones, which nobody has misspelt.
std::string suggest_name(std::string_view word, const std::vector<std::string>& known);

// Bytes of `swizzle32`, `swizzle64`, `swizzle128`; 0 for no word. Throws Mistake.
int read_swizzle(const Piece& word);

}  // namespace warpsmith::task

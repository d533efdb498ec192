// What a kernel does with a variable where it mentions it.
#pragma once

#include <string_view>

#include "kernel_text.h"

namespace warpsmith::toolchain {

enum class Use {
  kRead,     // its value is taken, or what it points to is used
  kLent,     // something that may not change it holds its address
  kBound,    // something that may change it holds its address, or it is handed to one that may
  kChanged,  // it is assigned to
};

// Of the variable whose name stands at `i` and has that many dimensions. Doubtful ones are kBound.
Use use_at(const KernelText& kernel, std::size_t i, std::size_t dimensions);

// Whether a variable without dimensions gets another value in tokens [first, last], or may get it. What a
// pointer points to is not its value.
bool is_changed(const KernelText& kernel, std::string_view name, std::size_t first, std::size_t last,
                bool is_pointer = false);

}  // namespace warpsmith::toolchain

// What a shared object made from foreign source may hold: nothing that runs when it is loaded, nothing of
// libc but arithmetic.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::toolchain {

inline constexpr const char* kNoConstructors =
    "a global variable has a constructor or a destructor: globals of device code have constant initial "
    "values";

// Empty where the object is fine; else what is wrong with it, as a compile error.
std::string problem_of_shared_object(const std::filesystem::path& path);

}  // namespace warpsmith::toolchain

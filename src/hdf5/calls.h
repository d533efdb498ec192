// Inside the module only: the C library, its errors as Error, and the handles that no caller sees.
#pragma once

#include <hdf5.h>

#include <string>

#include "warpsmith/base/error.h"
#include "warpsmith/hdf5/hdf5.h"

namespace warpsmith::hdf5 {

static_assert(std::is_same_v<hid_t, std::int64_t>, "hid_t is 64 bits wide since HDF5 1.10");

// Silences the library (it prints its error stack on stderr by default) and empties the stack.
void prepare();

// The library's error stack, outermost call first, as one line.
[[noreturn]] void fail(const std::string& what);

template <typename Result>
Result check(Result result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

inline Handle own(hid_t id, Handle::Close close, const std::string& what) {
  return Handle(check(id, what), close);
}

// File name of an object, and its path in it, for messages.
std::string describe(hid_t object);

// Memory type of a number; for kString the variable-length UTF-8 string type, which the caller owns.
hid_t number_type(Type type);
Handle string_type(Size bytes);  // 0: variable length

}  // namespace warpsmith::hdf5

// Casts to pointers: the address is checked against the alignment of the new type, which a GPU demands and
// the CPU does not (wstw_pointer in cuda_twin.h).
#pragma once

#include <set>
#include <string>

#include "scan.h"
#include "source_edits.h"

namespace warpsmith::toolchain {

// Names of types that a cast may name alone, as in `(P)x`.
struct CastNames {
  std::set<std::string, std::less<>> types;     // aliases and type parameters of templates
  std::set<std::string, std::less<>> pointers;  // aliases and macros that stand for pointers
};
CastNames find_cast_names(const CleanSource& source);

// At a `(`: `(const T*)e`, `(T&)x`, `(P)e`, `(T (*)[4])e`, `(decltype(p))e`.
void rewrite_cast(const CleanSource& source, const CastNames& names, std::size_t open, SourceEdits& edits);
// At `reinterpret_cast`, `static_cast` or a name of `pointers`, which may be a cast: `P(e)`.
void rewrite_named_cast(const CleanSource& source, const CastNames& names, std::size_t i, SourceEdits& edits);

}  // namespace warpsmith::toolchain

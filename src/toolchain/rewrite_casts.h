// Casts to pointers to vector types and structs: the address is looked at for its alignment, which a GPU
// demands and the CPU does not.
#pragma once

#include "scan.h"
#include "source_edits.h"

namespace warpsmith::toolchain {

// At a `(`: `(const float4*)e`, `(float4&)x`.
void rewrite_cast(const CleanSource& source, const Scan& scan, std::size_t open, SourceEdits& edits);
// At `reinterpret_cast` or `static_cast`.
void rewrite_named_cast(const CleanSource& source, std::size_t i, SourceEdits& edits);

}  // namespace warpsmith::toolchain

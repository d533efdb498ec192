// Numbers of a launch plan as the bits of a data type.
#pragma once

#include <cstdint>

#include "warpsmith/task/task.h"

namespace warpsmith::device {

std::uint16_t half_bits(double value);  // IEEE binary16, rounded to even by way of float
// The bits of `value` in `dtype`. False where it has no such bits (8-bit floats other than 0).
bool bits_of(task::Dtype dtype, double value, std::uint64_t* bits);

}  // namespace warpsmith::device

// What is recorded beside a cubin.
#pragma once

#include <string>

#include "compile_unit.h"
#include "nvrtc_protocol.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

// Throws Error where the cubin cannot be read or NVRTC said nothing of a kernel.
CubinFacts gather_facts(const std::string& cubin, const NvrtcAnswer& answer, const std::string& target,
                        const ModuleNames& names);

Json to_json(const KernelFacts& kernel);
Json to_json(const CubinFacts& facts);

}  // namespace warpsmith::toolchain

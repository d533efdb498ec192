// What is recorded beside a cubin.
#pragma once

#include <string>

#include "../common/compile_unit.h"
#include "../common/cubin.h"
#include "protocol.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

// Throws Error where NVRTC said nothing of a kernel.
CubinFacts gather_facts(const CubinContent& content, const NvrtcAnswer& answer, const std::string& target,
                        const ModuleNames& names);

Json to_json(const CubinFacts& facts);

}  // namespace warpsmith::toolchain

// What every compilation of a candidate is given and gives back, whatever it is compiled for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "warpsmith/records/verdict.h"

namespace warpsmith::toolchain {

struct CompileOptions {
  std::filesystem::path cache;  // folder; made if missing
  double timeout_s = 20;
  std::uint64_t memory_bytes = 2ull << 30;
  std::uint64_t log_bytes = 4096;  // the log is cut to this, errors first
  bool unsandboxed = false;        // go on where no sandbox is to be had
};

struct CompileResult {
  Verdict verdict =
      Verdict::kCompileError;  // ok, compile_error, compile_timeout, unsupported, sandbox_violation
  std::string log;  // with the candidate's own lines ("kernel.cu:12:3: error: …") and no path of this machine
  std::filesystem::path binary;  // in the cache; set where verdict is ok
  double seconds = 0;
  bool cached = false;
  // A limit of the compiler's ended it: it is not kept, for the next run may have another one.
  bool over_limit = false;
};

}  // namespace warpsmith::toolchain

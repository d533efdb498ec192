// `plan` candidates on the CPU twin: source to shared object, in a sandboxed, killable compiler with a
// content-addressed cache. What the twin supplies of CUDA's vocabulary: datasets/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/task/task.h"

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
};

// Compiles or finds in the cache (failures are cached too, but timeouts are not). Safe to call from several
// processes with one cache. Throws Error only where this machine is at fault (no compiler, disk full).
CompileResult compile_for_host(const Candidate& candidate, const task::Task& task,
                               const CompileOptions& options);

// Compiler, its version and flags as they enter the cache key; for provenance.
std::string host_toolchain_id();

}  // namespace warpsmith::toolchain

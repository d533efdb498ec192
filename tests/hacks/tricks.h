// The programs of tests/hacks: known tricks, and honest programs that do the same work without them.
//
// A trick's first lines say
//   // hack: what it tries
//   // task: gelu
//   // verdict: wrong_output hack:threads    what may become of it; a `hack` of that kind, or of any
//   // honest: gelu/candidates/ok/flat       its honest twin, where `ok` may become of it
// and in Python the same behind `#`. The twin is a file of datasets/ or, as honest/NAME, one in the folder
// beside the tricks.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith {

struct Program {
  std::string name;
  const task::Task* task = nullptr;
  std::set<std::string> allowed;  // verdicts, as in its header
  std::string honest;             // name of its twin; of tricks that may be `ok`
  Candidate candidate;
  std::vector<toolchain::CompileResult> compiled;  // by target
};

// Throw Error with kExitUsage where a header makes no sense. `tasks` must outlive what they return.
std::vector<Program> load_tricks(const std::filesystem::path& folder, Tier tier,
                                 const std::vector<task::Task>& tasks);
// Each twin of these tricks once, by its name.
std::vector<Program> load_twins(const std::filesystem::path& folder, const std::filesystem::path& datasets,
                                const std::vector<Program>& tricks);
// The right candidates of the datasets, of these tiers.
std::vector<Program> honest_programs(const std::vector<task::Task>& tasks, const std::set<Tier>& tiers);
// The programs in <folder>/honest, each of which must be `ok`, twins or not: their headers say their task.
std::vector<Program> load_honest(const std::filesystem::path& folder, Tier tier,
                                 const std::vector<task::Task>& tasks);

// On all processors of this machine.
void compile(std::vector<Program>& programs, const std::vector<toolchain::GpuTarget>& targets,
             const std::filesystem::path& cache);
// How an outcome differs from what the header says, in words; empty: it does not, as far as can be said
// without a GPU.
std::string compile_problem(const Program& program, const toolchain::CompileResult& result);
// Whether a program wants a library, or a tool, that is not on this machine.
bool lacks_library(const Program& program, const toolchain::CompileResult& result);

}  // namespace warpsmith

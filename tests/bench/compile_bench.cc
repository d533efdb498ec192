// What compiling a `plan` candidate for the CPU twin costs, with NVRTC's check and without it.
//
//   compile_bench [DATASETS [ROUNDS]]
//
// Compiles every right candidate of the dataset with an empty cache, in a process of its own for each way,
// the ways taking turns. Prints CPU time (user and system, children included) and wall time a candidate.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/host.h"

namespace {

using namespace warpsmith;

struct Work {
  const task::Task* task;
  Candidate candidate;
};

double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

enum class Way { kWithoutNvrtc, kChildEach, kOneChild };

std::size_t count_ok(const std::vector<Work>& works, Way way, const toolchain::CompileOptions& options) {
  std::size_t ok = 0;
  toolchain::HostToolchain all(options);  // its child counts when it has ended, at the end of this function
  for (const Work& work : works) {
    const toolchain::CompileResult result =
        way == Way::kChildEach ? toolchain::compile_for_host(work.candidate, *work.task, options)
                               : all.compile(work.candidate, *work.task);
    ok += result.verdict == Verdict::kOk;
  }
  return ok;
}

void compile_all(const std::vector<Work>& works, Way way) {
  toolchain::CompileOptions options;
  options.cache = fs::temp_directory_path() / ("warpsmith-compile-bench-" + std::to_string(::getpid()));
  (void)toolchain::host_toolchain_id();  // finds the compilers, once a process
  const double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
  const auto start = std::chrono::steady_clock::now();
  const std::size_t ok = count_ok(works, way, options);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double used = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu;
  const auto count = static_cast<double>(works.size());
  const char* const names[] = {"without NVRTC", "NVRTC, a child for each", "NVRTC, one child for all"};
  std::printf("%-24s %6.1f ms CPU, %6.1f ms wall a candidate; %zu of %zu ok\n", names[static_cast<int>(way)],
              used / count * 1e3, wall / count * 1e3, ok, works.size());
  std::fflush(stdout);
  fs::remove_all(options.cache);
}

// In a process of its own: which NVRTC there is, is found once a process.
void run(const std::vector<Work>& works, Way way) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    if (way == Way::kWithoutNvrtc) ::setenv("WARPSMITH_NVRTC", "/none", 1);
    compile_all(works, way);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path datasets = argc > 1 ? argv[1] : WARPSMITH_SOURCE_DIR "/datasets";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2;
  Diagnostics diagnostics;
  const std::vector<task::Task> tasks = task::load_tasks(datasets, diagnostics);
  std::vector<Work> works;
  for (const task::Task& task : tasks)
    for (const task::CandidateFile& file : task::load_candidate_files(task, diagnostics))
      if (file.expected == "ok") works.push_back({&task, make_plan_candidate(task.id, file.source, {})});
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  for (int round = 0; round < rounds; ++round)
    for (const Way way : {Way::kWithoutNvrtc, Way::kChildEach, Way::kOneChild}) run(works, way);
  return 0;
}

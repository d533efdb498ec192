// Null test: programs timed against themselves must score 1.
//
//   null_test [DATASETS [TASK…]]
//
// For each task the reference against itself, and the fastest dataset candidate against itself, in two
// children and through the candidate's path. Prints the scores and the share of tasks within ±0.02. A
// measurement, to be made on a quiet machine: it judges nothing and exits 0.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/log.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/process/child.h"
#include "warpsmith/toolchain/host.h"

namespace {

using namespace warpsmith;
namespace fs = std::filesystem;

constexpr double kTolerance = 0.02;

struct Share {
  int near = 0, all = 0;
  void add(const Measurement& m) {
    ++all;
    near += m.rounds > 0 && std::abs(m.speedup - 1) <= kTolerance;
  }
};

std::string text_of(const Measurement& m) {
  char text[160];
  if (m.rounds == 0) return std::string(to_string(m.verdict)) + " " + m.detail;
  std::snprintf(text, sizeof text, "%.4f [%.4f, %.4f] %9.1f us %5d rounds of %3d %s", m.speedup,
                m.speedup_low, m.speedup_high, m.baseline_ns / 1e3, m.rounds, m.batch,
                m.verdict == Verdict::kOk ? "" : std::string(to_string(m.verdict)).c_str());
  return text;
}

struct Fastest {
  Candidate candidate;
  fs::path binary;
  std::string name;
  double speedup = 0;
};

// The task's fastest `ok` candidate, each measured once against the reference.
std::optional<Fastest> find_fastest(measure::Measurer& measurer, const task::Task& task,
                                    const fs::path& cache, bool unsandboxed) {
  Diagnostics mistakes;
  std::optional<Fastest> fastest;
  toolchain::CompileOptions options;
  options.cache = cache;
  options.unsandboxed = unsandboxed;
  for (const task::CandidateFile& file : task::load_candidate_files(task, mistakes)) {
    if (file.expected != "ok") continue;
    const Candidate candidate = make_plan_candidate(task.id, file.source, {});
    const toolchain::CompileResult compiled = toolchain::compile_for_host(candidate, task, options);
    if (compiled.verdict != Verdict::kOk) continue;
    const Measurement m = measurer.measure(task, candidate, compiled.binary).measurement;
    if (m.verdict == Verdict::kOk && (!fastest || m.speedup > fastest->speedup))
      fastest = Fastest{candidate, compiled.binary, file.name, m.speedup};
  }
  return fastest;
}

int run(int argc, char** argv) {
  Diagnostics mistakes;
  const fs::path datasets = argc > 1 ? fs::path(argv[1]) : fs::path(WARPSMITH_SOURCE_DIR) / "datasets";
  std::vector<task::Task> tasks = task::load_tasks(datasets, mistakes);
  if (!mistakes.empty()) throw InvalidInput(mistakes);
  const std::vector<std::string> only(argv + std::min(argc, 2), argv + argc);
  if (!only.empty())
    std::erase_if(tasks, [&](const task::Task& task) {
      return std::find(only.begin(), only.end(), task.id) == only.end();
    });
  const fs::path cache = fs::temp_directory_path() / ("warpsmith-null-test-" + std::to_string(::getpid()));
  measure::Settings settings;
  settings.seed = 1;
  settings.unsandboxed = process::available_sandbox() == process::SandboxLevel::kNone;
  measure::stay_on_one_cpu(0);  // as a measure job does
  measure::Measurer measurer(settings);
  Share references, candidates;
  int without = 0;
  for (const task::Task& task : tasks) {
    const Measurement reference = measurer.measure_reference_against_itself(task).measurement;
    references.add(reference);
    std::printf("%-28s reference             %s\n", task.id.c_str(), text_of(reference).c_str());
    if (const auto fastest = find_fastest(measurer, task, cache, settings.unsandboxed)) {
      const Measurement m =
          measurer.measure_candidate_against_itself(task, fastest->candidate, fastest->binary).measurement;
      candidates.add(m);
      std::printf("%-28s %-21s %s (%.2fx)\n", "", fastest->name.c_str(), text_of(m).c_str(),
                  fastest->speedup);
    } else {
      ++without;
      std::printf("%-28s no candidate could be timed\n", "");
    }
    std::fflush(stdout);
  }
  std::error_code ignored;
  fs::remove_all(cache, ignored);
  std::printf("within 1.00 +- %.2f: %d of %d references, %d of %d candidates (%d tasks had none)\n",
              kTolerance, references.near, references.all, candidates.near, candidates.all, without);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("null_test");
  try {
    process::become_subreaper();
    return run(argc, argv);
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  }
}

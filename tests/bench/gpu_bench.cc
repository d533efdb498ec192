// What measuring on a GPU gives and costs, on the first GPU that is seen.
//
//   gpu_bench [MODE [DATASETS]]    null where nothing is said; nothing where there is no GPU
//
//   null        programs timed against themselves, which must score 1: each
//               task's reference, and its first right candidate
//   null_python  each task's reference as a candidate of tier `python`: once, which
//               must score 1, and doing its work twice, which must score 0.5
//               (WARPSMITH_BENCH_TIMES=1: once alone)
//   null_python_small  the same at the shapes that the CPU times
//   known_ratio  in every tier, a program that does the reference's work twice, of
//               tasks of its own (10 us to 5 ms): it must score 0.5 of the one
//               that does it once
//   spread      ten repeats of 20 candidates, each by a fresh process: standard
//               deviation of the log-speedup
//   throughput  500 candidates (WARPSMITH_BENCH_CANDIDATES), of which 5 % loop or
//               crash: seconds that the GPU is held by each
//   python_eager  TorchScript's eager over Python's, in pairs: they must agree within
//               3 %; and a call of each in a process of its own
//   baselines   every baseline of every task against eager
//   all         the dataset's candidates once each: verdicts, speedups, idle times
//   checks      twenty checks (WARPSMITH_BENCH_TIMES) of each right candidate: that
//               all are passed, and how near to its bound each came
//   few         three rounds of each right candidate, in this process: for
//               compute-sanitizer (WARPSMITH_BENCH_A_TASK: of so many a task)
//
// Prints figures, and judges none of them: the exit code is 1 where verdicts are not what they should be
// (all, throughput, checks) or a right candidate was not timed (few). Candidates are compiled before anything
// is timed.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "gpu/figures.h"
#include "gpu/known_ratio.h"
#include "gpu/verdicts.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"

namespace {

using namespace warpsmith;

int run(const std::string& mode, const std::filesystem::path& datasets) {
  const bool of_python = mode.starts_with("null_python");
  const bool of_known_ratio = mode == "known_ratio";
  std::optional<TemporaryFolder> own_tasks;
  if (of_known_ratio) gpu_bench::write_known_ratio_tasks(own_tasks.emplace("known-ratio").path());
  gpu_bench::Bench bench = gpu_bench::open_bench(of_known_ratio ? own_tasks->path() : datasets,
                                                 mode == "null_python_small" ? "cpu" : "gpu");
  if (mode == "python_eager" || mode == "baselines") {
    if (mode == "baselines") {
      bench.settings.budget_s = 0.5;
      std::filesystem::remove_all(bench.cache / "timed" / "baselines");
    }
    measure::GpuBaselines baselines({bench.settings, bench.datasets,
                                     measure::harness_cubin(bench.target, bench.cache, true),
                                     bench.cache / "timed"});
    mode == "baselines" ? gpu_bench::time_baselines(bench, baselines)
                        : gpu_bench::python_eager(bench, baselines);
    return 0;
  }
  if (mode == "throughput") gpu_bench::add_bad_ones(bench, gpu_bench::throughput_candidates() / 20);
  if (of_known_ratio) gpu_bench::add_known_ratio_programs(bench);
  if (!of_python) gpu_bench::compile(bench);
  std::vector<std::byte> harness = measure::harness_cubin(bench.target, bench.cache, true);
  if (mode == "all" || mode == "throughput" || mode == "spread") {
    measure::GpuWorkers workers(bench.settings, bench.datasets, std::move(harness));
    bool fine = true;
    if (mode == "all") fine = gpu_bench::all(bench, workers);
    if (mode == "throughput") fine = gpu_bench::throughput(bench, workers);
    if (mode == "spread") gpu_bench::spread(bench, workers);
    return fine ? kExitOk : kExitFailed;
  }
  if (mode == "few") {
    bench.settings.protocol = {.buckets = 3, .rounds_a_bucket = 1, .target = 0.9};
    bench.settings.remeasure_above = 1e9;
    bench.settings.remeasure_over_best = 1e9;
  }
  if (mode == "checks") bench.settings.timing = false;
  if (of_python || of_known_ratio)
    bench.settings.protocol.give_up_below = 0;  // work done twice is to be known as well
  measure::load_torch_cuda();
  // Under a tool launches cost what the tool costs: the context is taken as it comes.
  std::optional<device::Gpu> any;
  if (mode == "few") any.emplace();
  measure::GpuMeasurer measurer(bench.settings, harness);
  bool fine = true;
  if (mode == "null") gpu_bench::null_test(bench, measurer);
  if (of_python) gpu_bench::null_python(bench, measurer);
  if (of_known_ratio) gpu_bench::known_ratio(bench, measurer);
  if (mode == "few") fine = gpu_bench::few_rounds(bench, measurer);
  if (mode == "checks") fine = gpu_bench::repeat_checks(bench, measurer);
  return fine ? kExitOk : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("gpu_bench");
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode.empty()) {  // as `make benchmarks` starts it
    if (process::nvidia_gpus().empty()) {
      std::printf("no GPU here\n");
      return kExitOk;
    }
    mode = "null";
  }
  if (mode != "null" && mode != "spread" && mode != "throughput" && mode != "all" && mode != "few" &&
      mode != "checks" && mode != "python_eager" && mode != "baselines" && mode != "null_python" &&
      mode != "null_python_small" && mode != "known_ratio") {
    std::fprintf(stderr,
                 "usage: gpu_bench "
                 "null|null_python|null_python_small|known_ratio|spread|throughput|python_eager|baselines|"
                 "all|checks|few "
                 "[DATASETS]\n");
    return kExitUsage;
  }
  try {
    process::become_subreaper();
    return run(mode, argc > 2 ? argv[2] : WARPSMITH_SOURCE_DIR "/datasets");
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  }
}

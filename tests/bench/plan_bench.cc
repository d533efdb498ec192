// Planning: a workflow of a matrix of 1,000 stages of one job each is loaded, hashed, compared with a former
// run and cut into shards. Prints wall time and peak memory for 100,000 and for 1,000,000 shards.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "warpsmith/plan/plan.h"
#include "warpsmith/run/packing.h"
#include "warpsmith/workflow/load.h"

namespace {

using namespace warpsmith;

std::string workflow_text(int jobs) {
  std::string values;
  for (int i = 0; i < jobs; ++i) values += (i == 0 ? "" : ", ") + std::to_string(i);
  return "schema: warpsmith.workflow/1\nname: bench\ndataset: {folder: " WARPSMITH_SOURCE_DIR
         "/datasets, train: all}\nstages:\n"
         "  - {name: c, kind: collect}\n  - {name: s, kind: sft, needs: c}\n"
         "  - {name: m, kind: measure, needs: s, matrix: {k: [" +
         values + "]}, seed: \"${matrix.k}\"}\n";
}

// One size, in a process of its own so that the peak memory is its own.
void measure(int jobs, std::uint64_t shards_a_job) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) std::exit(1);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto loaded = workflow::load_workflow_text(workflow_text(jobs), "bench.yaml");
  if (!loaded.spec) throw InvalidInput(loaded.mistakes);
  const double loaded_s = seconds();
  const plan::Digests digests = plan::digest_datasets(*loaded.spec);

  // A former run, all finished: every hash is computed and every difference looked for.
  plan::History history;
  std::map<std::string, std::string> outputs;
  for (const auto& stage : loaded.spec->stages) {
    const plan::StagePlan p = plan::plan_stage(stage, digests.begin()->second, outputs, {});
    outputs[stage.name] = p.hash;
    history[stage.name] = {{p.hash, p.inputs, true, p.hash, {}}};
  }
  const double hashed_s = seconds();
  std::size_t up_to_date = 0, shards = 0;
  for (const plan::StagePlan& p : plan::plan_stages(*loaded.spec, digests, history))
    up_to_date += p.action == plan::Action::kUpToDate;
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> cut;
  for (int i = 0; i < jobs; ++i) {
    cut.push_back(run::pack_items({.items = shards_a_job * 10, .expected_item_s = 6, .shard_s = 60}));
    shards += cut.back().size();
  }
  const double all_s = seconds();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "%8zu shards in %4d jobs: %.3f s (load %.3f, hash %.3f, plan and cut %.3f), peak %.0f MB; %zu of %zu "
      "stages up to date\n",
      shards, jobs, all_s, loaded_s, hashed_s - loaded_s, all_s - hashed_s,
      static_cast<double>(usage.ru_maxrss) / 1024.0, up_to_date, loaded.spec->stages.size());
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace

int main() {
  measure(1000, 100);
  measure(1000, 1000);
  measure(10000, 100);
}

#include "warpsmith/controller/attempts.h"

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/controller/device_doubts.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/run/journal.h"
#include "warpsmith/run/usage.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::controller {

namespace {

// As the site says today. A site.yaml with mistakes is told of by who goes on with the run.
workflow::Prices prices_of(const std::filesystem::path& run) {
  if (!path_exists(run / "site.yaml")) return {};
  Diagnostics ignored;
  return workflow::load_site(run / "site.yaml", ignored).prices;
}

}  // namespace

std::vector<store::AttemptRow> read_attempts(const std::filesystem::path& run,
                                             store::OutputDigests* outputs) {
  std::vector<store::AttemptRow> rows;
  std::vector<std::uint32_t> executions;  // of the rows
  run::Attempts attempts;
  const workflow::Prices prices = prices_of(run);
  run::read_journal(run / "journal", [&](run::Event&& e) {
    std::optional<run::Attempt> one = attempts.take(e);
    if (outputs != nullptr && e.kind == run::EventKind::kStageFinished &&
        e.execution < attempts.executions().size()) {
      const run::Attempts::Execution& execution = attempts.executions()[e.execution];
      (*outputs)[{execution.stage, plan::hash8(execution.hash)}] = e.hash;
    }
    if (!one) return;
    const run::Attempts::Job& job = attempts.jobs()[e.job];
    if (job.execution >= attempts.executions().size()) return;
    const run::Attempts::Execution& execution = attempts.executions()[job.execution];
    store::AttemptRow row;
    row.stage = execution.stage;
    row.hash8 = plan::hash8(execution.hash);
    row.round = job.round;
    row.job = job.name;
    row.shard = e.shard;
    row.attempt = one->number;
    row.cause = to_string(e.cause);
    row.exit_code = e.exit_code;
    row.signal = e.signal;
    row.where = std::move(one->where);
    row.items = one->items;
    row.open = e.open;
    row.cpus = one->asked.cpus;
    row.gpus = one->asked.gpus;
    row.shards_a_gpu = std::max(1, one->asked.shards_a_gpu);
    row.gpu_type = std::move(one->asked.gpu_type);
    row.memory_bytes = static_cast<std::int64_t>(one->asked.memory_bytes);
    row.time_s = one->asked.time_s;
    row.wall_s = e.wall_s;
    row.cpu_s = e.cpu_s;
    row.money = prices
                    .of_hours(row.gpu_type, one->asked.gpus_held() * e.wall_s / 3600,
                              one->asked.cpus * e.wall_s / 3600)
                    .value_or(0);
    row.peak_memory_bytes = static_cast<std::int64_t>(e.memory);
    rows.push_back(std::move(row));
    executions.push_back(job.execution);
  });
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].set_aside = attempts.executions()[executions[i]].dropped;
  return rows;
}

store::Aggregated aggregate_run(const std::filesystem::path& run, bool rebuild) {
  std::vector<store::AttemptRow> attempts;
  store::OutputDigests outputs;
  try {
    attempts = read_attempts(run, &outputs);
  } catch (const Error& e) {
    log_warning(std::string("results.h5 is written without attempts of shards: ") + e.what());
  }
  return store::aggregate(run, rebuild, std::move(attempts), outputs);
}

store::Results stored_results(const std::filesystem::path& run) {
  store::Results results = store::read_results(run / "results.h5");
  results.currency = prices_of(run).currency;
  return results;
}

store::Results current_results(const std::filesystem::path& run) {
  aggregate_run(run);
  store::Results results = store::current_versions(stored_results(run));
  note_doubts(run, results);
  return results;
}

}  // namespace warpsmith::controller

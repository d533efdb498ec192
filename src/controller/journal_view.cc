#include "warpsmith/controller/journal_view.h"

#include "warpsmith/run/journal.h"

namespace warpsmith::controller {

const ExecutionHistory* JournalView::newest(const std::string& stage) const {
  const ExecutionHistory* found = nullptr;
  std::size_t newest_job = 0;
  for (const ExecutionHistory& one : executions) {
    if (one.stage != stage || one.dropped) continue;
    const std::size_t last_job = one.jobs.empty() ? 0 : one.jobs.back() + 1;
    if (found == nullptr || last_job >= newest_job) {
      found = &one;
      newest_job = last_job;
    }
  }
  return found;
}

std::vector<std::string> JournalView::stages() const {
  std::vector<std::string> names;
  for (const ExecutionHistory& one : executions) names.push_back(one.stage);
  return names;
}

JournalView view_journal(const std::filesystem::path& run) {
  JournalView view;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers;
  run::read_journal(run / "journal", [&](run::Event&& e) {
    switch (e.kind) {
      case run::EventKind::kStageStarted: {
        const auto [found, added] = numbers.try_emplace({e.name, e.hash}, view.executions.size());
        if (added) view.executions.push_back({.stage = e.name, .hash = e.hash});
        view.executions[found->second].failure.clear();
        break;
      }
      case run::EventKind::kJobAdded:
        if (e.execution < view.executions.size()) view.executions[e.execution].jobs.push_back(e.job);
        view.jobs.push_back({.execution = e.execution, .round = e.round, .name = e.name, .shards = e.end});
        break;
      case run::EventKind::kSubmitted:
        if (e.job < view.jobs.size())
          for (std::uint32_t s = e.shard; s < e.end; ++s) ++view.jobs[e.job].submissions[s];
        break;
      case run::EventKind::kShardEnded:
        if (e.job < view.jobs.size()) {
          JobHistory& job = view.jobs[e.job];
          const std::uint32_t shard = e.shard;
          job.last_end[shard] = {.event = std::move(e), .attempts = job.submissions[shard]};
        }
        break;
      case run::EventKind::kStageFinished:
        if (e.execution < view.executions.size()) view.executions[e.execution].finished = true;
        break;
      case run::EventKind::kStageFailed:
        if (e.execution < view.executions.size()) view.executions[e.execution].failure = e.text;
        break;
      case run::EventKind::kStageDropped:
        if (e.execution < view.executions.size()) {
          view.executions[e.execution].dropped = true;
          numbers.erase({view.executions[e.execution].stage, view.executions[e.execution].hash});
        }
        break;
      case run::EventKind::kOpened:
      case run::EventKind::kShardStarted:
      case run::EventKind::kServiceUp:
      case run::EventKind::kClosed:
        break;
    }
  });
  return view;
}

}  // namespace warpsmith::controller

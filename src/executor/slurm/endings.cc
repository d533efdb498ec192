#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../evidence.h"
#include "causes.h"
#include "executor_state.h"

namespace warpsmith::executor {

using std::chrono::seconds;

namespace {

constexpr int kAccountLooks = 3;  // in accounting, which may lag behind the queue
constexpr auto kAvoidNode = std::chrono::minutes(30);

}  // namespace

void SlurmExecutor::State::tell_end(const ShardKey& key, EndCause cause, std::string detail,
                                    const std::string& where, const Json* told) {
  ShardEvent event;
  event.kind = ShardEvent::Kind::kEnded;
  event.key = key;
  event.cause = cause;
  event.where = where;
  event.detail = std::move(detail);
  if (told != nullptr) {
    event.exit_code = told->value("exit_code", 0);
    event.signal = told->value("signal", 0);
    event.wall_s = told->value("wall_s", 0.0);
    event.cpu_s = told->value("cpu_s", 0.0);
    event.peak_memory_bytes = told->value("memory", std::uint64_t{0});
  }
  events.push_back(std::move(event));
}

std::map<ShardKey, Live>::iterator SlurmExecutor::State::forget(std::map<ShardKey, Live>::iterator it) {
  if (const auto folder = ends.find(it->second.ends); folder != ends.end() && --folder->second.live == 0)
    ends.erase(folder);
  return live.erase(it);
}

void SlurmExecutor::State::look_at_words() {
  for (auto folder = ends.begin(); folder != ends.end();) {
    const std::filesystem::path path = (folder++)->first;  // the last word of its shards takes it away
    take_words(path, false);
  }
}

void SlurmExecutor::State::take_words(const std::filesystem::path& folder, bool sure) {
  EndsFolder& seen = ends.at(folder);
  std::vector<LastWord> words = std::exchange(seen.early, {});
  for (LastWord& word : seen.words.read_new(sure)) words.push_back(std::move(word));
  for (const LastWord& word : words)
    if (find_live(word) == live.end() && is_awaited(word.token)) seen.early.push_back(word);
  for (const LastWord& word : words)  // the last of its shards takes the folder away
    if (const auto it = find_live(word); it != live.end()) take_word(it, word.told);
}

std::map<ShardKey, Live>::iterator SlurmExecutor::State::find_live(const LastWord& word) {
  const auto job = job_of_token.find(word.token);
  if (job == job_of_token.end()) return live.end();
  const auto it = live.find({job->second, word.shard});
  return it != live.end() && it->second.token == word.token ? it : live.end();
}

bool SlurmExecutor::State::is_awaited(const std::string& token) const {
  return (submitting != nullptr && token == submitting->model.token) ||
         std::any_of(waiting.begin(), waiting.end(),
                     [&](const Batch& batch) { return batch.unsure && batch.model.token == token; });
}

void SlurmExecutor::State::take_word(std::map<ShardKey, Live>::iterator it, const Json& told) {
  Live& shard = it->second;
  if (shard.array == 0) shard.array = told.value("array", 0u);
  if (shard.last.nodes.empty()) shard.last.nodes = told.value("host", "");
  EndCause cause = parse_end_cause(told.value("cause", "")).value_or(EndCause::kFailed);
  std::string detail = told.value("detail", "");
  if (shard.cancelling && cause == EndCause::kCrash) cause = EndCause::kCancelled;
  if (cause == EndCause::kDiskFull && !disk_is_full(shard.ends)) {  // told in an earlier life, perhaps
    cause = EndCause::kUnknown;
    detail = "the disk was full, and has room again";
  }
  tell_end(it->first, cause, std::move(detail), shard.where(), &told);
  forget(it);
}

void SlurmExecutor::State::look_at_the_silent() {
  if (!std::exchange(any_silent, false)) return;
  const auto now = Clock::now();
  const Clock::duration files = file_grace();
  std::set<std::filesystem::path> folders;
  for (const auto& [key, shard] : live)
    if (shard.ended_since || shard.missing_since) folders.insert(shard.ends);
  for (const std::filesystem::path& folder : folders)
    if (ends.contains(folder)) take_words(folder, true);
  for (auto it = live.begin(); it != live.end();) {
    const auto& [key, shard] = *it;
    if (!shard.ended_since && !shard.missing_since) {
      ++it;
      continue;
    }
    any_silent = true;
    if (shard.ended_since) {
      const bool well = shard.last.state == SlurmState::kCompleted;
      if (now - *shard.ended_since < (well ? files : std::min<Clock::duration>(files, seconds(3)))) {
        ++it;
        continue;
      }
      conclude(key, shard);
    } else {
      if (now - *shard.missing_since < second_look()) {
        ++it;
        continue;
      }
      if (facts.accounting && !shard.cancelling && shard.accounted < kAccountLooks) {
        auto& since = to_account.try_emplace(shard.name(), shard.since_s).first->second;
        since = std::min(since, shard.since_s);
        ++it;
        continue;
      }
      tell_end(key, shard.cancelling ? EndCause::kCancelled : EndCause::kUnknown,
               shard.cancelling ? "" : "Slurm no longer knows the job", shard.where());
    }
    it = forget(it);
  }
}

void SlurmExecutor::State::conclude(const ShardKey& key, const Live& shard) {
  const SlurmTask& task = shard.last;
  EndCause cause = cause_of(task, shard.cancelling);
  std::string detail = fmt::format("Slurm job {} {}", shard.where(), to_string(task.state));
  if (task.state == SlurmState::kFailed && task.signal == 0 && task.exit_code == kExitEnvironment) {
    // A program that exits so leaves a word by warpsmith-shard: this one could not be written.
    const bool full = disk_is_full(shard.ends);
    cause = full ? EndCause::kDiskFull : EndCause::kUnknown;
    detail += full ? ": no room on the file system of the run" : ": it could not say how it ended";
  }
  if (task.state == SlurmState::kOther) {
    cause = EndCause::kUserError;
    detail = fmt::format("Slurm job {} would never start", shard.where());
  }
  // Nobody's wish of today: the controller before this one on its way out, or somebody while there was
  // none.
  if (cause == EndCause::kStopped && shard.attached_s > 0 && task.ended <= shard.attached_s)
    cause = EndCause::kUnknown;
  if (!task.reason.empty()) detail += ", reason " + task.reason;
  if (cause == EndCause::kNodeFailure || cause == EndCause::kLaunchFailure)
    if (!task.nodes.empty() && task.nodes.find_first_of("[,") == std::string::npos)
      avoid[task.nodes] = Clock::now() + kAvoidNode;
  Json told{{"exit_code", task.exit_code}, {"signal", task.signal}};
  if (task.started > 0 && task.ended > task.started)
    told["wall_s"] = static_cast<double>(task.ended - task.started);
  tell_end(key, cause, detail, shard.where(), &told);
}

}  // namespace warpsmith::executor

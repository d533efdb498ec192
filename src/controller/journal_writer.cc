#include "journal_writer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::controller {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr milliseconds kGroup{50};  // events within it are one append and one fsync

std::uint64_t now_ms() {
  return static_cast<std::uint64_t>(
      duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

run::Event opened() {
  return {.time_ms = now_ms(), .pid = static_cast<std::uint32_t>(::getpid()), .text = process::host_name()};
}

}  // namespace

JournalWriter::JournalWriter(const std::filesystem::path& run,
                             const std::function<void(run::Event&&)>& replay, Clock clock)
    : run_(run), clock_(std::move(clock)), journal_(run / "journal", opened(), replay) {}

void JournalWriter::note(run::Event& event) {
  event.time_ms = now_ms();
  if (!journal_.pending()) oldest_ = clock_();
  journal_.add(event);
}

void JournalWriter::note_done(const std::filesystem::path& job_folder, std::uint32_t shard) {
  done_[job_folder].push_back(shard);
}

void JournalWriter::write_done() {
  for (const auto& [folder, shards] : std::exchange(done_, {})) append_done_shards(folder, shards);
}

void JournalWriter::write() {
  write_done();
  journal_.commit();
}

void JournalWriter::commit(run::Executor& executor) {
  write();
  if (waiting_.empty()) return;
  if (journal_.superseded())
    throw Error("another controller has taken over the run " + run_.string() + "; this one stops", kExitBusy);
  executor.submit(waiting_);
  waiting_.clear();
}

milliseconds JournalWriter::may_wait() const {
  return std::max(kGroup - duration_cast<milliseconds>(clock_() - oldest_), milliseconds(0));
}

}  // namespace warpsmith::controller

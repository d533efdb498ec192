// The journal of a run: journal/1.jsonl, journal/2.jsonl, …, one file an epoch, that is, a controller's life.
//
// A controller claims its epoch by creating the file exclusively; the first line then says how many bytes of
// the epoch before it had read, so that what an older controller on a lost node may still append is never
// taken. Events are gathered and written in groups: one append and one fsync. The last line of a file may be
// cut or damaged (its writer died over it) and is left out; a bad line elsewhere, or a gap in the sequence
// numbers, throws Error with the file and the offset.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "warpsmith/base/files.h"
#include "warpsmith/run/event.h"

namespace warpsmith::run {

// What read_journal() found.
struct JournalScan {
  std::uint32_t epochs = 0;  // number of the newest file; 0: there is no journal
  std::uint64_t next_sequence = 1;
  std::uint64_t whole_bytes = 0;  // of the newest file: what its whole lines take
  std::uint64_t events = 0;
  std::uint64_t cut_bytes = 0;  // left out at ends of files
};

// Calls `take` for each event of all epochs up to `last_epoch` (0: all), oldest first. A missing folder has
// no events.
JournalScan read_journal(const std::filesystem::path& folder, const std::function<void(Event&&)>& take,
                         std::uint32_t last_epoch = 0);

class Journal {
 public:
  // Claims the next epoch, then replays the earlier ones into `take`. `opened`: the first event of this
  // epoch; its kind, epoch and `after` are filled in.
  Journal(const std::filesystem::path& folder, Event opened, const std::function<void(Event&&)>& take);

  std::uint32_t epoch() const { return epoch_; }
  void add(const Event& event);  // gathered; not on disk yet
  bool pending() const { return !buffer_.empty(); }
  // One append, one fsync; nothing where nothing is pending. Throws Error where the disk is full or the file
  // is gone, and at every later call: nothing may stand behind half a line.
  void commit();
  // A later controller has claimed the next epoch: this one must submit nothing more.
  bool superseded() const;

  std::uint64_t bytes() const { return file_.size(); }
  std::uint64_t commits() const { return commits_; }
  const JournalScan& replayed() const { return replayed_; }

 private:
  std::filesystem::path folder_;
  std::uint32_t epoch_;
  AppendFile file_;
  JournalScan replayed_;
  std::string buffer_;
  bool broken_ = false;
  std::uint64_t sequence_ = 1;
  std::uint64_t commits_ = 0;
};

}  // namespace warpsmith::run

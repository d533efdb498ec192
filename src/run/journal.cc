#include "warpsmith/run/journal.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"

namespace warpsmith::run {

namespace {

fs::path epoch_file(const fs::path& folder, std::uint32_t epoch) {
  return folder / (std::to_string(epoch) + ".jsonl");
}

// Epochs are claimed without gaps, each controller creating the file after the last that it sees.
std::uint32_t newest_epoch(const fs::path& folder) {
  std::uint32_t newest = 0;
  for (const fs::path& file : folder_entries(folder)) {
    if (file.extension() != ".jsonl") continue;
    const std::string stem = file.stem().string();
    if (stem.empty() || stem.find_first_not_of("0123456789") != std::string::npos || stem.size() > 9)
      continue;
    newest = std::max(newest, static_cast<std::uint32_t>(std::stoul(stem)));
  }
  return newest;
}

// `line` of `text` at `offset`; the newline behind it is not part of it. False at the end.
bool next_line(std::string_view text, std::size_t offset, std::string_view& line, bool& whole) {
  if (offset >= text.size()) return false;
  const std::size_t newline = text.find('\n', offset);
  whole = newline != std::string_view::npos;
  line = text.substr(offset, (whole ? newline : text.size()) - offset);
  return true;
}

// How much of the epoch before counts, if the file of the next one says so in its first line.
std::optional<std::uint64_t> claimed_prefix(const std::string& text) {
  std::string_view line;
  bool whole = false;
  if (!next_line(text, 0, line, whole) || !whole) return std::nullopt;
  const auto decoded = decode_event(line);
  if (!decoded || decoded->event.kind != EventKind::kOpened) return std::nullopt;
  return decoded->event.after;
}

}  // namespace

JournalScan read_journal(const fs::path& folder, const std::function<void(Event&&)>& take,
                         std::uint32_t last_epoch) {
  JournalScan scan;
  scan.epochs = last_epoch == 0 ? newest_epoch(folder) : last_epoch;
  std::string text, next;
  for (std::uint32_t epoch = 1; epoch <= scan.epochs; ++epoch) {
    const fs::path path = epoch_file(folder, epoch);
    text = epoch == 1 ? read_file(path) : std::move(next);
    if (epoch < scan.epochs) next = read_file(epoch_file(folder, epoch + 1));
    // An epoch that was claimed and then died before its first line set no bound.
    const std::uint64_t bound =
        epoch < scan.epochs ? claimed_prefix(next).value_or(text.size()) : text.size();
    if (bound > text.size())
      throw Error(path.string() + ": ends at byte " + std::to_string(text.size()) + ", but " +
                  epoch_file(folder, epoch + 1).filename().string() + " was written after byte " +
                  std::to_string(bound));
    scan.cut_bytes += text.size() - bound;
    const std::string_view counted = std::string_view(text).substr(0, bound);
    std::size_t offset = 0;
    std::string_view line;
    bool whole = false;
    while (next_line(counted, offset, line, whole)) {
      auto decoded = whole ? decode_event(line) : std::nullopt;
      if (!decoded) {
        const bool last = !whole || offset + line.size() + 1 == counted.size();
        if (last) break;
        throw Error(path.string() + ": damaged line at byte " + std::to_string(offset));
      }
      if (decoded->sequence != scan.next_sequence)
        throw Error(path.string() + ": at byte " + std::to_string(offset) + " stands event " +
                    std::to_string(decoded->sequence) + " where " + std::to_string(scan.next_sequence) +
                    " was expected");
      ++scan.next_sequence;
      ++scan.events;
      offset += line.size() + 1;
      take(std::move(decoded->event));
    }
    scan.whole_bytes = offset;
    scan.cut_bytes += counted.size() - offset;
  }
  return scan;
}

Journal::Journal(const fs::path& folder, Event opened, const std::function<void(Event&&)>& take)
    : folder_(folder),
      epoch_([&] {
        make_folders(folder);
        std::uint32_t epoch = newest_epoch(folder) + 1;
        while (!create_file_exclusive(epoch_file(folder, epoch), "")) ++epoch;
        return epoch;
      }()),
      file_(epoch_file(folder, epoch_)) {
  if (epoch_ > 1) replayed_ = read_journal(folder, take, epoch_ - 1);
  sequence_ = replayed_.next_sequence;
  opened.kind = EventKind::kOpened;
  opened.job = epoch_;
  opened.after = replayed_.whole_bytes;
  add(opened);
  commit();
}

void Journal::add(const Event& event) {
  encode_event(event, sequence_++, buffer_);
  buffer_ += '\n';
}

void Journal::commit() {
  if (buffer_.empty()) return;
  if (broken_) throw Error(file_.path().string() + ": an earlier append failed");
  // A file that was deleted can still be appended to, without an error and for nobody.
  std::error_code error;
  if (!fs::exists(file_.path(), error)) {
    broken_ = true;
    throw Error(file_.path().string() + " is gone: was the run folder deleted or moved?");
  }
  broken_ = true;  // until all of it is on disk: nothing may follow half a line
  file_.append(buffer_);
  file_.sync();
  broken_ = false;
  buffer_.clear();
  ++commits_;
}

bool Journal::superseded() const {
  std::error_code error;
  return fs::exists(epoch_file(folder_, epoch_ + 1), error);
}

}  // namespace warpsmith::run

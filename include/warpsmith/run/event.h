// What happened in a run, as the journal keeps it and the reactor takes it.
//
// A stage *execution* is a stage's name together with its content hash: when a workflow changes, the old
// execution stays in the journal and a new one begins. Executions and jobs are numbered in the order in which
// the journal names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "warpsmith/records/end_cause.h"

namespace warpsmith::run {

enum class EventKind : std::uint8_t {
  kOpened,  // a controller began: host, pid (`shard`), epoch (`job`); `after`: bytes of the epoch before that
            // count
  kStageStarted,   // name, hash; also when a controller goes on with an execution that is in the journal
                   // already
  kJobAdded,       // job, execution, round, name, shards (`end`), items (`open`), digest of these (`hash`),
                   // items of each shard (`text`: told_sizes())
  kSubmitted,      // job, shards [shard, end), submission: on disk before they are handed to the executor;
                   // what each asks for: cpus, gpus, shards_a_gpu, GPU type (`text`), time_s, memory
  kShardStarted,   // job, shard, where
  kShardEnded,     // job, shard, cause, exit_code, signal, open, wall_s, cpu_s, memory; on a cluster where
                   // (`name`)
  kStageFinished,  // execution, digest of its output (`hash`)
  kStageFailed,    // execution, why (`text`)
  kStageDropped,   // execution: its results are set aside; the same (name, hash) begins anew
  kServiceUp,      // execution: the shard of this service answers
  kClosed,         // the controller ended in an orderly way: why (`text`)
};
inline constexpr int kEventKinds = 11;

// One event. Which members count depends on the kind (above); the others keep their defaults and are not
// written.
struct Event {
  EventKind kind = EventKind::kOpened;
  std::uint64_t time_ms = 0;  // since 1970, by the controller's clock
  std::uint32_t execution = 0;
  std::uint32_t job = 0;
  std::uint32_t shard = 0;
  std::uint32_t end = 0;
  std::int32_t round = 0;
  EndCause cause = EndCause::kFinished;
  std::int32_t exit_code = 0, signal = 0;
  std::uint32_t open = 0;  // items of the shard (kJobAdded: of the job) that have no record yet
  std::uint32_t pid = 0;
  std::uint32_t submission = 0;  // number of the range in the run, from 1: part of its token
  std::int32_t cpus = 0, gpus = 0;
  std::int32_t shards_a_gpu = 0;  // that may share one; 0: it has its own
  std::uint64_t after = 0;
  double wall_s = 0, cpu_s = 0;
  double time_s = 0;         // wall clock that an attempt may take; 0: not limited
  std::uint64_t memory = 0;  // peak, bytes; kSubmitted: the limit
  std::string name, hash, text;
  friend bool operator==(const Event&, const Event&) = default;
};

std::string_view to_string(EventKind kind);

// One line of the journal without its newline: a flat JSON object that begins with `seq` and ends with `crc`,
// the CRC-32 of all that stands before `,"crc"`, as 8 hex digits. Appended to `out`.
void encode_event(const Event& event, std::uint64_t sequence, std::string& out);

// The event and its sequence number; nothing where the line is not what encode_event() writes, whole and
// undamaged.
struct DecodedEvent {
  std::uint64_t sequence = 0;
  Event event;
};
std::optional<DecodedEvent> decode_event(std::string_view line);

}  // namespace warpsmith::run

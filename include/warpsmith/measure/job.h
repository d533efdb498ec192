// The work of warpsmith-measure: one shard of a `measure` job. Params: Settings in measurer.h, and
// `datasets`; an item has `candidate` and `binary`; a record is a Measurement. Baselines are timed behind the
// candidates, but for the one that scores are over. The last record has those of all the shard's tasks as
// `baselines`, a list of BaselineTiming; a shard that is stopped before finds what it took in the cache.
#pragma once

#include "warpsmith/records/shard.h"

namespace warpsmith::measure {

// Measures the shard's open items, grouped by task, and writes a record for each; ends the shard. What one
// candidate does costs its own verdict; an Error that several items in a row meet is the machine's fault and
// is thrown.
void run_shard(ShardSession& shard);

}  // namespace warpsmith::measure

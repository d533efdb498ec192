// What a run's journal says of its shards' attempts, as rows of results.h5; and results.h5 brought up to date
// with them.
#pragma once

#include <filesystem>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::controller {

// Every attempt that has ended, in the order of the journal; none where there is no journal. Throws Error
// where the journal is damaged. `outputs`, where given, gets the digests of the outputs of stages.
std::vector<store::AttemptRow> read_attempts(const std::filesystem::path& run,
                                             store::OutputDigests* outputs = nullptr);

// store::aggregate() with the journal's attempts. A damaged journal costs these alone: it is said, and the
// rest is written.
store::Aggregated aggregate_run(const std::filesystem::path& run, bool rebuild = false);

// What a run's results.h5 holds, with the currency of its site's prices.
store::Results stored_results(const std::filesystem::path& run);

// The same once it is up to date: of each stage its current version; devices with
// note_doubts() (device_doubts.h).
store::Results current_results(const std::filesystem::path& run);

}  // namespace warpsmith::controller

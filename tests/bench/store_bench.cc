// Ingestion: 100,000 measurements of 100 pairs, from records on disk to a closed, synced file; then what one run of that size
// costs to check when nothing is new.
#include <cstdio>
#include <filesystem>

#include "../store/run_fixture.h"
#include "warpsmith/store/results.h"

int main() {
  using namespace warpsmith;
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-store-bench-" + std::to_string(::getpid()));
  store_fixture::make_run(folder, {.shards = 100, .items_a_shard = 1000, .pairs = 100});
  const store::Aggregated first = store::aggregate(folder);
  std::printf("ingest %zu measurements of 100 pairs: %.2f s, %.1f us each, file %.1f MB\n", first.measurements, first.seconds,
              first.seconds * 1e6 / static_cast<double>(first.measurements),
              static_cast<double>(fs::file_size(folder / "results.h5")) / 1e6);
  const store::Aggregated again = store::aggregate(folder);
  std::printf("nothing new: %.2f s (%s)\n", again.seconds, again.written ? "written again" : "not written");
  fs::remove_all(folder);
}

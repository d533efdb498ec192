// Ingestion: 100,000 measurements of 100 pairs, from records on disk to a closed, synced file; then what one
// run of that size costs to check when nothing is new; and a million attempts of shards.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "../store/run_fixture.h"
#include "warpsmith/store/results.h"

int main() {
  using namespace warpsmith;
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-store-bench-" + std::to_string(::getpid()));
  store_fixture::make_run(folder, {.shards = 100, .items_a_shard = 1000, .pairs = 100});
  const store::Aggregated first = store::aggregate(folder);
  std::printf("ingest %zu measurements of 100 pairs: %.2f s, %.1f us each, file %.1f MB\n",
              first.measurements, first.seconds,
              first.seconds * 1e6 / static_cast<double>(first.measurements),
              static_cast<double>(fs::file_size(folder / "results.h5")) / 1e6);
  const store::Aggregated again = store::aggregate(folder);
  std::printf("nothing new: %.2f s (%s)\n", again.seconds, again.written ? "written again" : "not written");
  fs::remove_all(folder);

  store::Results many;
  for (int i = 0; i < 1'000'000; ++i) {
    store::AttemptRow row;
    row.stage = "contrastive";
    row.hash8 = "0a1b2c3d";
    row.job = "measure";
    row.cause = i % 50 == 0 ? "timeout" : "finished";
    row.where = std::to_string(100000 + i / 1000) + "_" + std::to_string(i % 1000) + "@node-" +
                std::to_string(i % 64);
    row.shard = i;
    row.cpus = 2;
    row.wall_s = 60 + i % 17 * 0.25;
    row.cpu_s = row.wall_s * 0.9;
    row.peak_memory_bytes = 1'000'000'000 + i % 4096 * 4096;
    many.attempts.push_back(std::move(row));
  }
  auto seconds = [begin = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(begin, now)).count();
  };
  make_folders(folder);
  store::write_results(folder / "results.h5", many);
  const double written_s = seconds();
  const std::size_t rows = store::read_results(folder / "results.h5").attempts.size();
  const double read_s = seconds();
  std::printf("%zu attempts: written in %.2f s, read in %.2f s, file %.1f MB\n", rows, written_s, read_s,
              static_cast<double>(fs::file_size(folder / "results.h5")) / 1e6);
  fs::remove_all(folder);
}

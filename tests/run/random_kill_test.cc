// Controllers that die at random points over a journal on disk and an executor in memory: however they die,
// no item with a durable record is started again, none counts twice, and every job gets done.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "warpsmith/base/random.h"
#include "warpsmith/run/journal.h"
#include "warpsmith/run/reactor.h"

namespace warpsmith::run {
namespace {

struct Killed {};

// The disk and the processes of this test: they outlive controllers. A shard has `items` items; a started
// shard writes some records, and ends, crashes, or dies with its controller.
class World {
 public:
  World(std::uint64_t seed, std::uint32_t shards, std::uint32_t items)
      : random(seed), items_(items), shards_(shards), records_(shards, std::vector<int>(items, 0)) {}

  std::uint32_t open(std::uint32_t shard) const {
    return static_cast<std::uint32_t>(std::count(records_[shard].begin(), records_[shard].end(), 0));
  }
  // A program runs for a while: it works on what has no record, as ShardSession does.
  void work(std::uint32_t shard, std::uint32_t most) {
    for (int& records : records_[shard])
      if (records == 0 && most > 0) {
        ++records;
        --most;
      }
  }
  bool every_item_once() const {
    for (const auto& shard : records_)
      for (const int records : shard)
        if (records != 1) return false;
    return true;
  }

  Random random;
  std::uint32_t items_, shards_;
  std::vector<std::vector<int>> records_;
  std::uint64_t starts = 0, starts_of_complete = 0;
};

// One controller's life over the journal; throws Killed at the `die_at`-th step.
bool live(const fs::path& folder, World& world, int die_at) {
  const auto step = [&] {
    if (--die_at < 0) throw Killed{};
  };
  StageRules rules{.name = "s"};
  rules.retry.times = {{EndCause::kCrash, 50}};
  Reactor reactor({rules});
  Journal journal(folder, {}, [&](Event&& e) { reactor.apply(e); });
  const auto say = [&](const Event& e) {
    journal.add(e);
    reactor.apply(e);
  };
  reactor.apply({.kind = EventKind::kOpened});
  for (const ShardKey key : reactor.unresolved())
    say({.kind = EventKind::kShardEnded,
         .job = key.job,
         .shard = key.shard,
         .cause = EndCause::kUnknown,
         .open = world.open(key.shard)});
  step();
  journal.commit();
  say({.kind = EventKind::kStageStarted, .name = "s", .hash = "h"});
  if (reactor.jobs() == 0) say({.kind = EventKind::kJobAdded, .job = 0, .end = world.shards_, .name = "j"});
  std::vector<std::uint32_t> running;
  for (;;) {
    const Commands commands = reactor.next(4);
    if (!commands.done.empty() || !reactor.completed_of(0).empty()) return true;
    for (const ShardRange& r : commands.submit)
      journal.add({.kind = EventKind::kSubmitted, .job = r.job, .shard = r.begin, .end = r.end});
    step();
    journal.commit();  // before anything is started
    step();
    for (const ShardRange& r : commands.submit)
      for (std::uint32_t s = r.begin; s < r.end; ++s) {
        ++world.starts;
        world.starts_of_complete += world.open(s) == 0;
        running.push_back(s);
      }
    step();
    EXPECT_FALSE(running.empty()) << "the reactor waits for nothing";
    if (running.empty()) return false;
    const std::size_t which = world.random.below(running.size());
    const std::uint32_t shard = running[which];
    world.work(shard, static_cast<std::uint32_t>(world.random.below(world.items_ + 1)));
    if (world.random.below(3) == 0) continue;  // still at it
    step();
    running.erase(running.begin() + static_cast<long>(which));
    const bool crash = world.open(shard) > 0;
    say({.kind = EventKind::kShardEnded,
         .job = 0,
         .shard = shard,
         .cause = crash ? EndCause::kCrash : EndCause::kFinished,
         .open = world.open(shard)});
    if (world.random.below(2) == 0) journal.commit();
  }
}

TEST(RandomKill, NothingIsLostAndNothingDoneTwice) {
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-random-kill-" + std::to_string(::getpid()));
  int kills = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    fs::remove_all(folder);
    World world(seed, 20, 5);
    for (int lives = 0;; ++lives) {
      ASSERT_LT(lives, 500);
      bool done = false;
      try {
        done = live(folder, world, static_cast<int>(world.random.below(40)));
      } catch (const Killed&) {
        ++kills;
        // The write that was under way may have got to the disk in part.
        const fs::path newest = folder / (std::to_string(lives + 1) + ".jsonl");
        if (world.random.below(2) == 0) {
          AppendFile(newest).append("{\"seq\":7,\"event\":\"shard_en");
        }
      }
      if (done) break;
    }
    EXPECT_TRUE(world.every_item_once()) << "seed " << seed;
    EXPECT_EQ(world.starts_of_complete, 0u) << "seed " << seed;
  }
  EXPECT_GT(kills, 300);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace warpsmith::run

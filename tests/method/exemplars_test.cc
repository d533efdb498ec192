#include "warpsmith/method/exemplars.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::method {
namespace {

Program program(const std::string& id, double score) { return {id, "source of " + id, score}; }

std::vector<std::string> ids(const std::vector<Program>& programs) {
  std::vector<std::string> out;
  for (const Program& p : programs) out.push_back(p.id);
  return out;
}

TEST(Buckets, AreHalfOpenAndBordersAreExact) {
  const auto buckets = make_buckets({1.2, 0.99, 1.0, 1.19, 0.6, 1.39}, 0.2);
  ASSERT_EQ(buckets.size(), 4u);  // [0.6,0.8) [0.8,1.0) [1.0,1.2) [1.2,1.4)
  EXPECT_EQ(buckets[0].k, 3);
  EXPECT_EQ(buckets[0].members,
            (std::vector<std::size_t>{4}));  // 0.6 / 0.2 is 2.9999999999999996 as a double
  EXPECT_EQ(buckets[1].k, 4);
  EXPECT_EQ(buckets[1].members, (std::vector<std::size_t>{1}));
  EXPECT_EQ(buckets[2].k, 5);
  EXPECT_EQ(buckets[2].members, (std::vector<std::size_t>{2, 3}));
  EXPECT_DOUBLE_EQ(buckets[2].mean, 1.095);
  EXPECT_EQ(buckets[3].members, (std::vector<std::size_t>{0, 5}));
}

TEST(Buckets, ProbabilitiesAreThePapersFormula) {
  const auto buckets = make_buckets({0.5, 1.1, 1.3, 2.05}, 0.2);
  ASSERT_EQ(buckets.size(), 4u);
  const double tau = 0.5, mu = (0.5 + 1.1 + 1.3 + 2.05) / 4;
  double sum = 0;
  for (const Bucket& b : buckets) sum += std::exp((b.mean - mu) / tau);
  const auto p = bucket_probabilities(buckets, tau);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    EXPECT_NEAR(p[i], std::exp((buckets[i].mean - mu) / tau) / sum, 1e-12);
}

TEST(Buckets, ProbabilitiesSurviveATinyTemperature) {
  const auto p = bucket_probabilities(make_buckets({1, 500}, 0.2), 1e-3);
  EXPECT_EQ(p, (std::vector<double>{0, 1}));
}

TEST(Buckets, SettingsThatMakeNoSenseAreErrors) {
  EXPECT_THROW(make_buckets({1}, 0), Error);
  EXPECT_THROW(bucket_probabilities(make_buckets({1}, 0.2), 0), Error);
  EXPECT_THROW(ExemplarDatabase({.kind = ExemplarKind::kIsland, .islands = 0}), Error);
}

TEST(ExemplarDatabase, DrawsFollowTheProbabilities) {
  ExemplarDatabase database({.bucket_width = 0.2, .bucket_tau = 0.5});
  database.seed("t", {program("a", 0.5), program("b", 1.1), program("c", 1.11)});
  const double a = std::exp(0.5 / 0.5), bc = std::exp(1.105 / 0.5);
  std::map<std::string, int> first;
  constexpr int kDraws = 20000;
  for (std::uint64_t i = 0; i < kDraws; ++i)
    ++first[database.draw("t", 1, random_key({i})).exemplars.at(0).id];
  // Standard deviation of a share: 0.0035 at most.
  EXPECT_NEAR(first["a"] / double(kDraws), a / (a + bc), 0.014);
  EXPECT_NEAR(first["b"] / double(kDraws), bc / (a + bc) / 2, 0.014);
  EXPECT_NEAR(first["c"] / double(kDraws), bc / (a + bc) / 2, 0.014);
}

TEST(ExemplarDatabase, TwoExemplarsComeFromDistinctBuckets) {
  ExemplarDatabase database({});
  database.seed("t", {program("a", 1.01), program("b", 1.02), program("c", 1.03), program("d", 2.0)});
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto drawn = database.draw("t", 2, random_key({i})).exemplars;
    ASSERT_EQ(drawn.size(), 2u);
    EXPECT_EQ((drawn[0].id == "d") + (drawn[1].id == "d"), 1);
  }
}

TEST(ExemplarDatabase, FewerBucketsThanNTakeFurtherProgramsOfTheSame) {
  ExemplarDatabase database({});
  database.seed("t", {program("a", 1.01), program("b", 1.02)});
  const auto two = ids(database.draw("t", 2, 7).exemplars);
  EXPECT_EQ(std::set<std::string>(two.begin(), two.end()), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(database.draw("t", 3, 7).exemplars.size(), 2u);  // no program twice
  EXPECT_TRUE(database.draw("other", 2, 7).exemplars.empty());
  EXPECT_TRUE(database.draw("t", 0, 7).exemplars.empty());
}

TEST(ExemplarDatabase, EqualKeysDrawEqually) {
  ExemplarDatabase database({});
  for (int i = 0; i < 30; ++i) database.add("t", 0, program("p" + std::to_string(i), 0.5 + 0.1 * i));
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t key = 0; key < 20; ++key) {
    EXPECT_EQ(ids(database.draw("t", 2, key).exemplars), ids(database.draw("t", 2, key).exemplars));
    seen.insert(ids(database.draw("t", 2, key).exemplars));
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST(ExemplarDatabase, RandomIgnoresTheScores) {
  ExemplarDatabase database({.kind = ExemplarKind::kRandom});
  database.seed("t", {program("slow", 0.1), program("fast", 10)});
  int slow = 0;
  for (std::uint64_t i = 0; i < 10000; ++i)
    slow += database.draw("t", 1, random_key({i})).exemplars[0].id == "slow";
  EXPECT_NEAR(slow / 1e4, 0.5, 0.02);  // four standard deviations
  EXPECT_EQ(database.draw("t", 2, 1).exemplars.size(), 2u);
}

TEST(ExemplarDatabase, NoneDrawsNothingButKeepsPrograms) {
  ExemplarDatabase database({.kind = ExemplarKind::kNone});
  database.seed("t", {program("a", 1)});
  EXPECT_TRUE(database.draw("t", 2, 1).exemplars.empty());
  EXPECT_EQ(database.size("t"), 1u);
}

TEST(ExemplarDatabase, TakesNoProgramTwice) {
  ExemplarDatabase database({});
  database.add("t", 0, program("a", 1));
  database.add("t", 0, program("a", 5));
  ASSERT_EQ(database.programs("t").size(), 1u);
  EXPECT_EQ(database.programs("t")[0].score, 1);
}

TEST(Islands, SeedsAreDealtInTurn) {
  ExemplarDatabase database({.kind = ExemplarKind::kIsland, .islands = 3});
  database.seed("many", {program("a", 1), program("b", 2), program("c", 3), program("d", 4)});
  EXPECT_EQ(ids(database.programs("many", 0)), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(ids(database.programs("many", 1)), (std::vector<std::string>{"b"}));
  EXPECT_EQ(ids(database.programs("many", 2)), (std::vector<std::string>{"c"}));
  database.seed("few", {program("x", 1), program("y", 2)});
  EXPECT_EQ(ids(database.programs("few", 2)), (std::vector<std::string>{"x"}));
  EXPECT_EQ(database.size("few"), 2u);
}

TEST(Islands, APromptSeesOneIslandOnly) {
  ExemplarDatabase database({.kind = ExemplarKind::kIsland, .islands = 2});
  database.add("t", 0, program("a", 1));
  database.add("t", 0, program("b", 2));
  database.add("t", 1, program("c", 3));
  database.add("t", 1, program("d", 4));
  std::set<int> islands;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Draw draw = database.draw("t", 2, random_key({i}));
    const auto got = ids(draw.exemplars);
    EXPECT_EQ(std::set<std::string>(got.begin(), got.end()),
              draw.island == 0 ? (std::set<std::string>{"a", "b"}) : (std::set<std::string>{"c", "d"}));
    islands.insert(draw.island);
  }
  EXPECT_EQ(islands.size(), 2u);
}

TEST(Islands, TheWorseHalfIsResetFromTheBestOfASurvivor) {
  ExemplarDatabase database({.kind = ExemplarKind::kIsland, .islands = 4, .island_reset_every = 2});
  const auto fill = [&](int island, const std::string& id, double score) {
    database.add("t", island, program(id, score));
  };
  fill(0, "bad", 1.0), fill(0, "bad2", 0.9);
  fill(1, "good", 3.0), fill(1, "good2", 0.1);
  fill(2, "best", 4.0), fill(2, "best2", 3.9);
  fill(3, "even", 1.0);
  database.end_round(1, 99);  // not yet
  EXPECT_EQ(ids(database.programs("t", 0)), (std::vector<std::string>{"bad", "bad2"}));
  database.end_round(2, 99);
  EXPECT_EQ(ids(database.programs("t", 1)), (std::vector<std::string>{"good", "good2"}));
  EXPECT_EQ(ids(database.programs("t", 2)), (std::vector<std::string>{"best", "best2"}));
  for (const int island : {0, 3}) {
    const auto now = ids(database.programs("t", island));
    ASSERT_EQ(now.size(), 1u);
    EXPECT_TRUE(now[0] == "good" || now[0] == "best") << now[0];
  }
}

TEST(Islands, OtherKindsHaveNoResets) {
  ExemplarDatabase database({.kind = ExemplarKind::kBucket, .islands = 4, .island_reset_every = 1});
  database.seed("t", {program("a", 1), program("b", 2)});
  database.end_round(1, 1);
  EXPECT_EQ(ids(database.programs("t")), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(database.draw("t", 1, 1).island, 0);
}

}  // namespace
}  // namespace warpsmith::method

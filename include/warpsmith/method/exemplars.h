// The database of successful programs from which contrastive prompts take their exemplars (CUDA-L1.md,
// "Exemplars").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace warpsmith::method {

enum class ExemplarKind {
  kBucket,  // by score: N distinct buckets, softmax over their means, then one program of each uniformly
  kIsland,  // FunSearch: as kBucket within one of several populations that exchange programs only at resets
  kRandom,  // N distinct programs, uniformly
  kNone     // no exemplars: GRPO without contrast
};

struct ExemplarSettings {
  ExemplarKind kind = ExemplarKind::kBucket;
  double bucket_width = 0.2;   // Δs
  double bucket_tau = 0.5;     // τ
  int islands = 4;             // kIsland only
  int island_reset_every = 4;  // rounds
};

struct Program {
  std::string id;  // candidate id
  std::string source;
  double score = 0;  // the rounded speedup that prompts show
};

// B_k = [k Δs, (k+1) Δs). `members` are positions in the list that was bucketed, in its order.
struct Bucket {
  std::int64_t k = 0;
  double mean = 0;                   // s̄_k
  std::vector<std::size_t> members;  // never empty
};
// Buckets of `scores` in ascending k. A score within 1e-9 of a border counts as on it.
std::vector<Bucket> make_buckets(const std::vector<double>& scores, double width);
// P(B_i) = exp((s̄_i − μ)/τ) / Σ_j exp((s̄_j − μ)/τ), μ the mean of the buckets' means.
std::vector<double> bucket_probabilities(const std::vector<Bucket>& buckets, double tau);

struct Draw {
  std::vector<Program> exemplars;
  int island = 0;  // where the programs that come of this prompt belong; 0 where there are no islands
};

// Programs by task. A function of the calls made to it, in their order; draws by keys
// (warpsmith/base/random.h). Not thread-safe.
class ExemplarDatabase {
 public:
  explicit ExemplarDatabase(ExemplarSettings settings);

  // What is known before the first round. With islands, the seeds of a task are dealt to them in turn; where
  // there are fewer seeds than islands, the seeds are dealt again, so that no island starts empty.
  void seed(const std::string& task, std::vector<Program> programs);
  // A program made by a prompt of `island`. One that the island (or, without islands, the task) has is not
  // taken twice.
  void add(const std::string& task, int island, Program program);
  // After round `round` (from 1). Every `island_reset_every` rounds, of each task the worse half of the
  // islands (by their best score; an even draw keeps the lower number) is emptied, and each gets the best
  // program of a surviving island drawn uniformly by `key`.
  void end_round(int round, std::uint64_t key);

  // At most `n` distinct programs of the task. Buckets are drawn without replacement by bucket_probabilities;
  // where there are fewer buckets than `n`, the rest is drawn in the same way from the buckets that have
  // programs left. Fewer programs than `n`: all of them. kNone: none.
  Draw draw(const std::string& task, int n, std::uint64_t key) const;

  // Distinct programs of a task over all islands.
  std::size_t size(const std::string& task) const;
  // One island's programs (island 0 without islands), oldest first.
  const std::vector<Program>& programs(const std::string& task, int island = 0) const;

 private:
  using Island = std::vector<Program>;
  std::vector<Island>& islands_of(const std::string& task);

  ExemplarSettings settings_;
  std::map<std::string, std::vector<Island>> tasks_;
};

}  // namespace warpsmith::method

// The checkpoints that one training job leaves: <prefix>-<step>. While the job runs, the newest `keep_last`
// and, where wanted, the one with the lowest score are kept; checkpoints of other jobs are never touched.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/model/checkpoint.h"

namespace warpsmith::learn {

class CheckpointSeries {
 public:
  // `owner` tells this job's checkpoints from others with the same prefix: it stands in their origin.json as
  // "job".
  CheckpointSeries(std::filesystem::path prefix, std::string owner, std::int64_t keep_last, bool keep_best);

  std::filesystem::path folder_of(std::int64_t step) const;
  // Writes <prefix>-<facts.step>, then removes what is not to be kept. Returns the digest.
  std::string save(model::CheckpointFacts facts, const model::Decoder& decoder,
                   const model::Tokenizer& tokenizer, const model::OptimizerState* optimizer);
  // Steps of this job's whole checkpoints, newest first; of a damaged one `on_damage` is told.
  std::vector<std::int64_t> whole_steps(const std::function<void(const std::string&)>& on_damage) const;

 private:
  std::vector<std::int64_t> own_steps() const;  // whose origin names this job, ascending
  std::filesystem::path prefix_;
  std::string owner_;
  std::int64_t keep_last_;
  bool keep_best_;
};

}  // namespace warpsmith::learn

// Whose programs count where a number is a claim about a model.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "warpsmith/records/job.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

class Authors {
 public:
  explicit Authors(const store::Results& results) {
    for (const store::CandidateRow& row : results.candidates) origins_.emplace(row.id, row.origin);
    for (const store::SampleRow& row : results.generated)
      if (row.known) copies_.insert(row.candidate);
    for (const store::ShardRow& row : results.shards) {
      bool& generates = generates_[{row.stage, row.hash8}];
      generates = generates || kind_of_job(row.job) == "generate";
    }
  }
  // A model wrote the program, and it is novel.
  bool is_models(const std::string& candidate) const {
    const auto it = origins_.find(candidate);
    return it != origins_.end() && it->second == "generated" && !copies_.contains(candidate);
  }
  bool any_models() const {
    for (const auto& [id, origin] : origins_)
      if (origin == "generated") return true;
    return false;
  }
  // Whether the stage's samples are drawn from a model. Others are programs that it has measured again. Where
  // nothing is known of its shards they are taken for drawn.
  bool drew(const std::string& stage, const std::string& hash8) const {
    const auto it = generates_.find({stage, hash8});
    return it == generates_.end() || it->second;
  }

 private:
  std::unordered_map<std::string, std::string> origins_;
  std::unordered_set<std::string> copies_;
  std::map<std::pair<std::string, std::string>, bool> generates_;
};

}  // namespace warpsmith::report

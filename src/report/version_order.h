// The order in which figures stand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// Versions of stages: those of `results.stages`, in their order, then others that rows name.
class VersionOrder {
 public:
  explicit VersionOrder(const store::Results& results);
  // Position of a version; one that is new comes last.
  std::size_t place(const std::string& stage, const std::string& hash8);
  const std::pair<std::string, std::string>& at(std::size_t place) const { return versions_[place]; }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::vector<std::pair<std::string, std::string>> versions_;  // stage, hash8
};

// Groups of tasks: trained ones, then those held out.
inline int group_rank(const std::string& group) {
  if (group == "train") return 0;
  if (group == "heldout_combination") return 1;
  if (group == "heldout_operation") return 2;
  if (group == "heldout_people") return 4;
  return group == "heldout_length" ? 3 : 5;
}

}  // namespace warpsmith::report

// Kinds of the devices that stages were to be measured on.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

class StageDevices {
 public:
  explicit StageDevices(const store::Results& results) {
    for (const store::StageRow& stage : results.stages)
      kinds_[{stage.name, stage.hash8}] = stage.device_found == "twin" ? "cpu" : stage.device;
  }
  // Of the stage that a row belongs to; a twin's numbers are the CPU's. Empty: not known.
  template <typename Row>
  std::string of(const Row& row) const {
    const auto it = kinds_.find({row.stage, row.hash8});
    return it == kinds_.end() ? "" : it->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> kinds_;
};

}  // namespace warpsmith::report

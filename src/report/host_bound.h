// Tasks that headlines leave out because their baseline waits for the host.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "measurement_row.h"
#include "warpsmith/stats/wins.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// stats::HostBound of each task and kind of device, over all its measurements there.
class HostBoundTasks {
 public:
  explicit HostBoundTasks(const store::Results& results) : results_(results) {
    for (const store::MeasurementRow& row : results.measurements) votes_[key(row)].add(row.value.host_bound);
  }
  // On the device of `row`, its task.
  bool holds(const store::MeasurementRow& row) const { return holds(row.value.task, kind_of(row)); }
  bool holds(const std::string& task, const std::string& kind) const {
    const auto it = votes_.find({task, kind});
    return it != votes_.end() && it->second.holds();
  }
  // Kind of the device that it was measured on; empty: not known.
  std::string kind_of(const store::MeasurementRow& row) const { return report::kind_of(results_, row); }

 private:
  std::pair<std::string, std::string> key(const store::MeasurementRow& row) const {
    return {row.value.task, kind_of(row)};
  }
  const store::Results& results_;
  std::map<std::pair<std::string, std::string>, stats::HostBound> votes_;
};

}  // namespace warpsmith::report

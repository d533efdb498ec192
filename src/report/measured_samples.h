// What samples were measured as.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_bound.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/stats/wins.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// The measurements that samples took their speedups from, in whatever stage that was.
class Measured {
 public:
  explicit Measured(const store::Results& results) : host_bound_(results) {
    for (const store::MeasurementRow& row : results.measurements) rows_.emplace(row.value.candidate, &row);
  }
  bool is_win(const store::SampleRow& sample) const {
    bool win = false;
    of(sample, [&](const store::MeasurementRow& row) { win = win || stats::is_win(row.value.speedup_low); });
    return win;
  }
  // Tasks bound by the host on the devices that these samples were measured on.
  std::set<std::string> host_bound(const std::vector<const store::SampleRow*>& samples) const {
    std::set<std::string> kinds, tasks;
    for (const store::SampleRow* sample : samples)
      of(*sample, [&](const store::MeasurementRow& row) { kinds.insert(host_bound_.kind_of(row)); });
    for (const store::SampleRow* sample : samples)
      for (const std::string& kind : kinds)
        if (host_bound_.holds(sample->task, kind)) tasks.insert(sample->task);
    return tasks;
  }
  // The sample's measurement, its own stage's where that has one; nullptr: there is none.
  const store::MeasurementRow* row_of(const store::SampleRow& sample) const {
    const store::MeasurementRow* found = nullptr;
    of(sample, [&](const store::MeasurementRow& row) {
      if (found == nullptr || (row.stage == sample.stage && row.hash8 == sample.hash8)) found = &row;
    });
    return found;
  }

 private:
  template <typename Use>
  void of(const store::SampleRow& sample, Use use) const {
    const auto [begin, end] = rows_.equal_range(sample.candidate);
    for (auto it = begin; it != end; ++it)
      if (it->second->value.speedup == sample.speedup || fails_alike(*it->second, sample)) use(*it->second);
  }
  // A sample that failed has no speedup, and its measurement may have one (is_one_shape()).
  static bool fails_alike(const store::MeasurementRow& row, const store::SampleRow& sample) {
    return row.value.verdict != Verdict::kOk && sample.verdict == to_string(row.value.verdict);
  }
  HostBoundTasks host_bound_;
  std::unordered_multimap<std::string, const store::MeasurementRow*> rows_;
};

}  // namespace warpsmith::report

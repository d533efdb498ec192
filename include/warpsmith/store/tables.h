// The tables of results.h5: each is a group, and each field of its rows a column. The same fields make CSV
// and JSON exports, and results/README.md has them by name, unit and meaning.
#pragma once

#include "warpsmith/records/field.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

template <typename Row>
struct Table {
  const char* name;  // of the group
  std::vector<Row> Results::*rows;
  Fields<Row> fields;
  int since = 0;  // first schema of results.h5 that has the table
};

const Table<TaskRow>& task_table();
const Table<CandidateRow>& candidate_table();
const Table<CompileRow>& compile_table();
const Table<MeasurementRow>& measurement_table();
const Table<BaselineRow>& baseline_table();
const Table<DeviceFacts>& device_table();
const Table<SampleRow>& sample_table();
const Table<TrainingRow>& training_table();
const Table<OpinionRow>& opinion_table();
const Table<StageRow>& stage_table();
const Table<ShardRow>& shard_table();
const Table<AttemptRow>& attempt_table();

// Calls `use` with each table, in the order above.
template <typename Use>
void for_each_table(const Use& use) {
  use(task_table());
  use(candidate_table());
  use(compile_table());
  use(measurement_table());
  use(baseline_table());
  use(device_table());
  use(sample_table());
  use(training_table());
  use(opinion_table());
  use(stage_table());
  use(shard_table());
  use(attempt_table());
}

}  // namespace warpsmith::store

// The tables of results.h5: each is a group, each column a dataset of one value a row; the layout is written
// down in results/README.md. A column is described once, and serves writing and reading.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/hdf5/hdf5.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

inline constexpr hdf5::Size kLongest = ~hdf5::Size{0};

template <typename Row, typename T>
struct Column {
  std::string name;
  std::function<T(const Row&)> get;
  std::function<void(Row&, T)> set;
  hdf5::Size bytes = 0;  // text only: 0 is variable length, kLongest as much as the longest takes
  std::string unit;      // attribute `unit`; may be empty
  int since = 0;         // files of schemas before this one lack it
};

template <typename Row>
struct Table {
  std::string path;
  std::vector<Column<Row, std::string>> texts;
  std::vector<Column<Row, std::int64_t>> integers;
  std::vector<Column<Row, double>> reals;

  Table& text(const std::string& name, std::string Row::*member, hdf5::Size bytes = 0) {
    texts.push_back({name, [member](const Row& r) { return r.*member; },
                     [member](Row& r, std::string v) { r.*member = std::move(v); }, bytes, ""});
    return *this;
  }
  Table& integer(const std::string& name, std::int64_t Row::*member) {
    integers.push_back({name, [member](const Row& r) { return r.*member; },
                        [member](Row& r, std::int64_t v) { r.*member = v; }, 0, ""});
    return *this;
  }
  Table& flag(const std::string& name, bool Row::*member) {
    integers.push_back({name, [member](const Row& r) { return std::int64_t{r.*member}; },
                        [member](Row& r, std::int64_t v) { r.*member = v != 0; }, 0, ""});
    return *this;
  }
  Table& real(const std::string& name, double Row::*member, const std::string& unit = "") {
    reals.push_back({name, [member](const Row& r) { return r.*member; },
                     [member](Row& r, double v) { r.*member = v; }, 0, unit});
    return *this;
  }
};

// Devices as JSON lines of their facts, with the facts that people filter by as columns of their own.
struct DeviceRow {
  std::string kind, name, uuid, driver, host, sandbox, facts;
  std::int64_t threads = 0, cores = 0;
};

Table<TaskRow> task_table();
Table<CandidateRow> candidate_table();
Table<CompileRow> compile_table();
Table<MeasurementRow> measurement_table();
Table<BaselineRow> baseline_table();
Table<DeviceRow> device_table();
Table<SampleRow> sample_table();
Table<TrainingRow> training_table();
Table<StageRow> stage_table();
Table<ShardRow> shard_table();
Table<AttemptRow> attempt_table();

}  // namespace warpsmith::store

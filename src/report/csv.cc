// The tables of results.h5 as CSV.
#include <fmt/ranges.h>

#include "csv_cell.h"
#include "warpsmith/base/error.h"
#include "warpsmith/report/baselines.h"
#include "warpsmith/report/fast_p.h"
#include "warpsmith/report/paper.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/tables.h"
#include "win_flags.h"

namespace warpsmith::report {

namespace {

// Figures, no tables of results.h5.
constexpr const char* kFastPTable = "fast_p";
constexpr const char* kPaperTables = "paper_tables";

void end_line(std::string& out) { out.back() = '\n'; }

// The columns and cells of a row, each with a comma behind it.
template <typename Row>
std::string names(const Fields<Row>& fields) {
  std::string out;
  for (const Field<Row>& field : fields) out += field.name + ",";
  return out;
}

template <typename Row>
std::string cells(const Fields<Row>& fields, const Row& row) {
  std::string out;
  for (const Field<Row>& field : fields)
    out += std::visit([&](const auto& column) { return cell(column.get(row)); }, field.column) + ",";
  return out;
}

template <typename Row>
std::string table_csv(const store::Results& results, const store::Table<Row>& table) {
  std::string out = names(table.fields);
  end_line(out);
  for (const Row& row : results.*table.rows) {
    out += cells(table.fields, row);
    end_line(out);
  }
  return out;
}

// With the device by its name and its host instead of its row, without places of raw timings, and with
// whether it is a win, CUDA-L1's count beside it, and the speedup over each baseline.
std::string measurements_csv(const store::Results& results) {
  Fields<store::MeasurementRow> fields = store::measurement_table().fields;
  std::erase_if(fields, [](const auto& field) {
    return field.name == "device" || field.name == "sample_begin" || field.name == "sample_count";
  });
  std::string out = names(fields) + "device,host,win,above_1_01,";
  const std::vector<std::string> baselines = baseline_names(results);
  for (const std::string& name : baselines) out += "over_" + name + ",";
  out += "best_baseline,over_best,missing_baselines\n";
  for (const store::MeasurementRow& row : results.measurements) {
    out += cells(fields, row);
    const DeviceFacts none,
        &device = row.device >= 0 ? results.devices.at(static_cast<std::size_t>(row.device)) : none;
    out += cell(device.name) + "," + cell(device.host) + ",";
    const WinFlags flags = win_flags(row.value);
    out += cell(flags.win) + "," + cell(flags.above) + ",";
    const Comparison comparison = compare_with_baselines(results, row);
    for (const std::string& name : baselines) {
      for (const OverBaseline& over : comparison.all)
        if (over.name == name && over.speedup) out += cell(over.speedup->value);
      out += ",";
    }
    out += cell(comparison.best) + "," + (comparison.over_best ? cell(comparison.over_best->value) : "") +
           "," + cell(fmt::format("{}", fmt::join(comparison.missing, " "))) + "\n";
  }
  return out;
}

}  // namespace

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  store::for_each_table([&](const auto& table) { names.emplace_back(table.name); });
  names.insert(names.end(), {kFastPTable, kPaperTables});
  return names;
}

std::string csv(const store::Results& results, const std::string& name) {
  if (name == kPaperTables) return paper_csv(paper_tables(results));
  if (name == kFastPTable) return fast_p_csv(fast_p_rows(results));
  if (name == store::measurement_table().name) return measurements_csv(results);
  std::string out;
  store::for_each_table([&](const auto& table) {
    if (name == table.name) out = table_csv(results, table);
  });
  if (out.empty()) throw Error("no table `" + name + "`", kExitUsage);
  return out;
}

}  // namespace warpsmith::report

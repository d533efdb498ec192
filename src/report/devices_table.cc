// "Across devices": what a portability sweep found, twins apart from GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "host_bound.h"
#include "html_text.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/stats/wins.h"

namespace warpsmith::report {

namespace {

struct Group {
  std::string_view found, title;
};
// In the order of the columns.
constexpr std::array<Group, 4> kGroups = {{{"real", "GPU"},
                                           {"", "CPU"},
                                           {"twin", "CPU twin (device kind cpu): no GPU produced these"},
                                           {"none", "not on this site"}}};

std::size_t group_of(const DeviceColumn& column) {
  const auto it =
      std::find_if(kGroups.begin(), kGroups.end(), [&](const Group& g) { return g.found == column.found; });
  return static_cast<std::size_t>(it - kGroups.begin());
}

using Version = std::pair<std::string, std::string>;  // stage, hash8

// What is known of a version's tasks.
using Cells = std::map<std::string, DeviceCell>;

void add_measurement(Cells& cells, const store::MeasurementRow& row, bool host_bound, bool no_device) {
  const Measurement& m = row.value;
  DeviceCell& cell = cells[m.task];
  const bool ok = m.verdict == Verdict::kOk;
  const bool win = cell.win || (ok && stats::is_win(m.speedup_low));
  if (ok && m.speedup > cell.speedup.value_or(0))
    cell = {"", m.speedup, m.speedup_low, m.speedup_high, m.candidate, host_bound};
  else if (!cell.speedup && cell.text.empty())
    cell = {
        no_device ? "no device" : std::string(to_string(m.verdict)), std::nullopt, 0, 0, m.candidate, false};
  cell.win = win;
}

void add_compile(Cells& cells, const store::CompileRow& row, const std::string& task) {
  if (row.verdict == to_string(Verdict::kOk)) return;
  DeviceCell& cell = cells[task];
  if (!cell.speedup && cell.text.empty()) cell = {row.verdict, std::nullopt, 0, 0, row.candidate, false};
}

std::map<Version, Cells> cells_of(const store::Results& results,
                                  const std::map<Version, const DeviceColumn*>& wanted) {
  std::map<Version, Cells> cells;
  const HostBoundTasks host_bound(results);
  for (const store::MeasurementRow& row : results.measurements)
    if (const auto column = wanted.find({row.stage, row.hash8}); column != wanted.end())
      add_measurement(cells[column->first], row, host_bound.holds(row), column->second->found == "none");
  std::map<std::string, std::string> task_of;
  for (const store::CandidateRow& row : results.candidates) task_of.emplace(row.id, row.task);
  for (const store::CompileRow& row : results.compiles)
    if (const auto column = wanted.find({row.stage, row.hash8}); column != wanted.end())
      if (const auto task = task_of.find(row.candidate); task != task_of.end())
        add_compile(cells[column->first], row, task->second);
  return cells;
}

void fill(DeviceTable& table, const store::Results& results) {
  std::map<Version, const DeviceColumn*> wanted;
  for (const DeviceColumn& column : table.columns) wanted[{column.stage, column.hash8}] = &column;
  const std::map<Version, Cells> cells = cells_of(results, wanted);
  const std::set<std::string> degenerate = degenerate_tasks(results);
  std::set<std::string> tasks;
  for (const auto& [version, of_version] : cells)
    for (const auto& [task, cell] : of_version) tasks.insert(task);
  table.tasks.assign(tasks.begin(), tasks.end());
  table.rows.assign(tasks.size(), std::vector<DeviceCell>(table.columns.size()));
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    DeviceColumn& column = table.columns[c];
    const auto found = cells.find({column.stage, column.hash8});
    if (found == cells.end()) continue;
    std::vector<double> speedups;
    stats::WinCount count;
    for (std::size_t t = 0; t < table.tasks.size(); ++t) {
      const auto cell = found->second.find(table.tasks[t]);
      if (cell == found->second.end()) continue;
      table.rows[t][c] = cell->second;
      if (!cell->second.speedup || degenerate.contains(table.tasks[t])) continue;
      if (cell->second.host_bound) {
        ++column.host_bound;
        continue;
      }
      speedups.push_back(*cell->second.speedup);
      count.add(cell->second.win, *cell->second.speedup);
    }
    column.tasks = count.of;
    column.wins = count.win_share();
    column.above = count.above_share();
    if (!speedups.empty()) column.geometric_mean = stats::geometric_mean(speedups);
  }
}

std::string cell_html(const DeviceCell& cell) {
  if (!cell.speedup) return "<td>" + (cell.text.empty() ? "–" : escape(cell.text)) + "</td>";
  return fmt::format("<td title=\"[{:.2f}, {:.2f}], {}\">{:.2f}×{}</td>", cell.low, cell.high,
                     escape(cell.candidate.substr(0, 12)), *cell.speedup, cell.host_bound ? " (host)" : "");
}

// What tells two columns of one device apart: the stage's name.
std::string header_html(const DeviceTable& table, const DeviceColumn& column) {
  const auto same = std::count_if(table.columns.begin(), table.columns.end(),
                                  [&](const DeviceColumn& other) { return other.device == column.device; });
  return escape(column.title()) + (same > 1 ? "<br>" + escape(column.stage) : "");
}

std::string table_html(const DeviceTable& table) {
  std::string out = fmt::format("<table class=\"across-devices\"><thead><tr><th>{}</th>", escape(table.base));
  for (std::size_t g = 0; g < kGroups.size(); ++g)
    if (const auto count = std::count_if(table.columns.begin(), table.columns.end(),
                                         [&](const DeviceColumn& c) { return group_of(c) == g; });
        count > 0)
      out += fmt::format("<th colspan=\"{}\">{}</th>", count, kGroups[g].title);
  out += "</tr>\n<tr><th>task</th>";
  for (const DeviceColumn& column : table.columns) out += "<th>" + header_html(table, column) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (std::size_t t = 0; t < table.tasks.size(); ++t) {
    out += "<tr><th>" + escape(table.tasks[t]) + "</th>";
    for (const DeviceCell& cell : table.rows[t]) out += cell_html(cell);
    out += "</tr>\n";
  }
  out += "</tbody><tfoot>";
  const auto row = [&](const char* title, auto figure) {
    out += fmt::format("<tr><th>{}</th>", title);
    for (const DeviceColumn& column : table.columns)
      out += "<td>" + (column.tasks > 0 ? figure(column) : std::string("–")) + "</td>";
    out += "</tr>\n";
  };
  row("geometric mean", [](const DeviceColumn& c) {
    return fmt::format("{:.2f}× of {}", c.geometric_mean.value_or(0), c.tasks);
  });
  row("tasks with a win", [](const DeviceColumn& c) { return percent(c.wins); });
  row("best score &gt; 1.01×", [](const DeviceColumn& c) { return percent(c.above); });
  const auto host_bound = [](const DeviceColumn& c) { return c.host_bound > 0; };
  if (std::any_of(table.columns.begin(), table.columns.end(), host_bound)) {
    out += "<tr><th>left out, bound by the host</th>";
    for (const DeviceColumn& column : table.columns) out += fmt::format("<td>{}</td>", column.host_bound);
    out += "</tr>\n";
  }
  return out + "</tfoot></table>\n";
}

}  // namespace

std::string DeviceColumn::title() const {
  if (found == "twin") return device + " (CPU twin)";
  return device == "cpu" ? "CPU" : device;
}

std::vector<DeviceTable> device_tables(const store::Results& results) {
  std::vector<DeviceTable> tables;
  for (const store::StageRow& stage : results.stages) {
    if (!stage.current || stage.base.empty() || stage.device.empty() || stage.base == stage.name) continue;
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const DeviceTable& t) { return t.base == stage.base; });
    if (table == tables.end()) table = tables.insert(table, DeviceTable{stage.base, {}, {}, {}});
    table->columns.push_back(
        {stage.device, stage.device_found, stage.name, stage.hash8, stage.finished, 0, std::nullopt});
  }
  std::erase_if(tables, [](const DeviceTable& table) {
    return std::all_of(table.columns.begin(), table.columns.end(),
                       [&](const DeviceColumn& c) { return c.device == table.columns.front().device; });
  });
  for (DeviceTable& table : tables) {
    std::stable_sort(table.columns.begin(), table.columns.end(),
                     [](const DeviceColumn& a, const DeviceColumn& b) { return group_of(a) < group_of(b); });
    fill(table, results);
  }
  return tables;
}

std::string devices_html(const std::vector<DeviceTable>& tables) {
  if (tables.empty()) return "";
  std::string out = "<section><h2>Across devices</h2>\n";
  for (const DeviceTable& table : tables) out += table_html(table);
  return out +
         "<p class=\"note\">Speedup of the fastest correct program of each task over the baseline on the "
         "same device; where none was "
         "correct, the verdict. Geometric means and shares are over the tasks that have a speedup there. A "
         "win: "
         "the 95 % interval of one of its programs lies above 1.01×; best score &gt; 1.01×: "
         "as CUDA-L1 counts. –: not measured yet. (host): the baseline is bound by the host; such a task is "
         "in no geometric mean and no share.</p></section>\n";
}

Json devices_json(const std::vector<DeviceTable>& tables) {
  Json out = Json::array();
  for (const DeviceTable& table : tables) {
    Json columns = Json::array(), tasks = Json::array();
    for (const DeviceColumn& c : table.columns)
      columns.push_back({{"device", c.device},
                         {"found", c.found},
                         {"stage", c.stage},
                         {"hash8", c.hash8},
                         {"finished", c.finished},
                         {"tasks", c.tasks},
                         {"host_bound", c.host_bound},
                         {"wins", c.tasks > 0 ? Json(c.wins) : Json()},
                         {"above_1_01", c.tasks > 0 ? Json(c.above) : Json()},
                         {"geometric_mean", c.geometric_mean ? Json(*c.geometric_mean) : Json()}});
    for (std::size_t t = 0; t < table.tasks.size(); ++t) {
      Json cells = Json::array();
      for (const DeviceCell& cell : table.rows[t])
        cells.push_back(cell.speedup ? Json{{"speedup", *cell.speedup},
                                            {"interval", {cell.low, cell.high}},
                                            {"candidate", cell.candidate},
                                            {"win", cell.win},
                                            {"host_bound", cell.host_bound}}
                                     : Json{{"speedup", nullptr}, {"text", cell.text}});
      tasks.push_back({{"task", table.tasks[t]}, {"cells", std::move(cells)}});
    }
    out.push_back({{"stage", table.base}, {"columns", std::move(columns)}, {"tasks", std::move(tasks)}});
  }
  return out;
}

std::string twin_mark(const store::Results& results, const std::string& stage, const std::string& hash8) {
  for (const store::StageRow& row : results.stages)
    if (row.name == stage && row.hash8 == hash8) return row.device_found == "twin" ? " (CPU twin)" : "";
  return "";
}

}  // namespace warpsmith::report

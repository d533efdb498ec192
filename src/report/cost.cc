#include "warpsmith/report/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "cost_table.h"
#include "html_text.h"
#include "report_json.h"
#include "version_order.h"
#include "warpsmith/base/text.h"

namespace warpsmith::report {

namespace {

std::string duration(double seconds) {
  return format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

std::string memory(const CostRow& row) {
  std::string out =
      row.peak_memory_bytes > 0 ? format_size(static_cast<std::uint64_t>(row.peak_memory_bytes)) : "–";
  if (row.memory_bytes > 0) out += " of " + format_size(static_cast<std::uint64_t>(row.memory_bytes));
  return out;
}

// The peak memory of a sum over unlike jobs says nothing.
std::string cells(const CostRow& row, bool with_memory, bool with_money) {
  const std::optional<double> efficiency = row.cpu_efficiency();
  return fmt::format(
      "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td></tr>\n",
      row.shards, row.attempts, duration(row.wall_s), duration(row.cpu_s),
      efficiency ? percent(*efficiency) : "–", with_memory ? memory(row) : "",
      row.gpu_hours > 0 ? fmt::format("{:.3g}", row.gpu_hours) : "–",
      !with_money     ? ""
      : row.money > 0 ? fmt::format("<td>{:.2f}</td>", row.money)
                      : "<td>–</td>",
      percent(row.lost_share()));
}

}  // namespace

std::optional<double> CostRow::cpu_efficiency() const {
  if (!cpus_known || held_cpu_s <= 0) return std::nullopt;
  return cpu_s / held_cpu_s;
}

std::vector<CostRow> cost_rows(const store::Results& results) {
  struct Cell {
    CostRow row;
    std::size_t first = 0;
  };
  VersionOrder order(results);
  std::map<std::tuple<std::size_t, bool, std::string>, Cell> cells;
  for (std::size_t i = 0; i < results.attempts.size(); ++i) {
    const store::AttemptRow& a = results.attempts[i];
    Cell& cell = cells[{order.place(a.stage, a.hash8), a.set_aside, a.job}];
    CostRow& row = cell.row;
    if (row.attempts == 0) {
      row.stage = a.stage;
      row.hash8 = a.hash8;
      row.job = a.job;
      row.set_aside = a.set_aside;
      cell.first = i;
    }
    row.shards += a.attempt == 1;
    ++row.attempts;
    row.wall_s += a.wall_s;
    row.cpu_s += a.cpu_s;
    row.held_cpu_s += a.wall_s * static_cast<double>(a.cpus);
    row.cpus_known &= a.cpus > 0 || a.wall_s <= 0;
    const double gpu_hours = a.wall_s * static_cast<double>(a.gpus) /
                             static_cast<double>(std::max<std::int64_t>(1, a.shards_a_gpu)) / 3600;
    row.gpu_hours += gpu_hours;
    row.money += a.money;
    if (a.money <= 0) row.unpriced_gpu_hours += gpu_hours;
    if (a.open > 0) row.lost_s += a.wall_s;
    row.peak_memory_bytes = std::max(row.peak_memory_bytes, a.peak_memory_bytes);
    row.memory_bytes = std::max(row.memory_bytes, a.memory_bytes);
  }
  std::vector<std::pair<std::tuple<std::size_t, bool, std::size_t>, CostRow>> sorted;
  for (auto& [key, cell] : cells)
    sorted.emplace_back(std::tuple(std::get<0>(key), std::get<1>(key), cell.first), std::move(cell.row));
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CostRow> rows;
  for (auto& [key, row] : sorted) rows.push_back(std::move(row));
  return rows;
}

CostRow cost_total(const std::vector<CostRow>& rows) {
  CostRow total;
  for (const CostRow& row : rows) {
    total.shards += row.shards;
    total.attempts += row.attempts;
    total.wall_s += row.wall_s;
    total.cpu_s += row.cpu_s;
    total.held_cpu_s += row.held_cpu_s;
    total.cpus_known &= row.cpus_known;
    total.gpu_hours += row.gpu_hours;
    total.money += row.money;
    total.unpriced_gpu_hours += row.unpriced_gpu_hours;
    total.lost_s += row.lost_s;
    total.peak_memory_bytes = std::max(total.peak_memory_bytes, row.peak_memory_bytes);
    total.memory_bytes = std::max(total.memory_bytes, row.memory_bytes);
  }
  return total;
}

Json cost_json(const CostRow& row) {
  const std::optional<double> efficiency = row.cpu_efficiency();
  return {{"stage", row.stage},
          {"hash8", row.hash8},
          {"job", row.job},
          {"set_aside", row.set_aside},
          {"shards", row.shards},
          {"attempts", row.attempts},
          {"wall_s", row.wall_s},
          {"cpu_s", row.cpu_s},
          {"cpu_efficiency", efficiency ? Json(*efficiency) : Json(nullptr)},
          {"peak_memory_bytes", row.peak_memory_bytes},
          {"memory_bytes", row.memory_bytes},
          {"gpu_hours", row.gpu_hours},
          {"money", row.money},
          {"lost_share", row.lost_share()}};
}

std::string money_head(const std::string& currency) {
  return "<th>money" + (currency.empty() ? "" : ", " + escape(currency)) + "</th>";
}

std::string cost_table(const std::vector<CostRow>& rows, const std::string& currency) {
  if (rows.empty()) return "<p>The run's journal tells of no attempt that has ended.</p>\n";
  const bool money = std::any_of(rows.begin(), rows.end(), [](const CostRow& r) { return r.money > 0; });
  std::string out = fmt::format(
      "<table id=\"cost\"><thead><tr><th>stage</th><th>job</th><th>shards</th><th>attempts</th><th>wall "
      "time</th>"
      "<th>CPU time</th><th>CPU efficiency</th><th>peak "
      "memory</th><th>GPU-hours</th>{}<th>lost</th></tr></thead><tbody>\n",
      money ? money_head(currency) : "");
  for (const CostRow& row : rows)
    out += fmt::format("<tr><th>{}{}</th><td>{}</td>", escape(row.stage), row.set_aside ? " (set aside)" : "",
                       escape(row.job)) +
           cells(row, true, money);
  out += "</tbody><tfoot><tr><th>all</th><td></td>" + cells(cost_total(rows), false, money);
  return out +
         "</tfoot></table>\n<p class=\"note\">Wall and CPU time are summed over all attempts of all shards. "
         "CPU efficiency: CPU time by "
         "wall time and the CPUs asked for. Peak memory: the largest of an attempt, of the largest limit. "
         "Lost: share of the wall time "
         "of attempts that failed, were cancelled or ran into a limit, and left items undone; what they had "
         "recorded counts all the "
         "same." +
         std::string(
             money ? " Money: by the site's prices of GPU-hours, and of CPU-hours without a GPU; what has no "
                     "price is not in it."
                   : "") +
         "</p>\n";
}

}  // namespace warpsmith::report

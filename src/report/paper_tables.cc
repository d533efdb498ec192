// CUDA-L1's tables in the page and in exports.
#include <fmt/format.h>

#include <algorithm>

#include "csv_cell.h"
#include "html_text.h"
#include "warpsmith/report/paper.h"

namespace warpsmith::report {

namespace {

struct Part {
  int table;
  const char* title;
  std::vector<PaperRow> PaperTables::*rows;
};
constexpr Part kParts[] = {{4, "Table 4: levels and baselines", &PaperTables::levels},
                           {5, "Table 5: stages", &PaperTables::stages},
                           {6, "Table 6: types of devices", &PaperTables::devices}};

std::string level_text(const PaperRow& row) { return row.level ? std::to_string(*row.level) : "all"; }

std::string speedup_cells(const std::optional<stats::Spread>& spread,
                          std::initializer_list<double stats::Spread::*> members) {
  std::string out;
  for (const auto member : members)
    out += spread ? fmt::format("<td>{:.2f}×</td>", (*spread).*member) : "<td>–</td>";
  return out;
}

std::string row_html(const PaperRow& row, int table) {
  using stats::Spread;
  const std::size_t averaged = row.paper ? row.paper->count : 0, measured = row.ours ? row.ours->count : 0;
  std::string out = fmt::format("<tr><th>{}</th><td>{}</td>", escape(table == 5 ? row.stage : row.device),
                                escape(row.baseline));
  if (table == 4) out += "<td>" + level_text(row) + "</td>";
  out += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", row.total, row.attempted,
                     row.valid, row.one_shape, averaged);
  out += speedup_cells(
      row.paper, {&Spread::mean, &Spread::max, &Spread::quantile75, &Spread::median, &Spread::quantile25});
  out += fmt::format("<td>{}</td><td>{}</td>", row.above, measured);
  out += speedup_cells(row.ours, {&Spread::geometric_mean, &Spread::median, &Spread::mean});
  return out + fmt::format("<td>{}</td><td>{}</td></tr>\n", row.wins, row.left_out);
}

std::string part_html(const Part& part, const std::vector<PaperRow>& rows) {
  const int keys = part.table == 4 ? 3 : 2;
  std::string out = fmt::format(
      "<h3>{}</h3>\n<table id=\"paper-{}\"><thead><tr><th colspan=\"{}\"></th><th colspan=\"4\">tasks</th>"
      "<th colspan=\"7\">the paper's convention</th><th colspan=\"6\">only what was measured</th></tr>\n"
      "<tr><th>{}</th><th>over</th>{}<th>total</th><th>attempted</th><th>valid</th><th>one shape</th>"
      "<th>averaged</th>"
      "<th>mean</th><th>max</th><th>75 %</th><th>50 %</th><th>25 %</th><th>&gt; 1.01×</th><th>measured</th>"
      "<th>geo. mean</th><th>median</th><th>mean</th><th>wins</th><th>left out</th></tr></thead><tbody>\n",
      part.title, part.table, keys, part.table == 5 ? "stage" : "device",
      part.table == 4 ? "<th>level</th>" : "");
  for (const PaperRow& row : rows) out += row_html(row, part.table);
  return out + "</tbody></table>\n";
}

std::string key_of(const char* side, const char* name) { return std::string(side) + "_" + name; }

// The figures of a spread by name; "count" first.
template <typename Use>
void for_each_figure(const stats::Spread& s, const Use& use) {
  use("mean", s.mean);
  use("geometric_mean", s.geometric_mean);
  use("max", s.max);
  use("quantile75", s.quantile75);
  use("median", s.median);
  use("quantile25", s.quantile25);
}

Json spread_json(const std::optional<stats::Spread>& spread) {
  if (!spread) return {{"tasks", 0}};
  Json out = {{"tasks", spread->count}};
  for_each_figure(*spread, [&](const char* name, double value) { out[name] = value; });
  return out;
}

}  // namespace

std::string paper_html(const PaperTables& tables) {
  std::string out;
  bool by_model = false;
  std::int64_t left_out = 0;
  for (const Part& part : kParts) {
    const std::vector<PaperRow>& rows = tables.*part.rows;
    if (!rows.empty()) out += part_html(part, rows);
    for (const PaperRow& row : rows) {
      by_model = by_model || row.authors == "model";
      left_out = std::max(left_out, row.left_out);
    }
  }
  if (out.empty()) return "";
  return "<section><h2>CUDA-L1's tables</h2>\n" + out +
         "<p class=\"note\">Speedup of the fastest correct program of each task, " +
         (by_model ? "of those that a model wrote and that are novel"
                   : "whoever wrote it: no model wrote any in this run") +
         ". Total: tasks of the set (of table 5: of the groups that the stage has samples of). Attempted: "
         "with a program whose verdict says something about it. Valid: with a correct one. One shape: "
         "without one, but with a program that is right at the task's own shape and wrong at others; by the "
         "paper's convention it counts as correct. The paper's convention: over eager, torch.compile and "
         "reduce-overhead all tasks count, one without a number as 1.00×; CUDA Graph and cuDNN average the "
         "pairs that exist; averaged says over how many tasks. &gt; 1.01×: tasks whose score is. Only what "
         "was measured: tasks without a number are left out" +
         (left_out > 0 ? ", and so are those that a program without any work would pass or whose baseline is "
                         "bound by the host (left out says how many)"
                       : "") +
         ". A win: the 95 % interval lies above 1.01×.</p></section>\n";
}

std::string paper_csv(const PaperTables& tables) {
  std::string out = "table,device,stage,hash8,baseline,level,authors,total,attempted,valid,one_shape";
  for (const char* side : {"paper", "ours"}) {
    out += "," + key_of(side, "tasks");
    for_each_figure({}, [&](const char* name, double) { out += "," + key_of(side, name); });
  }
  out += ",above_1_01,wins,left_out\n";
  for (const Part& part : kParts)
    for (const PaperRow& row : tables.*part.rows) {
      out += std::to_string(part.table);
      for (const std::string& text :
           {row.device, row.stage, row.hash8, row.baseline, level_text(row), row.authors})
        out += "," + cell(text);
      for (const std::int64_t count : {row.total, row.attempted, row.valid, row.one_shape})
        out += "," + cell(count);
      for (const auto* side : {&row.paper, &row.ours}) {
        const stats::Spread spread = side->value_or(stats::Spread{});
        out += "," + std::to_string(spread.count);
        for_each_figure(spread, [&](const char*, double value) { out += "," + (*side ? cell(value) : ""); });
      }
      for (const std::int64_t count : {row.above, row.wins, row.left_out}) out += "," + cell(count);
      out += "\n";
    }
  return out;
}

Json paper_json(const PaperTables& tables) {
  Json out = Json::object();
  for (const Part& part : kParts) {
    Json& list = out["table_" + std::to_string(part.table)] = Json::array();
    for (const PaperRow& row : tables.*part.rows)
      list.push_back({{"device", row.device},
                      {"stage", row.stage},
                      {"hash8", row.hash8},
                      {"baseline", row.baseline},
                      {"level", row.level ? Json(*row.level) : Json()},
                      {"authors", row.authors},
                      {"total", row.total},
                      {"attempted", row.attempted},
                      {"valid", row.valid},
                      {"one_shape", row.one_shape},
                      {"paper", spread_json(row.paper)},
                      {"ours", spread_json(row.ours)},
                      {"above_1_01", row.above},
                      {"wins", row.wins},
                      {"left_out", row.left_out}});
  }
  return out;
}

}  // namespace warpsmith::report

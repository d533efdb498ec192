// fast_p and pass@k in the page and in exports.
#include <fmt/format.h>

#include "csv_cell.h"
#include "curves.h"
#include "html_text.h"
#include "warpsmith/report/fast_p.h"

namespace warpsmith::report {

namespace {

std::string authors_words(const std::string& authors) {
  return authors == "model" ? "a model" : "whoever wrote them";
}

std::string shares(const FastPs& values) {
  std::string out;
  for (const double value : values) out += "<td>" + percent(value) + "</td>";
  return out;
}

std::string pass_cells(const FastPRow& row) {
  std::string out;
  for (std::size_t i = 0; i < stats::kPassKs.size(); ++i) {
    if (row.pass.empty() || !row.pass[i].value)
      out += "<td>–</td>";
    else
      out +=
          fmt::format("<td title=\"over {} tasks\">{}</td>", row.pass[i].tasks, percent(*row.pass[i].value));
  }
  return out;
}

std::string left_in_words(const std::vector<FastPRow>& rows) {
  std::int64_t degenerate = 0, host_bound = 0;
  for (const FastPRow& row : rows) {
    degenerate = std::max(degenerate, row.degenerate);
    host_bound = std::max(host_bound, row.host_bound);
  }
  if (degenerate + host_bound == 0) return "";
  return fmt::format(
      " All tasks are {} that a program without any work would pass and {} whose baseline is bound by the "
      "host: "
      "their speedups count here, as in KernelBench, and in no headline.",
      degenerate, host_bound);
}

}  // namespace

std::string fast_p_html(const std::vector<FastPRow>& rows) {
  if (rows.empty()) return "";
  std::string out =
      "<section><h2>fast_p and pass@k</h2>\n<table id=\"fast-p\"><thead><tr><th>stage</th><th>tasks</th>"
      "<th>programs of</th><th>all tasks</th><th>correct</th><th>samples a task</th><th></th>";
  for (const double p : stats::kFastPs) out += fmt::format("<th>fast_{}</th>", p);
  out += "<th>geo. mean</th>";
  for (const std::int64_t k : stats::kPassKs) out += fmt::format("<th>pass@{}</th>", k);
  out += "</tr></thead><tbody>\n";
  for (const FastPRow& row : rows) {
    const std::string lines = row.one_draw ? " rowspan=\"2\"" : "";
    out += fmt::format(
        "<tr><th{0}>{1}</th><td{0}>{2}</td><td{0}>{3}</td><td{0}>{4}</td><td{0}>{5}</td><td{0}>{6}</td>"
        "<td>best of them</td>{7}<td>{8}</td>{9}</tr>\n",
        lines, escape(row.stage), escape(row.group), authors_words(row.authors), row.tasks, row.correct,
        range_words(row.least, row.most), shares(row.best),
        row.geometric_mean ? fmt::format("{:.2f}×", *row.geometric_mean) : "–", pass_cells(row));
    if (row.one_draw)
      out += "<tr><td>one draw</td>" + shares(*row.one_draw) + "<td></td><td></td><td></td><td></td></tr>\n";
  }
  return out + "</tbody></table>\n" + fast_p_plots(rows) +
         "<p class=\"note\">fast_p: share of <em>all</em> tasks of the set, also those without a program, "
         "whose "
         "program is correct (verdict ok) and strictly over p times as fast as the baseline. Best of them: "
         "the "
         "fastest correct of a task's samples; one draw: what one of them is expected to give (KernelBench "
         "takes "
         "sample 0). Geometric mean: over the tasks with a correct program. pass@k: chance that of k of a "
         "task's n judged samples (all but those of verdict unsupported or not_measured) one is correct, the "
         "unbiased estimate; mean over the tasks with n ≥ k "
         "(pointed "
         "at: how many); – where no task has so many, where the model learned between its rounds, and where "
         "a "
         "stage measured programs that it did not draw. A program that equals one of a person, of "
         "augmentation "
         "or of another author than a model counts as a sample, and not as correct. One that a template of "
         "the grammar writes, too, does count: the table of stages says how many those are. Of an answer "
         "that was asked again the first turn alone is a sample here: later ones know what became of it." +
         left_in_words(rows) + "</p></section>\n";
}

std::string fast_p_csv(const std::vector<FastPRow>& rows) {
  std::string out =
      "stage,hash8,group,authors,tasks,degenerate,host_bound,judged,correct,samples_least,samples_most";
  for (const double p : stats::kFastPs) out += fmt::format(",fast_{}", p);
  for (const double p : stats::kFastPs) out += fmt::format(",one_draw_fast_{}", p);
  out += ",geometric_mean";
  for (const std::int64_t k : stats::kPassKs) out += fmt::format(",pass_{0},pass_{0}_tasks", k);
  out += "\n";
  for (const FastPRow& row : rows) {
    out += cell(row.stage) + "," + cell(row.hash8) + "," + cell(row.group) + "," + cell(row.authors);
    for (const std::int64_t count :
         {row.tasks, row.degenerate, row.host_bound, row.judged, row.correct, row.least, row.most})
      out += "," + cell(count);
    for (const double value : row.best) out += "," + cell(value);
    for (std::size_t i = 0; i < stats::kFastPs.size(); ++i)
      out += "," + (row.one_draw ? cell((*row.one_draw)[i]) : "");
    out += "," + cell(row.geometric_mean);
    for (std::size_t i = 0; i < stats::kPassKs.size(); ++i)
      out += row.pass.empty() ? ",," : "," + cell(row.pass[i].value) + "," + cell(row.pass[i].tasks);
    out += "\n";
  }
  return out;
}

Json fast_p_json(const std::vector<FastPRow>& rows) {
  const auto by_p = [](const FastPs& values) {
    Json out = Json::object();
    for (std::size_t i = 0; i < values.size(); ++i) out[fmt::format("{}", stats::kFastPs[i])] = values[i];
    return out;
  };
  Json out = Json::array();
  for (const FastPRow& row : rows) {
    Json json = {{"stage", row.stage},
                 {"hash8", row.hash8},
                 {"group", row.group},
                 {"authors", row.authors},
                 {"tasks", row.tasks},
                 {"degenerate", row.degenerate},
                 {"host_bound", row.host_bound},
                 {"judged", row.judged},
                 {"correct", row.correct},
                 {"samples_a_task", {row.least, row.most}},
                 {"best", by_p(row.best)},
                 {"one_draw", row.one_draw ? by_p(*row.one_draw) : Json()},
                 {"geometric_mean", row.geometric_mean ? Json(*row.geometric_mean) : Json()},
                 {"curve", Json::array()},
                 {"pass", Json::object()}};
    for (const auto& [p, share] : stats::fast_p_curve(row.speedups, static_cast<std::size_t>(row.tasks)))
      json["curve"].push_back({p, share});
    for (const PassAtK& pass : row.pass)
      if (pass.value) json["pass"][std::to_string(pass.k)] = {{"value", *pass.value}, {"tasks", pass.tasks}};
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace warpsmith::report

// What stages with `skip` did not measure, and what that was worth.
#include <fmt/format.h>

#include "html_text.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/learning.h"

namespace warpsmith::report {

namespace {

std::string count_cell(const Json& figures, const char* key) {
  return fmt::format("<td>{}</td>", figures.value(key, std::int64_t{0}));
}
std::string correlation_cell(const Json& figures, const char* key, const char* of) {
  if (!figures.contains(key)) return "<td>–</td>";
  return fmt::format("<td>{:.2f} <small>of {}</small></td>", figures.value(key, 0.0),
                     figures.value(of, std::int64_t{0}));
}

std::string skip_row(const std::string& title, const Json& figures) {
  return "<tr><th>" + title + "</th>" + count_cell(figures, "guessed") + count_cell(figures, "skipped") +
         count_cell(figures, "blind") + correlation_cell(figures, "rank_correlation", "right") +
         correlation_cell(figures, "blind_rank_correlation", "blind_right") + "<td>" +
         (figures.contains("lost_share") ? percent(figures.value("lost_share", 0.0)) : "–") + "</td><td>" +
         escape(figures.value("note", "")) + "</td></tr>\n";
}

std::string rows_of(const std::string& stage, const Json& skip) {
  std::string out;
  for (const Json& round : skip.value("rounds", Json::array()))
    out += skip_row(fmt::format("{}, round {}", escape(stage), round.value("round", 0)), round);
  return out + skip_row(escape(stage) + ", all rounds", skip);
}

}  // namespace

std::string skips_html(const store::Results& results) {
  std::string rows;
  for (const store::StageRow& stage : results.stages) {
    const Json summary = Json::parse(stage.summary, nullptr, false);
    if (!stage.current || !summary.is_object() || !summary.contains("skip")) continue;
    try {
      rows += rows_of(stage.name + twin_mark(results, stage.name, stage.hash8), summary["skip"]);
    } catch (const Json::exception&) {  // not as a stage writes it
    }
  }
  if (rows.empty()) return "";
  return "<h3>Not measured, because predicted to be slow</h3><table id=\"skips\"><thead><tr><th>round</th>"
         "<th>predicted</th><th>skipped</th><th>measured blindly</th><th>rank correlation, right ones</th>"
         "<th>of blind ones</th><th>blind ones that were good</th><th></th></tr></thead>\n" +
         rows +
         "</table>\n<p class=\"note\">Predicted: programs that compiled, of tasks with a known right one. "
         "Measured blindly: drawn from those that were predicted to be slowest. Rank correlation: "
         "Spearman's, "
         "of prediction and score, each over the right ones that were measured. Good: above the task's best "
         "before, or in the faster half of the round's right programs. A skipped program has no verdict: "
         "nobody knows whether it is right. Shares and speedups of these rounds leave skipped programs out, "
         "and look better for it; frozen checkpoints are measured in full.</p>\n";
}

}  // namespace warpsmith::report

// The page: tables are written here, so that it can be read without scripts; plots are drawn by report.js
// from the data in it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cost_table.h"
#include "curves.h"
#include "html_text.h"
#include "report_json.h"
#include "story.h"
#include "version_order.h"
#include "warpsmith/report/baselines.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/report/fast_p.h"
#include "warpsmith/report/learning.h"
#include "warpsmith/report/paper.h"
#include "warpsmith/report/report.h"
#include "winners_page.h"

extern const char report_css[];
extern const char page_js[];

namespace warpsmith::report {

namespace {

std::string times_or_dash(const std::optional<double>& speedup) { return speedup ? times(*speedup) : "–"; }

constexpr std::string_view kStagesHead =
    "<table id=\"stages\"><thead><tr><th>stage</th><th>tasks</th><th>samples</th><th>valid</th>"
    "<th>novel</th><th>distinct</th><th>mean</th><th>geo. mean</th><th>75 %</th><th>50 %</th><th>25 %</th>"
    "<th>max</th><th>wins</th><th>score &gt; 1.01×</th><th>one draw</th><th>no floor</th></tr></thead>\n";

constexpr std::string_view kStagesNote =
    "Valid: compiles, runs, gives the right answers at every checked shape, and could be timed (verdict ok). "
    "Novel: valid, and no program of a person, of augmentation or of another author than a model, for "
    "whatever task, names and constants of source and machine code aside; in brackets how many distinct "
    "ones. As a template: of the novel ones, those that the templates of the grammar write for a task that "
    "is held out or unsolved. No model was shown them. The speed of the others is not the stage's merit. "
    "Mean to max: over the novel programs. Wins: share of all samples whose 95 % interval lies above 1.01×; "
    "score &gt; 1.01×: share whose score does, as CUDA-L1 counts. One draw: geometric mean over all samples "
    "of max(1, speedup), a failure counts 1; no floor: of the speedup itself, a failure counts 0.01. "
    "Intervals are 95 %: over tasks (each by its mean), where there are five or more; of shares, the wider "
    "of that and of Wilson's over samples. Of an answer that was asked again the first turn alone counts: "
    "later ones know what became of it. They count among verdicts, best programs and costs. Tasks that pass "
    "without any work are left out.";

std::string stage_row(const EvaluationRow& r) {
  const auto counted = [&](std::string text) { return r.counted > 0 ? text : std::string("–"); };
  const std::string cells[] = {
      r.host_bound > 0 ? fmt::format("{} ({} bound by the host)", r.tasks, r.host_bound)
                       : std::to_string(r.tasks),
      std::to_string(r.samples),
      with_interval(r.valid_share(), r.valid_interval),
      fmt::format("{} ({}) <small>{} [{:.1f}, {:.1f}]{}</small>", r.novel, r.novel_programs,
                  percent(r.novel_share()), 100 * r.novel_interval.low, 100 * r.novel_interval.high,
                  r.of_template > 0 ? fmt::format(", {} as a template", r.of_template) : ""),
      percent(r.distinct),
      times_or_dash(r.mean),
      r.geometric_mean ? speedup_with_interval(*r.geometric_mean, r.geometric_mean_interval) : "–",
      times_or_dash(r.quantile75),
      times_or_dash(r.median),
      times_or_dash(r.quantile25),
      times_or_dash(r.max),
      counted(percent(r.wins)),
      counted(percent(r.above)),
      counted(speedup_with_interval(r.one_draw, r.one_draw_interval)),
      counted(speedup_with_interval(r.one_draw_no_floor, r.one_draw_no_floor_interval))};
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape(r.stage), fmt::join(cells, "</td><td>"));
}

std::string stages_table(const std::vector<EvaluationRow>& rows) {
  if (rows.empty()) return "<p>No stage of this run drew programs from a frozen model.</p>\n";
  std::string out(kStagesHead);
  std::set<std::string> groups;
  std::vector<std::string> order;
  for (const EvaluationRow& row : rows)
    if (groups.insert(row.group).second) order.push_back(row.group);
  for (const std::string& group : order) {
    out += fmt::format("<tbody><tr class=\"group\"><th colspan=\"16\">{}</th></tr>\n",
                       escape(group_title(group)));
    for (const EvaluationRow& row : rows)
      if (row.group == group) out += stage_row(row);
    out += "</tbody>\n";
  }
  const bool some_host_bound =
      std::any_of(rows.begin(), rows.end(), [](const EvaluationRow& row) { return row.host_bound > 0; });
  return out + fmt::format("</table>\n<p class=\"note\">{}{}</p>\n", kStagesNote,
                           some_host_bound
                               ? " From Mean on, tasks whose baseline is bound by the host are left out, too."
                               : "");
}

// Programs of tasks for stage 1 alone, which nobody has measured.
std::size_t learned_as_they_are(const store::Results& results) {
  std::size_t count = 0;
  for (const store::StageRow& stage : results.stages)
    if (const Json summary = Json::parse(stage.summary, nullptr, false); summary.is_object())
      count += summary.value(Json::json_pointer("/sft_only/programs"), std::size_t{0});
  return std::min(count, results.candidates.size());
}

std::string verdicts_table(const std::vector<VerdictCounts>& rows) {
  std::vector<std::string> columns;
  for (const std::string_view name : kVerdictNames)
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const VerdictCounts& r) { return r.counts.contains(std::string(name)); }))
      columns.emplace_back(name);
  std::string out = "<table id=\"verdicts\"><thead><tr><th>stage</th>";
  for (const std::string& column : columns) out += "<th>" + escape(column) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const VerdictCounts& row : rows) {
    out += "<tr><th>" + escape(row.stage) + "</th>";
    for (const std::string& column : columns) {
      const auto it = row.counts.find(column);
      out += "<td>" + (it == row.counts.end() ? std::string("·") : std::to_string(it->second)) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

// Nothing where no checking model was asked.
std::string opinions_html(const store::Results& results) {
  if (results.opinions.empty()) return "";
  std::string out =
      "<section><h2>What a checking model says</h2>\n<p class=\"note\">Asked about programs whose score "
      "jumped. "
      "It is advice: no verdict and no score depends on it.</p>\n<table id=\"opinions\"><thead><tr>"
      "<th>stage</th><th>round</th><th>task</th><th>program</th><th>score</th><th>before</th><th>says</th>"
      "<th>reason</th><th>model</th></tr></thead><tbody>\n";
  for (const store::OpinionRow& row : results.opinions)
    out += fmt::format(
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.2f}×</td><td>{:.2f}×</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>\n",
        escape(row.stage + twin_mark(results, row.stage, row.hash8)), row.round, escape(row.task),
        escape(row.candidate.substr(0, 12)), row.score, row.before, escape(row.says), escape(row.reason),
        escape(row.model));
  return out + "</tbody></table></section>\n";
}

std::string devices_section(const store::Results& results) {
  std::string out =
      "<table "
      "id=\"devices\"><thead><tr><th>kind</th><th>device</th><th>host</th><th>threads</th><th>cores</"
      "th><th>sandbox</th></tr></thead><tbody>\n";
  std::set<std::string> rows;  // each run of a shard leaves one, most of them equal
  for (const DeviceFacts& d : results.devices) {
    const std::string row =
        fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    escape(d.kind), escape(d.name), escape(d.host), d.threads, d.cores, escape(d.sandbox));
    if (rows.insert(row).second) out += row;
  }
  out += "</tbody></table>\n";
  std::set<std::string> told;  // a GPU may have several rows
  for (const DeviceFacts& d : results.devices)
    if (const auto doubts = d.extra.find("doubts"); doubts != d.extra.end() && told.insert(d.uuid).second)
      out += fmt::format("<p class=\"warning\">{} on {} ({}) is hardly what its kind says: {}.</p>\n",
                         escape(d.kind), escape(d.host), escape(d.uuid), escape(doubts->second));
  return out;
}

// What report.js draws.
std::string head_html(const store::Results& results, std::size_t tasks, const std::string& note) {
  const Json provenance =
      results.provenance.empty() ? Json::object() : parse_json(results.provenance, "run.json");
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">\n";
  out += "<title>" + escape(results.run) + " – Warpsmith</title>\n<style>\n" + report_css +
         "</style></head><body>\n";
  const std::size_t learned = learned_as_they_are(results);
  out += fmt::format(
      "<header><h1>{}</h1><p>{} measurements of {} programs over {} tasks. {}Warpsmith {} on {}.</p>"
      "</header>\n",
      escape(results.run), results.measurements.size(), results.candidates.size() - learned, tasks,
      learned > 0 ? fmt::format("{} more programs were learned as they are. ", learned) : "",
      escape(results.version), escape(results.host));
  if (!provenance.value("replay_timings", "").empty())
    out += "<p class=\"warning\">The scores of this run were taken from the run " +
           escape(provenance.value("replay_timings", "")) +
           ", not measured: it is a test, and its speedups say nothing.</p>\n";
  if (const auto older = std::count_if(results.stages.begin(), results.stages.end(),
                                       [](const auto& s) { return !s.current; });
      older > 0)
    out += fmt::format("<p class=\"note\">{} older version{} of stages left out: results.h5 has {}.</p>\n",
                       older, older == 1 ? "" : "s", older == 1 ? "it" : "them");
  if (!note.empty()) out += "<p class=\"note\">" + escape(note) + "</p>\n";
  return out +
         "<nav><a href=\"#learned\">Learning</a> <a href=\"#best\">Best programs</a> "
         "<a href=\"#of-stages\">Stages</a> <a href=\"#costs\">Cost</a> "
         "<a href=\"#measured-on\">Devices</a></nav>\n";
}

}  // namespace

std::string html(const store::Results& results, const std::string& note) {
  std::vector<EvaluationRow> rows = evaluation_rows(results);
  const std::string learning = learning_html(results, rows);
  NovelCosts costs = novel_costs(results);
  std::vector<VerdictCounts> verdicts = verdict_counts(results);
  std::vector<BestKernel> kernels = best_kernels(results);
  std::vector<FastPRow> fast_ps = fast_p_rows(results);
  PaperTables papers = paper_tables(results);
  // A stage may be named for a GPU that has not produced its numbers.
  for (EvaluationRow& row : rows) row.stage += twin_mark(results, row.stage, row.hash8);
  for (VerdictCounts& row : verdicts) row.stage += twin_mark(results, row.stage, row.hash8);
  for (PaperRow& row : papers.stages) row.stage += twin_mark(results, row.stage, row.hash8);
  for (FastPRow& row : fast_ps) {
    row.stage += twin_mark(results, row.stage, row.hash8);
    row.group = group_title(row.group);
  }
  for (NovelCost& row : costs.stages) row.stage += twin_mark(results, row.stage, row.hash8);
  for (BestKernel& kernel : kernels) kernel.stage += twin_mark(results, kernel.stage, kernel.hash8);
  const Headline h = headline(kernels);
  const std::vector<DeviceTable> tables = device_tables(results);
  std::string out = head_html(results, kernels.size(), note);
  out += story_html(results, rows, kernels) + headline_section(h, kernels, !tables.empty());
  out += learning + winners_html(results, kernels);
  out += "<section id=\"of-stages\"><h2>Stages</h2>\n" + stages_table(rows) + speedups_plot(results) +
         "</section>\n";
  out += fast_p_html(fast_ps);
  out += devices_html(tables);
  out += paper_html(papers);
  out += "<section><h2>Training</h2>" + losses_plot(results) + "</section>\n";
  out += baselines_html(results);
  out += "<section><h2>Verdicts by cause</h2>\n" + verdicts_table(verdicts) + "</section>\n";
  out += opinions_html(results);
  out += "<section id=\"costs\"><h2>What it cost</h2>\n" + cost_table(cost_rows(results), results.currency) +
         novel_costs_html(costs) + "</section>\n";
  out += "<section id=\"measured-on\"><h2>Devices</h2>\n" + devices_section(results) + "</section>\n";
  out += "<section><h2>Workflow</h2><details><summary>as it was run</summary><pre>" +
         escape(results.workflow) + "</pre></details></section>\n";
  return out + "<script>" + page_js + "</script>\n</body></html>\n";
}

}  // namespace warpsmith::report

// What the stages changed, in the page and in exports.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "html_text.h"
#include "plot.h"
#include "report_json.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/learning.h"

namespace warpsmith::report {

namespace {

// A panel: a figure of each row with its interval; nothing where the row does not have it.
struct Panel {
  const char* caption;
  PlotScale scale;
  std::function<std::optional<PlotPoint>(const EvaluationRow&)> figure;
};

std::optional<PlotPoint> point(double y, const std::optional<stats::Interval>& interval) {
  return PlotPoint{0, y, interval};
}

const Panel kValid{"Valid: share of the programs drawn", PlotScale::kShare,
                   [](const EvaluationRow& r) { return point(r.valid_share(), r.valid_interval); }};
const Panel kNovel{"Novel: share of the programs drawn", PlotScale::kShare,
                   [](const EvaluationRow& r) { return point(r.novel_share(), r.novel_interval); }};
const Panel kBeyond{"Novel, and not as a template of the grammar: share of the programs drawn",
                    PlotScale::kShare,
                    [](const EvaluationRow& r) { return point(r.beyond_share(), r.beyond_interval); }};
const Panel kDistinct{"Distinct: share of the programs drawn", PlotScale::kShare,
                      [](const EvaluationRow& r) { return point(r.distinct, std::nullopt); }};
const Panel kNovelDraw{"One draw of novel programs: geometric mean speedup", PlotScale::kSpeedup,
                       [](const EvaluationRow& r) {
                         return r.counted > 0 ? point(r.novel_draw, r.novel_draw_interval) : std::nullopt;
                       }};

// Rows of one line, each at its place on the x axis.
struct LineRows {
  std::string name;
  std::vector<std::pair<double, const EvaluationRow*>> rows;
};

// A row of panels over one x axis, with a legend above them.
std::string panels_html(const std::string& id, Plot axis, const std::vector<LineRows>& lines,
                        const std::vector<const Panel*>& panels) {
  std::vector<std::string> names;
  for (const LineRows& line : lines) names.push_back(line.name);
  std::string out = plot_legend(names) + "<div class=\"panels\" id=\"" + id + "\">\n";
  for (const Panel* panel : panels) {
    axis.caption = panel->caption;
    axis.scale = panel->scale;
    axis.lines.clear();
    for (const LineRows& line : lines) {
      PlotLine& drawn = axis.lines.emplace_back(PlotLine{line.name, {}});
      for (const auto& [x, row] : line.rows)
        if (auto of_row = panel->figure(*row)) {
          of_row->x = x;
          drawn.points.push_back(*of_row);
        }
    }
    out += plot_figure(axis);
  }
  return out + "</div>\n";
}

const EvaluationRow* row_of(const std::vector<EvaluationRow>& rows, const FrozenModel& model,
                            const std::string& group) {
  for (const EvaluationRow& row : rows)
    if (row.stage == model.stage && row.hash8 == model.hash8 && row.group == group) return &row;
  return nullptr;
}

std::string stages_plot(const std::string& base, const std::vector<const FrozenModel*>& models,
                        const std::vector<EvaluationRow>& rows) {
  Plot axis;
  axis.first = -0.5;
  axis.last = static_cast<double>(models.size()) - 0.5;
  for (std::size_t i = 0; i < models.size(); ++i)
    axis.ticks.emplace_back(static_cast<double>(i), models[i]->of);
  std::vector<LineRows> lines;
  for (const std::string& group : groups_of(models)) {
    LineRows& line = lines.emplace_back(LineRows{group_title(group), {}});
    for (std::size_t i = 0; i < models.size(); ++i)
      if (const EvaluationRow* row = row_of(rows, *models[i], group)) line.rows.emplace_back(i, row);
  }
  std::vector<const Panel*> panels = {&kValid, &kNovel, &kNovelDraw};
  if (std::any_of(lines.begin(), lines.end(), [](const LineRows& line) {
        return std::any_of(line.rows.begin(), line.rows.end(),
                           [](const auto& row) { return row.second->of_template > 0; });
      }))
    panels.push_back(&kBeyond);
  return panels_html("learning-" + escape(base), axis, lines, panels);
}

// How many of the last checkpoint's novel programs a template writes, too.
std::string template_words(const std::vector<const FrozenModel*>& models,
                           const std::vector<EvaluationRow>& rows) {
  const FrozenModel& last = *models.back();
  std::int64_t novel = 0, of_template = 0;
  for (const auto& [group, tasks] : last.groups)
    if (const EvaluationRow* row = row_of(rows, last, group)) {
      novel += row->novel;
      of_template += row->of_template;
    }
  if (of_template == 0) return "";
  return fmt::format(
      " Novel does not mean that nobody could have known it: of the {} novel programs drawn from the "
      "checkpoint of {}, {} are what a template of the grammar writes for the task, names and constants "
      "aside.",
      novel, escape(last.of), of_template);
}

std::string device_words(const store::Results& results, const std::vector<const FrozenModel*>& models) {
  std::set<std::string> kinds;
  for (const DeviceFacts& device : results.devices) kinds.insert(device.kind);
  std::string out;
  if (kinds == std::set<std::string>{"cpu"})
    out = " All speedups are of a CPU: they say nothing about a GPU.";
  for (const FrozenModel* model : models)
    if (!twin_mark(results, model->stage, model->hash8).empty())
      return " Measured on the CPU twin, not on the GPU that was asked for." + out;
  return out;
}

std::string no_plot_words(const std::vector<FrozenModel>& frozen) {
  const bool one = !by_matrix(frozen).empty();
  return fmt::format(
      "<p class=\"note\">No plot of what the stages changed: it takes programs drawn from the frozen "
      "checkpoints of two stages, by a stage `measure` with a matrix over them, and this run has {}.</p>\n",
      one ? "those of one" : "none");
}

std::string learning_plots(const store::Results& results, const std::vector<FrozenModel>& frozen,
                           const std::vector<EvaluationRow>& rows) {
  std::string out;
  for (const auto& [base, models] : by_matrix(frozen)) {
    if (models.size() < 2) continue;
    out +=
        stages_plot(base, models, rows) +
        "<p class=\"note\">Programs drawn from the frozen checkpoint of each stage, in their order. Valid: "
        "right at every checked shape, and timed (verdict ok: what could not be timed counts as wrong). "
        "Novel: valid, and no program of a person, of augmentation or of another author than a model. One "
        "draw: geometric mean over all samples of max(1, speedup), where a wrong or known program counts "
        "1. The model has seen the trained tasks: only those that are held out say whether it has learned "
        "more than them. Intervals are 95 %, over tasks and draws of this run; another seed may differ by "
        "more. No interval: fewer than five tasks." +
        template_words(models, rows) + device_words(results, models) + "</p>\n";
  }
  return out.empty() ? no_plot_words(frozen) : out;
}

std::string change_words(const stats::BootstrapInterval& i) {
  return fmt::format("{:+.1f} <small>[{:+.1f}, {:+.1f}]</small>", 100 * i.estimate, 100 * i.low,
                     100 * i.high);
}

std::string group_head(const std::string& group, std::size_t columns) {
  return fmt::format("<tbody><tr class=\"group\"><th colspan=\"{}\">{}</th></tr></tbody>\n", columns,
                     escape(group_title(group)));
}

// The k of which a row has a change.
std::set<std::int64_t> ks_of(const std::vector<LearningRow>& rows) {
  std::set<std::int64_t> ks;
  for (const LearningRow& row : rows)
    for (const LearningRow::Pass& pass : row.fast_novel) ks.insert(pass.k);
  return ks;
}

// Nothing where no matrix of a stage draws from more than one checkpoint.
std::string changes_table(const std::vector<LearningRow>& rows) {
  if (rows.empty()) return "";
  const std::set<std::int64_t> ks = ks_of(rows);
  std::string out =
      "<h3>What the stages changed</h3><table id=\"learning\"><thead><tr><th>from</th><th>to</th>"
      "<th>tasks</th><th>valid, points</th><th>novel, points</th><th>one draw of novel programs</th>";
  for (const std::int64_t k : ks) out += fmt::format("<th>pass@{}, novel &gt; 1.01×, points</th>", k);
  out += "</tr></thead>\n";
  std::string group;
  for (const LearningRow& row : rows) {
    if (row.group != group) out += group_head(row.group, 6 + ks.size());
    group = row.group;
    const auto& draw = row.novel_draw;
    out += fmt::format(
        "<tr><th>{}</th><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", escape(row.before),
        escape(row.after), row.tasks, change_words(row.valid), change_words(row.novel),
        draw ? speedup_with_interval(draw->estimate, stats::Interval{draw->low, draw->high}) : "–");
    for (const std::int64_t k : ks) {
      const auto it = std::find_if(row.fast_novel.begin(), row.fast_novel.end(),
                                   [k](const LearningRow::Pass& pass) { return pass.k == k; });
      out += "<td>" + (it == row.fast_novel.end() ? std::string("–") : change_words(it->change)) + "</td>";
    }
    out += "</tr>\n";
  }
  return out +
         "</table>\n<p class=\"note\">The same tasks before and after, each by the mean of its samples; 95 % "
         "intervals of a bootstrap over tasks. One draw of novel programs: geometric mean over all samples "
         "of max(1, speedup), where a wrong or known program counts 1; after divided by before.</p>\n";
}

std::string pass_cells(const std::vector<PassAtK>& passes, const std::set<std::int64_t>& ks) {
  std::string out;
  for (const PassAtK& pass : passes)
    if (ks.contains(pass.k))
      out += "<td>" + (pass.value ? with_interval(*pass.value, pass.interval) : std::string("–")) + "</td>";
  return out;
}

// The k that some row has a value of.
std::set<std::int64_t> ks_of(const std::vector<PassRow>& rows) {
  std::set<std::int64_t> ks;
  for (const PassRow& row : rows)
    for (const std::vector<PassAtK>* passes : {&row.right, &row.fast_novel})
      for (const PassAtK& pass : *passes)
        if (pass.value) ks.insert(pass.k);
  return ks;
}

std::string absent_words(const std::set<std::int64_t>& ks) {
  std::string out;
  for (const std::int64_t k : stats::kFrozenPassKs)
    if (!ks.contains(k))
      out += fmt::format(" No pass@{0}: in each group a task has fewer than {0} samples.", k);
  return out;
}

std::string pass_table(const std::vector<PassRow>& rows) {
  if (rows.empty()) return "";
  const std::set<std::int64_t> ks = ks_of(rows);
  std::string out =
      "<h3>pass@k of frozen checkpoints</h3><table id=\"pass-at-k\"><thead><tr><th>drawn in</th>"
      "<th>tasks</th><th>samples a task</th>";
  for (const char* what : {"right", "novel &gt; 1.01×"})
    for (const std::int64_t k : ks) out += fmt::format("<th>{}, pass@{}</th>", what, k);
  out += "</tr></thead>\n";
  std::vector<std::string> groups;
  for (const PassRow& row : rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
  for (const std::string& group : groups) {
    out += group_head(group, 3 + 2 * ks.size());
    for (const PassRow& row : rows)
      if (row.group == group)
        out += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td>{}{}</tr>\n", escape(row.stage), row.tasks,
                           range_words(row.least, row.most), pass_cells(row.right, ks),
                           pass_cells(row.fast_novel, ks));
  }
  return out +
         "</table>\n<p class=\"note\">pass@k: chance that one of k draws passes, by the unbiased estimate "
         "1 − C(n − c, k) / C(n, k) from n samples of a task of which c pass; mean over the tasks that have "
         "samples, with a 95 % interval of a bootstrap over tasks where there are five or more. Samples of "
         "verdict unsupported or not_measured and tasks that pass without any work are left out. Right: a "
         "valid program, also "
         "one that the model knows by heart. Novel &gt; 1.01×: valid, novel, and with a score above 1.01×, "
         "without tasks whose baseline is bound by the host; it may still be what a template of the grammar "
         "writes. –: "
         "a task has fewer than k samples, or no task is left. An interval without width says that the tasks "
         "do not differ, not that the share is known." +
         absent_words(ks) + "</p>\n";
}

// Nothing where no stage works in rounds.
std::string rounds_html(const std::vector<RoundRow>& rows) {
  if (rows.empty()) return "";
  Plot axis;
  std::int64_t first = rows.front().first, last = rows.front().last;
  std::vector<LineRows> lines;
  for (const RoundRow& row : rows) {
    const auto same = [&](const EvaluationRow* other) {
      return other->stage == row.figures.stage && other->hash8 == row.figures.hash8;
    };
    if (lines.empty() || !same(lines.back().rows.back().second)) lines.push_back({row.figures.stage, {}});
    lines.back().rows.emplace_back(static_cast<double>(row.first + row.last) / 2, &row.figures);
    first = std::min(first, row.first);
    last = std::max(last, row.last);
  }
  axis.first = static_cast<double>(first) - 0.5;
  axis.last = static_cast<double>(last) + 0.5;
  for (std::int64_t at = first, step = (last - first) / 8 + 1; at <= last; at += step)
    axis.ticks.emplace_back(static_cast<double>(at), std::to_string(at));
  return "<h3>By round</h3>\n" +
         panels_html("rounds", axis, lines, {&kNovelDraw, &kNovel, &kValid, &kDistinct}) +
         fmt::format(
             "<p class=\"note\">What the model drew in the rounds of stages that learn, from the tasks "
             "that it learns from. Rounds ask for different tasks and show exemplars: compare stages "
             "by their frozen checkpoints. First turns alone. Distinct: by source; a renamed copy counts as "
             "another.{}</p>\n",
             std::any_of(rows.begin(), rows.end(), [](const RoundRow& r) { return r.first < r.last; })
                 ? " A point is several rounds."
                 : "");
}

Json change_json(const stats::BootstrapInterval& i) {
  return {{"estimate", i.estimate}, {"low", i.low}, {"high", i.high}};
}

}  // namespace

std::string learning_html(const store::Results& results, const std::vector<EvaluationRow>& rows) {
  const std::vector<FrozenModel> frozen = frozen_models(results);
  std::vector<LearningRow> changes = learning_rows(frozen);
  std::vector<PassRow> passes = pass_rows(frozen);
  std::vector<RoundRow> rounds = round_rows(results);
  // A stage may be named for a GPU that has not produced its numbers.
  std::map<std::string, std::string> marks;
  for (const FrozenModel& model : frozen) marks[model.stage] = twin_mark(results, model.stage, model.hash8);
  for (LearningRow& row : changes)
    for (std::string* stage : {&row.before, &row.after}) *stage += marks[*stage];
  for (PassRow& row : passes) row.stage += marks[row.stage];
  for (RoundRow& row : rounds) row.figures.stage += twin_mark(results, row.figures.stage, row.figures.hash8);
  return "<section id=\"learned\"><h2>What the model learned</h2>\n" + learning_plots(results, frozen, rows) +
         changes_table(changes) + pass_table(passes) + rounds_html(rounds) + skips_html(results) +
         "</section>\n";
}

Json pass_json(const std::vector<PassRow>& rows) {
  Json out = Json::array();
  for (const PassRow& row : rows) {
    Json json = {{"stage", row.stage}, {"hash8", row.hash8}, {"of", row.of.empty() ? Json() : Json(row.of)},
                 {"group", row.group}, {"tasks", row.tasks}, {"samples_a_task", {row.least, row.most}}};
    const auto put = [&json](const char* name, const std::vector<PassAtK>& passes) {
      Json& of = json[name] = {{"tasks", passes.front().tasks}, {"absent", Json::object()}};
      for (const PassAtK& pass : passes)
        if (pass.value)
          of[std::to_string(pass.k)] = {{"value", *pass.value}, {"interval", interval_json(pass.interval)}};
        else
          of["absent"][std::to_string(pass.k)] =
              pass.tasks == 0 ? "no task is left" : fmt::format("a task has fewer than {} samples", pass.k);
    };
    put("right", row.right);
    put("novel_above_1_01", row.fast_novel);
    out.push_back(std::move(json));
  }
  return out;
}

Json learning_json(const std::vector<LearningRow>& rows) {
  Json out = Json::array();
  for (const LearningRow& row : rows) {
    Json passes = Json::object();
    for (const LearningRow::Pass& pass : row.fast_novel)
      passes[std::to_string(pass.k)] = change_json(pass.change);
    out.push_back({{"group", row.group},
                   {"before", row.before},
                   {"after", row.after},
                   {"tasks", row.tasks},
                   {"valid", change_json(row.valid)},
                   {"novel", change_json(row.novel)},
                   {"novel_draw", row.novel_draw ? change_json(*row.novel_draw) : Json()},
                   {"pass_novel_above_1_01", std::move(passes)}});
  }
  return out;
}

Json rounds_json(const std::vector<RoundRow>& rows) {
  Json out = Json::array();
  for (const RoundRow& row : rows) {
    Json json = evaluation_json(row.figures);
    json.erase("group");
    json["rounds"] = {row.first, row.last};
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace warpsmith::report

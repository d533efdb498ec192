#include "story.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "html_text.h"
#include "warpsmith/base/json.h"
#include "warpsmith/report/learning.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/stats/wins.h"
#include "winners_page.h"

namespace warpsmith::report {

namespace {

std::string sentence(const std::string& question, const std::string& answer) {
  return "<dt>" + question + "</dt><dd>" + answer + "</dd>\n";
}

std::string of(std::int64_t count, std::int64_t all) {
  return fmt::format("{} of {} ({})", count, all,
                     all > 0 ? percent(static_cast<double>(count) / static_cast<double>(all)) : "–");
}

// By the share of novel programs among those drawn: from the first frozen checkpoint to the last.
std::string learned(const store::Results& results) {
  std::map<std::string, LearningRow> last;  // of a group, the comparison of the first with the last
  std::vector<std::string> groups;
  for (const LearningRow& row : learning_rows(frozen_models(results))) {
    if (!last.contains(row.group)) groups.push_back(row.group);
    last.insert_or_assign(row.group, row);
  }
  if (groups.empty())
    return "Not asked: this run does not draw programs from the frozen checkpoints of two stages.";
  std::string out;
  for (const std::string& group : groups) {
    const LearningRow& row = last.at(group);
    const stats::BootstrapInterval& change = row.novel;
    const char* verdict = row.tasks < static_cast<std::int64_t>(kFewestTasks) ? "too few tasks to tell"
                          : change.low > 0                                    ? "more"
                          : change.high < 0                                   ? "fewer"
                                                                              : "no change shown";
    out += fmt::format("<li>{}: <b>{}</b>, {:+.1f} points [{:+.1f}, {:+.1f}] over {} tasks</li>\n",
                       escape(group_title(group)), verdict, 100 * change.estimate, 100 * change.low,
                       100 * change.high, row.tasks);
  }
  return fmt::format(
      "Share of novel programs among those drawn, last checkpoint against first:<ul>\n{}</ul>"
      "Of this run and its seed; <a href=\"#learned\">plots and tables</a>.",
      out);
}

// Every stage's draws, its rounds included.
std::string found_new(const store::Results& results) {
  std::set<std::string> novel, of_template, held_out;
  for (const store::SampleRow* sample : counted_draws(results)) {
    if (!is_novel(*sample)) continue;
    novel.insert(sample->candidate);
    if (sample->of_template) of_template.insert(sample->candidate);
    if (sample->group != "train") held_out.insert(sample->candidate);
  }
  if (novel.empty()) return "Nothing: no novel program was drawn from a model.";
  return fmt::format(
      "{} distinct novel programs (right, timed, and no known program), {} of them for tasks that are held "
      "out. A template of the grammar writes {} of them, too.",
      novel.size(), held_out.size(), of_template.size());
}

bool counts(const BestKernel& k) { return k.speedup > 0 && !k.host_bound && k.degenerate.empty(); }

std::string won(const std::vector<BestKernel>& kernels) {
  std::int64_t tasks = 0, wins = 0, models = 0, slower = 0, lost = 0;
  std::vector<std::size_t> winners;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const BestKernel& k = kernels[i];
    if (!counts(k)) continue;
    ++tasks;
    slower += k.high < 1;
    lost += loses_to_best(k);
    wins += k.win;
    if (!stats::is_win(k.low)) continue;
    models += k.novel;
    winners.push_back(i);
  }
  if (tasks == 0) return "None: no task has a correct program whose speedup counts.";
  std::string out = fmt::format(
      "{} tasks have a win over the baseline; {} of these best programs {} a model's own. On {} "
      "the best program is slower than the baseline",
      of(wins, tasks), models, models == 1 ? "is" : "are", slower);
  out += lost > 0 ? fmt::format(", on {} slower than the best baseline.", lost) : ".";
  std::stable_sort(winners.begin(), winners.end(),
                   [&](std::size_t a, std::size_t b) { return kernels[a].low > kernels[b].low; });
  winners.resize(std::min<std::size_t>(winners.size(), 3));
  for (const std::size_t i : winners)
    out += fmt::format("{}<a href=\"#program-{}\">{}</a> {} [{:.2f}, {:.2f}], {}",
                       i == winners.front() ? " Surest: " : "; ", i, escape(kernels[i].task),
                       times(kernels[i].speedup), kernels[i].low, kernels[i].high,
                       escape(author_words(kernels[i])));
  return out + (winners.empty() ? "" : ".") + " <a href=\"#best\">All tasks</a>.";
}

std::string device_names(const store::Results& results) {
  std::set<std::string> names, kinds;
  for (const DeviceFacts& device : results.devices) {
    names.insert(device.name.empty() ? device.kind : device.name);
    kinds.insert(device.kind);
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + escape(name);
  if (out.empty()) return "Nothing is known of the device.";
  return "Measured on " + out + "." +
         (kinds == std::set<std::string>{"cpu"}
              ? " <b>These are scores of a CPU: they say nothing about a GPU.</b>"
              : "");
}

// What ran it, as run.json says it: "0.1.0, commit 0a1b2c3d, torch 2.11.0, CUDA 13.0; then 0.2.0, …". Of runs
// that do not say it, the version alone.
std::string build_words(const Json& run, const std::string& version) {
  const auto text = [](const Json& build, const char* key, const std::string& before) {
    return build.is_object() && build.contains(key) && build[key].is_string() && build[key] != ""
               ? before + escape(build[key].get<std::string>())
               : "";
  };
  std::string out;
  if (!run.is_object() || !run.contains("builds") || !run["builds"].is_array()) return escape(version);
  for (const Json& build : run["builds"])
    out += text(build, "version", out.empty() ? "" : "; then ") + text(build, "commit", ", commit ") +
           text(build, "torch", ", torch ") + text(build, "cuda", ", CUDA ");
  return out.empty() ? escape(version) : out;
}

std::string trusted(const store::Results& results) {
  std::int64_t timed = 0, unstable = 0, ok = 0, imprecise = 0;
  std::vector<double> widths;
  for (const store::MeasurementRow& row : results.measurements) {
    const Measurement& m = row.value;
    timed += m.verdict == Verdict::kOk || m.verdict == Verdict::kUnstable;
    unstable += m.verdict == Verdict::kUnstable;
    if (m.verdict != Verdict::kOk) continue;
    ++ok;
    imprecise += m.imprecise;
    if (m.speedup > 0) widths.push_back((m.speedup_high - m.speedup_low) / (2 * m.speedup));
  }
  std::string out = device_names(results);
  if (timed > 0) out += fmt::format(" Unstable: {} right programs.", of(unstable, timed));
  if (ok > 0) out += fmt::format(" Imprecise: {} scores.", of(imprecise, ok));
  if (!widths.empty())
    out += fmt::format(" Median half width of the 95 % intervals: ±{}.", percent(stats::median(widths)));
  const Json run = Json::parse(results.provenance, nullptr, false);
  if (run.is_object() && run.contains("seed") && run["seed"].is_number_integer())
    out += fmt::format(" Seed {}.", run["seed"].get<std::int64_t>());
  return out + " Warpsmith " + build_words(run, results.version) +
         ". <a href=\"#verdicts\">Verdicts</a>, <a href=\"#measured-on\">devices</a>.";
}

}  // namespace

std::string story_html(const store::Results& results, const std::vector<EvaluationRow>& rows,
                       const std::vector<BestKernel>& kernels) {
  std::string out = "<section id=\"story\"><dl>\n";
  if (!rows.empty())
    out += sentence("Did it learn?", learned(results)) + sentence("What is new?", found_new(results));
  return out + sentence("Which programs won?", won(kernels)) + sentence("Can I trust it?", trusted(results)) +
         "</dl></section>\n";
}

}  // namespace warpsmith::report

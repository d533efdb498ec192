#include "summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "warpsmith/method/source_text.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/stats/wins.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::stages {

namespace {

constexpr double kFailureSpeedup = 0.01;  // what a failure counts without the floor

Json speedup_figures(const std::vector<const Known*>& scored) {
  std::vector<double> speedups;
  for (const Known* k : scored) speedups.push_back(k->measurement.speedup);
  const auto best = std::max_element(speedups.begin(), speedups.end());
  stats::WinCount count;
  for (const Known* k : scored) count.add(stats::is_win(k->measurement.speedup_low), k->measurement.speedup);
  return {{"best", *best},
          {"best_author", scored[static_cast<std::size_t>(best - speedups.begin())]->candidate.origin.kind},
          {"median", stats::median(speedups)},
          {"mean", stats::mean(speedups)},
          {"geomean", stats::geometric_mean(speedups)},
          {"p25", stats::quantile(speedups, 0.25)},
          {"p75", stats::quantile(speedups, 0.75)},
          {"wins", count.win_share()},
          {"above_1_01", count.above_share()}};
}

std::set<std::string> host_bound_tasks(const std::vector<Counted>& samples, const TaskSet& tasks) {
  std::map<std::string, stats::HostBound> votes;
  for (const Counted& s : samples)
    if (tasks.at(s.task).degenerate.empty()) votes[s.task].add(s.known->measurement.host_bound);
  std::set<std::string> bound;
  for (const auto& [task, vote] : votes)
    if (vote.holds()) bound.insert(task);
  return bound;
}

}  // namespace

Json figures(const std::vector<Counted>& samples, const TaskSet& tasks) {
  std::map<std::string, int> verdicts;
  std::set<std::string> distinct, forms;
  std::vector<const Known*> scored;
  std::size_t right = 0, repeated = 0, known = 0, of_template = 0;
  std::set<std::string> novel_programs;
  double judged = 0, drawn = 0, floored = 0, unfloored = 0;
  const std::set<std::string> host_bound = host_bound_tasks(samples, tasks);
  for (const Counted& s : samples) {
    const Measurement& m = s.known->measurement;
    ++verdicts[std::string(to_string(m.verdict))];
    if (distinct.insert(s.known->candidate.id).second)
      forms.insert(s.task + '\n' + structure_of(s.known->candidate));
    // Nothing is known of them, for good or for bad.
    if (m.verdict == Verdict::kNotMeasured || m.verdict == Verdict::kUnsupported) continue;
    judged += 1;
    const bool ok = m.verdict == Verdict::kOk && m.speedup > 0;
    right += ok ? 1 : 0;
    repeated += ok && s.repeated ? 1 : 0;
    known += ok && !s.own ? 1 : 0;
    of_template += ok && s.of_template ? 1 : 0;
    if (ok && s.own) novel_programs.insert(s.known->candidate.id);
    if (!tasks.at(s.task).degenerate.empty() || host_bound.contains(s.task)) continue;
    drawn += 1;
    if (ok && s.own) scored.push_back(s.known);
    floored += ok ? std::log(std::max(1.0, m.speedup)) : 0;
    unfloored += std::log(ok ? m.speedup : kFailureSpeedup);
  }
  Json out = {{"samples", samples.size()},   {"ok", right},
              {"repeated", repeated},        {"known", known},
              {"novel", right - known},      {"novel_programs", novel_programs.size()},
              {"distinct", distinct.size()}, {"distinct_forms", forms.size()},
              {"verdicts", verdicts}};
  if (of_template > 0) out["of_template"] = of_template;
  if (!host_bound.empty()) out["host_bound"] = host_bound.size();
  if (!samples.empty()) {
    out["distinct_share"] = static_cast<double>(distinct.size()) / static_cast<double>(samples.size());
    out["distinct_form_share"] = static_cast<double>(forms.size()) / static_cast<double>(samples.size());
  }
  if (judged > 0) out["valid_share"] = static_cast<double>(right) / judged;
  if (drawn > 0) {
    out["one_draw"] = std::exp(floored / drawn);
    out["one_draw_unfloored"] = std::exp(unfloored / drawn);
  }
  if (!scored.empty()) out.update(speedup_figures(scored));
  return out;
}

Json figures_by_group(const std::vector<Counted>& samples, const TaskSet& tasks) {
  Json out = figures(samples, tasks);
  std::map<std::string, std::vector<Counted>> groups;
  for (const Counted& s : samples) groups[tasks.group(s.task)].push_back(s);
  out["groups"] = Json::object();
  for (const auto& [group, list] : groups) out["groups"][group] = figures(list, tasks);
  return out;
}

std::vector<Counted> counted(const std::vector<Sample>& samples, const Verifier& verifier) {
  std::vector<Counted> out;
  for (const Sample& s : samples)
    out.push_back({s.task, &verifier.at(s.candidate), !verifier.is_known(s.candidate),
                   verifier.is_by_others(s.candidate), verifier.is_of_template(s.candidate)});
  return out;
}

std::vector<Counted> counted(const Verifier& verifier) {
  std::vector<Counted> out;
  for (const std::string& id : verifier.met())
    out.push_back({verifier.at(id).candidate.task, &verifier.at(id)});
  return out;
}

Json candidates_json(const Verifier& verifier) {
  Json out = Json::array();
  for (const std::string& id : verifier.met()) {
    const Known& known = verifier.at(id);
    Json entry = {{"candidate", to_json(known.candidate)}, {"measurement", to_json(known.measurement)}};
    if (!known.folder.empty()) entry["folder"] = known.folder;
    if (!known.expected.empty()) entry["expected"] = known.expected;
    if (!known.made_by.empty()) entry["known_from"] = known.made_by;
    if (!known.code.empty()) entry["code"] = known.code;
    out.push_back(std::move(entry));
  }
  return out;
}

Json task_json(const TaskSet& tasks, const std::string& id) {
  const task::Task& t = tasks.at(id);
  return {{"id", id},
          {"title", t.title},
          {"level", t.level},
          {"ops", t.ops},
          {"split", tasks.group(id)},
          {"reference", t.reference},
          {"degenerate", t.degenerate}};
}

StageOutput begin_output(const workflow::StageSpec& spec) {
  StageOutput output = {{"schema", "warpsmith.stage_output/1"},
                        {"stage", spec.name},
                        {"kind", spec.kind},
                        {"device", spec.device},
                        {"protocol", protocol_of(spec)},
                        {"candidates", Json::array()},
                        {"summary", Json::object()}};
  if (!spec.wanted_device.empty()) {
    output["wanted_device"] = spec.wanted_device;
    output["device_found"] = to_string(spec.device_found);
  }
  if (!spec.lacks.empty() && workflow::measures_again(spec)) output["lacks"] = spec.lacks;
  return output;
}

Json curve_tail(const std::vector<Json>& curve, std::size_t n) {
  Json out = Json::array();
  for (std::size_t i = curve.size() > n ? curve.size() - n : 0; i < curve.size(); ++i)
    out.push_back({{"step", curve[i].value("step", Json())}, {"loss", curve[i].value("loss", Json())}});
  return out;
}

}  // namespace warpsmith::stages

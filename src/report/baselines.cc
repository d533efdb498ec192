#include "warpsmith/report/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "html_text.h"
#include "measurement_row.h"
#include "report_json.h"

namespace warpsmith::report {

namespace {

const char* kEager = "eager";

stats::Ratio ratio_of(const BaselineTiming& timing) { return {timing.ratio, timing.low, timing.high}; }

std::string why(const BaselineTiming& timing) {
  const std::string state = timing.state == BaselineState::kNotCovered ? "not covered" : "missing";
  return timing.reason.empty() ? state : state + ": " + timing.reason;
}

const BaselineTiming* find(const std::vector<const BaselineTiming*>& timings, const std::string& name) {
  for (const BaselineTiming* timing : timings)
    if (timing->name == name) return timing;
  return nullptr;
}

// Those of the stage version, task and device kind of a measurement.
std::vector<const BaselineTiming*> timings_of(const store::Results& results,
                                              const store::MeasurementRow& row) {
  const std::string kind = kind_of(results, row);
  std::vector<const BaselineTiming*> timings;
  for (const store::BaselineRow& b : results.baselines)
    if (b.stage == row.stage && b.hash8 == row.hash8 && b.value.task == row.value.task &&
        b.value.device_kind == kind)
      timings.push_back(&b.value);
  return timings;
}

}  // namespace

Comparison compare_with_baselines(const store::Results& results, const store::MeasurementRow& row) {
  Comparison out;
  const Measurement& m = row.value;
  if (!(m.speedup > 0)) return out;
  const std::vector<const BaselineTiming*> timings = timings_of(results, row);
  const stats::Ratio score = {m.speedup, m.speedup_low, m.speedup_high};
  stats::Ratio over_eager = score;
  if (m.baseline_ratio > 0) {
    const BaselineTiming* own = find(timings, m.baseline);
    over_eager =
        stats::undivided(score, own != nullptr && own->ratio > 0
                                    ? ratio_of(*own)
                                    : stats::Ratio{m.baseline_ratio, m.baseline_ratio, m.baseline_ratio});
  } else if (m.baseline != kEager) {  // timed in pairs with another: nothing is known of the rest
    out.all.push_back({m.baseline, score, ""});
    out.best = m.baseline;
    out.over_best = score;
    return out;
  }
  out.all.push_back({kEager, over_eager, ""});
  out.best = kEager;
  out.over_best = over_eager;
  double fastest = 1;
  for (const BaselineTiming* timing : timings) {
    if (timing->name == kEager) continue;
    OverBaseline over{timing->name, std::nullopt, ""};
    if (timing->state == BaselineState::kCovered)
      over.speedup = timing->name == m.baseline ? score : stats::divided(over_eager, ratio_of(*timing));
    else
      over.why = why(*timing);
    if (timing->state == BaselineState::kMissing) out.missing.push_back(over.name);
    if (over.speedup && timing->ratio > fastest) {
      fastest = timing->ratio;
      out.best = over.name;
      out.over_best = over.speedup;
    }
    out.all.push_back(std::move(over));
  }
  return out;
}

std::vector<std::string> baseline_names(const store::Results& results) {
  std::vector<std::string> names;
  for (const store::BaselineRow& row : results.baselines)
    if (std::find(names.begin(), names.end(), row.value.name) == names.end()) names.push_back(row.value.name);
  return names;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text;
  for (const OverBaseline& over : comparison.all) {
    text += text.empty() ? "" : ", ";
    text += over.speedup ? fmt::format("{:.2f}× over {}", over.speedup->value, over.name)
                         : fmt::format("{} {}", over.name, over.why);
  }
  if (comparison.all.size() > 1 && comparison.over_best)
    text += fmt::format("; {:.2f}× over the best{}, {}", comparison.over_best->value,
                        comparison.missing.empty() ? "" : " that was timed", comparison.best);
  return text;
}

Json comparison_json(const Comparison& comparison) {
  Json json = Json::object();
  for (const OverBaseline& over : comparison.all) {
    if (over.speedup)
      json[over.name] = {{"speedup", over.speedup->value},
                         {"interval", {over.speedup->low, over.speedup->high}}};
    else
      json[over.name] = {{"why", over.why}};
  }
  return json;
}

Json baselines_json(const store::Results& results) {
  Json list = Json::array();
  for (const store::BaselineRow& row : results.baselines) {
    Json json = to_json(row.value);
    json["stage"] = row.stage;
    json["hash8"] = row.hash8;
    json["round"] = row.round;
    list.push_back(std::move(json));
  }
  return list;
}

std::string baselines_html(const store::Results& results) {
  if (results.baselines.empty()) return "";
  const std::vector<std::string> names = baseline_names(results);
  using Place = std::tuple<std::string, std::string, std::string>;  // task, device, shape
  std::map<Place, std::map<std::string, const BaselineTiming*>> tasks;
  for (const store::BaselineRow& row : results.baselines) {
    const BaselineTiming& v = row.value;
    const BaselineTiming*& cell = tasks[{v.task, v.device_kind, shape_text(v.shape)}][v.name];
    if (cell == nullptr || cell->state == BaselineState::kMissing) cell = &v;
  }
  std::string out =
      "<section><h2>Baselines</h2>\n<table "
      "id=\"baselines\"><thead><tr><th>task</th><th>device</th><th>shape</th>";
  for (const std::string& name : names) out += "<th>" + escape(name) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& [place, cells] : tasks) {
    out += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td>", escape(std::get<0>(place)),
                       escape(std::get<1>(place)), escape(std::get<2>(place)));
    for (const std::string& name : names) {
      const auto it = cells.find(name);
      if (it == cells.end())
        out += "<td>·</td>";
      else if (it->second->state == BaselineState::kCovered)
        out += fmt::format("<td title=\"[{:.3f}, {:.3f}]\">{:.2f}× {:.1f} µs</td>", it->second->low,
                           it->second->high, it->second->ratio, it->second->baseline_ns / 1e3);
      else
        out += fmt::format("<td title=\"{}\">{}</td>", escape(it->second->reason),
                           it->second->state == BaselineState::kMissing ? "missing" : "not covered");
    }
    out += "</tr>\n";
  }
  return out +
         "</tbody></table>\n<p class=\"note\">How many times as fast as eager each baseline is, timed in "
         "pairs with it, and its time; of eager, against a second "
         "copy of itself. A cell without a number tells its reason when pointed at.</p></section>\n";
}

}  // namespace warpsmith::report

#include <fmt/format.h>

#include "report_json.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/report.h"
#include "warpsmith/report/summary.h"

namespace warpsmith::report {

namespace {

// RFC 4180: quoted where it must be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }
std::string cell(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : ""; }
std::string cell(const std::optional<bool>& value) { return value ? (*value ? "1" : "0") : ""; }

Json headline_json(const Headline& h) {
  return {{"tasks", h.tasks},
          {"degenerate", h.degenerate},
          {"geometric_mean", h.geometric_mean},
          {"median", h.median},
          {"mean", h.mean},
          {"above_1_01", h.above}};
}

template <typename T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json evaluation_json(const EvaluationRow& row) {
  return {{"stage", row.stage},
          {"hash8", row.hash8},
          {"group", row.group},
          {"tasks", row.tasks},
          {"samples", row.samples},
          {"valid", row.valid},
          {"valid_share", row.valid_share()},
          {"mean", optional(row.mean)},
          {"geometric_mean", optional(row.geometric_mean)},
          {"quantile75", optional(row.quantile75)},
          {"median", optional(row.median)},
          {"quantile25", optional(row.quantile25)},
          {"max", optional(row.max)},
          {"above_1_01", row.above},
          {"one_draw", row.one_draw},
          {"one_draw_no_floor", row.one_draw_no_floor},
          {"distinct", row.distinct}};
}

std::string csv(const store::Results& results) {
  std::string out =
      "stage,hash8,round,task,candidate,verdict,detail,baseline,math,shape,speedup,speedup_rounded,speedup_"
      "low,speedup_high,"
      "baseline_ns,candidate_ns,variance,rounds,batch,imprecise,device,host,baseline_ratio,"
      "roofline_ns,roofline_bound,host_bound,baseline_idle_ns,candidate_idle_ns,gpu_held_s,gpu_timed_s,"
      "rounds_thrown_away,"
      "baseline_alone_ns,candidate_event_ns,speedup_before,tensor_cores,registers,shared_bytes,spill_bytes,"
      "clock";
  const std::vector<std::string> names = baseline_names(results);
  for (const std::string& name : names) out += ",over_" + name;
  out += ",best_baseline,over_best\n";
  for (const store::MeasurementRow& row : results.measurements) {
    const Measurement& m = row.value;
    const DeviceFacts* device =
        row.device >= 0 ? &results.devices.at(static_cast<std::size_t>(row.device)) : nullptr;
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", field(row.stage), row.hash8,
        row.round, field(m.task), m.candidate, to_string(m.verdict), field(m.detail), m.baseline, m.math,
        field(shape_text(m.shape)), m.speedup, m.speedup_rounded, m.speedup_low, m.speedup_high,
        m.baseline_ns, m.candidate_ns, m.variance, m.rounds, m.batch, m.imprecise ? 1 : 0,
        device ? field(device->name) : "", device ? field(device->host) : "", m.baseline_ratio);
    out += fmt::format(",{},{},{},{},{},{},{},{}", cell(m.roofline_ns), m.roofline_bound, cell(m.host_bound),
                       cell(m.baseline_idle_ns), cell(m.candidate_idle_ns), cell(m.gpu_held_s),
                       cell(m.gpu_timed_s), m.rounds_thrown_away);
    out += fmt::format(",{},{},{},{},{},{},{},{}", cell(m.baseline_alone_ns), cell(m.candidate_event_ns),
                       cell(m.speedup_before), cell(m.tensor_cores), cell(m.registers), cell(m.shared_bytes),
                       cell(m.spill_bytes), m.clock.empty() ? "" : field(Json(m.clock).dump()));
    const Comparison comparison = compare_with_baselines(results, row);
    for (const std::string& name : names) {
      out += ',';
      for (const OverBaseline& over : comparison.all)
        if (over.name == name && over.speedup) out += fmt::format("{}", over.speedup->value);
    }
    out += ',' + comparison.best + ',' +
           (comparison.over_best ? fmt::format("{}", comparison.over_best->value) : "") + '\n';
  }
  return out;
}

std::string json(const store::Results& results) {
  const std::vector<BestKernel> best = best_kernels(results);
  const Headline h = headline(best);
  Json out = {
      {"schema", "warpsmith.export/2"}, {"run", results.run},           {"headline", headline_json(h)},
      {"stages", Json::array()},        {"evaluations", Json::array()}, {"verdicts", Json::array()},
      {"best", Json::array()},          {"cost", Json::array()},        {"measurements", Json::array()}};
  if (const auto without = headline_without_host_bound(best))
    out["headline_without_host_bound"] = headline_json(*without);
  for (const store::StageRow& row : results.stages)
    out["stages"].push_back({{"stage", row.name},
                             {"hash8", row.hash8},
                             {"kind", row.kind},
                             {"current", row.current},
                             {"finished", row.finished},
                             {"base", row.base},
                             {"device", row.device},
                             {"device_found", row.device_found}});
  out["across_devices"] = devices_json(device_tables(results));
  for (const EvaluationRow& row : evaluation_rows(results))
    out["evaluations"].push_back(evaluation_json(row));
  for (const VerdictCounts& row : verdict_counts(results))
    out["verdicts"].push_back({{"stage", row.stage}, {"hash8", row.hash8}, {"counts", row.counts}});
  out["headline"]["baselines"] = h.baselines;
  out["headline"]["over_best_baseline"] = optional(h.over_best_baseline);
  out["baselines"] = baselines_json(results);
  for (const BestKernel& k : best)
    out["best"].push_back({{"task", k.task},
                           {"candidate", k.candidate},
                           {"stage", k.stage},
                           {"hash8", k.hash8},
                           {"speedup", k.speedup},
                           {"interval", {k.low, k.high}},
                           {"roofline_share", optional(k.roofline_share)},
                           {"roofline_bound", k.roofline_bound},
                           {"tensor_cores", optional(k.tensor_cores)},
                           {"registers", optional(k.registers)},
                           {"shared_bytes", optional(k.shared_bytes)},
                           {"spill_bytes", optional(k.spill_bytes)},
                           {"candidate_event_ns", optional(k.candidate_event_ns)},
                           {"host_bound", k.host_bound},
                           {"degenerate", k.degenerate},
                           {"origin", k.origin},
                           {"source", k.source},
                           {"baseline", k.baseline},
                           {"over", comparison_json(k.over)},
                           {"best_baseline", k.over.best}});
  const std::vector<CostRow> costs = cost_rows(results);
  for (const CostRow& row : costs) out["cost"].push_back(cost_json(row));
  Json& total = out["cost_total"] = cost_json(cost_total(costs));
  for (const char* key : {"stage", "hash8", "job", "set_aside"}) total.erase(key);
  for (const store::MeasurementRow& row : results.measurements) {
    Json m = to_json(row.value);
    if (const Comparison comparison = compare_with_baselines(results, row); comparison.all.size() > 1) {
      m["over"] = comparison_json(comparison);
      m["best_baseline"] = comparison.best;
    }
    m["stage"] = row.stage;
    m["hash8"] = row.hash8;
    m["round"] = row.round;
    if (row.device >= 0) m["device"] = to_json(results.devices.at(static_cast<std::size_t>(row.device)));
    out["measurements"].push_back(std::move(m));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace warpsmith::report

// A run's tables and figures as JSON.
#include "report_json.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/fast_p.h"
#include "warpsmith/report/learning.h"
#include "warpsmith/report/paper.h"
#include "warpsmith/report/report.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/store/tables.h"
#include "win_flags.h"

namespace warpsmith::report {

namespace {

Json headline_json(const Headline& h) {
  return {{"tasks", h.tasks},
          {"degenerate", h.degenerate},
          {"host_bound", h.host_bound},
          {"by_model", h.by_model},
          {"geometric_mean", h.geometric_mean},
          {"median", h.median},
          {"mean", h.mean},
          {"wins", h.wins},
          {"above_1_01", h.above}};
}

template <typename T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The rows of a table by the names of its columns; null: not known.
template <typename Row>
Json rows_json(const store::Results& results, const store::Table<Row>& table) {
  Json rows = Json::array();
  for (const Row& row : results.*table.rows) {
    Json& out = rows.emplace_back(Json::object());
    for (const Field<Row>& field : table.fields)
      out[field.name] =
          std::visit([&](const auto& column) { return optional(column.get(row)); }, field.column);
  }
  return rows;
}

Json stages_json(const store::Results& results) {
  Json stages = rows_json(results, store::stage_table());
  for (Json& stage : stages) {
    stage["stage"] = stage["name"];  // as the other lists call it
    for (const char* flag : {"current", "finished"}) stage[flag] = stage[flag] == 1;
    Json summary = Json::parse(stage["summary"].get<std::string>(), nullptr, false);
    if (!summary.is_discarded()) stage["summary"] = std::move(summary);
  }
  return stages;
}

Json best_json(const BestKernel& k) {
  Json out = {{"task", k.task},
              {"candidate", k.candidate},
              {"stage", k.stage},
              {"hash8", k.hash8},
              {"speedup", k.speedup},
              {"interval", {k.low, k.high}},
              {"imprecise", k.imprecise},
              {"win", k.win},
              {"direction", k.direction},
              {"roofline_share", optional(k.roofline_share)},
              {"roofline_bound", k.roofline_bound},
              {"candidate_event_ns", optional(k.candidate_event_ns)},
              {"host_bound", k.host_bound},
              {"degenerate", k.degenerate},
              {"origin", k.origin},
              {"author_stage", k.author_stage},
              {"novel", k.novel},
              {"best_novel", k.novel_candidate.empty() ? Json(nullptr)
                                                       : Json{{"candidate", k.novel_candidate},
                                                              {"stage", k.novel_stage},
                                                              {"speedup", k.novel_speedup}}},
              {"source", k.source},
              {"baseline", k.baseline},
              {"over", comparison_json(k.over)},
              {"best_baseline", k.over.best}};
  for (const Field<CodeFacts>& field : code_fields()) out[field.name] = field.get_json(k);
  return out;
}

}  // namespace

Json interval_json(const std::optional<stats::Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

Json evaluation_json(const EvaluationRow& row) {
  const auto if_counted = [&](double value) { return row.counted > 0 ? Json(value) : Json(nullptr); };
  return {{"stage", row.stage},
          {"hash8", row.hash8},
          {"group", row.group},
          {"tasks", row.tasks},
          {"samples", row.samples},
          {"valid", row.valid},
          {"valid_share", row.valid_share()},
          {"valid_interval", interval_json(row.valid_interval)},
          {"repeated", row.repeated},
          {"known", row.known},
          {"novel", row.novel},
          {"novel_interval", interval_json(row.novel_interval)},
          {"novel_programs", row.novel_programs},
          {"of_template", row.of_template},
          {"beyond_templates_interval", interval_json(row.beyond_interval)},
          {"mean", optional(row.mean)},
          {"geometric_mean", optional(row.geometric_mean)},
          {"geometric_mean_interval", interval_json(row.geometric_mean_interval)},
          {"quantile75", optional(row.quantile75)},
          {"median", optional(row.median)},
          {"quantile25", optional(row.quantile25)},
          {"max", optional(row.max)},
          {"host_bound", row.host_bound},
          {"counted", row.counted},
          {"wins", if_counted(row.wins)},
          {"above_1_01", if_counted(row.above)},
          {"one_draw", if_counted(row.one_draw)},
          {"one_draw_interval", interval_json(row.one_draw_interval)},
          {"novel_draw", if_counted(row.novel_draw)},
          {"novel_draw_interval", interval_json(row.novel_draw_interval)},
          {"one_draw_no_floor", if_counted(row.one_draw_no_floor)},
          {"one_draw_no_floor_interval", interval_json(row.one_draw_no_floor_interval)},
          {"distinct", row.distinct}};
}

std::string json(const store::Results& results) {
  const std::vector<BestKernel> best = best_kernels(results);
  const Headline h = headline(best);
  Json out = {{"schema", "warpsmith.export/3"},
              {"run", results.run},
              {"currency", results.currency.empty() ? Json() : Json(results.currency)},
              {"headline", headline_json(h)},
              {"stages", stages_json(results)},
              {"samples", rows_json(results, store::sample_table())},
              {"training", rows_json(results, store::training_table())}};
  for (const char* list : {"evaluations", "verdicts", "best", "cost", "measurements"})
    out[list] = Json::array();
  if (const auto with = headline_with_host_bound(best))
    out["headline_with_host_bound"] = headline_json(*with);
  out["fast_p"] = fast_p_json(fast_p_rows(results));
  out["paper_tables"] = paper_json(paper_tables(results));
  out["across_devices"] = devices_json(device_tables(results));
  for (const EvaluationRow& row : evaluation_rows(results))
    out["evaluations"].push_back(evaluation_json(row));
  const std::vector<FrozenModel> frozen = frozen_models(results);
  out["learning"] = learning_json(learning_rows(frozen));
  out["pass_at_k"] = pass_json(pass_rows(frozen));
  out["rounds"] = rounds_json(round_rows(results));
  for (const VerdictCounts& row : verdict_counts(results))
    out["verdicts"].push_back({{"stage", row.stage}, {"hash8", row.hash8}, {"counts", row.counts}});
  out["headline"]["baselines"] = h.baselines;
  out["headline"]["over_best_baseline"] = optional(h.over_best_baseline);
  out["headline"]["lacking_a_baseline"] = h.lacking;
  out["baselines"] = baselines_json(results);
  for (const BestKernel& k : best) out["best"].push_back(best_json(k));
  const std::vector<CostRow> costs = cost_rows(results);
  for (const CostRow& row : costs) out["cost"].push_back(cost_json(row));
  Json& total = out["cost_total"] = cost_json(cost_total(costs));
  for (const char* key : {"stage", "hash8", "job", "set_aside"}) total.erase(key);
  out["novel_cost"] = novel_costs_json(novel_costs(results));
  for (const store::MeasurementRow& row : results.measurements) {
    Json m = to_json(row.value);
    if (const Comparison comparison = compare_with_baselines(results, row); comparison.all.size() > 1) {
      m["over"] = comparison_json(comparison);
      m["best_baseline"] = comparison.best;
    }
    if (const WinFlags flags = win_flags(row.value); flags.win) {
      m["win"] = *flags.win;
      m["above_1_01"] = *flags.above;
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

// What a novel program above 1.01x cost.
#include <fmt/format.h>

#include <map>
#include <set>

#include "authors.h"
#include "cost_table.h"
#include "html_text.h"
#include "measured_samples.h"
#include "version_order.h"
#include "warpsmith/records/job.h"
#include "warpsmith/report/cost.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/report/summary.h"

namespace warpsmith::report {

namespace {

double& of_job(JobSeconds& seconds, const std::string& job) {
  const std::string_view kind = kind_of_job(job);
  if (kind == "generate") return seconds.generation;
  if (kind == "compile") return seconds.compilation;
  if (kind == "measure") return seconds.measurement;
  return kind == "train" ? seconds.training : seconds.other;
}

// What servers took, as a stage says when it ends.
struct Servers {
  std::vector<Json> policies;  // one at most: its tokens stand in the shards, too
  std::vector<Json> others;    // a checking model, and teachers: theirs do not
};

Servers servers_of(const store::StageRow& stage) {
  Servers out;
  const Json summary = Json::parse(stage.summary, nullptr, false);
  if (!summary.is_object()) return out;
  const auto take = [](const Json& server, std::vector<Json>& list) {
    if (server.is_object()) list.push_back(server);
  };
  take(summary.value("server", Json()), out.policies);
  take(summary.value("checker", Json()), out.others);
  for (const Json& teacher : summary.value("teachers", Json::array())) take(teacher, out.others);
  return out;
}

template <typename T>
std::optional<T> number_in(const Json& server, const char* key) {
  const auto it = server.find(key);
  return it != server.end() && it->is_number() ? std::optional(it->get<T>()) : std::nullopt;
}

void add_money(const std::vector<Json>& servers, NovelCost& cost) {
  for (const Json& server : servers) {
    if (const auto money = number_in<double>(server, "money"))
      cost.money = cost.money.value_or(0) + *money;
    else
      cost.all_priced = false;
  }
}

class NovelCostTable {
 public:
  explicit NovelCostTable(const store::Results& results)
      : results_(results), authors_(results), order_(results), degenerate_(degenerate_tasks(results)) {
    for (const store::StageRow& stage : results.stages)
      if (!stage.current) older_.insert({stage.name, stage.hash8});
  }

  NovelCosts costs() {
    out_.currency = results_.currency;
    add_attempts();
    add_servers();
    count_tokens();
    count_programs();
    for (auto& [place, cost] : costs_)
      if (drawn_.contains(place)) out_.stages.push_back(std::move(cost));
    return std::move(out_);
  }

 private:
  NovelCost& at(const std::string& stage, const std::string& hash8) {
    NovelCost& cost = costs_[order_.place(stage, hash8)];
    cost.stage = stage;
    cost.hash8 = hash8;
    return cost;
  }

  bool is_older(const std::string& stage, const std::string& hash8) const {
    return older_.contains({stage, hash8});
  }

  void add_attempts() {
    for (const CostRow& row : cost_rows(results_)) {
      if (row.set_aside || is_older(row.stage, row.hash8)) continue;
      for (NovelCost* cost : {&at(row.stage, row.hash8), &out_.run}) {
        of_job(cost->gpu, row.job) += 3600 * row.gpu_hours;
        of_job(cost->cpu, row.job) += row.cpu_s;
        if (row.money > 0) cost->money = cost->money.value_or(0) + row.money;
        if (row.unpriced_gpu_hours > 0) cost->all_priced = false;
      }
    }
  }

  void add_servers() {
    for (const store::StageRow& stage : results_.stages) {
      if (!stage.current) continue;
      const Servers servers = servers_of(stage);
      for (NovelCost* cost : {&at(stage.name, stage.hash8), &out_.run}) {
        add_money(servers.policies, *cost);
        add_money(servers.others, *cost);
        for (const Json& server : servers.others)
          cost->tokens =
              cost->tokens.value_or(0) + number_in<std::int64_t>(server, "completion_tokens").value_or(0);
      }
      if (!servers.others.empty()) says_others_.insert({stage.name, stage.hash8});
    }
  }

  // Nothing of a stage, and of the run, where a shard does not say; of shards that asked others than the
  // policy, where the stage has not said it yet.
  void count_tokens() {
    std::map<NovelCost*, bool> known;
    for (const store::ShardRow& shard : results_.shards) {
      const bool draws = kind_of_job(shard.job) == "generate";
      if ((!draws && shard.program != "warpsmith-generate") || is_older(shard.stage, shard.hash8)) continue;
      const bool says = draws ? shard.tokens.has_value() : says_others_.contains({shard.stage, shard.hash8});
      for (NovelCost* cost : {&at(shard.stage, shard.hash8), &out_.run}) {
        bool& all = known.try_emplace(cost, true).first->second;
        all = all && says;
        cost->tokens = cost->tokens.value_or(0) + (draws ? shard.tokens.value_or(0) : 0);
      }
    }
    for (const auto& [cost, all] : known)
      if (!all) cost->tokens.reset();
  }

  void count_programs() {
    std::map<std::size_t, Draws> samples;
    for (const store::SampleRow& sample : results_.generated)
      if (!is_older(sample.stage, sample.hash8) && authors_.drew(sample.stage, sample.hash8))
        samples[order_.place(sample.stage, sample.hash8)].push_back(&sample);
    const Measured measured(results_);
    std::set<std::string> of_run;
    for (const auto& [place, draws] : samples) {
      drawn_.insert(place);
      NovelCost& cost = at(draws.front()->stage, draws.front()->hash8);
      const std::set<std::string> host_bound = measured.host_bound(draws);
      std::set<std::string> of_stage;
      for (const store::SampleRow* draw : draws) {
        if (!is_fast_novel(*draw) || degenerate_.contains(draw->task) || host_bound.contains(draw->task))
          continue;
        if (of_stage.insert(draw->candidate).second) add_program(*draw, cost);
        if (of_run.insert(draw->candidate).second) add_program(*draw, out_.run);
      }
    }
  }

  static void add_program(const store::SampleRow& draw, NovelCost& cost) {
    ++cost.programs;
    cost.of_template += draw.of_template;
  }

  const store::Results& results_;
  const Authors authors_;
  VersionOrder order_;
  const std::set<std::string> degenerate_;
  std::set<std::pair<std::string, std::string>> older_, says_others_;
  std::map<std::size_t, NovelCost> costs_;
  std::set<std::size_t> drawn_;  // places of stages that drew
  NovelCosts out_;
};

std::string number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// "12.3", and by which jobs it was taken.
std::string seconds_cell(const NovelCost& cost, JobSeconds seconds, bool without_compilation) {
  if (without_compilation) seconds.compilation = 0;
  if (cost.programs == 0 || seconds.all() <= 0) return "<td>–</td>";
  std::string parts;
  const auto add = [&](const char* name, double value) {
    if (value > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, number(*cost.each(value)));
  };
  add("generation", seconds.generation);
  add("compilation", seconds.compilation);
  add("measurement", seconds.measurement);
  add("training", seconds.training);
  add("other", seconds.other);
  return fmt::format("<td>{} <small>{}</small></td>", number(*cost.each(seconds.all())), parts);
}

std::string number_cell(const std::optional<double>& value) {
  return "<td>" + (value ? number(*value) : std::string("–")) + "</td>";
}

std::string money_cell(const NovelCost& cost) {
  if (!cost.money || cost.programs == 0) return "<td>–</td>";
  return fmt::format("<td>{}{}</td>", cost.all_priced ? "" : "over ", number(*cost.each(*cost.money)));
}

std::string cost_cells(const std::string& name, const NovelCost& cost, bool money) {
  return fmt::format(
             "<tr><th>{}</th><td>{}{}</td>", escape(name), cost.programs,
             cost.of_template > 0 ? fmt::format(" <small>{} as a template</small>", cost.of_template) : "") +
         number_cell(cost.tokens ? cost.each(static_cast<double>(*cost.tokens)) : std::nullopt) +
         seconds_cell(cost, cost.gpu, false) +
         number_cell(cost.cpu.compilation > 0 ? cost.each(cost.cpu.compilation) : std::nullopt) +
         seconds_cell(cost, cost.cpu, true) + (money ? money_cell(cost) : "") + "</tr>\n";
}

Json seconds_json(const NovelCost& cost, const JobSeconds& seconds, bool each) {
  const auto part = [&](double value) { return each ? *cost.each(value) : value; };
  return {{"generation", part(seconds.generation)},
          {"compilation", part(seconds.compilation)},
          {"measurement", part(seconds.measurement)},
          {"training", part(seconds.training)},
          {"other", part(seconds.other)},
          {"all", part(seconds.all())}};
}

// Of all, or for each program.
Json amounts_json(const NovelCost& cost, bool each) {
  const auto part = [&](double value) { return Json(each ? *cost.each(value) : value); };
  return {{"tokens", !cost.tokens ? Json()
                     : each       ? part(static_cast<double>(*cost.tokens))
                                  : Json(*cost.tokens)},
          {"gpu_s", seconds_json(cost, cost.gpu, each)},
          {"cpu_s", seconds_json(cost, cost.cpu, each)},
          {"money", cost.money ? part(*cost.money) : Json()}};
}

Json novel_cost_json(const NovelCost& cost) {
  Json json = amounts_json(cost, false);
  json["programs"] = cost.programs;
  json["of_template"] = cost.of_template;
  json["all_priced"] = cost.all_priced;
  json["each"] = cost.programs > 0 ? amounts_json(cost, true) : Json();
  return json;
}

std::string money_words(const NovelCost& run) {
  if (!run.money) return " No money: the site has no prices for what was taken.";
  return std::string(
             " Money: by the site's prices of GPU-hours, of CPU-hours without a GPU where they have one, and "
             "of servers' tokens.") +
         (run.all_priced ? "" : " Some GPU-hours or servers of a row with \"over\" have none.");
}

}  // namespace

NovelCosts novel_costs(const store::Results& results) { return NovelCostTable(results).costs(); }

std::string novel_costs_html(const NovelCosts& costs) {
  if (costs.stages.empty()) return "";
  const bool money = costs.run.money.has_value();
  std::string out = fmt::format(
      "<h3>For each novel program above 1.01×</h3><table id=\"novel-cost\"><thead><tr><th>stage</th>"
      "<th>programs</th><th>tokens</th><th>GPU-seconds</th><th>CPU-seconds, compilation</th>"
      "<th>CPU-seconds, the rest</th>{}</tr></thead><tbody>\n",
      money ? money_head(costs.currency) : "");
  for (const NovelCost& cost : costs.stages) out += cost_cells(cost.stage, cost, money);
  return out + "</tbody><tfoot>" + cost_cells("whole run", costs.run, money) +
         "</tfoot></table>\n<p class=\"note\">What was taken, divided by the distinct novel programs above "
         "1.01× that were drawn, without tasks that headlines leave out. Distinct by source: a renamed copy "
         "counts as another, and what a template of the grammar writes counts, too. A stage's row has its "
         "own jobs alone, not the training before it. The whole run has all of them, programs of people "
         "that were measured included, and counts a program once. Programs of later turns count. Tokens: "
         "those that models wrote, teachers and checking models included, without prompts and without what "
         "was lost with an attempt. –: nothing to divide by, nothing taken, or not known." +
         money_words(costs.run) + "</p>\n";
}

Json novel_costs_json(const NovelCosts& costs) {
  Json stages = Json::array();
  for (const NovelCost& cost : costs.stages) {
    Json& json = stages.emplace_back(novel_cost_json(cost));
    json["stage"] = cost.stage;
    json["hash8"] = cost.hash8;
  }
  return {{"stages", std::move(stages)}, {"run", novel_cost_json(costs.run)}};
}

}  // namespace warpsmith::report

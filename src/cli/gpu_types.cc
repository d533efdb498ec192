#include "gpu_types.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "table.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/run/packing.h"

namespace warpsmith::cli {

namespace {

std::string time_words(double seconds) {
  return format_duration(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

bool uses_gpus(const workflow::StageSpec& stage) {
  const std::vector<workflow::StageJob> jobs = workflow::stage_jobs(stage);
  return stage.device != "cpu" ||
         std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return job.resources->gpus > 0; });
}

bool is_to_run(const plan::StagePlan& plan) {
  return plan.action == plan::Action::kRun || plan.action == plan::Action::kResume ||
         plan.action == plan::Action::kDepends || plan.action == plan::Action::kBlocked;
}

// Stages of the file whose instances are measured on several devices: there is one for each type on purpose.
std::set<std::string> stages_over_types(const workflow::WorkflowSpec& spec) {
  std::map<std::string, std::set<std::string>> devices;
  for (const workflow::StageSpec& stage : spec.stages) devices[stage.base_name].insert(stage.device);
  std::set<std::string> several;
  for (const auto& [name, of] : devices)
    if (of.size() > 1) several.insert(name);
  return several;
}

std::set<std::string> types_of(const TypeQuestion& q) {
  std::set<std::string> types;
  for (const workflow::StageSpec& stage : q.of_file.stages) {
    if (stage.device != "cpu" && stage.device != "auto") types.insert(stage.device);
    for (const workflow::StageJob& job : workflow::stage_jobs(stage))
      if (job.resources->gpus > 0 && !job.resources->gpu_type.empty()) types.insert(job.resources->gpu_type);
  }
  for (const auto& [type, stock] : q.machine)
    if (q.site == nullptr) types.insert(type);
  if (q.site == nullptr) return types;
  for (const auto& [type, place] : q.site->gpus) {
    if (place.twin)
      types.erase(type);
    else
      types.insert(type);
  }
  return types;
}

// The workflow as if its file named this type wherever it asks for GPUs.
workflow::WorkflowSpec on_type(const TypeQuestion& q, const std::string& type) {
  workflow::WorkflowSpec spec = q.of_file;
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    workflow::StageSpec& stage = spec.stages[i];
    if (stage.device != "cpu") stage.device = type;
    for (Resources* r : stage.all_resources())
      if (r->gpus > 0) r->gpu_type = type;
    stage.taken = q.spec.stages[i].taken;
  }
  workflow::resolve_devices(spec, q.site, q.machine);
  return spec;
}

class TypeEstimate {
 public:
  TypeEstimate(const TypeQuestion& question, UsageFinder& usages, std::string type)
      : q_(question), usages_(usages), out_{.type = std::move(type), .lack = {}, .sum = {}, .from = {}} {}

  TypeCost of(const std::set<std::size_t>& counted) {
    const workflow::WorkflowSpec spec = on_type(q_, out_.type);
    out_.sum.currency = spec.prices.currency;
    std::map<std::string, double> ends_s;  // by stage; those that a stage needs stand before it
    for (std::size_t i = 0; i < spec.stages.size() && out_.lack.empty(); ++i) {
      const workflow::StageSpec& stage = spec.stages[i];
      const double takes_s = counted.contains(i) ? add(stage, spec.prices) : 0;
      out_.sum.at_most |= counted.contains(i) && (q_.plans[i].action == plan::Action::kResume ||
                                                  q_.plans[i].action == plan::Action::kDepends);
      double begins_s = 0;
      for (const std::string& needed : stage.needs) begins_s = std::max(begins_s, ends_s[needed]);
      ends_s[stage.name] = begins_s + takes_s;
      out_.time_s = q_.site == nullptr ? out_.time_s + takes_s : std::max(out_.time_s, ends_s[stage.name]);
    }
    if (!missing_.empty())
      out_.lack = fmt::format("no earlier run on {} of {}", out_.type, fmt::join(missing_, ", "));
    return std::move(out_);
  }

 private:
  // How long it takes; its cost is added.
  double add(const workflow::StageSpec& stage, const workflow::Prices& prices) {
    out_.lack = !stage.lacks.empty()     ? stage.lacks
                : !stage.blocked.empty() ? fmt::format("{} cannot run there: {}", stage.name, stage.blocked)
                                         : "";
    if (!out_.lack.empty()) return 0;
    double takes_s = 0;
    for (const stages::PlannedJob& job : stages::planned_jobs(stage, {})) {
      const bool on_gpu = job.resources.gpus > 0;
      const StageUsage* usage = usages_.find_on(on_gpu ? out_.type : "", stage, job);
      const std::string name = stage.name + "/" + job.job;
      if (usage == nullptr) {
        if (on_gpu)
          missing_.insert(name);
        else if (std::find(out_.sum.unknown.begin(), out_.sum.unknown.end(), name) == out_.sum.unknown.end())
          out_.sum.unknown.push_back(name);
        continue;
      }
      out_.sum.add(stage_cost({job}, usage, prices));
      out_.from.insert(fs::path(usage->source).parent_path().parent_path().parent_path().string());
      if (stage.kind != "service") takes_s += duration_s(stage, job, usage->jobs.at(job.job));
    }
    return takes_s;
  }

  double duration_s(const workflow::StageSpec& stage, const stages::PlannedJob& job,
                    const StageUsage::Job& known) const {
    const double items = std::ceil(items_of(job, known)), item_s = known.item_s_with(job.resources);
    const int slots = q_.site != nullptr ? 1 : slots_here(job.resources);
    const double shard_s = q_.site != nullptr && q_.site->shard_s > 0 ? q_.site->shard_s : stage.shard_s;
    const auto shards = static_cast<double>(
        run::pack_items({.items = static_cast<std::uint64_t>(items),
                         .expected_item_s = item_s,
                         .shard_s = shard_s,
                         .one_shard = job.one_shard,
                         .least = job.least_shards,
                         .slots = slots,
                         .start_s = q_.site != nullptr ? q_.site->start_s : workflow::SiteSpec{}.start_s})
            .size());
    if (shards == 0) return 0;
    const double waves = q_.site != nullptr ? 1 : std::ceil(shards / slots);
    return std::ceil(items / shards) * item_s * waves;
  }

  int slots_here(const Resources& r) const {
    if (r.gpus <= 0) return std::max(1, q_.cpus / std::max(1, r.cpus));
    const auto stock = q_.machine.find(out_.type);
    const int has = stock == q_.machine.end() ? 0 : static_cast<int>(stock->second.count);
    return std::max(1, has / r.gpus * std::max(1, r.shards_a_gpu));
  }

  const TypeQuestion& q_;
  UsageFinder& usages_;
  TypeCost out_;
  std::set<std::string> missing_;  // jobs with GPUs
};

bool in_time(const TypeCosts& costs, const TypeCost& type) {
  return type.lack.empty() && (costs.deadline_s <= 0 || type.time_s <= costs.deadline_s);
}

std::string price_text(const TypeCosts& costs, const TypeCost& type) {
  if (!costs.priced) return "";
  if (!type.has_price()) return ", no price of " + type.type;
  return ", " + money_text(type.sum.money, type.sum.currency);
}

std::string cost_text(const TypeCosts& costs, const TypeCost& type) {
  std::string text =
      fmt::format("{} {}, {} GPU-hours{}", type.sum.at_most ? "at most" : "about", time_words(type.time_s),
                  hours_text(type.sum.gpu_hours), price_text(costs, type));
  if (!type.sum.unknown.empty())
    text += fmt::format(" without {}, not known yet", fmt::join(type.sum.unknown, ", "));
  return text + (type.from.size() > 3 ? fmt::format(" (learnt from {} runs)", type.from.size())
                                      : fmt::format(" (learnt from {})", fmt::join(type.from, ", ")));
}

// "cheapest: L40 (1h, 0.90 EUR)"
std::string named(const TypeCosts& costs, const std::string& what, const TypeCost& type) {
  return fmt::format("{}: {} ({}{})", what, type.type, time_words(type.time_s), price_text(costs, type));
}

std::string choice_line(const TypeCosts& costs) {
  TypeCosts at_any_time = costs;
  at_any_time.deadline_s = 0;
  const TypeCost *cheapest = costs.cheapest(), *fastest = costs.fastest();
  if (costs.deadline_s <= 0) {
    if (fastest == nullptr) return "";
    return (cheapest != nullptr ? named(costs, "cheapest", *cheapest) + "; " : "") +
           named(costs, "fastest", *fastest);
  }
  const std::string within = "within " + time_words(costs.deadline_s);
  if (cheapest != nullptr) return named(costs, "cheapest " + within, *cheapest);
  if (fastest != nullptr) return named(costs, "fastest " + within, *fastest) + "; no price is known";
  const TypeCost* late = at_any_time.fastest();
  if (late == nullptr) return "no type has figures of earlier runs: nothing can be said of " + within;
  return fmt::format("no type is expected to end {}; {}", within, named(costs, "fastest", *late));
}

}  // namespace

const TypeCost* TypeCosts::fastest() const {
  const TypeCost* best = nullptr;
  for (const TypeCost& type : types)
    if (in_time(*this, type) && (best == nullptr || type.time_s < best->time_s)) best = &type;
  return best;
}

const TypeCost* TypeCosts::cheapest() const {
  const TypeCost* best = nullptr;
  for (const TypeCost& type : types)
    if (in_time(*this, type) && type.has_price() && (best == nullptr || type.sum.money < best->sum.money))
      best = &type;
  return best;
}

TypeCosts type_costs(const TypeQuestion& q, UsageFinder& usages) {
  TypeCosts out{.stages = {},
                .types = {},
                .priced = q.spec.prices.has_hours(),
                .queued = q.site != nullptr,
                .deadline_s = q.deadline_s};
  const std::set<std::string> over_types = stages_over_types(q.of_file);
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < q.of_file.stages.size(); ++i)
    if (uses_gpus(q.of_file.stages[i]) && is_to_run(q.plans[i])) {
      all.insert(i);
      out.stages.push_back(q.of_file.stages[i].name);
    }
  for (const std::string& type : types_of(q)) {
    std::set<std::size_t> counted;
    for (const std::size_t i : all) {
      const workflow::StageSpec& stage = q.of_file.stages[i];
      if (!over_types.contains(stage.base_name) || stage.device == type) counted.insert(i);
    }
    if (!counted.empty()) out.types.push_back(TypeEstimate(q, usages, type).of(counted));
  }
  return out;
}

std::vector<std::string> type_lines(const TypeCosts& costs) {
  if (costs.types.empty()) {
    if (costs.deadline_s <= 0) return {};
    return {costs.stages.empty() ? "--deadline: no stage that is to run uses a GPU"
                                 : "--deadline: there is no type of GPU to choose from"};
  }
  const std::string stages = costs.stages.size() > 5 ? fmt::format("{} stages", costs.stages.size())
                                                     : fmt::format("{}", fmt::join(costs.stages, ", "));
  std::vector<std::string> lines = {fmt::format("{} by type of GPU, as earlier runs went{}:", stages,
                                                costs.queued ? "; waiting in the queue not counted" : "")};
  Table table({{}, {}}, 2);
  for (const TypeCost& type : costs.types)
    table.add({type.type, type.lack.empty() ? cost_text(costs, type) : type.lack});
  for (const std::string& line : split_lines(table.text({}))) lines.push_back(line);
  if (const std::string choice = choice_line(costs); !choice.empty()) lines.push_back("  " + choice);
  return lines;
}

Json to_json(const TypeCosts& costs) {
  const auto name_of = [](const TypeCost* type) {
    return type == nullptr ? Json(nullptr) : Json(type->type);
  };
  Json types = Json::array();
  for (const TypeCost& type : costs.types) {
    Json one = {{"type", type.type}, {"known", type.lack.empty()}};
    if (type.lack.empty()) {
      one.update(to_json(type.sum));
      one["time_s"] = type.time_s;
      one["learnt_from"] = type.from;
      if (!type.has_price()) one["money"] = nullptr;
      if (costs.deadline_s > 0) one["in_time"] = in_time(costs, type);
    } else {
      one["why"] = type.lack;
    }
    types.push_back(std::move(one));
  }
  Json out = {{"stages", costs.stages},
              {"types", std::move(types)},
              {"fastest", name_of(costs.fastest())},
              {"cheapest", name_of(costs.cheapest())}};
  if (costs.deadline_s > 0) out["deadline_s"] = costs.deadline_s;
  return out;
}

void add_deadline_option(CLI::App& command, std::string& deadline) {
  command.add_option("--deadline", deadline,
                     "Name the cheapest type of GPU that is expected to be done in this time, such as 2h "
                     "(default: the cheapest and the fastest)");
}

double deadline_seconds(const std::string& deadline) {
  if (deadline.empty()) return 0;
  const auto duration = parse_duration(deadline);
  if (!duration || duration->count() <= 0)
    throw Error("--deadline: `" + deadline + "` is no duration, such as 2h", kExitUsage);
  return static_cast<double>(duration->count()) / 1000;
}

}  // namespace warpsmith::cli

#include "plan_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::cli {

namespace {

std::optional<StageUsage> read_usage(const fs::path& folder) {
  try {
    if (!path_exists(folder / "usage.json")) return std::nullopt;
    const Json file = read_json_file(folder / "usage.json");
    StageUsage usage{.source = folder.string(),
                     .stage = file.value("stage", ""),
                     .kind = file.value("kind", ""),
                     .written = file.value("written", std::int64_t{0}),
                     .jobs = {}};
    for (const auto& [name, job] : file.at("jobs").items()) {
      // A service's one item has no record.
      const double timed = usage.kind == "service" ? 1 : job.value("timed_items", 0.0);
      usage.jobs[name] = {.program = job.value("program", ""),
                          .jobs = job.value("jobs", 0.0),
                          .items = job.value("items", 0.0),
                          .item_s = timed > 0 ? job.value("wall_s", 0.0) / timed : 0,
                          .item_s_on = {}};
      const Json by_gpu = job.value("by_gpu", Json::object());
      for (const auto& [type, on] : by_gpu.items()) {
        const double items = usage.kind == "service" ? 1 : on.value("timed_items", 0.0);
        const double wall_s = on.value("wall_s", 0.0);
        if (items > 0 && wall_s > 0) usage.jobs[name].item_s_on[type] = wall_s / items;
      }
    }
    return usage;
  } catch (const Error&) {
  } catch (const Json::exception&) {
  }
  return std::nullopt;
}

// Of the stage's versions in `run`, the one that was written last.
std::optional<StageUsage> newest_usage(const fs::path& run, const std::string& stage,
                                       const std::string& kind) {
  std::optional<StageUsage> newest;
  std::error_code error;
  for (fs::directory_iterator it(run / "stages" / stage, error), end; !error && it != end;
       it.increment(error)) {
    std::optional<StageUsage> one = read_usage(it->path());
    if (!one || one->kind != kind) continue;
    const auto age = [](const StageUsage& usage) { return std::pair(usage.written, usage.source); };
    if (!newest || age(*one) > age(*newest)) newest = std::move(one);
  }
  return newest;
}

bool has_own_timings(const fs::path& run) {
  try {
    return read_run_json(run).value("replay_timings", "").empty();
  } catch (const Error&) {
  }
  return false;
}

std::string in_brackets(const StageCost& cost) {
  const std::string unpriced = fmt::format("{}", fmt::join(cost.unpriced, ", "));
  if (!cost.priced) return unpriced.empty() ? "" : fmt::format(" (no price of {})", unpriced);
  return fmt::format(" ({}{})", money_text(cost.money, cost.currency),
                     unpriced.empty() ? "" : " without " + unpriced);
}

// GPU types of a run's site whose nodes have none: what it measured there, it measured on CPUs.
std::set<std::string> twins_of(const fs::path& run) {
  std::set<std::string> twins;
  if (!path_exists(run / "site.yaml")) return twins;
  Diagnostics ignored;
  for (const auto& [type, place] : workflow::load_site(run / "site.yaml", ignored).gpus)
    if (place.twin) twins.insert(type);
  return twins;
}

double gpu_hours_used(const fs::path& run) {
  try {
    return read_state_json(run).value("gpu_hours", 0.0);
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace

StageCost stage_cost(const std::vector<stages::PlannedJob>& jobs, const StageUsage* usage,
                     const workflow::Prices& prices) {
  StageCost cost;
  cost.currency = prices.currency;
  if (usage != nullptr) cost.source = usage->source;
  for (const stages::PlannedJob& job : jobs) {
    const StageUsage::Job* known = nullptr;
    if (usage != nullptr)
      if (const auto it = usage->jobs.find(job.job);
          it != usage->jobs.end() && it->second.program == job.program && it->second.item_s > 0)
        known = &it->second;
    if (known == nullptr) {
      if (std::find(cost.unknown.begin(), cost.unknown.end(), job.job) == cost.unknown.end())
        cost.unknown.push_back(job.job);
      continue;
    }
    const double held_h = items_of(job, *known) * known->item_s_with(job.resources) / 3600;
    const double gpu_h = held_h * job.resources.gpus_held(), cpu_h = held_h * std::max(1, job.resources.cpus);
    cost.gpu_hours += gpu_h;
    if (const auto money = prices.of_hours(job.resources.gpu_type, gpu_h, cpu_h)) {
      cost.money += *money;
      cost.priced = true;
    } else if (gpu_h > 0 && prices.has_hours())
      cost.unpriced.insert(job.resources.gpu_type.empty() ? "any type" : job.resources.gpu_type);
    cost.cpu_hours += cpu_h;
    cost.at_most |= job.upper_bound;
  }
  if (cost.unknown.size() > 0 && cost.gpu_hours + cost.cpu_hours == 0) cost.source.clear();
  return cost;
}

double StageUsage::Job::item_s_with(const Resources& resources) const {
  const auto on = resources.gpus > 0 ? item_s_on.find(resources.gpu_type) : item_s_on.end();
  return on == item_s_on.end() ? item_s : on->second;
}

void StageCost::add(const StageCost& other) {
  gpu_hours += other.gpu_hours;
  cpu_hours += other.cpu_hours;
  money += other.money;
  priced |= other.priced;
  currency = other.currency;
  unpriced.insert(other.unpriced.begin(), other.unpriced.end());
  at_most |= other.at_most;
}

double items_of(const stages::PlannedJob& job, const StageUsage::Job& known) {
  return job.items > 0 ? static_cast<double>(job.items) : known.items / std::max(1.0, known.jobs);
}

std::string hours_text(double hours) {
  return hours >= 100 ? fmt::format("{:.0f}", hours) : fmt::format("{:.2g}", hours);
}

std::string money_text(double money, const std::string& currency) {
  return fmt::format("{:.2f} {}", money, currency.empty() ? "in money" : currency);
}

std::string sum_text(const StageCost& cost) {
  const bool gpus = cost.gpu_hours > 0;
  return fmt::format("{} {}{} CPU-hours{}", cost.at_most ? "at most" : "about",
                     gpus ? hours_text(cost.gpu_hours) + " GPU-hours" + in_brackets(cost) + ", " : "",
                     hours_text(cost.cpu_hours), gpus ? "" : in_brackets(cost));
}

Json to_json(const StageCost& cost) {
  return {{"gpu_hours", cost.gpu_hours}, {"cpu_hours", cost.cpu_hours}, {"money", cost.money},
          {"currency", cost.currency},   {"unpriced", cost.unpriced},   {"at_most", cost.at_most},
          {"unknown", cost.unknown},     {"learnt_from", cost.source}};
}

UsageFinder::UsageFinder(fs::path run, const fs::path& results) : run_(std::move(run)) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(results, error), end; !error && it != end; it.increment(error)) {
    std::error_code missing;
    const auto time = fs::last_write_time(it->path() / "state.json", missing);
    if (!missing && !fs::equivalent(it->path(), run_, missing)) found.emplace_back(time, it->path());
  }
  std::sort(found.rbegin(), found.rend());
  for (auto& [time, folder] : found)
    if (has_own_timings(folder)) others_.push_back(std::move(folder));
}

const StageUsage* UsageFinder::find(const std::string& stage, const std::string& kind) {
  const auto [it, is_new] = found_.try_emplace(stage);
  if (is_new) {
    std::optional<StageUsage> usage = newest_usage(run_, stage, kind);
    for (const fs::path& other : others_) {
      if (usage) break;
      usage = newest_usage(other, stage, kind);
    }
    if (usage) it->second = std::move(*usage);
  }
  return it->second.source.empty() ? nullptr : &it->second;
}

const std::vector<StageUsage>& UsageFinder::usages_of(const fs::path& run) {
  const auto [it, is_new] = all_.try_emplace(run);
  if (!is_new) return it->second;
  const std::set<std::string> twins = twins_of(run);
  for (const fs::path& stage : folder_entries(run / "stages"))
    for (const fs::path& version : folder_entries(stage)) {
      std::optional<StageUsage> one = read_usage(version);
      if (!one) continue;
      for (auto& [name, job] : one->jobs)
        for (const std::string& twin : twins) job.item_s_on.erase(twin);
      it->second.push_back(std::move(*one));
    }
  return it->second;
}

const StageUsage* UsageFinder::find_on(const std::string& type, const workflow::StageSpec& stage,
                                       const stages::PlannedJob& job) {
  const auto search = [&](const fs::path& run) {
    const StageUsage* best = nullptr;
    const auto rank = [&](const StageUsage& usage) {
      return std::tuple(usage.stage == stage.name, usage.written, usage.source);
    };
    for (const StageUsage& one : usages_of(run)) {
      const auto known = one.jobs.find(job.job);
      if (one.kind != stage.kind || known == one.jobs.end() || known->second.program != job.program) continue;
      if (type.empty() ? known->second.item_s <= 0 : !known->second.item_s_on.contains(type)) continue;
      if (best == nullptr || rank(one) > rank(*best)) best = &one;
    }
    return best;
  };
  const StageUsage* found = search(run_);
  for (auto it = others_.begin(); found == nullptr && it != others_.end(); ++it) found = search(*it);
  return found;
}

PlanCost plan_cost(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans,
                   const fs::path& run, UsageFinder& finder) {
  PlanCost out{.stages = {},
               .all = {},
               .budget_gpu_hours = spec.budget.gpu_hours,
               .used_gpu_hours = gpu_hours_used(run)};
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const workflow::StageSpec& stage = spec.stages[i];
    StageCost cost =
        stage_cost(stages::planned_jobs(stage, {}), finder.find(stage.name, stage.kind), spec.prices);
    const plan::Action action = plans[i].action;
    if (action == plan::Action::kResume) cost.at_most = true;  // a part is done
    if (action == plan::Action::kRun || action == plan::Action::kResume || action == plan::Action::kDepends) {
      out.all.add(cost);
      out.all.at_most |= action == plan::Action::kDepends;
      if (!cost.unknown.empty()) out.all.unknown.push_back(stage.name);
    }
    out.stages.push_back(std::move(cost));
  }
  return out;
}

std::string total_text(const PlanCost& cost) {
  const StageCost& all = cost.all;
  const bool nothing = all.gpu_hours + all.cpu_hours == 0;
  std::string out = nothing && !all.unknown.empty() ? "at a cost that is not known" : sum_text(all);
  if (!nothing && !all.unknown.empty())
    out += " without what is not known of " + (all.unknown.size() > 5
                                                   ? fmt::format("{} stages", all.unknown.size())
                                                   : fmt::format("{}", fmt::join(all.unknown, ", ")));
  if (cost.budget_gpu_hours <= 0) return out;
  const bool over = cost.used_gpu_hours + all.gpu_hours > cost.budget_gpu_hours;
  return out + fmt::format(", {} the budget of {:.3g} GPU-hours ({:.2g} used so far)",
                           over ? all.at_most ? "perhaps over" : "over" : "within", cost.budget_gpu_hours,
                           cost.used_gpu_hours);
}

Json total_json(const PlanCost& cost) {
  Json out = to_json(cost.all);
  out.erase("learnt_from");
  out["used_gpu_hours"] = cost.used_gpu_hours;
  if (cost.budget_gpu_hours > 0) out["budget_gpu_hours"] = cost.budget_gpu_hours;
  return out;
}

}  // namespace warpsmith::cli

#include "plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "table.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/controller/model_memory.h"
#include "warpsmith/run/packing.h"
#include "warpsmith/stages/stage.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::cli {

namespace {

bool is_idle(const plan::StagePlan& p) {
  return p.action == plan::Action::kUpToDate || p.action == plan::Action::kNotSelected ||
         p.action == plan::Action::kAccept || p.action == plan::Action::kBlocked;
}

// What happens to a stage, in a word, and why, where the word does not say it.
struct Happening {
  std::string word, why;
};

Happening happening_of(const plan::StagePlan& p) {
  switch (p.action) {
    case plan::Action::kUpToDate:
      return {"up to date", p.reason == "up to date" ? "" : p.reason};
    case plan::Action::kAccept:
      return {"accepted", ""};
    case plan::Action::kResume:
      return {"go on", ""};
    case plan::Action::kDepends:
      return {"may run", "may run: " + p.reason};
    case plan::Action::kNotSelected:
      return {"left out", p.reason};
    case plan::Action::kBlocked:
      return {"cannot run", "cannot run: " + p.reason};
    case plan::Action::kRun:
      break;
  }
  if (p.reason == "forced") return {"run, forced", ""};
  if (p.changes.empty()) return {p.reason == "never run" ? "run, new" : "run", "run: " + p.reason};
  std::vector<std::string> changes;
  for (const plan::Change& change : p.changes) changes.push_back(plan::to_string(change));
  return {"run, stale", fmt::format("stale: {}", fmt::join(changes, "; "))};
}

std::string device_cell(const workflow::StageSpec& stage) {
  const bool twin = stage.device_found == workflow::DeviceFound::kTwin;
  return (stage.wanted_device.empty() ? stage.device : stage.wanted_device) + (twin ? " (twin)" : "");
}

std::string device_note(const workflow::StageSpec& stage) {
  if (!stage.auto_device.empty())
    return fmt::format("on {}, by `device: auto`: {}",
                       stage.wanted_device.empty() ? stage.device : stage.wanted_device, stage.auto_device);
  if (stage.device_found == workflow::DeviceFound::kTwin)
    return stage.wanted_device + " by the CPU twin: device kind cpu";
  if (!stage.lacks.empty() && workflow::measures_again(stage)) return stage.lacks + ": its rows will say so";
  return "";
}

// The run that a stage's cost was learnt from: of <run>/stages/<stage>/<hash8>.
std::string run_of(const std::string& source) {
  return fs::path(source).parent_path().parent_path().parent_path().string();
}

std::string cost_note(const StageCost& cost) {
  if (cost.source.empty())
    return cost.unknown.empty() ? "" : "cost not known: no run here has had such a stage";
  std::string note = "cost learnt from " + run_of(cost.source);
  if (!cost.unknown.empty()) note += fmt::format(" without {}, not known yet", fmt::join(cost.unknown, ", "));
  if (!cost.unpriced.empty()) note += fmt::format("; no price of {}", fmt::join(cost.unpriced, ", "));
  return note;
}

// Notes of stages; equal ones are one, with all their names.
class Notes {
 public:
  void add(const std::string& text, const std::string& stage) {
    if (text.empty()) return;
    const auto known = std::find_if(all_.begin(), all_.end(), [&](const Note& n) { return n.text == text; });
    Note& note = known == all_.end() ? all_.emplace_back(Note{text, {}}) : *known;
    note.stages.insert(stage);
  }

  std::string text(const workflow::WorkflowSpec& spec, std::size_t widest) const {
    std::string out;
    for (const Note& note : all_) {
      const std::vector<std::string> names = names_of(spec, note.stages);
      const std::string line = fmt::format("{}: {}", fmt::join(names, ", "), note.text);
      if (characters(line) <= widest)
        out += line + "\n";
      else if (names.size() == 1)
        out += names.front() + ":\n" + wrapped(split(note.text, ' '), " ", 4, widest);
      else
        out += wrapped(split(note.text + ":", ' '), " ", 0, widest) + wrapped(names, ", ", 4, widest);
    }
    return out;
  }

 private:
  struct Note {
    std::string text;
    std::set<std::string> stages;
  };

  // In the order of the workflow; "sweep-*" where it is all of a matrix.
  static std::vector<std::string> names_of(const workflow::WorkflowSpec& spec,
                                           const std::set<std::string>& stages) {
    if (stages.size() > 1 && stages.size() == spec.stages.size()) return {"all stages"};
    std::map<std::string, std::pair<std::size_t, std::size_t>> of_base;  // all, and those of the note
    for (const workflow::StageSpec& stage : spec.stages) {
      ++of_base[stage.base_name].first;
      of_base[stage.base_name].second += stages.contains(stage.name);
    }
    std::vector<std::string> names;
    for (const workflow::StageSpec& stage : spec.stages) {
      if (!stages.contains(stage.name)) continue;
      const auto& [all, here] = of_base[stage.base_name];
      const std::string name = all > 1 && all == here ? stage.base_name + "-*" : stage.name;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }

  std::vector<Note> all_;
};

// "<=" where it is at most that, "+" where more is found under way or a part is not known.
std::vector<Table::Cell> cells_of(const workflow::StageSpec& stage, const plan::StagePlan& p,
                                  const StageCost& cost) {
  const Extent e = extent_of(stage);
  const bool idle = is_idle(p);
  const auto bounded = [](const std::string& value, bool at_most, bool open) {
    return (at_most && !open ? "<=" : "") + value + (open ? "+" : "");
  };
  const auto count = [&](std::uint64_t n, bool is_bounded) {
    return n == 0 ? "" : bounded(std::to_string(n), is_bounded && e.upper_bound, is_bounded && e.open);
  };
  const auto sum = [&](bool known, const std::string& value) {
    return known && !idle && !cost.source.empty() ? bounded(value, cost.at_most, !cost.unknown.empty()) : "";
  };
  const std::string word = happening_of(p).word;
  return {{stage.name, "bold"},
          stage.kind,
          device_cell(stage),
          {word, p.action == plan::Action::kBlocked ? "red"
                 : idle                             ? "dim"
                                                    : "green"},
          count(static_cast<std::uint64_t>(e.rounds), false),
          count(e.jobs, false),
          count(e.shards, true),
          count(e.items, true),
          sum(cost.gpu_hours > 0, hours_text(cost.gpu_hours)),
          sum(cost.cpu_hours > 0, hours_text(cost.cpu_hours)),
          sum(cost.priced, fmt::format("{:.2f}", cost.money)),
          fmt::format("{}", fmt::join(stage.needs, ", "))};
}

std::string count_text(std::uint64_t n, const char* word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

std::string sum_lines(const ShownPlan& shown) {
  std::uint64_t jobs = 0, shards = 0;
  int will_run = 0, blocked = 0;
  for (std::size_t i = 0; i < shown.plans.size(); ++i) {
    blocked += shown.plans[i].action == plan::Action::kBlocked;
    if (is_idle(shown.plans[i])) continue;
    const Extent extent = extent_of(shown.spec.stages[i]);
    ++will_run;
    jobs += extent.jobs;
    shards += extent.shards;
  }
  std::string out;
  if (blocked > 0) out += fmt::format("{} of {} stages cannot run\n", blocked, shown.plans.size());
  if (will_run == 0 && blocked == 0) return "Nothing to do: every stage is up to date or left out.\n";
  if (will_run > 0)
    out += fmt::format("{} of {} stages to run: {}, {} or so, {}\n", will_run, shown.plans.size(),
                       count_text(jobs, "job"), count_text(shards, "shard"), total_text(shown.cost));
  return out;
}

}  // namespace

Extent extent_of(const workflow::StageSpec& stage) {
  Extent extent;
  std::set<int> rounds;
  const int slots = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const stages::PlannedJob& job : stages::planned_jobs(stage, {})) {
    rounds.insert(job.round);
    ++extent.jobs;
    extent.items += job.items;
    extent.upper_bound |= job.upper_bound;
    extent.open |= job.items == 0;
    extent.shards += job.items == 0 ? 1
                                    : run::pack_items({.items = job.items,
                                                       .expected_item_s = job.expected_item_s,
                                                       .shard_s = stage.shard_s,
                                                       .one_shard = job.one_shard,
                                                       .least = job.least_shards,
                                                       .slots = slots})
                                          .size();
  }
  extent.rounds = static_cast<int>(rounds.size());
  return extent;
}

std::string plan_text(const ShownPlan& shown, const CommandContext& context, std::size_t width) {
  const std::size_t widest = width > 0 ? width : 110;
  const std::string& currency = shown.cost.all.currency;
  Table table({{"STAGE"},
               {.head = "KIND", .spare = 1},
               {"DEVICE"},
               {"ACTION"},
               {"ROUNDS", true},
               {"JOBS", true},
               {"SHARDS", true},
               {"ITEMS", true},
               {"GPU-HOURS", true},
               {"CPU-HOURS", true},
               {currency.empty() ? "MONEY" : currency, true},
               {.head = "NEEDS", .spare = 2}});
  Notes notes;
  for (std::size_t i = 0; i < shown.plans.size(); ++i) {
    const workflow::StageSpec& stage = shown.spec.stages[i];
    const plan::StagePlan& p = shown.plans[i];
    table.add(cells_of(stage, p, shown.cost.stages[i]));
    const Happening happening = happening_of(p);
    if (happening.word != "run, new") notes.add(happening.why, stage.name);
    if (p.action != plan::Action::kBlocked) notes.add(device_note(stage), stage.name);
    for (const std::string& line : controller::memory_lines(stage, shown.gpus))
      notes.add("on a GPU, " + line, stage.name);
    if (!is_idle(p)) notes.add(cost_note(shown.cost.stages[i]), stage.name);
  }
  std::string out = table.text(context, widest) + "\n";
  if (const std::string text = notes.text(shown.spec, widest); !text.empty()) out += text + "\n";
  for (const std::string& line : type_lines(shown.types)) out += line + "\n";
  for (const std::string& line : split_lines(sum_lines(shown)))
    out += wrapped(split(line, ' '), " ", 0, widest);
  return out;
}

}  // namespace warpsmith::cli

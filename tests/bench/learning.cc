// Does the model learn? Runs the quickstart with several seeds of the split, some programs a task drawn from
// each stage's frozen checkpoint at the same temperature and with the same form of prompt, and prints the
// table of stages with bootstrap intervals over the tasks of all seeds.
//
//   learning [--seeds 1,2,3] [--folder DIR] [--workflow FILE] [--samples 4] [--only-table]
//
// Runs that are in DIR are gone on with; with --only-table they are only read.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/store/results.h"

namespace {

using namespace warpsmith;

struct Options {
  std::vector<std::string> seeds = {"1", "2", "3"};
  fs::path folder = fs::path(WARPSMITH_BINARY_DIR) / "learning";
  fs::path workflow = fs::path(WARPSMITH_SOURCE_DIR) / "workflows/quickstart.yaml";
  std::string samples = "4";
  bool only_table = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] {
      if (++i >= argc) {
        std::fprintf(stderr, "learning: %s wants a value\n", flag.c_str());
        std::exit(2);
      }
      return std::string(argv[i]);
    };
    if (flag == "--seeds")
      options.seeds = split(value(), ',');
    else if (flag == "--folder")
      options.folder = value();
    else if (flag == "--workflow")
      options.workflow = value();
    else if (flag == "--samples")
      options.samples = value();
    else if (flag == "--only-table")
      options.only_table = true;
    else {
      std::fprintf(stderr, "learning: unknown option %s\n", flag.c_str());
      std::exit(2);
    }
  }
  return options;
}

// Draws of one evaluated stage in all seeds, by group. Each seed has tasks of its own: "1/chain_7".
using Cells = std::map<std::string, report::DrawsByTask>;

std::string interval(const stats::BootstrapInterval& i, bool exponentiate, const char* unit) {
  const auto f = [&](double x) { return exponentiate ? std::exp(x) : x; };
  char text[96];
  std::snprintf(text, sizeof text, "%.3f%s [%.3f, %.3f]", f(i.estimate), unit, f(i.low), f(i.high));
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::vector<store::Results> results;
  for (const std::string& seed : options.seeds) {
    const fs::path run = options.folder / ("seed-" + seed);
    if (!options.only_table) {
      make_folders(options.folder);
      const std::string command = (fs::path(WARPSMITH_BINARY_DIR) / "warpsmith").string() + " run " +
                                  options.workflow.string() + " --seed " + seed + " --split-seed " + seed +
                                  " --run-dir " + run.string() + " --set params.samples=" + options.samples;
      std::printf("== %s\n", command.c_str());
      std::fflush(stdout);
      if (const int status = std::system(command.c_str()); status != 0) {
        std::fprintf(stderr, "learning: the run of seed %s failed\n", seed.c_str());
        return 1;
      }
    }
    store::aggregate(run);
    results.push_back(store::current_versions(store::read_results(run / "results.h5")));
  }

  // Stages that draw from a frozen checkpoint, in the order of the first run.
  std::vector<std::string> stages;
  std::map<std::string, Cells> by_stage;
  for (std::size_t s = 0; s < results.size(); ++s)
    for (const report::FrozenModel& model : report::frozen_models(results[s])) {
      if (model.of.empty()) continue;
      if (std::find(stages.begin(), stages.end(), model.stage) == stages.end()) stages.push_back(model.stage);
      for (const auto& [group, tasks] : model.groups)
        for (const auto& [task, draws] : tasks)
          by_stage[model.stage][group][options.seeds[s] + "/" + task] = draws;
    }
  const auto draws_of = [&](const std::string& stage, const std::string& group) {
    const auto it = by_stage[stage].find(group);
    return it == by_stage[stage].end() ? report::DrawsByTask() : it->second;
  };

  const auto mean = [](const report::DrawsByTask& tasks, const report::DrawFigure& figure, bool exponentiate,
                       const char* unit) {
    return interval(stats::bootstrap_mean(report::task_figures(tasks, figure)), exponentiate, unit);
  };
  for (const char* group :
       {"train", "heldout_combination", "heldout_length", "heldout_operation", "heldout_people"}) {
    std::printf("\n%s\n%-26s %6s %26s %26s %22s %22s %12s\n", group, "after", "tasks", "valid", "novel",
                "one draw", "of novel", "as template");
    for (const std::string& stage : stages) {
      const report::DrawsByTask tasks = draws_of(stage, group);
      if (tasks.empty()) continue;
      std::size_t novel = 0, of_template = 0;
      for (const auto& [task, draws] : tasks)
        for (const store::SampleRow* draw : draws) {
          novel += report::is_novel(*draw) ? 1 : 0;
          of_template += report::is_novel(*draw) && draw->of_template ? 1 : 0;
        }
      std::printf("%-26s %6zu %26s %26s %22s %22s %5zu of %zu\n", stage.c_str(), tasks.size(),
                  mean(tasks, report::valid_share, false, "").c_str(),
                  mean(tasks, report::novel_share, false, "").c_str(),
                  mean(tasks, report::mean_log_gain, true, "x").c_str(),
                  mean(tasks, report::mean_log_novel_gain, true, "x").c_str(), of_template, novel);
    }
    for (std::size_t to = 1; to < stages.size(); ++to)
      for (std::size_t from = 0; from < to; ++from) {
        const report::DrawsByTask before = draws_of(stages[from], group), after = draws_of(stages[to], group);
        const bool common = std::any_of(before.begin(), before.end(),
                                        [&](const auto& task) { return after.contains(task.first); });
        const auto difference = [&](const report::DrawFigure& figure) -> std::string {
          if (!common) return "no samples";
          return interval(report::paired_change(before, after, figure), false, "");
        };
        std::printf("  %s -> %s: valid %s; log one draw %s; of novel programs %s\n", stages[from].c_str(),
                    stages[to].c_str(), difference(report::valid_share).c_str(),
                    difference(report::mean_log_gain).c_str(),
                    difference(report::mean_log_novel_gain).c_str());
      }
  }
  std::printf(
      "\n%zu seeds; intervals: 95 %% bootstrap over tasks, differences paired. As template: novel programs "
      "that a template\nof the grammar writes for the task, too.\n",
      results.size());
  return 0;
}

// Does the model learn? Runs the quickstart with several seeds, 32 programs a task drawn from each stage's frozen checkpoint at the
// same temperature and with the same form of prompt, and prints the table of stages with bootstrap intervals over tasks and seeds.
//
//   learning [--seeds 1,2,3] [--folder DIR] [--workflow FILE] [--samples 32] [--only-table]
//
// Runs that are in DIR are gone on with; with --only-table they are only read.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/store/results.h"

namespace {

using namespace warpsmith;

struct Options {
  std::vector<std::string> seeds = {"1", "2", "3"};
  fs::path folder = fs::path(WARPSMITH_BINARY_DIR) / "learning";
  fs::path workflow = fs::path(WARPSMITH_SOURCE_DIR) / "workflows/quickstart.yaml";
  std::string samples = "32";
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
    if (flag == "--seeds") options.seeds = split(value(), ',');
    else if (flag == "--folder") options.folder = value();
    else if (flag == "--workflow") options.workflow = value();
    else if (flag == "--samples") options.samples = value();
    else if (flag == "--only-table") options.only_table = true;
    else {
      std::fprintf(stderr, "learning: unknown option %s\n", flag.c_str());
      std::exit(2);
    }
  }
  return options;
}

// One evaluated stage of all seeds: group -> task -> seed -> samples.
using Cells = std::map<std::string, std::map<std::string, std::map<std::string, std::vector<const store::SampleRow*>>>>;

using Figure = std::function<double(const std::vector<const store::SampleRow*>&)>;

bool is_valid(const store::SampleRow& s) { return s.verdict == to_string(Verdict::kOk) && s.speedup > 0; }

double valid_share(const std::vector<const store::SampleRow*>& samples) {
  return static_cast<double>(std::count_if(samples.begin(), samples.end(), [](const auto* s) { return is_valid(*s); })) /
         static_cast<double>(samples.size());
}

// Mean logarithm of what one draw gains: a failure counts as `failure`, a speedup not below `floor`.
Figure log_one_draw(double floor, double failure) {
  return [floor, failure](const std::vector<const store::SampleRow*>& samples) {
    double sum = 0;
    for (const auto* s : samples) sum += std::log(is_valid(*s) ? std::max(floor, s->speedup) : failure);
    return sum / static_cast<double>(samples.size());
  };
}

std::vector<std::vector<double>> matrix(const Cells& cells, const std::string& group, const std::vector<std::string>& seeds, const Figure& figure) {
  std::vector<std::vector<double>> rows;
  const auto it = cells.find(group);
  if (it == cells.end()) return rows;
  for (const auto& [task, by_seed] : it->second) {
    std::vector<double> row;
    for (const std::string& seed : seeds) {
      const auto found = by_seed.find(seed);
      if (found == by_seed.end()) break;
      row.push_back(figure(found->second));
    }
    if (row.size() == seeds.size()) rows.push_back(std::move(row));
  }
  return rows;
}

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
      const std::string command = (fs::path(WARPSMITH_BINARY_DIR) / "warpsmith").string() + " run " + options.workflow.string() + " --seed " + seed +
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

  // Stages that draw from a frozen checkpoint, in the order of the run.
  std::vector<std::string> stages;
  std::map<std::string, Cells> by_stage;
  for (std::size_t s = 0; s < results.size(); ++s) {
    std::set<std::string> evaluations;
    for (const store::StageRow& stage : results[s].stages)
      if (stage.kind == "measure") evaluations.insert(stage.name);
    for (const store::SampleRow& sample : results[s].generated) {
      if (!evaluations.contains(sample.stage)) continue;
      const auto verdict = parse_verdict(sample.verdict);
      if (!verdict || *verdict == Verdict::kUnsupported || *verdict == Verdict::kNotMeasured) continue;
      by_stage[sample.stage][sample.group][sample.task][options.seeds[s]].push_back(&sample);
    }
  }
  // Alphabetical names say nothing of the order; the workflow's three stages do.
  for (const char* part : {"sft", "self_supervised", "contrastive"})
    for (const auto& [name, cells] : by_stage)
      if (name.ends_with(part)) stages.push_back(name);

  const Figure one_draw = log_one_draw(1.0, 1.0), no_floor = log_one_draw(0.0, 0.01);
  for (const char* group : {"train", "heldout_combination", "heldout_operation"}) {
    std::printf("\n%s\n%-28s %8s %10s %28s %28s\n", group, "after", "valid", "geo. mean", "one draw", "one draw, no floor");
    for (const std::string& stage : stages) {
      const Cells& cells = by_stage[stage];
      const auto valid = matrix(cells, group, options.seeds, valid_share);
      if (valid.empty()) continue;
      std::vector<double> correct;
      for (const auto& [task, by_seed] : cells.at(group))
        for (const auto& [seed, samples] : by_seed)
          for (const auto* sample : samples)
            if (is_valid(*sample)) correct.push_back(sample->speedup);
      std::printf("%-28s %7.1f%% %9.3fx %28s %28s\n", stage.c_str(), 100 * stats::bootstrap_mean(valid).estimate,
                  correct.empty() ? 0.0 : stats::geometric_mean(correct),
                  interval(stats::bootstrap_mean(matrix(cells, group, options.seeds, one_draw)), true, "x").c_str(),
                  interval(stats::bootstrap_mean(matrix(cells, group, options.seeds, no_floor)), true, "x").c_str());
    }
    for (std::size_t to = 1; to < stages.size(); ++to)
      for (std::size_t from = 0; from < to; ++from) {
        const auto difference = [&](const Figure& figure) -> std::string {
          const auto before = matrix(by_stage[stages[from]], group, options.seeds, figure);
          const auto after = matrix(by_stage[stages[to]], group, options.seeds, figure);
          if (before.empty() || before.size() != after.size()) return "no samples";
          return interval(stats::paired_bootstrap(before, after), false, "");
        };
        std::printf("  %s -> %s: valid %s; log one draw %s; log one draw, no floor %s\n", stages[from].c_str(), stages[to].c_str(),
                    difference(valid_share).c_str(), difference(one_draw).c_str(), difference(no_floor).c_str());
      }
  }
  std::printf("\n%zu seeds; intervals: 95 %% bootstrap over tasks and seeds, differences paired.\n", results.size());
  return 0;
}

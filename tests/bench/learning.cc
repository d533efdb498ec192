// Does the model learn? Runs the quickstart with several seeds of the split, some programs a task drawn from each
// stage's frozen checkpoint at the same temperature and with the same form of prompt, and prints the table of stages
// with bootstrap intervals over the tasks of all seeds.
//
//   learning [--seeds 1,2,3] [--folder DIR] [--workflow FILE] [--samples 4] [--only-table]
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

// One evaluated stage of all seeds: group -> seed and task -> samples. Each seed has tasks of its own.
using Cells = std::map<std::string, std::map<std::string, std::vector<const store::SampleRow*>>>;

using Figure = std::function<double(const std::vector<const store::SampleRow*>&)>;

bool is_valid(const store::SampleRow& s) { return s.verdict == to_string(Verdict::kOk) && s.speedup > 0; }

double valid_share(const std::vector<const store::SampleRow*>& samples) {
  return static_cast<double>(std::count_if(samples.begin(), samples.end(), [](const auto* s) { return is_valid(*s); })) /
         static_cast<double>(samples.size());
}

// Mean logarithm of what one draw gains: a failure counts 1, a speedup not below 1.
double log_one_draw(const std::vector<const store::SampleRow*>& samples) {
  double sum = 0;
  for (const auto* s : samples) sum += is_valid(*s) ? std::log(std::max(1.0, s->speedup)) : 0;
  return sum / static_cast<double>(samples.size());
}

double novel_share(const std::vector<const store::SampleRow*>& samples) {
  return static_cast<double>(std::count_if(samples.begin(), samples.end(), [](const auto* s) { return is_valid(*s) && !s->known; })) /
         static_cast<double>(samples.size());
}

// One draw where a known program counts as none.
double log_novel_draw(const std::vector<const store::SampleRow*>& samples) {
  double sum = 0;
  for (const auto* s : samples) sum += is_valid(*s) && !s->known ? std::log(std::max(1.0, s->speedup)) : 0;
  return sum / static_cast<double>(samples.size());
}

// Of each task of the group a row.
std::vector<std::vector<double>> rows_of(const Cells& cells, const std::string& group, const Figure& figure) {
  std::vector<std::vector<double>> rows;
  if (const auto it = cells.find(group); it != cells.end())
    for (const auto& [task, samples] : it->second) rows.push_back({figure(samples)});
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
      const std::string command = (fs::path(WARPSMITH_BINARY_DIR) / "warpsmith").string() + " run " + options.workflow.string() +
                                  " --seed " + seed + " --split-seed " + seed +
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
      by_stage[sample.stage][sample.group][options.seeds[s] + "/" + sample.task].push_back(&sample);
    }
  }
  // Alphabetical names say nothing of the order; the workflow's three stages do.
  for (const char* part : {"sft", "self_supervised", "contrastive"})
    for (const auto& [name, cells] : by_stage)
      if (name.ends_with(part)) stages.push_back(name);

  const auto mean = [](const std::vector<std::vector<double>>& rows, bool exponentiate, const char* unit) {
    return interval(stats::bootstrap_mean(rows), exponentiate, unit);
  };
  for (const char* group : {"train", "heldout_combination", "heldout_length", "heldout_operation", "heldout_people"}) {
    std::printf("\n%s\n%-26s %6s %26s %26s %22s %22s %12s\n", group, "after", "tasks", "valid", "novel", "one draw", "of novel", "as template");
    for (const std::string& stage : stages) {
      const Cells& cells = by_stage[stage];
      const auto valid = rows_of(cells, group, valid_share);
      if (valid.empty()) continue;
      std::size_t novel = 0, of_template = 0;
      for (const auto& [task, samples] : cells.at(group))
        for (const auto* sample : samples) {
          novel += is_valid(*sample) && !sample->known ? 1 : 0;
          of_template += is_valid(*sample) && sample->of_template ? 1 : 0;
        }
      std::printf("%-26s %6zu %26s %26s %22s %22s %5zu of %zu\n", stage.c_str(), valid.size(), mean(valid, false, "").c_str(),
                  mean(rows_of(cells, group, novel_share), false, "").c_str(), mean(rows_of(cells, group, log_one_draw), true, "x").c_str(),
                  mean(rows_of(cells, group, log_novel_draw), true, "x").c_str(), of_template, novel);
    }
    for (std::size_t to = 1; to < stages.size(); ++to)
      for (std::size_t from = 0; from < to; ++from) {
        const auto difference = [&](const Figure& figure) -> std::string {
          const auto before = rows_of(by_stage[stages[from]], group, figure), after = rows_of(by_stage[stages[to]], group, figure);
          if (before.empty() || before.size() != after.size()) return "no samples";
          return interval(stats::paired_bootstrap(before, after), false, "");
        };
        std::printf("  %s -> %s: valid %s; log one draw %s; of novel programs %s\n", stages[from].c_str(), stages[to].c_str(),
                    difference(valid_share).c_str(), difference(log_one_draw).c_str(), difference(log_novel_draw).c_str());
      }
  }
  std::printf("\n%zu seeds; intervals: 95 %% bootstrap over tasks, differences paired. As template: novel programs that a template\n"
              "of the grammar writes for the task, too.\n", results.size());
  return 0;
}

// warpsmith compare A B: two runs side by side, or a run and published scores.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "print.h"
#include "table.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/report/compare.h"
#include "warpsmith/report/kernelbench.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string a, b, by = "task", format = "table", output, device, baseline_times;
  std::optional<int> level;
};

bool is_run(const CommandContext& context, const std::string& name) {
  return path_exists(fs::path(name) / "run.json") || path_exists(context.results / name / "run.json");
}

// The file of published scores that `name` is, or holds.
std::optional<fs::path> published_file(const std::string& name) {
  const fs::path inside = fs::path(name) / "eval_results.json";
  if (is_folder(name)) return path_exists(inside) ? std::optional(inside) : std::nullopt;
  return path_exists(name) ? std::optional(fs::path(name)) : std::nullopt;
}

// The level of all of the run's tasks of KernelBench, where they have one.
std::optional<int> level_of(const store::Results& run) {
  std::optional<int> level;
  for (const store::TaskRow& task : run.tasks)
    if (const auto problem = report::kernelbench_problem(task.id)) {
      if (level && *level != problem->level) return std::nullopt;
      level = problem->level;
    }
  return level;
}

report::RunComparison compared(const Options& options, const CommandContext& context) {
  if (options.a.empty() || options.b.empty()) throw Error("A or B is empty: name both", kExitUsage);
  const store::Results a = controller::current_results(find_run(context, options.a));
  const std::optional<fs::path> file = is_run(context, options.b) ? std::nullopt : published_file(options.b);
  if (!file) {
    const store::Results b = controller::current_results(find_run(context, options.b));
    report::Side side_a = report::side_of(a), side_b = report::side_of(b);
    if (side_a.name == side_b.name) {
      side_a.name = options.a;
      side_b.name = options.b;
    }
    return report::compare_sides(side_a, side_b);
  }
  const report::Published published = report::read_published(
      *file,
      {.level = options.level ? options.level : level_of(a), .baseline_times = options.baseline_times});
  return report::compare_sides(
      report::side_of(a, report::Over::kAll),
      report::side_of(published, options.b + " (" + published.form + ")", a, options.device));
}

std::string ratio_text(const report::Pair& pair) {
  if (!pair.ratio) return pair.why.empty() ? "–" : pair.why;
  if (!pair.has_interval) return fmt::format("{:.2f}×", pair.ratio->value);
  return fmt::format("{:.2f}× [{:.2f}, {:.2f}]{}", pair.ratio->value, pair.ratio->low, pair.ratio->high,
                     !pair.significant()     ? ""
                     : pair.ratio->value > 1 ? " faster"
                                             : " slower");
}

std::string change_text(const report::Pair& pair) {
  return pair.changed() ? pair.a->verdict + " → " + pair.b->verdict : "";
}

std::string pairs_text(const report::Pairing& pairing, bool by_program, const CommandContext& context) {
  Table table({{"task"}, {"program"}, {"device"}, {"baseline"}, {"A"}, {"B"}, {"B/A"}, {"verdict"}});
  bool any = false;
  for (const report::Pair& pair : pairing.rows) {
    if (!pair.a || !pair.b) continue;
    any = true;
    table.add({pair.task, by_program ? pair.candidate.substr(0, 12) : "", pair.device, pair.baseline,
               pair.a->text(), pair.b->text(), ratio_text(pair), change_text(pair)});
  }
  return any ? table.text(context) : "";
}

// "name, name and 3 more" behind what there is of them.
std::string named(const std::string& what, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  if (names.empty()) return "";
  std::string out = fmt::format("  {}: {}", names.size(), what);
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) out += (i == 0 ? ": " : ", ") + names[i];
  if (names.size() > kMost) out += fmt::format(" and {} more", names.size() - kMost);
  return out + "\n";
}

template <typename Which>
std::vector<std::string> names_where(const report::Pairing& pairing, const Which& which) {
  std::vector<std::string> names;
  for (const report::Pair& pair : pairing.rows)
    if (which(pair))
      names.push_back(pair.candidate.empty() ? pair.task : pair.task + "/" + pair.candidate.substr(0, 12));
  return names;
}

std::string summary_text(const std::string& title, const report::Pairing& p) {
  std::string out = fmt::format("{}: {} paired", title, p.paired);
  if (p.ratios > 0)
    out += fmt::format(
        "; B/A over {} with a speedup on both sides: geometric mean {:.3f}×, median {:.3f}×; {} "
        "significantly faster, {} slower",
        p.ratios, *p.geometric_mean, *p.median, p.faster, p.slower);
  out += "\n";
  out += named("no longer ok", names_where(p, [](const report::Pair& x) { return x.no_longer_ok(); }));
  out += named("now ok", names_where(p, [](const report::Pair& x) { return x.now_ok(); }));
  out += named("only in A", names_where(p, [](const report::Pair& x) { return !x.b; }));
  out += named("only in B", names_where(p, [](const report::Pair& x) { return !x.a; }));
  return out + named("not on the same kind of device over the same baseline", p.apart);
}

std::string comparison_text(const report::RunComparison& c, bool by_program, const CommandContext& context) {
  const report::Pairing& rows = by_program ? c.programs : c.tasks;
  std::string out = fmt::format("A: {}\nB: {}\n", c.a, c.b);
  for (const std::string& note : c.notes) out += "Note: " + note + "\n";
  const std::string pairs = pairs_text(rows, by_program, context);
  out += "\n" + pairs + (pairs.empty() ? "" : "\n");
  out += summary_text("Tasks, by the fastest correct program", c.tasks);
  return out + summary_text("Programs that both have measured", c.programs);
}

int compare(const Options& options, CommandContext& context) {
  const report::RunComparison c = compared(options, context);
  const bool by_program = options.by == "program";
  if (context.json) {
    print_json(context, report::run_comparison_json(c));
  } else {
    const bool csv = options.format == "csv";
    const std::string text =
        csv ? report::run_comparison_csv(c, by_program) : comparison_text(c, by_program, context);
    if (!options.output.empty())
      write_file_atomic(options.output, text);
    else if (csv)
      print_data(text);
    else
      print("%s", text);
  }
  if (c.tasks.paired > 0) return kExitOk;
  print_error(
      "warpsmith: nothing could be paired: no task was measured on both sides on the same kind of device "
      "over the same baseline\n");
  return kExitFailed;
}

}  // namespace

void add_compare(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "compare", "Compares two runs, or a run with published scores, task by task",
                  "warpsmith compare quickstart quickstart-2 --by program",
                  [options, &context] { return compare(*options, context); });
  expect(Word::kRun, command->add_option("A", options->a, "Name or folder of a run"))->required();
  expect(Word::kRun,
         command->add_option(
             "B", options->b,
             "Another run, or published scores: a file of CUDA-L1's optimized_cuda_code (JSON lines), "
             "or an eval_results.json of KernelBench"))
      ->required();
  command
      ->add_option("--by", options->by,
                   "task: the fastest correct program of each; program: those that both have measured")
      ->check(CLI::IsMember({"task", "program"}));
  command->add_option("--format", options->format, "table: pairs and what they come to; csv: every row")
      ->check(CLI::IsMember({"table", "csv"}));
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->add_option("--device", options->device,
                      "Kind of device of published scores (default: as the file says)");
  command->add_option("--level", options->level,
                      "Level of KernelBench's eval_results.json (default: that of the run's tasks)");
  command->add_option("--baseline-times", options->baseline_times,
                      "KernelBench's baseline_time_torch.json, which the times of an eval_results.json are "
                      "compared with");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

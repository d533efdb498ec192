// `warpsmith tasks synthesize`: tasks from a grammar, with programs for them, as a folder of tasks or as
// modules in KernelBench's form.
#include "tasks_synthesize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/synthesis/write.h"

namespace warpsmith::cli {

namespace {

struct Options {
  synthesis::Settings settings;
  std::string into, form = "task";
  bool programs = true;
  std::vector<std::string> without;  // folders of tasks
};

// A folder that is there is somebody's.
void check_target(const fs::path& into) {
  std::error_code error;
  if (path_exists(into) && !(fs::is_directory(into, error) && fs::is_empty(into, error)))
    throw Error("--into: " + into.string() + " is there already, and not empty", kExitUsage);
}

int synthesize_tasks(const Options& options, CommandContext& context) {
  if (options.form != "task" && options.form != "kernelbench")
    throw Error("--form: task or kernelbench", kExitUsage);
  if (options.into.empty()) throw Error("--into: name a folder", kExitUsage);
  check_target(options.into);
  synthesis::Settings settings = options.settings;
  for (const std::string& folder : options.without) synthesis::leave_out(folder, settings);
  const synthesis::Synthesis made = synthesis::synthesize(settings);
  const bool modules = options.form == "kernelbench";
  synthesis::write_tasks(made, settings, options.into,
                         modules ? synthesis::TaskForm::kKernelBench : synthesis::TaskForm::kTask,
                         options.programs);
  if (context.json) {
    print_json(context, synthesis::summary_of(made, settings));
    return kExitOk;
  }
  std::map<std::string, int> splits;
  for (const synthesis::Synthesised& one : made.tasks) ++splits[one.split];
  const synthesis::Dropped& dropped = made.dropped;
  std::string text;
  for (const auto& [split, count] : splits) text += fmt::format("{:<22} {} tasks\n", split, count);
  text += fmt::format("held out: operators {}; {} pairs\n", fmt::join(made.operators_out, ", "),
                      made.pairs_out.size());
  text += fmt::format(
      "dropped: {} known, {} duplicates, {} degenerate, {} with a step that changes nothing, {} with nothing "
      "to gain, {} with long programs\n",
      dropped.known, dropped.duplicate, dropped.degenerate, dropped.redundant, dropped.without_gain,
      dropped.long_programs);
  text += fmt::format("in {}\n", options.into);
  print_text(stdout, text);
  return kExitOk;
}

}  // namespace

void add_tasks_synthesize(CLI::App& tasks, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(tasks, context, "synthesize",
                                  "Makes tasks from a grammar of operators, with programs for them",
                                  "warpsmith tasks synthesize --count 1000 --heldout 50 --into synthesised",
                                  [options, &context] { return synthesize_tasks(*options, context); });
  synthesis::Settings& s = options->settings;
  command->add_option("--into", options->into, "A new folder")->required();
  command->add_option("--count", s.count, "Tasks to train on")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--unsolved", s.unsolved, "More tasks to train on, without programs to learn from")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--sft-only", s.sft_only,
                   "More tasks, whose programs are learned as they are and never measured")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--heldout", s.heldout,
                   "Tasks of each kind that is held out: new pairs of operators, operators "
                   "never seen, longer chains")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--seed", s.seed, "Of what is drawn")->capture_default_str();
  command->add_option("--split-seed", s.split_seed, "Of which pairs and operators are held out")
      ->capture_default_str();
  command
      ->add_option("--program-bytes", s.program_bytes,
                   "Longest program that is learned from; tasks that have only longer ones are dropped")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--traced-share", s.traced_share,
                   "Share of the tasks that are written as KernelBench's are")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--families", s.families,
                   "What tasks begin with, as many of each: chains, pooling, convolution; the last two are "
                   "always written as KernelBench's are")
      ->delimiter(',')
      ->check(CLI::IsMember({"chains", "pooling", "convolution"}))
      ->capture_default_str();
  command
      ->add_option("--branches", s.branches,
                   "Share of the tasks in which two branches meet: a residual x + f(x), a gate x * f(x) or a "
                   "gate by a function of another matrix")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option(
          "--half-precision", s.half_precision,
          "Share of the tasks that have 16 bits an element: float16, or bfloat16 where float16 could "
          "overflow; products and tasks that are written as KernelBench's stay float32")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--longest", s.longest, "Operators of a trained chain, at most")
      ->check(CLI::Range(1, 12))
      ->capture_default_str();
  command
      ->add_option("--without", options->without,
                   "Folder of tasks: none that equals one of them is made (may be given again)")
      ->allow_extra_args(false);
  command->add_option("--form", options->form, "`task`: a folder of tasks; `kernelbench`: modules")
      ->capture_default_str();
  command->add_flag("!--no-programs", options->programs, "Tasks alone");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

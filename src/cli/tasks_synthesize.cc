// `warpsmith tasks synthesize`: tasks from a grammar, with programs for them, as a folder of tasks or as
// modules in KernelBench's form.
#include "tasks_synthesize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/synthesis/programs.h"
#include "warpsmith/synthesis/synthesize.h"
#include "warpsmith/synthesis/task_text.h"
#include "warpsmith/task/task.h"

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

void write_task(const Options& options, const synthesis::Synthesised& one, std::size_t number) {
  if (options.form == "kernelbench") {
    const fs::path level =
        fs::path(options.into) / "KernelBench" / fmt::format("level{}", one.chain.names().size() > 1 ? 2 : 1);
    make_folders(level);
    write_file_atomic(level / fmt::format("{}_{}.py", number, one.id),
                      synthesis::kernelbench_module(one.chain));
    return;
  }
  const fs::path folder = fs::path(options.into) / one.id;
  const std::string origin =
      fmt::format("synthesised (seed {}, split seed {})", options.settings.seed, options.settings.split_seed);
  make_folders(folder);
  write_file_atomic(folder / "task.yaml", synthesis::task_file(one.chain, {one.id, one.split, origin}));
  if (!options.programs) return;
  make_folders(folder / "candidates/ok");
  for (const synthesis::Program& program : synthesis::programs_of(one.chain))
    write_file_atomic(folder / "candidates/ok" / (program.name + ".cu"), program.source);
}

// Parts of tasks that people have written, by the grammar's names and sorted.
std::vector<std::string> in_the_grammars_words(const std::vector<std::string>& ops) {
  static const std::map<std::string, std::vector<std::string>> kWords = {
      {"row_mean", {"row_mean"}},           {"layer_norm", {"standardize", "weight", "bias"}},
      {"rms_norm", {"rms_norm", "weight"}}, {"softmax", {"row_softmax"}},
      {"cumsum", {"row_cumsum"}},           {"gather", {"gather_rows"}}};
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] == "row_mean" && i + 1 < ops.size() && ops[i + 1] == "center")
      continue;  // center has its mean
    if (const auto it = kWords.find(ops[i]); it != kWords.end())
      out.insert(out.end(), it->second.begin(), it->second.end());
    else
      out.push_back(ops[i]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Tasks of somebody's, by which what was learned is to be judged: none like them is made.
void leave_out(const std::string& folder, synthesis::Settings& settings) {
  Diagnostics mistakes;
  for (const task::Task& task : task::load_tasks(folder, mistakes)) {
    settings.without.insert(in_the_grammars_words(task.ops));
    settings.without_references.insert(synthesis::normal_form_of_reference(task.reference));
  }
  if (!mistakes.empty()) throw InvalidInput(std::move(mistakes));
}

int synthesize_tasks(const Options& options, CommandContext& context) {
  if (options.form != "task" && options.form != "kernelbench")
    throw Error("--form: task or kernelbench", kExitUsage);
  if (options.into.empty()) throw Error("--into: name a folder", kExitUsage);
  check_target(options.into);
  synthesis::Settings settings = options.settings;
  for (const std::string& folder : options.without) leave_out(folder, settings);
  const synthesis::Synthesis made = synthesis::synthesize(settings);
  std::map<std::string, int> splits;
  Json list = Json::array();
  for (std::size_t i = 0; i < made.tasks.size(); ++i) {
    const synthesis::Synthesised& one = made.tasks[i];
    write_task(options, one, i + 1);
    ++splits[one.split];
    list.push_back({{"task", one.id}, {"split", one.split}, {"ops", one.chain.names()}});
  }
  const synthesis::Dropped& dropped = made.dropped;
  const Json summary = {{"schema", "warpsmith.synthesis/1"},
                        {"seed", options.settings.seed},
                        {"split_seed", options.settings.split_seed},
                        {"longest", options.settings.longest},
                        {"operators_out", made.operators_out},
                        {"pairs_out", made.pairs_out},
                        {"dropped",
                         {{"known", dropped.known},
                          {"duplicate", dropped.duplicate},
                          {"degenerate", dropped.degenerate},
                          {"redundant", dropped.redundant},
                          {"without_gain", dropped.without_gain}}},
                        {"tasks", std::move(list)}};
  write_file_atomic(fs::path(options.into) / "synthesis.json", summary.dump(2) + "\n");
  if (context.json) {
    print_json(context, summary);
    return kExitOk;
  }
  std::string text;
  for (const auto& [split, count] : splits) text += fmt::format("{:<22} {} tasks\n", split, count);
  text += fmt::format("held out: operators {}; {} pairs\n", fmt::join(made.operators_out, ", "),
                      made.pairs_out.size());
  text += fmt::format(
      "dropped: {} known, {} duplicates, {} degenerate, {} with a step that changes nothing, {} with nothing "
      "to gain\n",
      dropped.known, dropped.duplicate, dropped.degenerate, dropped.redundant, dropped.without_gain);
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
  command
      ->add_option("--heldout", s.heldout,
                   "Tasks of each kind that is held out: new pairs of operators, operators "
                   "never seen, longer chains")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--seed", s.seed, "Of what is drawn")->capture_default_str();
  command->add_option("--split-seed", s.split_seed, "Of which pairs and operators are held out")
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

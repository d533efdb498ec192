// `warpsmith import`: other people's tasks as folders of tasks, and other people's kernels beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "import_kernels.h"
#include "import_tasks.h"
#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/report/published.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string what;
  std::vector<std::string> paths;
  std::string into, checkout, task;
  std::vector<int> levels;
  bool unsandboxed = false;
};

const std::vector<std::string> kKinds = {"kernelbench", "kernelbench-run", "cuda-l1", "kernels"};

// What became of everything.
struct Outcome {
  std::vector<KernelBenchTask> tasks;
  std::size_t kernels = 0, there = 0, missing = 0, without_task = 0;
  Diagnostics mistakes;
};

// `at`: where the kernel stands, for messages.
void add(const fs::path& task_folder, const ForeignKernel& kernel, Diagnostic at, Outcome& outcome) {
  const Added added = add_kernel(task_folder, kernel, at.message);
  if (!at.message.empty()) {
    outcome.mistakes.push_back(std::move(at));
    return;
  }
  ++(added == Added::kNew ? outcome.kernels : added == Added::kThere ? outcome.there : outcome.missing);
}

// The task of a reference: cuda_l1_level1_19; with a number behind it where another reference has that name.
std::string id_of_reference(const fs::path& into, const report::ReleaseRecord& record,
                            const std::set<std::string>& used) {
  constexpr int kMost = 16;
  const std::string name = fmt::format("cuda_l1_level{}_{}", record.level, record.number);
  std::string unused;
  for (int i = 1; i <= kMost; ++i) {
    const std::string id = i == 1 ? name : fmt::format("{}_{}", name, i);
    if (used.contains(id)) continue;
    const bool there = path_exists(into / id / "task.yaml");
    if (there && path_exists(into / id / kModuleFile) &&
        read_file(into / id / kModuleFile) == record.reference)
      return id;
    if (!there && unused.empty()) unused = id;
  }
  if (unused.empty()) throw Error(fmt::format("there are {} other references of {}", kMost, name));
  return unused;
}

void import_cuda_l1(const Options& options, Outcome& outcome) {
  struct Found {
    fs::path file;
    report::ReleaseRecord record;
    std::size_t task;
  };
  const TemporaryFolder references("references");
  std::vector<Found> all;
  std::map<std::tuple<int, int, std::string>, std::size_t> tasks;
  std::set<std::string> used;
  for (const fs::path file : options.paths)
    for (report::ReleaseRecord& record : report::read_release(file, outcome.mistakes)) {
      const auto& levels = options.levels;
      if (!levels.empty() && std::find(levels.begin(), levels.end(), record.level) == levels.end()) continue;
      if (record.reference.empty()) {
        outcome.mistakes.push_back({file.string(), record.line, 0,
                                    (record.line > 0 ? "" : record.place + ": ") + "it has no `ref_code`",
                                    ""});
        continue;
      }
      const auto [task, is_new] =
          tasks.emplace(std::tuple(record.level, record.number, record.reference), outcome.tasks.size());
      if (is_new) {
        const std::string id = id_of_reference(options.into, record, used);
        used.insert(id);
        const fs::path written = references.path() / (id + ".py");
        write_file_atomic(written, record.reference);
        outcome.tasks.push_back(
            {written, record.level, record.number, id,
             fmt::format("CUDA-L1 level {}, task {}", record.level, record.number),
             fmt::format("CUDA-L1's release, level {}, task {}", record.level, record.number),
             fmt::format("{}, {}", file.string(), record.place)});
      }
      all.push_back({file, std::move(record), task->second});
    }
  make_tasks(options.into, outcome.tasks, options.unsandboxed);
  for (const Found& one : all) {
    const KernelBenchTask& task = outcome.tasks[one.task];
    if (!task.refused.empty()) {
      ++outcome.without_task;
      continue;
    }
    ForeignKernel kernel;
    kernel.name = imported_name(one.file.stem().string());
    kernel.text = one.record.kernel;
    kernel.origin = {
        {"from", one.file.filename().string()}, {"at", one.record.place}, {"published", one.record.scores}};
    if (!one.record.missing.empty()) kernel.origin["missing"] = one.record.missing;
    add(fs::path(options.into) / task.id, kernel, {one.file.string(), one.record.line, 0, "", ""}, outcome);
  }
}

void import_run(const Options& options, Outcome& outcome) {
  const std::vector<RunKernel> kernels = read_kernelbench_run(options.paths.front(), outcome.mistakes);
  std::set<int> levels;
  for (const RunKernel& one : kernels) levels.insert(one.level);
  const auto is_of = [](const RunKernel& one, const KernelBenchTask& task) {
    return one.level == task.level && one.number == task.number;
  };
  outcome.tasks = find_kernelbench(options.checkout, {levels.begin(), levels.end()});
  std::erase_if(outcome.tasks, [&](const KernelBenchTask& task) {
    return std::none_of(kernels.begin(), kernels.end(),
                        [&](const RunKernel& one) { return is_of(one, task); });
  });
  make_tasks(options.into, outcome.tasks, options.unsandboxed);
  for (const RunKernel& one : kernels) {
    const auto task = std::find_if(outcome.tasks.begin(), outcome.tasks.end(),
                                   [&](const KernelBenchTask& other) { return is_of(one, other); });
    if (task == outcome.tasks.end())
      outcome.mistakes.push_back(
          {one.file.string(), 0, 0,
           fmt::format("{} has no problem {} of level {}", options.checkout, one.number, one.level), ""});
    else if (!task->refused.empty())
      ++outcome.without_task;
    else
      add(fs::path(options.into) / task->id, one.kernel, {one.file.string(), 0, 0, "", ""}, outcome);
  }
}

void import_kernels(const Options& options, Outcome& outcome) {
  Diagnostics mistakes;
  if (!task::load_task(options.task, mistakes)) throw InvalidInput(mistakes);
  for (const ForeignKernel& kernel : read_kernels(options.paths, outcome.mistakes))
    add(options.task, kernel, {kernel.origin.at("from").get<std::string>(), 0, 0, "", ""}, outcome);
}

void check(const Options& options) {
  const std::string& what = options.what;
  const auto usage = [&](const std::string& why) { throw Error("import " + what + ": " + why, kExitUsage); };
  if (std::find(kKinds.begin(), kKinds.end(), what) == kKinds.end())
    throw Error("`" + what +
                    "` is nothing that can be imported: kernelbench, kernelbench-run, cuda-l1 or kernels" +
                    did_you_mean(what, kKinds, {.before = " (", .after = ")"}),
                kExitUsage);
  for (const int level : options.levels)
    if (level < 1 || level > 3) throw Error("--level: 1, 2 or 3", kExitUsage);
  const bool of_run = what == "kernelbench-run", tasks = what != "kernels";
  if (options.into.empty() == tasks) usage(tasks ? "give --into DIR" : "--task FOLDER stands for --into");
  if (options.task.empty() != tasks) usage(tasks ? "--into DIR stands for --task" : "give --task FOLDER");
  if (options.checkout.empty() == of_run)
    usage(of_run ? "give --kernelbench CHECKOUT" : "--kernelbench is for kernelbench-run");
  if (!options.levels.empty() && (of_run || !tasks)) usage("--level is for kernelbench and cuda-l1");
  if ((what == "kernelbench" || of_run) && options.paths.size() != 1) usage("give one PATH");
}

void print_outcome(const Options& options, const Outcome& outcome, CommandContext& context) {
  Json imported = Json::array(), there = Json::array(), refused = Json::array(), mistakes = Json::array();
  for (const KernelBenchTask& task : outcome.tasks) {
    if (!task.refused.empty())
      refused.push_back({{"task", task.id}, {"file", task.place}, {"why", task.refused}});
    else
      (task.there ? there : imported).push_back(task.id);
  }
  for (const Diagnostic& mistake : outcome.mistakes)
    mistakes.push_back({{"file", mistake.file}, {"line", mistake.line}, {"message", mistake.message}});
  if (context.json) {
    print_json(context, {{"imported", imported},
                         {"there_already", there},
                         {"refused", refused},
                         {"mistakes", mistakes},
                         {"kernels",
                          {{"imported", outcome.kernels},
                           {"there_already", outcome.there},
                           {"missing", outcome.missing},
                           {"of_refused_tasks", outcome.without_task}}}});
    return;
  }
  print_diagnostics(outcome.mistakes);
  for (const Json& one : refused)
    print("%s: refused: %s\n", one.at("file").get<std::string>(), one.at("why").get<std::string>());
  if (options.task.empty())
    print("%zu tasks imported into %s, %zu refused, %zu were there already\n", imported.size(), options.into,
          refused.size(), there.size());
  if (options.what == "kernelbench") return;
  print("%zu kernels imported, %zu were there already", outcome.kernels, outcome.there);
  if (outcome.missing > 0) print(", %zu are missing where they come from", outcome.missing);
  if (outcome.without_task > 0) print(", %zu are of refused tasks", outcome.without_task);
  print("\n");
}

int import_all(const Options& options, CommandContext& context) {
  check(options);
  Outcome outcome;
  if (options.what == "kernelbench") {
    outcome.tasks = find_kernelbench(options.paths.front(), options.levels);
    make_tasks(options.into, outcome.tasks, options.unsandboxed);
  } else if (options.what == "cuda-l1") {
    import_cuda_l1(options, outcome);
  } else if (options.what == "kernelbench-run") {
    import_run(options, outcome);
  } else {
    import_kernels(options, outcome);
  }
  print_outcome(options, outcome, context);
  const bool refused = std::any_of(outcome.tasks.begin(), outcome.tasks.end(),
                                   [](const KernelBenchTask& task) { return !task.refused.empty(); });
  return refused || !outcome.mistakes.empty() ? kExitFailed : kExitOk;
}

}  // namespace

void add_import(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "import", "Takes in other people's tasks and kernels",
                                  "warpsmith import cuda-l1 optimized_cuda_code/h100.json --into tasks",
                                  [options, &context] { return import_all(*options, context); });
  command->add_option("WHAT", options->what, "kernelbench, kernelbench-run, cuda-l1 or kernels")->required();
  command
      ->add_option("PATH", options->paths,
                   "A checkout of KernelBench; the folder of a run of it; files of CUDA-L1's release; "
                   "files of kernels (.py, .cu) or folders of them")
      ->required();
  command->add_option("--into", options->into, "Folder that the tasks' folders come to lie in");
  command->add_option("--task", options->task, "With kernels: the folder of their task");
  command->add_option("--kernelbench", options->checkout, "With kernelbench-run: the checkout of its tasks");
  command->add_option("--level", options->levels, "This level alone, 1 to 3 (may be given again)")
      ->allow_extra_args(false);
  command->add_flag("--unsandboxed", options->unsandboxed, "Go on where there is no sandbox");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

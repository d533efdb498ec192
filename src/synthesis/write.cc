#include "warpsmith/synthesis/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/synthesis/programs.h"
#include "warpsmith/synthesis/task_text.h"
#include "warpsmith/task/task.h"

namespace warpsmith::synthesis {

namespace {

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

// Without waiting for the disk: a file of a folder that counts when it is whole.
void write_file(const fs::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw Error("cannot write " + path.string());
}

void write_module(const fs::path& into, const Synthesised& one, std::size_t number) {
  const fs::path level = into / "KernelBench" / fmt::format("level{}", one.chain.names().size() > 1 ? 2 : 1);
  make_folders(level);
  write_file(level / fmt::format("{}_{}.py", number, one.id), has_windows(one.chain)
                                                                  ? kernelbench_module(one.chain, *one.traced)
                                                                  : kernelbench_module(one.chain));
}

void write_task(const fs::path& into, const Synthesised& one, const Settings& settings, bool programs) {
  const fs::path folder = into / one.id;
  make_folders(folder);
  const TaskLabel label = {
      one.id, one.split,
      fmt::format("synthesised (seed {}, split seed {})", settings.seed, settings.split_seed)};
  write_file(folder / "task.yaml",
             one.traced ? task_file(one.chain, *one.traced, label) : task_file(one.chain, label));
  if (!programs) return;
  const fs::path place = folder / (one.solved ? "candidates/ok" : "templates");
  make_folders(place);
  for (const Program& program : programs_of(one))
    if (!one.solved || settings.program_bytes == 0 ||
        static_cast<int>(program.source.size()) <= settings.program_bytes)
      write_file(place / (program.name + ".cu"), program.source);
}

}  // namespace

void leave_out(const fs::path& folder, Settings& settings) {
  Diagnostics mistakes;
  for (const task::Task& task : task::load_tasks(folder, mistakes)) {
    settings.without.insert(in_the_grammars_words(task.ops));
    const std::set<std::string> parts(task.ops.begin(), task.ops.end());  // of KernelBench: torch's
    settings.without.insert(std::vector<std::string>(parts.begin(), parts.end()));
    // Without weight and bias, or with those of a module that was just made.
    for (const char* norm : {"batch_norm", "group_norm", "instance_norm", "layer_norm"})
      if (parts.contains(norm)) settings.without.insert({"standardize"});
    settings.without_references.insert(normal_form_of_reference(task.reference));
  }
  if (!mistakes.empty()) throw InvalidInput(std::move(mistakes));
}

void write_tasks(const Synthesis& made, const Settings& settings, const fs::path& into, TaskForm form,
                 bool programs) {
  make_folders(into);
  for (std::size_t i = 0; i < made.tasks.size(); ++i) {
    if (form == TaskForm::kKernelBench)
      write_module(into, made.tasks[i], i + 1);
    else
      write_task(into, made.tasks[i], settings, programs);
  }
  write_file_atomic(into / "synthesis.json", summary_of(made, settings).dump(2) + "\n");
}

Json summary_of(const Synthesis& made, const Settings& settings) {
  Json list = Json::array();
  for (const Synthesised& one : made.tasks)
    list.push_back({{"task", one.id}, {"split", one.split}, {"ops", one.chain.names()}});
  const Dropped& dropped = made.dropped;
  return {{"schema", "warpsmith.synthesis/1"},
          {"seed", settings.seed},
          {"split_seed", settings.split_seed},
          {"longest", settings.longest},
          {"operators_out", made.operators_out},
          {"pairs_out", made.pairs_out},
          {"dropped",
           {{"known", dropped.known},
            {"duplicate", dropped.duplicate},
            {"degenerate", dropped.degenerate},
            {"redundant", dropped.redundant},
            {"without_gain", dropped.without_gain},
            {"long_programs", dropped.long_programs}}},
          {"tasks", std::move(list)}};
}

}  // namespace warpsmith::synthesis

#include "warpsmith/task/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan_text.h"
#include "warpsmith/base/text.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::task {

namespace {

// Right candidates of a task: what a model may learn from wants several designs.
constexpr int kLeastOk = 6, kLeastOkOfExtra = 2;
// The largest L2 of the GPUs that we know, an L40's. What fits may stay there from launch to launch.
constexpr std::int64_t kLargestL2 = 96 << 20;
// FLOPs a byte from which a GPU's arithmetic is the bound in float32, not its memory: an H100's 50 TFLOP/s at
// 3 TB/s.
constexpr std::int64_t kBoundByCompute = 16;

const std::set<std::string, std::less<>>& words() {
  static const std::set<std::string, std::less<>> kWords = {
      "auto",    "bool",     "break",  "case",     "char",   "const",     "constexpr", "continue",
      "default", "define",   "do",     "double",   "else",   "enum",      "extern",    "float",
      "for",     "if",       "inline", "int",      "long",   "namespace", "operator",  "pragma",
      "return",  "short",    "signed", "sizeof",   "static", "struct",    "switch",    "template",
      "typedef", "typename", "union",  "unsigned", "using",  "void",      "volatile",  "while"};
  return kWords;
}

std::string describe(const Dims& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

void check_plan(const Task& task, const CandidateFile& file, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.size();
  const LaunchPlan plan = LaunchPlan::parse(file.source, task, file.path.string(), diagnostics);
  if (diagnostics.size() != before) return;
  for (const auto* shapes : {&task.timing, &task.gpu_timing, &task.hidden}) {
    for (const Dims& dims : *shapes) {
      try {
        plan.evaluate(plan_bindings(task, dims));
      } catch (const PlanError& error) {
        if (file.expected == (error.out_of_memory ? "out_of_memory" : "launch_error")) return;
        diagnostics.push_back(
            {file.path.string(), error.line, 1, "at " + describe(dims) + ": " + error.message, ""});
        return;
      }
    }
  }
}

void check_plans(const Task& task, const std::vector<CandidateFile>& files, Diagnostics& diagnostics) {
  for (const CandidateFile& file : files)
    if (file.expected != "compile_error") check_plan(task, file, diagnostics);
}

void check_forms(const std::vector<CandidateFile>& files, Diagnostics& diagnostics) {
  std::map<std::string, std::string> forms, texts;  // to the first file with it
  for (const CandidateFile& file : files) {
    const auto [same, fresh] = texts.try_emplace(file.source, file.path.string());
    if (!fresh) {
      diagnostics.push_back({file.path.string(), 0, 0, "the same text as " + same->second, ""});
    } else if (file.expected == "ok") {
      const auto [alike, new_form] = forms.try_emplace(form(file.source), file.path.string());
      if (!new_form)
        diagnostics.push_back(
            {file.path.string(), 0, 0, "differs only in names and constants from " + alike->second, ""});
    }
  }
}

// A GPU needs shapes of its own: at those of a CPU it mostly waits for the host's launches.
void check_gpu_shapes(const Task& task, Diagnostics& diagnostics) {
  const std::string path = (task.folder / "task.yaml").string();
  if (!task.small.empty()) return;
  if (task.gpu_timing.empty()) {
    diagnostics.push_back(
        {path, 0, 0, "`timing` has no shapes for GPUs",
         "timing: {cpu: [...], gpu: [...]}, or `small: why` where the task is to be small"});
    return;
  }
  if (!task.bytes || !task.flops) return;
  const Dims& dims = task.gpu_timing.front();
  const std::int64_t bytes = task.bytes->evaluate(dims_scope(dims));
  if (bytes > kLargestL2 || task.flops->evaluate(dims_scope(dims)) / kBoundByCompute >= bytes) return;
  diagnostics.push_back({path, 0, 0,
                         "at " + describe(dims) + " memory is the bound, and " +
                             format_size(static_cast<std::uint64_t>(bytes)) + " fit into a GPU's L2 of " +
                             format_size(kLargestL2),
                         "take a larger first shape for GPUs, or say `small: why`"});
}

// How many there are, imported ones included.
std::size_t with_host_code(const Task& task, Diagnostics& diagnostics) {
  return load_hosted_sources(task, diagnostics).size() +
         load_imported_sources(task.folder, diagnostics).size();
}

void check_task(const Task& task, Diagnostics& diagnostics, DatasetCount& count) {
  const std::string path = (task.folder / "task.yaml").string();
  if (!task.flops) diagnostics.push_back({path, 0, 0, "`flops` is missing", ""});
  if (!task.bytes) diagnostics.push_back({path, 0, 0, "`bytes` is missing", ""});
  check_gpu_shapes(task, diagnostics);
  const std::vector<CandidateFile> files = load_candidate_files(task, diagnostics);
  count.tasks += 1;
  count.candidates += static_cast<int>(files.size() + with_host_code(task, diagnostics));
  check_plans(task, files, diagnostics);
  std::map<std::string, int> found;
  for (const CandidateFile& file : files) ++found[file.expected];
  check_forms(files, diagnostics);
  const int ok = task.split == Split::kExtra ? kLeastOkOfExtra : kLeastOk;
  for (const auto& [expected, least] : {std::pair("ok", ok), std::pair("compile_error", 1),
                                        std::pair("wrong_output", 1), std::pair("wrong_hidden", 1)}) {
    if (found[expected] < least) {
      diagnostics.push_back({(task.folder / "candidates" / expected).string(), 0, 0,
                             std::to_string(found[expected]) + " candidates where at least " +
                                 std::to_string(least) + (least == 1 ? " is" : " are") + " needed",
                             ""});
    }
  }
}

}  // namespace

std::string form(std::string_view source) {
  std::string out;
  const auto put = [&out](std::string_view token) {
    if (!out.empty()) out += ' ';
    out += token;
  };
  std::size_t i = 0;
  const auto next = [&](std::size_t k) { return i + k < source.size() ? source[i + k] : '\0'; };
  while (i < source.size()) {
    const char c = source[i];
    if (c == '/' && next(1) == '/') {
      i = std::min(source.find('\n', i), source.size());
    } else if (c == '/' && next(1) == '*') {
      const std::size_t end = source.find("*/", i + 2);
      i = end == std::string_view::npos ? source.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      ++i;
      while (i < source.size() && source[i] != c) i += source[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, source.size());
      put("S");
    } else if (is_letter(c)) {
      const std::size_t begin = i;
      while (is_letter(next(0)) || is_digit(next(0))) ++i;
      const std::string_view word = source.substr(begin, i - begin);
      put(words().count(word) != 0 ? word : "I");
    } else if (is_digit(c) || (c == '.' && is_digit(next(1)))) {
      while (is_letter(next(0)) || is_digit(next(0)) || next(0) == '.' ||
             ((next(0) == '+' || next(0) == '-') && (source[i - 1] == 'e' || source[i - 1] == 'E'))) {
        ++i;
      }
      put("N");
    } else {
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') put(source.substr(i, 1));
      ++i;
    }
  }
  return out;
}

int check_candidates(const Task& task, Diagnostics& diagnostics) {
  std::vector<CandidateFile> files = load_candidate_files(task, diagnostics);
  for (CandidateFile& file : load_template_files(task, diagnostics)) files.push_back(std::move(file));
  check_plans(task, files, diagnostics);
  return static_cast<int>(files.size() + with_host_code(task, diagnostics));
}

DatasetCount check_dataset(const std::filesystem::path& folder, Diagnostics& diagnostics) {
  DatasetCount count;
  const std::size_t before = diagnostics.size();
  const std::vector<Task> tasks = load_tasks(folder, diagnostics);
  if (tasks.empty() && diagnostics.size() == before)
    diagnostics.push_back(
        {folder.string(), 0, 0, "there is no task here", "a folder with a task.yaml for each task"});
  for (const Task& task : tasks) {
    if (task.imported.empty()) {
      check_task(task, diagnostics, count);
    } else {
      count.tasks += 1;
      count.candidates += check_candidates(task, diagnostics);
    }
  }
  return count;
}

}  // namespace warpsmith::task

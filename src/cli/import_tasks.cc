#include "import_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <regex>
#include <system_error>

#include "job_here.h"
#include "print.h"
#include "validate_tasks.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/process/stop_signals.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/sandboxed.h"
#include "warpsmith/python/scripts.h"
#include "warpsmith/yaml/node.h"

extern const char kernelbench_degenerate[];
extern const unsigned long kernelbench_degenerate_size;

namespace warpsmith::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kAChild = 6;  // files that a child describes, so that progress can be told
constexpr std::size_t kMostChildren = 16;
constexpr std::uint64_t kUsualBytes = 6ull << 30;  // of a child; some take more
constexpr double kSecondsAFile = 300, kStartSeconds = 60;
constexpr std::uint64_t kMemory = 12ull << 30;
constexpr std::uint64_t kCpuBytes = 64ull << 20;  // of a call's operands at the shape that CPUs time
constexpr std::int64_t kHidden[] = {3, 1, 2};     // batches for checks

fs::path python_with_torch() {
  const std::optional<fs::path> python = python::find_python();
  if (!python) throw Error("there is no python3 here, and KernelBench's tasks are modules of Python");
  if (!python::ask_python(*python, "import torch, json; print(json.dumps(torch.__version__))"))
    throw Error(python->string() + " has no torch");
  return *python;
}

// Takes the answers of a child that was asked about `asked`, in turn. One that has ended before its time was
// ended by the file that it was at.
void take_answers(const process::ChildResult& result, const std::vector<KernelBenchTask*>& asked) {
  std::size_t next = 0;
  for (const std::string& line : split_lines(result.out)) {
    if (next == asked.size()) break;
    Json answer = Json::parse(line, nullptr, false);
    // Anything else was written by a module.
    if (!answer.is_object() || !answer.contains("file") ||
        answer.at("file") != fs::absolute(asked[next]->file).string())
      continue;
    KernelBenchTask& task = *asked[next++];
    task.refused = answer.value("refused", "");
    if (task.refused.empty()) task.described = answer.value("task", Json());
    if (task.refused.empty() && task.described.is_null()) task.refused = "its description cannot be read";
  }
  if (next == asked.size()) return;
  const std::vector<std::string> words = split_lines(trim(result.err));
  asked[next]->refused = result.ending == process::Ending::kMemoryLimit
                             ? fmt::format("it takes over {} GiB", kMemory >> 30)
                         : result.ending == process::Ending::kTimedOut ? "it takes too long"
                         : words.empty()                               ? "its python3 ended"
                                                                       : "its python3 ended: " + words.back();
}

// In the batch: what stands before each of its powers.
using Polynomial = std::vector<std::uint64_t>;

Polynomial sum(const Polynomial& a, const Polynomial& b) {
  Polynomial all(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = (i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0);
  return all;
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  Polynomial all(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) all[i + j] += a[i] * b[j];
  return all;
}

std::uint64_t value_at(const Polynomial& polynomial, std::int64_t batch) {
  std::uint64_t value = 0;
  for (std::size_t i = polynomial.size(); i-- > 0;)
    value = value * static_cast<std::uint64_t>(batch) + polynomial[i];
  return value;
}

// "3 * BATCH + 1", "BATCH", "8".
Polynomial size_of(const std::string& word) {
  Polynomial size = {0};
  for (const std::string& part : split(word, '+')) {
    Polynomial term = {1};
    for (const std::string& factor : split(part, '*'))
      term = product(term, trim(factor) == "BATCH"
                               ? Polynomial{0, 1}
                               : Polynomial{static_cast<std::uint64_t>(std::stoll(trim(factor)))});
    size = sum(size, term);
  }
  return size;
}

Polynomial bytes_of(const Json& tensor) {
  const std::string dtype = tensor.at("dtype");
  Polynomial bytes = {dtype == "float64" || dtype == "int64"                          ? 8u
                      : dtype == "bool" || dtype == "uint8" || dtype == "int8"        ? 1u
                      : dtype == "float16" || dtype == "bfloat16" || dtype == "int16" ? 2u
                                                                                      : 4u};
  for (const Json& word : tensor.at("shape")) bytes = product(bytes, size_of(word.get<std::string>()));
  return bytes;
}

// Of the operands of a call. `compulsory`: without inputs of which a program may know some values unread, as
// of a triangular matrix.
Polynomial operand_bytes(const Json& described, bool compulsory = false) {
  Polynomial bytes = {0};
  for (const char* list : {"inputs", "outputs"})
    for (const Json& tensor : described.at(list))
      if (!compulsory || tensor.value("compulsory", true)) bytes = sum(bytes, bytes_of(tensor));
  return bytes;
}

std::string shape_of(const Json& tensor) {
  std::string text;
  for (const Json& word : tensor.at("shape")) text += (text.empty() ? "" : ", ") + word.get<std::string>();
  return "[" + text + "]";
}

std::string tensor_line(const std::string& name, const Json& tensor) {
  std::string line = fmt::format("  {}: {{shape: {}", name, shape_of(tensor));
  if (tensor.value("role", "data") != "data") line += ", role: " + tensor.at("role").get<std::string>();
  if (tensor.at("dtype") != "float32") line += ", dtype: " + tensor.at("dtype").get<std::string>();
  if (tensor.contains("key")) line += ", state_dict: \"" + tensor.at("key").get<std::string>() + "\"";
  if (tensor.contains("values")) line += ", values: \"" + tensor.at("values").get<std::string>() + "\"";
  return line + "}\n";
}

std::string timing_lines(const Json& described) {
  const std::int64_t batch = described.at("batch");
  const std::int64_t least = described.value("least_batch", 1);
  std::int64_t on_cpu = batch;
  const Polynomial bytes = operand_bytes(described);
  while (on_cpu > least && value_at(bytes, on_cpu) > kCpuBytes) on_cpu = (on_cpu + 1) / 2;
  std::string text =
      on_cpu == batch
          ? fmt::format("timing: [{{BATCH: {}}}]\n", batch)
          : fmt::format("timing:\n  cpu: [{{BATCH: {}}}]\n  gpu: [{{BATCH: {}}}]\n", on_cpu, batch);
  std::string hidden;
  for (const std::int64_t size : kHidden)
    if (size != batch && size != on_cpu && size >= least && hidden.size() < 24)
      hidden += fmt::format("{}{{BATCH: {}}}", hidden.empty() ? "" : ", ", size);
  return text + "hidden: [" + hidden + "]\n";
}

// Where all data is drawn from [0, 1), a program that is right for that alone would pass: relu would be a
// copy.
std::string distribution_line(const Json& described) {
  std::string text;
  if (!described.value("any_draws", true)) return "";
  for (const Json& input : described.at("inputs")) {
    if (input.at("role") != "data" || !input.value("drawn", true)) continue;
    if (input.at("values") != "uniform(0, 1)") return "";
    text += (text.empty() ? "" : ", ") + input.at("name").get<std::string>() + ": \"normal(0, 1)\"";
  }
  return text.empty() ? "" : "distributions: [{" + text + "}]\n";
}

// "bytes: 98304 * BATCH + 1024"; nothing where that is nothing.
std::string cost_line(const char* key, const Polynomial& cost) {
  std::string text;
  for (std::size_t power = cost.size(); power-- > 0;) {
    if (cost[power] == 0) continue;
    text += (text.empty() ? "" : " + ") + std::to_string(cost[power]);
    for (std::size_t i = 0; i < power; ++i) text += " * BATCH";
  }
  return text.empty() ? "" : fmt::format("{}: {}\n", key, text);
}

std::string program_lines(const char* key, const std::string& program) {
  std::string text = fmt::format("{}: |\n", key);
  for (const std::string& line : split_lines(program))
    if (!line.empty()) text += "  " + line + "\n";
  return text;
}

}  // namespace

namespace {

// The folder of its levels.
fs::path levels_of(const fs::path& checkout) {
  return is_folder(checkout / "level1") || !is_folder(checkout / "KernelBench") ? checkout
                                                                                : checkout / "KernelBench";
}

// Those that are there.
std::vector<int> levels_in(const fs::path& folder) {
  std::vector<int> levels;
  for (int level = 1; level <= 3; ++level)
    if (is_folder(folder / fmt::format("level{}", level))) levels.push_back(level);
  return levels;
}

}  // namespace

bool is_kernelbench(const fs::path& folder) { return !levels_in(levels_of(folder)).empty(); }

std::vector<KernelBenchTask> find_kernelbench(const fs::path& checkout, const std::vector<int>& levels) {
  static const std::regex kFile("([0-9]+)_(.*)\\.py");
  std::vector<KernelBenchTask> tasks;
  const fs::path folder = levels_of(checkout);
  std::vector<int> wanted = levels.empty() ? levels_in(folder) : levels;
  if (wanted.empty()) wanted = {1};
  for (const int level : wanted) {
    const fs::path below = folder / fmt::format("level{}", level);
    if (!is_folder(below))
      throw Error(fmt::format("{}: there is no folder level{} in it; a checkout of KernelBench has one",
                              checkout.string(), level),
                  kExitUsage);
    std::vector<std::pair<int, KernelBenchTask>> found;
    for (const fs::path& path : folder_entries(below)) {
      std::smatch match;
      const std::string name = path.filename().string();
      if (!std::regex_match(name, match, kFile) || match[1].length() > 6) continue;
      std::string id = fmt::format("level{}_{}", level, path.stem().string());
      for (char& c : id)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      while (id.ends_with('_')) id.pop_back();
      std::string title = match[2];
      std::replace(title.begin(), title.end(), '_', ' ');
      const int number = std::stoi(match[1]);
      found.emplace_back(number,
                         KernelBenchTask{path, level, number, id, trim(title),
                                         fmt::format("KernelBench level{}/{}", level, name), path.string()});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second.id) < std::tie(b.first, b.second.id);
    });
    for (auto& [number, task] : found) tasks.push_back(std::move(task));
  }
  if (tasks.empty()) throw Error(checkout.string() + " holds no task of KernelBench", kExitUsage);
  return tasks;
}

void describe_tasks(std::vector<KernelBenchTask>& tasks, bool unsandboxed,
                    const std::function<void(std::size_t, std::size_t)>& progress) {
  const auto is_open = [](const KernelBenchTask* task) {
    return task->described.is_null() && task->refused.empty() && !task->there;
  };
  std::vector<KernelBenchTask*> open;
  for (KernelBenchTask& task : tasks)
    if (is_open(&task)) open.push_back(&task);
  if (open.empty()) return;
  const std::size_t all = open.size();
  const fs::path python = python_with_torch();
  const TemporaryFolder folder("import");
  const fs::path script = folder.path() / "import_task.py", scratch = folder.path() / "scratch";
  write_file_atomic(script, python::import_task_script());
  make_folders(scratch);
  const process::StopSignals signals;
  const std::size_t fit = process::available_memory() / kUsualBytes;
  const auto children_at_once =
      std::clamp<std::size_t>(std::min(process::allowed_cpus().size(), fit), 1, kMostChildren);
  while (!open.empty()) {
    std::vector<std::vector<KernelBenchTask*>> asked;
    std::vector<process::Child> children;
    for (std::size_t at = 0; at < open.size() && asked.size() < children_at_once; at += kAChild) {
      const auto begin = open.begin() + static_cast<std::ptrdiff_t>(at);
      asked.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(kAChild, open.size() - at)));
      process::ChildSpec spec = python::sandboxed_python(python, script, scratch, kMemory, unsandboxed);
      for (const KernelBenchTask* task : asked.back()) {
        spec.input += fs::absolute(task->file).string() + "\n";
        spec.sandbox.read_only.push_back(fs::absolute(task->file));
      }
      spec.limits.wall_s = kStartSeconds + kSecondsAFile * static_cast<double>(asked.back().size());
      children.emplace_back(spec);
    }
    wait_for_all(children);
    for (std::size_t i = 0; i < children.size(); ++i) take_answers(children[i].wait(), asked[i]);
    std::erase_if(open, [&](const KernelBenchTask* task) { return !is_open(task); });
    progress(all - open.size(), all);
  }
}

namespace {

std::map<std::string, std::string> read_degenerate() {
  Diagnostics mistakes;
  const yaml::Node list = yaml::load_text({kernelbench_degenerate, kernelbench_degenerate_size},
                                          "kernelbench_degenerate.yaml", mistakes);
  std::map<std::string, std::string> why;
  for (const yaml::Entry& entry : list.entries())
    if (const yaml::Node* reason = entry.value.find("why"))
      why[entry.key] = yaml::read_string(*reason, "`why`", mistakes).value_or("");
  if (!mistakes.empty()) throw Error(to_string(mistakes.front()));
  return why;
}

}  // namespace

std::string why_degenerate(const std::string& sha256) {
  static const std::map<std::string, std::string> known = read_degenerate();
  const auto found = known.find(sha256);
  return found == known.end() ? "" : found->second;
}

std::string task_yaml(const KernelBenchTask& task) {
  const Json& d = task.described;
  const std::string sha256 = sha256_hex(read_file(task.file)), why = why_degenerate(sha256);
  std::string ops;
  for (const Json& op : d.at("ops")) ops += (ops.empty() ? "" : ", ") + op.get<std::string>();
  std::string text = fmt::format(
      "# Made by `warpsmith import`.\n"
      "schema: warpsmith.task/1\ntitle: \"{}\"\nimported: \"{}, SHA-256 {}\"\n"
      "level: {}\nsplit: train\nops: [{}]\n{}dims: [BATCH]\ninputs:\n",
      task.title, task.source, sha256, task.level, ops, why.empty() ? "" : "degenerate: \"" + why + "\"\n");
  for (const Json& input : d.at("inputs")) text += tensor_line(input.at("name"), input);
  std::string scalars;
  for (const Json& scalar : d.at("scalars"))
    scalars += fmt::format("{}{}: {}", scalars.empty() ? "" : ", ", scalar.at("name").get<std::string>(),
                           scalar.at("value").dump());
  if (!scalars.empty()) text += "scalars: {" + scalars + "}\n";
  text += "outputs:\n";
  const std::size_t outputs = d.at("outputs").size();
  for (std::size_t i = 0; i < outputs; ++i)
    text += tensor_line(outputs == 1 ? "out" : fmt::format("out{}", i), d.at("outputs").at(i));
  text += timing_lines(d);
  text += distribution_line(d) + cost_line("flops", d.at("flops").get<Polynomial>()) +
          cost_line("bytes", operand_bytes(d, true));
  text += fmt::format(
      "math: torch_default\nmemory: {}GiB\nmodule: {}\n",
      1 + ((4 * value_at(operand_bytes(d), d.at("batch")) + d.at("made").get<std::uint64_t>()) >> 30),
      kModuleFile);
  if (d.contains("prepare")) text += program_lines("prepare", d.at("prepare"));
  text += program_lines("reference", d.at("reference"));
  return text;
}

namespace {

// Takes its folder back.
void refuse(const fs::path& folder, std::string why, KernelBenchTask& task) {
  task.refused = std::move(why);
  std::error_code error;
  for (const char* name : {"task.yaml", kModuleFile}) fs::remove(folder / name, error);
  fs::remove(folder, error);  // stays where there is more in it
}

// Writes the task's folder; nothing is left of it where the task is none after all.
std::optional<task::Task> write_task(const fs::path& folder, KernelBenchTask& from) {
  Diagnostics mistakes;
  make_folders(folder);
  write_file_atomic(folder / kModuleFile, read_file(from.file));
  write_file_atomic(folder / "task.yaml", task_yaml(from));
  std::optional<task::Task> task = task::load_task(folder, mistakes);
  if (!task) refuse(folder, to_string(mistakes.front()), from);
  return task;
}

// Takes the folders back of those whose reference does not compile.
void compile_all(const std::vector<task::Task>& written, std::vector<KernelBenchTask>& tasks,
                 const fs::path& into) {
  Diagnostics mistakes;
  if (written.empty()) return;
  if (!compile_references(written, mistakes)) {
    print_error("note: references were not compiled: warpsmith-measure was not built\n");
    return;
  }
  for (const Diagnostic& mistake : mistakes)
    for (KernelBenchTask& task : tasks)
      if (fs::path(mistake.file) == into / task.id / "task.yaml")
        refuse(into / task.id, mistake.message, task);
}

// Whether the task's folder is made of the same module.
bool is_there(const fs::path& folder, const KernelBenchTask& task) {
  return path_exists(folder / kModuleFile) && read_file(folder / kModuleFile) == read_file(task.file);
}

}  // namespace

void make_tasks(const fs::path& into, std::vector<KernelBenchTask>& tasks, bool unsandboxed) {
  for (KernelBenchTask& task : tasks) {
    task.there = path_exists(into / task.id / "task.yaml");
    if (task.there && !is_there(into / task.id, task))
      task.refused = (into / task.id).string() + " was made of another module, and stays as it is";
  }
  describe_tasks(tasks, unsandboxed, [&](std::size_t done, std::size_t all) {
    print_error("described %zu of %zu\n", done, all);
  });
  std::vector<task::Task> written;
  for (KernelBenchTask& task : tasks)
    if (task.refused.empty() && !task.there)
      if (std::optional<task::Task> one = write_task(into / task.id, task))
        written.push_back(std::move(*one));
  compile_all(written, tasks, into);
}

}  // namespace warpsmith::cli

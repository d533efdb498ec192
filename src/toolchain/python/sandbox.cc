#include "sandbox.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "../common/hosted.h"
#include "../nvcc/nvcc.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/scripts.h"

// compile.py, made by CMake.
extern const char python_compile_py[];

namespace warpsmith::toolchain {

namespace {

constexpr const char* kScript = "warpsmith_compile.py";
constexpr std::uint64_t kLeastTreeMemory = 8ull
                                           << 30;  // two nvcc with torch's headers, and python3 with torch
constexpr std::uint64_t kFileBytes = 512ull << 20;
constexpr std::uint64_t kReportBytes = 4ull << 20;
constexpr double kPackSeconds = 120;

constexpr const char* kTaskModule = "task_module.py";

std::string script() {
  return python::extension_key_script() + "\n\n" + python::task_module_script() + "\n\n" + python_compile_py;
}

// "9.0a", as torch writes it.
std::string torch_architecture(const GpuTarget& target) {
  std::string text = std::to_string(target.major) + "." + std::to_string(target.minor);
  if (target.variant != 0) text += target.variant;
  return text;
}

// So that `-lcublas` finds one that lies in a wheel, whose file is called libcublas.so.13.
void link_libraries(const fs::path& folder) {
  make_folders(folder);
  std::error_code error;
  for (const auto& [name, path] : nvcc_here().libraries)
    fs::create_symlink(path, folder / ("lib" + name + ".so"), error);
}

process::ChildSpec python_spec(const PythonHere& here, const fs::path& folder,
                               const CompileOptions& options) {
  process::ChildSpec spec = compiler_spec(folder, options);
  spec.limits.memory_bytes = 0;  // torch and nvcc reserve far more address space than they touch
  spec.limits.tree_memory_bytes = std::max(options.memory_bytes, kLeastTreeMemory);
  spec.limits.cpu_s = 0;  // the wall clock is enough: threads of torch's count together
  spec.limits.file_bytes = kFileBytes;
  spec.limits.output_bytes = kReportBytes;
  spec.sandbox.read_only = here.visible;
  std::map<std::string, std::string>& environment = *spec.environment;
  environment["PATH"] = here.python.parent_path().string() + ":" + environment["PATH"];
  environment["HOME"] = spec.folder.string();
  environment["PYTHONDONTWRITEBYTECODE"] = "1";
  environment["PYTHONNOUSERSITE"] = "1";
  environment["PYTHONUTF8"] = "1";
  for (const auto& [name, value] : python::python_variables()) environment[name] = value;
  return spec;
}

void show_compilers(const PythonHere& here, const GpuTarget& target, process::ChildSpec* spec) {
  const NvccHere& nvcc = nvcc_here();
  const fs::path toolkit = nvcc.nvcc.parent_path().parent_path(), libraries = spec->folder / "libraries";
  link_libraries(libraries);
  std::map<std::string, std::string>& environment = *spec->environment;
  environment["CUDA_HOME"] = toolkit.string();
  environment["TORCH_CUDA_ARCH_LIST"] = torch_architecture(target);
  environment["CXX"] = environment["CC"] = environment["NVCC_CCBIN"] = nvcc.host_compiler.string();
  // In the stubs are the libraries of the driver, which a node without GPU lacks.
  environment["LIBRARY_PATH"] = libraries.string() + ":" + (toolkit / "lib64/stubs").string();
  for (const fs::path& folder : nvcc.include_folders) environment["CPATH"] += folder.string() + ":";
  spec->sandbox.read_only.insert(spec->sandbox.read_only.end(), nvcc.visible.begin(), nvcc.visible.end());
  spec->sandbox.read_only.push_back(fs::canonical(here.ninja).parent_path());
  if (const fs::path folder = here.ninja.parent_path(); folder != here.python.parent_path())
    environment["PATH"] += ":" + folder.string();
}

// `words`: of our script.
process::ChildSpec build_spec(const PythonHere& here, const GpuTarget& target, const PythonFolders& folders,
                              const CompileOptions& options, double seconds,
                              const std::vector<std::string>& words) {
  process::ChildSpec spec = python_spec(here, folders.theirs, options);
  spec.limits.wall_s = seconds;
  spec.sandbox.allow_processes = true;
  spec.sandbox.read_only.push_back(folders.ours);
  std::map<std::string, std::string>& environment = *spec.environment;
  environment["TORCH_EXTENSIONS_DIR"] = (spec.folder / "torch").string();
  environment["TRITON_CACHE_DIR"] = (spec.folder / "triton").string();
  environment["MAX_JOBS"] = environment["OMP_NUM_THREADS"] = "2";
  if (here.extension.empty()) show_compilers(here, target, &spec);
  spec.argv = python::python_command(here.python);
  spec.argv.insert(spec.argv.end(), {"-s", "-B", (fs::absolute(folders.ours) / kScript).string()});
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  return spec;
}

// The last line that a program printed, cut.
std::string last_words(const std::string& output) {
  const std::string text = trim(output);
  return text.substr(text.rfind('\n') + 1).substr(0, 500);
}

}  // namespace

void try_python(const GpuTarget& target, const PythonFolders& folders, const CompileOptions& options,
                const PythonLimits& least) {
  static std::mutex mutex;
  static std::set<fs::path> tried;
  const PythonHere here = python_here();
  const std::lock_guard lock(mutex);
  if (tried.contains(here.python)) return;
  const CompilerRun run = run_compiler_child(
      build_spec(here, target, folders, options, std::max(options.timeout_s, least.whole_s), {"try"}));
  if (run.outcome != CompilerRun::kDone)
    throw Error(here.python.string() +
                " with torch does not start in the sandbox that modules are compiled in" +
                (run.outcome == CompilerRun::kTimedOut ? ": it took too long"
                 : run.output.empty()                  ? std::string()
                                                       : ": " + last_words(run.output)));
  tried.insert(here.python);
}

std::string digest_of_python_script() { return sha256_hex(script()).substr(0, 16); }

void write_python_sources(const Candidate& candidate, const std::string& task_module,
                          const PythonFolders& folders) {
  write_file_atomic(folders.ours / kScript, script());
  if (!task_module.empty()) write_file_atomic(folders.ours / kTaskModule, task_module);
  for (const fs::path& folder : {folders.ours, folders.theirs})
    for (const SourceFile& file : candidate.files) {
      make_folders((folder / "source" / file.path).parent_path());
      write_file_atomic(folder / "source" / file.path, file.content);
    }
}

Json forward_inputs(const task::Task& task) {
  Json inputs = Json::array();
  if (task.timing.empty()) return inputs;
  const task::Dims& dims = task.timing.front();
  for (const task::TensorSpec& input : task.inputs)
    inputs.push_back({{"dtype", task::to_string(input.dtype)}, {"shape", task::shape_at(input, dims)}});
  for (const task::ScalarSpec& scalar : task.scalars)
    inputs.push_back(scalar.is_float ? Json(scalar.value) : Json(static_cast<std::int64_t>(scalar.value)));
  return inputs;
}

PythonRun build_python(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                       const PythonFolders& folders, const CompileOptions& options,
                       const PythonLimits& least) {
  const PythonHere here = python_here();
  PythonRun run;
  run.limit_s = std::max(options.timeout_s, least.whole_s);
  const double own_s = std::min(run.limit_s, std::max(options.timeout_s, least.own_s));
  const fs::path ours = fs::absolute(folders.ours), order = ours / "build.json";
  const bool is_module = fs::exists(ours / kTaskModule);
  write_file_atomic(order, Json{{"files", paths_of(candidate)},
                                {"gencode", gencode(target)},
                                {"arch_list", torch_architecture(target)},
                                {"capability", {target.major, target.minor}},
                                {"lacks", here.extension},
                                {"task_module", is_module ? (ours / kTaskModule).string() : ""},
                                {"inputs", is_module ? Json::array() : forward_inputs(task)},
                                {"own_s", own_s}}
                               .dump());
  static_cast<CompilerRun&>(run) =
      run_compiler_child(build_spec(here, target, folders, options, run.limit_s, {"build", order.string()}));
  if (run.outcome != CompilerRun::kDone) return run;
  try {
    run.report = parse_json(run.output, "report");
  } catch (const Error&) {  // it ended before its time
  }
  return run;
}

std::string pack_python(const Candidate& candidate, const Json& index, const PythonFolders& folders,
                        const CompileOptions& options) {
  const PythonHere here = python_here();
  const fs::path order = fs::absolute(folders.ours) / "pack.json";
  write_file_atomic(order, Json{{"files", paths_of(candidate)}, {"index", index}}.dump());
  process::ChildSpec spec = python_spec(here, folders.ours, options);
  spec.limits.wall_s = kPackSeconds;
  spec.limits.file_bytes = kFileBytes + (64ull << 20);  // where nothing of it can be made smaller
  spec.sandbox.read_only.push_back(folders.theirs);
  // Python's own modules are enough, and no process may be made: so it is the program itself.
  // (-I takes no variables, and one whose place is told by PYTHONHOME wants that.)
  spec.argv = {fs::canonical(here.python).string(),
               python::python_variables().contains("PYTHONHOME") ? "-s" : "-I",
               "-B",
               kScript,
               "pack",
               order.string(),
               (fs::absolute(folders.theirs) / "extensions").string()};
  const CompilerRun run = run_compiler_child(spec);
  if (run.outcome == CompilerRun::kDone) return "";
  constexpr std::string_view kRefused = "refused: ";
  if (run.outcome == CompilerRun::kFailed && run.output.starts_with(kRefused))
    return trim(run.output.substr(kRefused.size()));
  throw Error("cannot pack what a module has built" +
              (run.output.empty() ? std::string() : ": " + last_words(run.output)));
}

}  // namespace warpsmith::toolchain

#include "tricks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "program_file.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/hosted_candidate.h"
#include "warpsmith/toolchain/python.h"

namespace warpsmith {

namespace {

constexpr double kCompileTimeout = 120;  // seconds; of a loaded machine

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(file.string() + ": " + what, kExitUsage);
}

bool is_hack_kind(const std::string& kind) {
  static const std::set<std::string> kinds = {
      "threads", "clocks", "late_work", "before_clock", "processors", "harness_memory", "slowed_baseline"};
  return kinds.contains(kind);
}

std::set<std::string> read_verdicts(const fs::path& file, const std::string& text) {
  std::set<std::string> verdicts;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t colon = word.find(':');
    const bool known = colon == std::string::npos
                           ? parse_verdict(word).has_value()
                           : word.substr(0, colon) == "hack" && is_hack_kind(word.substr(colon + 1));
    if (!known) refuse(file, "`" + word + "` is no verdict");
    verdicts.insert(word);
  }
  return verdicts;
}

// Folders are left out: `honest`, `shared`, and what Python leaves behind.
std::set<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) files.insert(entry.path());
  return files;
}

// Without verdicts.
Program read_program(const fs::path& file, Tier tier, const std::vector<task::Task>& tasks) {
  if (file.extension() != ending_of(tier)) refuse(file, std::string("does not end in ") + ending_of(tier));
  const std::string source = read_file(file), id = header(source, "task");
  const auto task = std::find_if(tasks.begin(), tasks.end(), [&](const task::Task& t) { return t.id == id; });
  if (task == tasks.end()) refuse(file, "no task `" + id + "`");
  Program program;
  program.name = file.stem().string();
  program.task = &*task;
  program.honest = header(source, "honest");
  program.candidate = make_candidate(tier, id, source);
  for (const fs::path& shared : files_in(file.parent_path() / "shared"))
    if (source.find("#include \"" + shared.filename().string() + "\"") != std::string::npos)
      program.candidate.files.push_back({shared.filename().string(), read_file(shared)});
  program.candidate.id = candidate_id(program.candidate);
  return program;
}

}  // namespace

std::vector<Program> load_tricks(const fs::path& folder, Tier tier, const std::vector<task::Task>& tasks) {
  std::vector<Program> tricks;
  for (const fs::path& file : files_in(folder)) {
    Program trick = read_program(file, tier, tasks);
    trick.allowed = read_verdicts(file, header(trick.candidate.source(), "verdict"));
    if (trick.allowed.contains("ok") != !trick.honest.empty())
      refuse(file, "`ok` wants an honest twin, and an honest twin `ok`");
    tricks.push_back(std::move(trick));
  }
  return tricks;
}

std::vector<Program> load_twins(const fs::path& folder, const fs::path& datasets,
                                const std::vector<Program>& tricks) {
  std::vector<Program> twins;
  for (const Program& trick : tricks) {
    const auto same = [&](const Program& twin) { return twin.name == trick.honest; };
    if (trick.honest.empty() || std::any_of(twins.begin(), twins.end(), same)) continue;
    const fs::path file = (trick.honest.starts_with("honest/") ? folder : datasets) /
                          (trick.honest + ending_of(trick.candidate.tier));
    if (!fs::exists(file)) refuse(file, "is the honest twin of " + trick.name + ", and is not here");
    Program twin;
    twin.name = trick.honest;
    twin.task = trick.task;
    twin.allowed = {"ok"};
    twin.candidate = make_candidate(trick.candidate.tier, trick.task->id, read_file(file));
    twins.push_back(std::move(twin));
  }
  return twins;
}

std::vector<Program> load_honest(const fs::path& folder, Tier tier, const std::vector<task::Task>& tasks) {
  std::vector<Program> programs;
  for (const fs::path& file : files_in(folder / "honest")) {
    Program program = read_program(file, tier, tasks);
    program.name = "honest/" + program.name;
    program.allowed = {"ok"};
    programs.push_back(std::move(program));
  }
  return programs;
}

std::vector<Program> honest_programs(const std::vector<task::Task>& tasks, const std::set<Tier>& tiers) {
  std::vector<Program> programs;
  Diagnostics diagnostics;
  for (const task::Task& task : tasks) {
    const auto add = [&](const std::string& name, Candidate candidate) {
      programs.push_back({task.id + "/" + name, &task, {"ok"}, "", std::move(candidate), {}});
    };
    for (const task::CandidateFile& file : task::load_candidate_files(task, diagnostics))
      if (tiers.contains(Tier::kPlan) && file.expected == "ok")
        add(file.name, make_plan_candidate(task.id, file.source, {}));
    for (const task::HostedSource& source : task::load_hosted_sources(task, diagnostics))
      if (const Tier tier = toolchain::tier_of(source.tier); tiers.contains(tier) && source.expected == "ok")
        add(std::string(to_string(tier)) + "/" + source.name,
            toolchain::make_hosted_candidate(task.id, source, {}));
  }
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  return programs;
}

void compile(std::vector<Program>& programs, const std::vector<toolchain::GpuTarget>& targets,
             const fs::path& cache) {
  toolchain::CompileOptions options;
  options.cache = cache;
  options.unsandboxed = true;
  options.timeout_s = kCompileTimeout;
  const auto compile_one = [&](Program& p) {
    if (p.candidate.tier == Tier::kPlan) {
      p.compiled = toolchain::compile_for_gpus(p.candidate, *p.task, targets, options);
      return;
    }
    for (const toolchain::GpuTarget& target : targets)
      p.compiled.push_back(p.candidate.tier == Tier::kPython
                               ? toolchain::compile_python(p.candidate, *p.task, target, options)
                               : toolchain::compile_extension(p.candidate, *p.task, target, options));
  };
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      try {
        for (std::size_t n = next++; n < programs.size(); n = next++) compile_one(programs[n]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        next = programs.size();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

std::string compile_problem(const Program& program, const toolchain::CompileResult& result) {
  const std::string verdict(to_string(result.verdict));
  if (program.allowed.contains(verdict)) return "";
  const bool only_fails = program.allowed == std::set<std::string>{"compile_error"};
  if (result.verdict == Verdict::kOk) return only_fails ? program.name + ": compiles, and was not to\n" : "";
  return program.name + ": " + verdict + "\n" + result.log;
}

bool lacks_library(const Program& program, const toolchain::CompileResult& result) {
  const char* const said = program.candidate.tier == Tier::kPython
                               ? "the module builds an extension"
                               : " is not here, neither with nvcc nor with torch";
  return program.candidate.tier != Tier::kPlan && result.verdict == Verdict::kUnsupported &&
         result.log.find(said) != std::string::npos;
}

}  // namespace warpsmith

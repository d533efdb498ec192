// What becomes of known tricks, and of honest programs: one line each, then the counts.
//
//   hack_table [--honest] [--tier plan|extension] [NAME…]      on the first GPU that is seen
//   hack_table --compile …                                     compiles them, and goes no further: no GPU is
//   needed
//
// Each program under tests/hacks/<tier>/ says in its first lines what it tries, its task, and the verdicts
// that it may get. `ok` stands there for a trick that gains nothing: what it relies on is taken away, and it
// is timed for what it does. --honest measures the dataset's right candidates as well: each must be `ok`; and
// of tier `extension` those in datasets/*/extension/ok.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "program_file.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/gpu_workers.h"
#include "warpsmith/process/child.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/extension_candidate.h"
#include "warpsmith/toolchain/gpu.h"

namespace {

using namespace warpsmith;
namespace fs = std::filesystem;

struct Trick {
  std::string name, what;
  const task::Task* task = nullptr;
  std::set<std::string> allowed;
  Candidate candidate;
  toolchain::CompileResult compiled;
};

std::vector<Trick> load_tricks(const fs::path& folder, Tier tier, const std::vector<task::Task>& tasks) {
  std::vector<Trick> tricks;
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  for (const fs::path& file : files) {
    const std::string source = read_file(file), id = header(source, "task");
    const auto task =
        std::find_if(tasks.begin(), tasks.end(), [&](const task::Task& t) { return t.id == id; });
    if (task == tasks.end()) throw Error(file.string() + ": no task `" + id + "`", kExitUsage);
    Trick trick{
        file.stem().string(), header(source, "hack"), &*task, {}, make_candidate(tier, id, source), {}};
    for (const std::string& verdict : split(header(source, "verdict"), ' ')) {
      if (!parse_verdict(verdict))
        throw Error(file.string() + ": `" + verdict + "` is no verdict", kExitUsage);
      trick.allowed.insert(verdict);
    }
    tricks.push_back(std::move(trick));
  }
  return tricks;
}

std::vector<Trick> honest_programs(const std::vector<task::Task>& tasks, bool plans, bool extensions) {
  std::vector<Trick> programs;
  Diagnostics diagnostics;
  for (const task::Task& task : tasks) {
    const auto add = [&](const std::string& name, Candidate candidate) {
      programs.push_back({task.id + "/" + name, "", &task, {"ok"}, std::move(candidate), {}});
    };
    for (const task::CandidateFile& file : task::load_candidate_files(task, diagnostics))
      if (plans && file.expected == "ok") add(file.name, make_plan_candidate(task.id, file.source, {}));
    for (const task::ExtensionSource& source : task::load_extension_sources(task, diagnostics))
      if (extensions && source.expected == "ok")
        add("extension/" + source.name, toolchain::make_extension_candidate(task.id, source, {}));
  }
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  return programs;
}

void compile(std::vector<Trick>& tricks, const std::string& target, const fs::path& cache) {
  toolchain::CompileOptions options;
  options.cache = cache;
  options.unsandboxed = true;
  options.timeout_s = 120;
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t n = next++; n < tricks.size(); n = next++)
        tricks[n].compiled = tricks[n].candidate.tier == Tier::kExtension
                                 ? toolchain::compile_extension(tricks[n].candidate, *tricks[n].task,
                                                                *toolchain::parse_gpu_target(target), options)
                                 : toolchain::compile_for_gpu(tricks[n].candidate, *tricks[n].task,
                                                              *toolchain::parse_gpu_target(target), options);
    });
  for (std::thread& thread : threads) thread.join();
}

struct Count {
  int right = 0, all = 0;
};

// Prints a line for each; those that came out as they should.
Count measure(const std::vector<Trick>& tricks, measure::GpuWorkers& workers, bool tricks_table) {
  Count count;
  for (const Trick& trick : tricks) {
    std::string verdict(to_string(trick.compiled.verdict)),
        detail = trick.compiled.log.substr(0, trick.compiled.log.find('\n'));
    if (trick.compiled.verdict == Verdict::kOk) {
      const Measurement m = workers.measure(trick.candidate, trick.compiled.binary).measurement;
      verdict = to_string(m.verdict);
      detail = m.rounds > 0 ? fmt::format("{:.3f}x {}", m.speedup, m.detail) : m.detail;
    }
    const bool right = trick.allowed.contains(verdict);
    count.right += right;
    ++count.all;
    if (tricks_table || !right)
      std::printf("%-7s %-32s %-16s %s\n",
                  right ? (tricks_table ? "caught" : "") : (tricks_table ? "MISSED" : "ALARM"),
                  trick.name.c_str(), verdict.c_str(), detail.c_str());
    std::fflush(stdout);
  }
  return count;
}

// Those that do not compile, and were to; the others cannot be told apart without a GPU.
int report_compiled(const std::vector<Trick>& tricks) {
  int wrong = 0;
  double seconds = 0;
  for (const Trick& trick : tricks) {
    seconds += trick.compiled.seconds;
    if (trick.compiled.verdict == Verdict::kOk ||
        trick.allowed.contains(std::string(to_string(trick.compiled.verdict))))
      continue;
    std::printf("%s: %s\n%s", trick.name.c_str(), std::string(to_string(trick.compiled.verdict)).c_str(),
                trick.compiled.log.c_str());
    ++wrong;
  }
  std::printf("%zu programs compiled, %.1f s each; %d not as they should\n", tricks.size(),
              tricks.empty() ? 0. : seconds / static_cast<double>(tricks.size()), wrong);
  return wrong == 0 ? kExitOk : kExitFailed;
}

struct Wanted {
  bool honest = false, compile_alone = false;
  std::string tier;  // empty: all
  std::set<std::string> names;
  bool has(std::string_view a_tier) const { return tier.empty() || tier == a_tier; }
};

int run(const Wanted& wanted) {
  const fs::path root = WARPSMITH_SOURCE_DIR, cache = fs::temp_directory_path() / "warpsmith-hacks";
  const char* chosen = std::getenv("WARPSMITH_BENCH_TARGET");
  const std::string target = chosen != nullptr ? chosen : "sm_90a";
  Diagnostics diagnostics;
  const std::vector<task::Task> tasks = task::load_tasks(root / "datasets", diagnostics);
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  std::vector<Trick> tricks, programs;
  for (const Tier tier : {Tier::kPlan, Tier::kExtension})
    if (const std::string name(to_string(tier)); wanted.has(name))
      for (Trick& t : load_tricks(root / "tests/hacks" / name, tier, tasks)) tricks.push_back(std::move(t));
  if (!wanted.names.empty())
    std::erase_if(tricks, [&](const Trick& t) { return !wanted.names.contains(t.name); });
  if (wanted.honest) programs = honest_programs(tasks, wanted.has("plan"), wanted.has("extension"));
  compile(tricks, target, cache);
  compile(programs, target, cache);
  if (wanted.compile_alone) {
    std::vector<Trick> all = tricks;
    all.insert(all.end(), programs.begin(), programs.end());
    return report_compiled(all);
  }
  measure::Settings settings = measure::settings_from_json(
      {{"device_kind", "gpu"}, {"device_names", Json::array()}, {"target", 0.005}, {"unsandboxed", true}}, 0);
  settings.ceilings = cache / "ceilings";
  measure::GpuWorkers workers(settings, root / "datasets", measure::harness_cubin(target, cache, true));
  const Count caught = measure(tricks, workers, true);
  const Count fine = measure(programs, workers, false);
  std::printf("tricks: %d of %d caught, %d missed\nhonest programs: %d, %d false alarms\n", caught.right,
              caught.all, caught.all - caught.right, fine.all, fine.all - fine.right);
  return caught.right == caught.all && fine.right == fine.all ? kExitOk : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("hack_table");
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--honest")
      wanted.honest = true;
    else if (word == "--compile")
      wanted.compile_alone = true;
    else if (word == "--tier" && i + 1 < argc)
      wanted.tier = argv[++i];
    else
      wanted.names.insert(word);
  }
  try {
    process::become_subreaper();
    return run(wanted);
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  }
}

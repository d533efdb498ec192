// What becomes of known tricks, and of honest programs: one line each, then the counts.
//
//   hack_table [--honest] [--clock] [--tier plan|extension|python] [--share I/N] [NAME…]
//       on the first GPU that is seen
//   hack_table --compile …
//       compiles them, and goes no further: no GPU is needed
//
// The programs under tests/hacks/<tier>/, and what their first lines say: tricks.h. A trick is caught where
// its verdict is one that it may get, and in vain where it has no score, being `unstable` three times, or is
// `ok` and no faster than its honest twin, which is measured as well. --honest measures the dataset's right
// candidates, too, those in datasets/*/extension/ok and datasets/*/python/ok, and those in
// tests/hacks/python/honest: each must be `ok`. --clock shows what stands with each of these measurements.
// Names with a `/` are those of honest programs, the others of tricks; without any of a kind all of that kind
// are measured. --share 2/3: of all that would be measured every third one, from the second on, for several
// at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tricks.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/measure/gpu_workers.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/process/child.h"

namespace {

using namespace warpsmith;

// A trick's score over its twin's, at most: by a host's clock each is known to ±5 %, by the GPU's own, of
// tier `plan`, to ±0.5 %, and both programs lie in other places.
double most_gain(Tier tier) { return tier == Tier::kPlan ? 1.03 : 1.10; }
constexpr int kTries = 3;  // of what is `unstable`, as on a busy host

struct Outcome {
  std::string verdict, detail;
  double speedup = 0;
  bool ok = false, allowed = false;
  std::string clock;  // what stands with the measurement
};

Outcome outcome_of(const Program& program, measure::GpuWorkers& workers) {
  const toolchain::CompileResult& compiled = program.compiled.front();
  Outcome outcome{.verdict = std::string(to_string(compiled.verdict)),
                  .detail = compiled.log.substr(0, compiled.log.find('\n'))};
  if (compiled.verdict == Verdict::kOk) {
    const Measurement m = workers.measure(program.candidate, compiled.binary).measurement;
    outcome.verdict = to_string(m.verdict);
    outcome.detail = m.detail;
    if (m.rounds > 0)
      outcome.detail = fmt::format("{:.3f}x{}{}", m.speedup, m.detail.empty() ? "" : " ", m.detail);
    outcome.speedup = m.speedup;
    outcome.ok = m.verdict == Verdict::kOk;
    outcome.allowed = program.allowed.contains(outcome.verdict);
    if (m.verdict == Verdict::kHack) outcome.verdict += ":" + m.hack;
    for (const auto& [what, value] : m.clock)
      if (what.ends_with("_ns")) outcome.clock += fmt::format("{} {}; ", what, value);
  }
  outcome.allowed = outcome.allowed || program.allowed.contains(outcome.verdict);
  return outcome;
}

Outcome stable_outcome_of(const Program& program, measure::GpuWorkers& workers) {
  Outcome outcome;
  for (int i = 0; i < kTries && (i == 0 || outcome.verdict == to_string(Verdict::kUnstable)); ++i)
    outcome = outcome_of(program, workers);
  return outcome;
}

// Honest twins, each measured when it is first asked for.
class Twins {
 public:
  Twins(const std::vector<Program>& programs, measure::GpuWorkers& workers)
      : programs_(programs), workers_(workers) {}

  const Outcome& of(const Program& trick) {
    const auto twin = std::find_if(programs_.begin(), programs_.end(), [&](const Program& p) {
      return p.name == trick.honest && p.candidate.tier == trick.candidate.tier;
    });
    Outcome& outcome = outcomes_[twin->candidate.id];
    for (int i = 0; i < kTries && !outcome.ok; ++i) outcome = outcome_of(*twin, workers_);
    return outcome;
  }

 private:
  const std::vector<Program>& programs_;
  measure::GpuWorkers& workers_;
  std::map<std::string, Outcome> outcomes_;  // by candidate
};

// Whether a trick that came out `ok` gained nothing; in words as well.
bool gained_nothing(const Outcome& trick, const Outcome& twin, double most, std::string* words) {
  if (!twin.ok) {
    *words = "its honest twin: " + twin.verdict + " " + twin.detail;
    return false;
  }
  const double gain = trick.speedup / twin.speedup;
  *words = fmt::format("ok, {:.2f}x of its honest twin", gain);
  return gain <= most;
}

// Python's words for a mistake in a trick itself: such a one tries nothing any more.
bool is_own_mistake(const Outcome& trick) {
  for (const char* kind : {"AssertionError", "AttributeError", "NameError", "TypeError", "IndexError"})
    if (trick.detail.starts_with(kind)) return true;
  return false;
}

void print_row(const char* word, const Program& program, const Outcome& outcome, const std::string& more) {
  std::printf("%-7s %-32s %-19s %s%s%s\n", word, program.name.c_str(), outcome.verdict.c_str(),
              outcome.detail.c_str(), more.empty() ? "" : "; ", more.c_str());
  std::fflush(stdout);
}

struct Count {
  int caught = 0, in_vain = 0, missed = 0;
};

Count measure_tricks(const std::vector<Program>& tricks, const std::vector<Program>& honest,
                     measure::GpuWorkers& workers) {
  Count count;
  Twins twins(honest, workers);
  for (const Program& trick : tricks) {
    const Outcome outcome = stable_outcome_of(trick, workers);
    std::string words;
    if (!outcome.allowed) {
      ++count.missed;
      print_row("MISSED", trick, outcome, "");
    } else if (is_own_mistake(outcome)) {
      ++count.missed;
      print_row("BROKEN", trick, outcome, "the trick itself is to be mended");
    } else if (outcome.verdict == to_string(Verdict::kUnstable)) {
      ++count.in_vain;
      print_row("in vain", trick, outcome, "no score");
    } else if (!outcome.ok) {
      ++count.caught;
      print_row("caught", trick, outcome, "");
    } else if (gained_nothing(outcome, twins.of(trick), most_gain(trick.candidate.tier), &words)) {
      ++count.in_vain;
      print_row("in vain", trick, outcome, words);
    } else {
      ++count.missed;
      print_row("MISSED", trick, outcome, words);
    }
  }
  return count;
}

int measure_honest(const std::vector<Program>& programs, measure::GpuWorkers& workers, bool clock) {
  int alarms = 0;
  for (const Program& program : programs) {
    const Outcome outcome = outcome_of(program, workers);
    if (clock) print_row("clock", program, outcome, outcome.clock);
    if (outcome.allowed) {
      if (!clock) print_row("fine", program, outcome, "");
      continue;
    }
    ++alarms;
    print_row("ALARM", program, outcome, "");
  }
  return alarms;
}

int report_compiled(const std::vector<Program>& programs) {
  int wrong = 0;
  double seconds = 0;
  for (const Program& program : programs)
    for (const toolchain::CompileResult& result : program.compiled) {
      seconds += result.seconds;
      const std::string problem = compile_problem(program, result);
      if (!problem.empty()) ++wrong;
      std::fputs(problem.c_str(), stdout);
    }
  std::printf("%zu programs compiled, %.1f s each; %d not as they should\n", programs.size(),
              programs.empty() ? 0. : seconds / static_cast<double>(programs.size()), wrong);
  return wrong == 0 ? kExitOk : kExitFailed;
}

struct Wanted {
  bool honest = false, clock = false, compile_alone = false;
  std::size_t share = 1, shares = 1;  // this one of so many
  std::string tier;                   // empty: all
  std::set<std::string> names;
  bool has(std::string_view a_tier) const { return tier.empty() || tier == a_tier; }
  void keep_named(std::vector<Program>& programs, bool are_honest) const {
    const auto names_one = [&](const std::string& name) {
      return (name.find('/') != std::string::npos) == are_honest;
    };
    if (std::any_of(names.begin(), names.end(), names_one))
      std::erase_if(programs, [&](const Program& p) { return !names.contains(p.name); });
  }
  // `before`: how many there are before these.
  void keep_share(std::vector<Program>& programs, std::size_t before) const {
    std::size_t number = before;
    std::erase_if(programs, [&](const Program&) { return number++ % shares != share - 1; });
  }
};

void append(std::vector<Program>& to, std::vector<Program> more) {
  for (Program& p : more) to.push_back(std::move(p));
}

int run(const Wanted& wanted) {
  const fs::path root = WARPSMITH_SOURCE_DIR, cache = fs::temp_directory_path() / "warpsmith-hacks";
  const char* chosen = std::getenv("WARPSMITH_BENCH_TARGET");
  const std::string target_name = chosen != nullptr ? chosen : "sm_90a";
  const auto target = toolchain::parse_gpu_target(target_name);
  if (!target) throw Error("WARPSMITH_BENCH_TARGET: `" + target_name + "` is no target", kExitUsage);
  Diagnostics diagnostics;
  const std::vector<task::Task> tasks = task::load_tasks(root / "datasets", diagnostics);
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  std::vector<Program> tricks, twins, programs;
  std::set<Tier> tiers;
  std::size_t before = 0;
  for (const Tier tier : {Tier::kPlan, Tier::kExtension, Tier::kPython}) {
    const std::string name(to_string(tier));
    if (!wanted.has(name)) continue;
    tiers.insert(tier);
    const fs::path folder = root / "tests/hacks" / name;
    std::vector<Program> some = load_tricks(folder, tier, tasks);
    wanted.keep_named(some, false);
    const std::size_t count = some.size();
    wanted.keep_share(some, before);
    before += count;
    append(twins, load_twins(folder, root / "datasets", some));
    append(tricks, std::move(some));
  }
  if (wanted.honest) programs = honest_programs(tasks, tiers);
  if (wanted.honest && tiers.contains(Tier::kPython))
    append(programs, load_honest(root / "tests/hacks/python", Tier::kPython, tasks));
  wanted.keep_named(programs, true);
  wanted.keep_share(programs, before);
  for (std::vector<Program>* each : {&tricks, &twins, &programs}) compile(*each, {*target}, cache);
  if (wanted.compile_alone) {
    append(tricks, std::move(twins));
    append(tricks, std::move(programs));
    return report_compiled(tricks);
  }
  measure::Settings settings = measure::settings_from_json(
      {{"device_kind", "gpu"}, {"device_names", Json::array()}, {"target", 0.005}, {"unsandboxed", true}}, 0);
  settings.ceilings = cache / "ceilings";
  // Tricks are written for rows of many short calls. At the shapes that GPUs time a row has few, and much of
  // what they do (work for later calls, a wrong fifth call) has nothing to begin with.
  settings.shapes_of_cpu = true;
  measure::GpuWorkers workers(settings, root / "datasets", measure::harness_cubin(target_name, cache, true));
  const Count count = measure_tricks(tricks, twins, workers);
  const int alarms = measure_honest(programs, workers, wanted.clock);
  std::printf("tricks: %zu, %d caught, %d in vain, %d missed\nhonest programs: %zu, %d false alarms\n",
              tricks.size(), count.caught, count.in_vain, count.missed, programs.size(), alarms);
  return count.missed == 0 && alarms == 0 ? kExitOk : kExitFailed;
}

void read_share(const std::string& words, Wanted& wanted) {
  const std::size_t slash = words.find('/');
  const auto number = [](const std::string& text) {
    const bool digits = !text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == text.npos;
    return digits ? static_cast<std::size_t>(std::stoi(text)) : 0;
  };
  wanted.share = number(words.substr(0, slash));
  wanted.shares = slash == words.npos ? 0 : number(words.substr(slash + 1));
  if (wanted.share < 1 || wanted.share > wanted.shares)
    throw Error("--share " + words + ": 1/3, 2/3 or 3/3, for example", kExitUsage);
}

}  // namespace

int main(int argc, char** argv) try {
  start_logging("hack_table");
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--honest")
      wanted.honest = true;
    else if (word == "--clock")
      wanted.clock = true;
    else if (word == "--compile")
      wanted.compile_alone = true;
    else if (word == "--tier" && i + 1 < argc)
      wanted.tier = argv[++i];
    else if (word == "--share" && i + 1 < argc)
      read_share(argv[++i], wanted);
    else
      wanted.names.insert(word);
  }
  process::become_subreaper();
  return run(wanted);
} catch (const warpsmith::Error& e) {
  warpsmith::log_error(e.what());
  return e.exit_code();
}

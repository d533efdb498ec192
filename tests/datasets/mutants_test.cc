// Programs under mutants/ compute a slightly other function than their task. Each is found by the checks that
// its first lines name, and by no other. Table: README.md.
//
//   // mutant: the last of equal maxima
//   // task: row_argmax
//   // found by: x: integers(0, 3)            a distribution of the task
//   // found by: shape M=66 N=66              a hidden shape; of several lines each finds it
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "hacks/program_file.h"
#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/process/child.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::measure {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(WARPSMITH_SOURCE_DIR) / "tests/datasets";
constexpr std::size_t kFewest = 30;  // mutants

struct Mutant {
  std::string name;
  Candidate candidate;
  std::vector<std::string> found_by;
  toolchain::CompileResult compiled;

  bool is_found_by(const CheckCase& check, const task::Task& task) const {
    const auto names = [&](const std::string& text) {
      return std::find(found_by.begin(), found_by.end(), text) != found_by.end();
    };
    if (names("shape " + describe(check.dims))) return true;
    return check.distribution >= 0 &&
           names(describe(task.distributions.at(static_cast<std::size_t>(check.distribution))));
  }
};

std::vector<Mutant> load_mutants() {
  std::vector<Mutant> mutants;
  for (const auto& entry : fs::directory_iterator(kFolder / "mutants")) {
    const std::string source = read_file(entry.path());
    Mutant mutant;
    mutant.name = entry.path().stem().string();
    mutant.candidate = make_plan_candidate(header(source, "task"), source, {});
    const std::string mark = "// found by: ";
    for (const std::string& line : split_lines(source))
      if (line.starts_with(mark)) mutant.found_by.push_back(line.substr(mark.size()));
    mutants.push_back(std::move(mutant));
  }
  std::sort(mutants.begin(), mutants.end(), [](const Mutant& a, const Mutant& b) { return a.name < b.name; });
  return mutants;
}

std::map<std::string, task::Task> load_all_tasks() {
  Diagnostics diagnostics;
  std::map<std::string, task::Task> tasks;
  for (task::Task& task : task::load_tasks(fs::path(WARPSMITH_SOURCE_DIR) / "datasets", diagnostics))
    tasks[task.id] = std::move(task);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  return tasks;
}

void compile_all(std::vector<Mutant>& mutants, const std::map<std::string, task::Task>& tasks,
                 const fs::path& cache) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < mutants.size(); i = next++) {
      toolchain::CompileOptions options;
      options.cache = cache;
      options.unsandboxed = true;
      mutants[i].compiled =
          toolchain::compile_for_host(mutants[i].candidate, tasks.at(mutants[i].candidate.task), options);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

// What the checks of one task say.
class Checks {
 public:
  explicit Checks(const task::Task& task)
      : task_(task), reference_(task), oracle_(task, reference_, source(), 0), cases_(check_cases(task, 2)) {}

  CheckOutcome outcome_of(const Mutant& mutant, bool by_its_finders) {
    std::vector<CheckCase> cases;
    for (const CheckCase& check : cases_)
      if (mutant.is_found_by(check, task_) == by_its_finders) cases.push_back(check);
    Diagnostics mistakes;
    const task::LaunchPlan plan =
        task::LaunchPlan::parse(mutant.candidate.source(), task_, "kernel.cu", mistakes);
    device::TwinOptions options;
    options.binary = mutant.compiled.binary;
    options.sandbox = process::available_sandbox();
    CandidateProcess process(task_, plan, options);
    return check_candidate(process, task_, oracle_, cases);
  }

 private:
  static const ValueSource& source() {
    static const ValueSource source;
    return source;
  }
  const task::Task& task_;
  Reference reference_;
  Oracle oracle_;
  std::vector<CheckCase> cases_;
};

class Mutants : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    configure_torch(1);
    process::become_subreaper();
  }
};

TEST_F(Mutants, AreFoundByTheValuesThatTheyName) {
  const Scratch scratch;
  const std::map<std::string, task::Task> tasks = load_all_tasks();
  std::vector<Mutant> mutants = load_mutants();
  EXPECT_GE(mutants.size(), kFewest);
  for (const Mutant& mutant : mutants) {
    ASSERT_TRUE(tasks.contains(mutant.candidate.task)) << mutant.name;
    ASSERT_FALSE(header(mutant.candidate.source(), "mutant").empty()) << mutant.name;
  }
  compile_all(mutants, tasks, scratch / "cache");
  std::map<std::string, Checks> checks;
  for (const Mutant& mutant : mutants) {
    SCOPED_TRACE(mutant.name);
    EXPECT_EQ(mutant.compiled.verdict, Verdict::kOk) << mutant.compiled.log;
    if (mutant.compiled.verdict != Verdict::kOk) continue;
    const task::Task& task = tasks.at(mutant.candidate.task);
    Checks& of_task = checks.try_emplace(task.id, task).first->second;
    const CheckOutcome without = of_task.outcome_of(mutant, false);
    EXPECT_EQ(to_string(without.verdict), "ok") << "found by others, too: " << without.detail;
    const CheckOutcome found = of_task.outcome_of(mutant, true);
    EXPECT_EQ(to_string(found.verdict), "wrong_output") << found.detail;
  }
}

// The table in README.md has a row for each: | task | mutant | found by |
TEST_F(Mutants, StandInTheTable) {
  const std::string table = read_file(kFolder / "README.md");
  for (const Mutant& mutant : load_mutants()) {
    std::string finders;
    for (const std::string& finder : mutant.found_by)
      finders += (finders.empty() ? "`" : ", `") + finder + "`";
    const std::string row = "| `" + mutant.candidate.task + "` | " +
                            header(mutant.candidate.source(), "mutant") + " | " + finders + " |";
    EXPECT_NE(table.find(row + "\n"), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace warpsmith::measure

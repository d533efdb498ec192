// What can be said without a GPU of the programs of gpu_launch_test.cc: they compile, their plans fit their
// kernels, and those that the CPU twin knows are right there, and wrong where they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_launch_programs.h"
#include "task_folder.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::measure {
namespace {

class LaunchPrograms : public testing::TestWithParam<LaunchProgram> {
 protected:
  const LaunchProgram& program() const { return GetParam(); }
  const task::Task& task() const { return folder_.task(); }
  std::filesystem::path cache() const { return scratch_ / "cache"; }

  task::ConcretePlan plan_at(const task::LaunchPlan& plan, const task::Dims& dims) const {
    task::PlanBindings bindings = task::plan_bindings(task(), dims);
    bindings.device = {132, 227 * 1024, false,
                       [](const std::string&, std::int64_t, std::int64_t) { return 2; }};
    try {
      return plan.evaluate(bindings);
    } catch (const task::PlanError& e) {
      ADD_FAILURE() << "kernel.cu:" << e.line << ": " << e.message;
      return {};
    }
  }

  // Every launch names a kernel of the binary, with as many arguments as that takes.
  static void expect_fits(const task::ConcretePlan& plan, const toolchain::CubinFacts& facts) {
    for (const task::ConcreteStep& step : plan.steps) {
      const auto is_it = [&](const auto& known) {
        return known.name == (step.kind == task::StepKind::kLaunch ? step.kernel : step.destination);
      };
      if (step.kind == task::StepKind::kLaunch) {
        const auto kernel = std::find_if(facts.kernels.begin(), facts.kernels.end(), is_it);
        ASSERT_NE(kernel, facts.kernels.end()) << step.kernel;
        EXPECT_EQ(kernel->parameters, static_cast<int>(step.args.size())) << step.kernel;
        EXPECT_LE(kernel->shared_bytes, 48u * 1024);
      } else if (step.kind == task::StepKind::kConst) {
        EXPECT_TRUE(std::any_of(facts.symbols.begin(), facts.symbols.end(), is_it)) << step.destination;
      }
    }
  }

  Scratch scratch_;
  TaskFolder folder_{program().name, program().task.c_str()};
};

TEST_P(LaunchPrograms, CompileAndFitTheirPlans) {
  toolchain::CompileOptions options;
  options.cache = cache();
  options.unsandboxed = true;
  options.timeout_s = 60;  // of a loaded machine
  std::vector<toolchain::GpuTarget> targets = {{9, 0, 'a'}, {9, 0, 0}};
  if (!program().hopper) targets.push_back({8, 0, 0});
  for (const std::string& source : {program().source, program().wrong_twin()}) {
    Diagnostics mistakes;
    const task::LaunchPlan plan = task::LaunchPlan::parse(source, task(), "kernel.cu", mistakes);
    for (const Diagnostic& mistake : mistakes) ADD_FAILURE() << to_string(mistake);
    for (const toolchain::CompileResult& result :
         toolchain::compile_for_gpus(make_plan_candidate(task().id, source, {}), task(), targets, options)) {
      ASSERT_EQ(result.verdict, Verdict::kOk) << result.log;
      const toolchain::CubinFacts facts = toolchain::read_cubin_facts(result.binary);
      for (const task::Dims& dims : task().timing) expect_fits(plan_at(plan, dims), facts);
      for (const task::Dims& dims : task().hidden) expect_fits(plan_at(plan, dims), facts);
    }
    if (source == program().source) {
      EXPECT_TRUE(program().uses(plan_at(plan, task().timing.front())));
    }
  }
}

TEST_P(LaunchPrograms, AreRightOnTheTwin) {
  if (!program().on_twin) GTEST_SKIP() << "the CPU twin has no such launch";
  Settings settings = quick_settings();
  settings.timing = false;
  Measurer measurer(settings);
  const auto verdict_of = [&](const std::string& source) {
    const Candidate made = make_plan_candidate(task().id, source, {});
    const Measurement m = measurer.measure(task(), made, folder_.compile(made)).measurement;
    return std::string(to_string(m.verdict)) + " " + m.detail;
  };
  EXPECT_THAT(verdict_of(program().source), testing::StartsWith("ok"));
  EXPECT_THAT(verdict_of(program().wrong_twin()), testing::StartsWith("wrong_output"));
}

INSTANTIATE_TEST_SUITE_P(All, LaunchPrograms, testing::ValuesIn(launch_programs()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace warpsmith::measure

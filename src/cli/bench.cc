// `warpsmith bench TASK KERNEL…`: a person's own kernels, measured on a task of any dataset. No rule of a
// dataset's folders applies to them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "job_here.h"
#include "kernelbench_tasks.h"
#include "measure_here.h"
#include "print.h"
#include "table.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/stats/ratio.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace warpsmith::cli {

namespace {

constexpr const char* kDatasets = "datasets";  // where a task is looked for by its name

struct Options {
  std::string task;
  std::vector<std::string> kernels;
  std::vector<std::string> baselines;
  MeasureOptions measuring{.device = "auto"};
};

task::Task find_task(const std::string& name, bool unsandboxed) {
  fs::path folder = name;
  if (name.ends_with(".py")) {
    if (!path_exists(name)) throw Error(name + ": there is no such file", kExitUsage);
    folder = task_of_module(name, unsandboxed);
  }
  if (!path_exists(folder / "task.yaml")) folder = fs::path(kDatasets) / name;
  if (!path_exists(folder / "task.yaml")) {
    std::vector<std::string> known;
    if (is_folder(kDatasets))
      for (const fs::path& entry : folder_entries(kDatasets))
        if (path_exists(entry / "task.yaml")) known.push_back(entry.filename().string());
    throw Error("there is no task `" + name + "`: neither a folder with a task.yaml nor one below " +
                    kDatasets + did_you_mean(name, known, {.before = " (", .after = ")"}),
                kExitUsage);
  }
  Diagnostics mistakes;
  std::optional<task::Task> task = task::load_task(folder, mistakes);
  if (!task) throw InvalidInput(mistakes);
  return std::move(*task);
}

Candidate candidate_of(const std::string& text, const task::Task& task) {
  const fs::path path = text;
  if (!path_exists(path)) throw Error(text + ": there is no such file", kExitUsage);
  const Origin origin{"dataset", "", 0, text, ""};
  Diagnostics mistakes;
  const std::optional<task::HostedSource> source = task::load_hosted_source(path, mistakes);
  if (!source) throw InvalidInput(mistakes);
  return toolchain::make_candidate(task.id, *source, origin);
}

// The score is over eager; over another baseline it is divided by what that gains.
stats::Ratio over(const Measurement& m, const BaselineTiming& baseline) {
  return stats::divided({m.speedup, m.speedup_low, m.speedup_high},
                        {baseline.ratio, baseline.low, baseline.high});
}

std::string ratio_text(const stats::Ratio& ratio) {
  return fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio.value, ratio.low, ratio.high);
}

bool is_another(const BaselineTiming& baseline) {
  return baseline.name != "eager" && baseline.state == BaselineState::kCovered;
}

const std::vector<BaselineTiming>& baselines_of(const std::vector<MeasuredHere>& all) {
  static const std::vector<BaselineTiming> kNone;
  for (const MeasuredHere& one : all)
    if (!one.baselines.empty()) return one.baselines;
  return kNone;
}

// What was measured, on what.
std::string head_text(const task::Task& task, const DeviceHere& device,
                      const std::vector<MeasuredHere>& all) {
  std::string text = "task " + task.id;
  const task::Dims shape = task::on_device(task, device.kind).timing.front();
  for (const std::string& name : task.dims)
    text += fmt::format("{} {}={}", name == task.dims.front() ? "," : "", name, shape.at(name));
  for (const MeasuredHere& one : all) {
    const Measurement m = one.measurement();
    if (one.measured.is_null() || !m.device) continue;
    return fmt::format("{}, {}, math {}\n", text, m.device->name, m.math);
  }
  return text + ": no kernel was measured\n";
}

std::vector<Table::Column> columns(const std::vector<BaselineTiming>& baselines) {
  std::vector<Table::Column> all = {
      {"kernel"}, {"verdict"}, {"us a call", true}, {"eager us", true}, {"over eager"}};
  for (const BaselineTiming& baseline : baselines)
    if (is_another(baseline)) all.push_back({"over " + baseline.name});
  all.push_back({"of roofline"});
  return all;
}

std::vector<Table::Cell> cells(const std::string& path, const Measurement& m,
                               const std::vector<BaselineTiming>& baselines) {
  std::vector<Table::Cell> row = {path, std::string(to_string(m.verdict))};
  if (m.rounds == 0) return row;
  row.emplace_back(fmt::format("{:.2f}", m.candidate_ns / 1e3));
  row.emplace_back(fmt::format("{:.2f}", m.baseline_ns / 1e3));
  row.emplace_back(ratio_text({m.speedup, m.speedup_low, m.speedup_high}));
  for (const BaselineTiming& baseline : baselines)
    if (is_another(baseline)) row.emplace_back(ratio_text(over(m, baseline)));
  if (const std::optional<double> share = roofline_share(m))
    row.emplace_back(fmt::format("{:.0f} % ({})", 100 * *share, m.roofline_bound));
  return row;
}

// What else is to be said of a kernel, below its row.
std::string notes_text(const Measurement& m) {
  std::string text;
  if (m.imprecise && m.rounds > 0) text += "    the interval is wider than was asked for\n";
  if (is_one_shape(m))
    text += "    timed for KernelBench's tables alone: it is right at this shape, and not at others\n";
  if (m.host_bound.value_or(false))
    text += "    eager waits for launches: what counts here are launches saved\n";
  if (m.own_share.value_or(1) < 1)
    text += fmt::format("    {:.0f} % of its time on the GPU is in kernels that it does not declare: {}\n",
                        100 * (1 - *m.own_share), m.clock.at("kernels"));
  for (const std::string& line : split_lines(trim(m.detail))) text += "    " + line + "\n";
  return text;
}

Json kernel_json(const std::string& path, const MeasuredHere& one,
                 const std::vector<BaselineTiming>& baselines) {
  const Measurement m = one.measurement();
  Json speedups = Json::object();
  if (m.rounds > 0)
    speedups["eager"] = {{"speedup", m.speedup}, {"low", m.speedup_low}, {"high", m.speedup_high}};
  for (const BaselineTiming& baseline : baselines)
    if (m.rounds > 0 && is_another(baseline)) {
      const stats::Ratio ratio = over(m, baseline);
      speedups[baseline.name] = {{"speedup", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
    }
  return {{"kernel", path},
          {"tier", to_string(one.candidate.tier)},
          {"measurement", to_json(m)},
          {"over", std::move(speedups)}};
}

// Of the command line: names, or all.
std::vector<std::string> baselines_asked(const Options& options, const DeviceHere& device) {
  std::vector<std::string> names;
  const std::vector<std::string>& asked = options.baselines;
  const auto is_asked = [&](const std::string& name) {
    return std::find(asked.begin(), asked.end(), name) != asked.end();
  };
  std::vector<std::string> known = known_baselines();
  for (const std::string& name : asked)
    if (name != "all" && std::find(known.begin(), known.end(), name) == known.end()) {
      known.emplace_back("all");
      throw Error("--baseline: `" + name + "` is not known" +
                      did_you_mean(name, known, {.before = " (", .after = ")"}),
                  kExitUsage);
    }
  for (const std::string& name : known_baselines())
    if (name != "eager" && (is_asked("all") || is_asked(name))) names.push_back(name);
  if (!device.is_gpu() && !names.empty())
    throw Error("--baseline " + asked.front() + ": on the CPU only `eager` is measured", kExitUsage);
  return names;
}

int bench(const Options& options, CommandContext& context) {
  check_device(options.measuring.device);
  const task::Task task = find_task(options.task, options.measuring.unsandboxed);
  MeasureOptions measuring = options.measuring;
  const DeviceHere device = find_device(measuring.device);
  measuring.baselines = baselines_asked(options, device);
  std::vector<MeasuredHere> all;
  for (const std::string& path : options.kernels)
    all.push_back({candidate_of(path, task), nullptr, nullptr, {}});
  measure_here(absolute_folder(task.folder).parent_path(), device, measuring, all,
               [](std::size_t) { return true; });
  const std::vector<BaselineTiming>& baselines = baselines_of(all);
  bool good = true;
  Json kernels = Json::array();
  Table table(columns(baselines), 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Measurement m = all[i].measurement();
    good = good && is_success(m.verdict);
    table.add(cells(options.kernels[i], m, baselines), notes_text(m));
    kernels.push_back(kernel_json(options.kernels[i], all[i], baselines));
  }
  std::string text = head_text(task, device, all) + table.text(context);
  for (const BaselineTiming& baseline : baselines)
    if (baseline.state != BaselineState::kCovered)
      text += fmt::format("no baseline {}: {}\n", baseline.name, baseline.reason);
  if (context.json) {
    Json timed = Json::array();
    for (const BaselineTiming& baseline : baselines) timed.push_back(to_json(baseline));
    print_json(context,
               {{"task", task.id}, {"kernels", std::move(kernels)}, {"baselines", std::move(timed)}});
  } else {
    print_text(stdout, text);
  }
  return good ? kExitOk : kExitFailed;
}

}  // namespace

void add_bench(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "bench", "Measures kernels of your own on a task",
                                  "warpsmith bench gelu mine.cu other.py --device H100 --baseline all",
                                  [options, &context] { return bench(*options, context); });
  command
      ->add_option("TASK", options->task,
                   "Folder of a task, its name below datasets/, or a module of KernelBench's form")
      ->required();
  command
      ->add_option(
          "KERNEL", options->kernels,
          "A file of CUDA with a launch plan, a file or folder of C++ and CUDA with forward(), or of "
          "Python with ModelNew or forward()")
      ->required();
  command->add_option("--device", options->measuring.device,
                      "`cpu`, a GPU type of this machine, or `auto`: a GPU where there is one");
  command
      ->add_option(
          "--baseline", options->baselines,
          "Also time this baseline: cuda_graph, torch_compile, torch_compile_reduce_overhead, cudnn, "
          "or all (may be given again)")
      ->allow_extra_args(false);
  command->add_option("--threads", options->measuring.threads, "CPU threads of candidate and baseline")
      ->check(CLI::PositiveNumber);
  command->add_option("--budget", options->measuring.budget_s, "Seconds to time a kernel in, at most")
      ->check(CLI::PositiveNumber);
  command->add_flag("--unsandboxed", options->measuring.unsandboxed, "Go on where there is no sandbox");
  command->add_flag("!--verdicts-only", options->measuring.timing, "No timing, for a machine that is busy");
  command->add_flag("--keep", options->measuring.keep, "Keep the folder with jobs and records");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

#include "validate_measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "print.h"
#include "validate_job.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace warpsmith::cli {

namespace {

constexpr double kTargetOnGpu = 0.005;  // half width of a score's interval

// What is measured on, as the job programs are told it.
struct Device {
  std::string kind = "cpu";  // or a GPU type
  std::string target;        // of a GPU: what is compiled for
  std::string name, uuid;    // of a GPU
  bool is_gpu() const { return kind != "cpu"; }
};

Device find_device(const std::string& wanted) {
  if (const std::optional<process::Gpu> gpu = find_gpu(wanted))
    return {process::gpu_type_of(gpu->name), process::compile_target(gpu->major, gpu->minor), gpu->name,
            gpu->uuid};
  if (wanted == "cpu" || wanted == "auto") return {};
  std::string names;
  for (const process::Gpu& gpu : process::usable_gpus()) names += (names.empty() ? "" : ", ") + gpu.name;
  throw Error("there is no " + wanted + " here" + (names.empty() ? ", and no other GPU" : ": " + names));
}

struct Entry {  // one candidate
  std::size_t task = 0;
  std::string name, expected;
  Candidate candidate;
  Json compiled, measured;  // records; null until there is one
};

// Below its task's folder: `extension/ok/host.cu`. For a folder with one file in it, that file.
std::string place_of(const task::HostedSource& source, const task::Task& task) {
  const fs::path path = is_folder(source.path) && source.files.size() == 1
                            ? source.path / source.files.front().path
                            : source.path;
  return path.lexically_relative(task.folder).string();
}

std::vector<Entry> collect_entries(const std::vector<task::Task>& tasks, const Device& device) {
  std::vector<Entry> entries;
  Diagnostics mistakes;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (const task::CandidateFile& file : task::load_candidate_files(tasks[i], mistakes)) {
      Origin origin{"dataset", "", 0, file.expected + "/" + file.path.filename().string(), ""};
      entries.push_back({i, file.name, file.expected,
                         make_plan_candidate(tasks[i].id, file.source, std::move(origin)), nullptr, nullptr});
    }
    for (const task::HostedSource& source : task::load_hosted_sources(tasks[i], mistakes)) {
      if (!device.is_gpu()) continue;
      Origin origin{"dataset", "", 0, place_of(source, tasks[i]), ""};
      entries.push_back({i, source.name, source.expected,
                         toolchain::make_hosted_candidate(tasks[i].id, source, std::move(origin)), nullptr,
                         nullptr});
    }
  }
  if (!mistakes.empty()) throw InvalidInput(mistakes);
  return entries;
}

// Two files may hold the same program: each id is one item.
template <typename Wanted, typename Make>
std::vector<Json> items_of(const std::vector<Entry>& entries, Wanted wanted, Make make) {
  std::vector<Json> items;
  std::set<std::string> seen;
  for (const Entry& entry : entries)
    if (wanted(entry) && seen.insert(entry.candidate.id).second) items.push_back(make(entry));
  return items;
}

void compile(const fs::path& run, const fs::path& datasets, const Device& device,
             const ValidateMeasureOptions& options, std::vector<Entry>& entries) {
  // nvcc and its compilers take more of both, with torch's headers most.
  Json params = {{"device_kind", device.kind},
                 {"datasets", datasets.string()},
                 {"cache", "cache"},
                 {"timeout_s", device.is_gpu() ? 300 : 20},
                 {"memory_bytes", (device.is_gpu() ? 8ull : 2ull) << 30},
                 {"log_bytes", 4096},
                 {"unsandboxed", options.unsandboxed}};
  if (!device.target.empty()) params["targets"] = {device.target};
  const std::vector<Json> items = items_of(
      entries, [](const Entry&) { return true; },
      [](const Entry& e) {
        return Json{{"id", e.candidate.id}, {"candidate", to_json(e.candidate)}};
      });
  const int cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const Records records = run_job(run, "compile", items, params, cores);
  for (Entry& entry : entries) entry.compiled = records.at(entry.candidate.id);
}

template <typename Wanted>
void measure(const fs::path& run, const std::string& name, const fs::path& datasets, const Device& device,
             const ValidateMeasureOptions& options, std::vector<Entry>& entries, Wanted wanted) {
  Json params = {{"datasets", datasets.string()},      {"device_kind", device.kind},
                 {"threads", options.threads},         {"budget_s", options.budget_s},
                 {"unsandboxed", options.unsandboxed}, {"timing", options.timing}};
  if (device.is_gpu()) {
    params["device_names"] = {device.name};
    params["target"] = kTargetOnGpu;
  }
  const std::vector<Json> items = items_of(entries, wanted, [](const Entry& e) {
    return Json{
        {"id", e.candidate.id}, {"candidate", to_json(e.candidate)}, {"binary", e.compiled.at("binary")}};
  });
  const Records records = run_job(run, name, items, params, 1, device.uuid);
  for (Entry& entry : entries)
    if (const auto it = records.find(entry.candidate.id); it != records.end()) entry.measured = it->second;
}

std::vector<Entry> run_group(const fs::path& run, const fs::path& datasets, const Device& device,
                             const std::vector<task::Task>& tasks, const ValidateMeasureOptions& options) {
  std::vector<Entry> entries = collect_entries(tasks, device);
  compile(run, datasets, device, options, entries);
  measure(run, "measure", datasets, device, options, entries,
          [](const Entry& e) { return e.compiled.at("verdict") == "ok"; });
  measure(run, "measure-again", datasets, device, options, entries, [](const Entry& e) {
    return e.expected == "ok" && !e.measured.is_null() && e.measured.at("verdict") == "unstable";
  });
  return entries;
}

Measurement measurement_of(const Entry& entry) {
  if (!entry.measured.is_null()) return measurement_from_json(entry.measured);
  Measurement m;
  m.candidate = entry.candidate.id;
  m.task = entry.candidate.task;
  m.verdict = parse_verdict(entry.compiled.at("verdict").get<std::string>()).value_or(Verdict::kNotMeasured);
  m.detail = entry.compiled.value("log", "");
  return m;
}

// " (NVIDIA H200)" where some candidate says what it was measured on.
std::string on_which(const std::vector<MeasuredTask>& tasks) {
  for (const MeasuredTask& task : tasks)
    for (const MeasuredCandidate& c : task.candidates)
      if (c.measurement.device && !c.measurement.device->name.empty())
        return " (" + c.measurement.device->name + ")";
  return "";
}

// What stands before the verdict of a candidate's folder, below its task.
std::string folder_of(Tier tier) { return tier == Tier::kPlan ? "" : std::string(to_string(tier)) + "/"; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

bool MeasuredCandidate::as_expected() const {
  if (expected == "wrong_hidden")
    return measurement.verdict == Verdict::kWrongOutput && (measurement.only_hidden || at_gpu_shapes);
  return to_string(measurement.verdict) == expected;
}

int MeasuredTask::correct() const {
  return static_cast<int>(std::count_if(candidates.begin(), candidates.end(), [](const MeasuredCandidate& c) {
    return is_success(c.measurement.verdict);
  }));
}

double MeasuredTask::best() const {
  double best = 0;
  for (const MeasuredCandidate& c : candidates)
    if (is_success(c.measurement.verdict)) best = std::max(best, c.measurement.speedup);
  return best;
}

double MeasuredTask::log_deviation() const {
  double sum = 0, squares = 0;
  const auto scored = [](const MeasuredCandidate& c) {
    return is_success(c.measurement.verdict) && c.measurement.rounds > 0;
  };
  const double n = static_cast<double>(std::count_if(candidates.begin(), candidates.end(), scored));
  if (n < 2) return 0;
  for (const MeasuredCandidate& c : candidates)
    if (scored(c)) sum += std::log(c.measurement.speedup);
  for (const MeasuredCandidate& c : candidates)
    if (scored(c)) squares += std::pow(std::log(c.measurement.speedup) - sum / n, 2);
  return std::sqrt(squares / (n - 1));
}

std::vector<MeasuredTask> measure_tasks(const std::vector<task::Task>& tasks,
                                        const ValidateMeasureOptions& options) {
  const StopSignals signals;
  std::vector<MeasuredTask> measured;
  const Device device = find_device(options.device);
  for (const auto& [folder, group] : by_dataset(tasks)) {
    TemporaryFolder run("validate");
    if (options.keep) {
      run.keep();
      print_error("measuring in %s\n", run.path().string());
    }
    const std::size_t first = measured.size();
    for (const task::Task& task : group) measured.push_back({task, {}});
    for (Entry& entry : run_group(run.path(), folder, device, group, options)) {
      MeasuredTask& task = measured[first + entry.task];
      task.candidates.push_back({entry.name, entry.expected, entry.candidate.tier, measurement_of(entry),
                                 device.is_gpu() && !task.task.gpu_timing.empty()});
    }
  }
  return measured;
}

int verdicts_that_differ(const std::vector<MeasuredTask>& tasks) {
  int differ = 0;
  for (const MeasuredTask& task : tasks)
    for (const MeasuredCandidate& c : task.candidates) differ += !c.as_expected();
  return differ;
}

std::string measured_text(const std::vector<MeasuredTask>& tasks) {
  std::string text;
  int candidates = 0, above = 0, spread = 0, trained = 0;
  for (const MeasuredTask& task : tasks) {
    text += fmt::format("{} ({}): {} correct", task.task.id, to_string(task.task.split), task.correct());
    if (task.best() > 0)
      text += fmt::format(", best {:.2f}x, standard deviation of the log-speedup {:.2f}", task.best(),
                          task.log_deviation());
    text += "\n";
    for (const MeasuredCandidate& c : task.candidates) {
      const Measurement& m = c.measurement;
      std::string what;
      if (m.rounds > 0)
        what = fmt::format("{:.3f}x [{:.3f}, {:.3f}]  {:.1f} us against {:.1f} us", m.speedup, m.speedup_low,
                           m.speedup_high, m.candidate_ns / 1e3, m.baseline_ns / 1e3);
      if (const std::optional<double> share = roofline_share(m))
        what += fmt::format(", {:.0f} % of the roofline", 100 * *share);
      if (!m.detail.empty()) what += (what.empty() ? "" : "  ") + first_line(m.detail);
      text += fmt::format("  {} {:<28} {:<14} {}\n", c.as_expected() ? " " : "!",
                          folder_of(c.tier) + c.expected + "/" + c.name, to_string(m.verdict), what);
      ++candidates;
    }
    if (task.task.split == task::Split::kTrain) {
      ++trained;
      above += task.best() > 1.2;
    }
    spread += task.log_deviation() >= 0.2;
  }
  text += fmt::format("{} of {} verdicts are those of their folders{}\n",
                      candidates - verdicts_that_differ(tasks), candidates, on_which(tasks));
  text +=
      fmt::format("above 1.2x: {} of {} trained tasks; standard deviation of at least 0.2: {} of {} tasks\n",
                  above, trained, spread, tasks.size());
  return text;
}

Json measured_json(const std::vector<MeasuredTask>& tasks) {
  Json list = Json::array();
  for (const MeasuredTask& task : tasks) {
    Json candidates = Json::array();
    for (const MeasuredCandidate& c : task.candidates)
      candidates.push_back({{"name", c.name},
                            {"tier", to_string(c.tier)},
                            {"expected", c.expected},
                            {"as_expected", c.as_expected()},
                            {"measurement", to_json(c.measurement)}});
    list.push_back({{"task", task.task.id},
                    {"split", to_string(task.task.split)},
                    {"best", task.best()},
                    {"correct", task.correct()},
                    {"log_deviation", task.log_deviation()},
                    {"candidates", std::move(candidates)}});
  }
  return list;
}

}  // namespace warpsmith::cli

// metrics.prom: how far the run is, for Prometheus' node exporter (its textfile collector).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"

namespace warpsmith::controller {

namespace {

constexpr auto kPrometheusEvery = std::chrono::seconds(5);

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// The text exposition format: the samples of a metric follow its HELP and TYPE.
class Exposition {
 public:
  explicit Exposition(std::string run) : run_(std::move(run)) {}

  void metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    head_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void sample(const Labels& labels, double value) {
    text_ += std::exchange(head_, "") + fmt::format("{}{{run=\"{}\"", name_, escaped(run_));
    for (const auto& [label, text] : labels) text_ += fmt::format(",{}=\"{}\"", label, escaped(text));
    text_ += fmt::format("}} {}\n", value);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string escaped(std::string_view label) {
    std::string out;
    for (const char c : label) {
      if (c == '\\' || c == '"') out += '\\';
      out += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return out;
  }

  const std::string run_;
  std::string name_, head_, text_;
};

struct ShardCounts {
  std::uint32_t waiting = 0, submitted = 0, running = 0, done = 0, lost = 0;
};

ShardCounts count_shards(const run::Reactor& reactor, const ShardTracker& shards, std::uint32_t execution) {
  ShardCounts counts;
  for (const std::uint32_t number : reactor.jobs_of(execution)) {
    const run::JobView& job = reactor.job(number);
    std::uint32_t running = 0;
    if (job.in_flight > 0)
      for (std::uint32_t s = 0; s < job.shards; ++s) running += shards.is_running({number, s});
    running = std::min(running, job.in_flight);
    counts.running += running;
    counts.submitted += job.in_flight - running;
    counts.done += job.done;
    counts.lost += job.failed;
    counts.waiting += job.shards - job.in_flight - job.done - job.failed;
  }
  return counts;
}

void put_shards(Exposition& out, const RunCore& core, const ShardTracker& shards, const StageDriver& stages) {
  out.metric("warpsmith_shards", "gauge",
             "Shards of the stage's current version. submitted: handed over, and not known to run; lost: "
             "failed for good.");
  for (std::uint32_t i = 0; i < stages.stages().size(); ++i) {
    const auto execution = stages.execution_of(i);
    if (!execution) continue;
    const ShardCounts c = count_shards(core.reactor, shards, *execution);
    const std::array<std::pair<const char*, std::uint32_t>, 5> states = {{{"waiting", c.waiting},
                                                                          {"submitted", c.submitted},
                                                                          {"running", c.running},
                                                                          {"done", c.done},
                                                                          {"lost", c.lost}}};
    for (const auto& [state, count] : states)
      out.sample({{"stage", stages.stages()[i].spec->name}, {"state", state}}, count);
  }
}

// Counters that are kept by stage and job.
void put_usage(Exposition& out, const RunCore& core, const StageDriver& stages) {
  struct Counter {
    const char *name, *help;
    double (*of)(const run::JobUsage&);
  };
  const Counter counters[] = {
      {"warpsmith_attempts_total", "Attempts of shards that have ended.",
       [](const run::JobUsage& u) { return static_cast<double>(u.attempts); }},
      {"warpsmith_items_total", "Items that have a record, of attempts that have ended.",
       [](const run::JobUsage& u) { return static_cast<double>(u.items); }},
      {"warpsmith_shard_seconds_total", "Wall time of attempts that have ended.",
       [](const run::JobUsage& u) { return u.timed.wall_s; }},
      {"warpsmith_cpu_seconds_total", "CPU time of attempts that have ended.",
       [](const run::JobUsage& u) { return u.cpu_s; }},
      {"warpsmith_gpu_seconds_total", "Wall time of attempts that have ended, times the GPUs that each held.",
       [](const run::JobUsage& u) { return u.gpu_s; }},
  };
  for (const Counter& counter : counters) {
    out.metric(counter.name, "counter", counter.help);
    for (std::uint32_t i = 0; i < stages.stages().size(); ++i)
      if (const auto execution = stages.execution_of(i))
        for (const auto& [job, usage] : core.usage.of(stages.stages()[i].spec->name, *execution))
          out.sample({{"stage", stages.stages()[i].spec->name}, {"job", job}}, counter.of(usage));
  }
}

void put_devices(Exposition& out, const ControllerParts& parts, const StageDriver& stages) {
  const run::ExecutorView view = parts.executor->view();
  out.metric("warpsmith_cpu_slots", "gauge", "CPU cores that shards may use.");
  out.sample({}, parts.slots);
  out.metric("warpsmith_gpus", "gauge", "GPUs of the machine, or of the cluster.");
  for (const auto& [type, count] : parts.gpus) out.sample({{"type", type}}, static_cast<double>(count));
  out.metric("warpsmith_gpus_in_use", "gauge", "GPUs that shards hold.");
  for (const auto& [type, count] : view.gpus) out.sample({{"type", type}}, static_cast<double>(count));
  out.metric("warpsmith_cluster_tasks", "gauge", "Tasks of the run in the cluster's queue.");
  for (const auto& [state, count] : view.shards) out.sample({{"state", state}}, static_cast<double>(count));
  out.metric(
      "warpsmith_gpu_held_seconds_total", "counter",
      "Time that a GPU was a measurement's alone, as far as stages were told in this controller's life.");
  for (const auto& [uuid, time] : stages.device_times())
    out.sample({{"device", uuid}, {"type", time.kind}}, time.held_s);
  out.metric("warpsmith_gpu_timed_seconds_total", "counter", "Of it, the time in the programs' calls.");
  for (const auto& [uuid, time] : stages.device_times())
    out.sample({{"device", uuid}, {"type", time.kind}}, time.timed_s);
}

}  // namespace

std::string Controller::State::prometheus_text() const {
  Exposition out(core.parts.run.filename().string());
  out.metric("warpsmith_updated_timestamp_seconds", "gauge", "When this file was written.");
  out.sample({}, static_cast<double>(std::time(nullptr)));
  out.metric("warpsmith_run_state", "gauge", "1: the run is in this state.");
  out.sample({{"state", run_state}}, 1);
  put_shards(out, core, shards, stages);
  out.metric("warpsmith_samples_total", "counter", "Samples of looping stages, of rounds that have ended.");
  for (const LiveStage& one : stages.stages())
    if (const auto count = core.metrics.samples(one.spec->name, one.folder.filename().string()); count > 0)
      out.sample({{"stage", one.spec->name}}, static_cast<double>(count));
  put_usage(out, core, stages);
  put_devices(out, core.parts, stages);
  return out.text();
}

void Controller::State::write_prometheus(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_prometheus < kPrometheusEvery) return;
  last_prometheus = time;
  try {
    write_file_atomic(core.parts.run / "metrics.prom", prometheus_text());
  } catch (const Error& e) {  // nobody's result depends on it
    log_warning(e.what());
  }
}

}  // namespace warpsmith::controller

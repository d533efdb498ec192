// `warpsmith doctor --site S`: a site file against the live cluster.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>
#include <set>
#include <thread>

#include "doctor.h"
#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/executor/site_probe.h"
#include "warpsmith/process/stop_signals.h"

namespace warpsmith::cli {

namespace {

using Clock = std::chrono::steady_clock;
using executor::ProbeOutcome;
using executor::SiteProbe;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kLook = milliseconds(100);  // between looks at the probes' folders
constexpr auto kSlowestStatus = seconds(10);
constexpr auto kFileGrace = seconds(5);  // for files of an ended job to show up here
constexpr auto kMostClearing = seconds(15);

bool interrupted() { return process::StopSignals::asked(); }

// "message (hint)" as a fact that is not ok.
process::Fact lack(const std::string& name, const std::string& message) {
  const auto hint = message.rfind(" (");
  if (hint == std::string::npos || !message.ends_with(')')) return {name, message, false, ""};
  return {name, message.substr(0, hint), false, message.substr(hint + 2, message.size() - hint - 3)};
}

// What Slurm says, without what it was asked.
std::string words_of(const executor::SlurmError& e) {
  const std::string text = e.what();
  const auto says = text.find("Slurm says: ");
  return says == std::string::npos ? text : text.substr(says);
}

// Whether a refusal passes without anybody's doing.
bool is_for_now(executor::Cluster& cluster, const executor::SlurmJob& job, const executor::SlurmError& e) {
  return e.trouble() == executor::SlurmTrouble::kLimit ||
         (e.trouble() == executor::SlurmTrouble::kPolicy && executor::limit_may_clear(cluster, job));
}

// The probes of a site, from submission until nothing is left of them, in the queue or in the results folder.
class Probes {
 public:
  Probes(executor::Cluster& cluster, const workflow::SiteSpec& site, const fs::path& results,
         std::string name)
      : cluster_(cluster), site_(site), results_(results), name_(std::move(name)) {}
  ~Probes() {
    try {
      clear();
    } catch (const std::exception& e) {
      print_error("warpsmith: while clearing up after %s: %s\n", name_.c_str(), e.what());
    }
  }
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  // Submits one for each kind of job whose place is not in `without`.
  void submit(const std::set<const workflow::SitePlace*>& without) {
    make_folder();
    for (const SiteProbe& probe : executor::site_probes(site_)) {
      if (without.contains(probe.place) || interrupted()) continue;
      const std::string name = name_ + "-" + std::to_string(all_.size());
      One& one = all_.emplace_back(One{probe, name, folder_ / std::to_string(all_.size()), {}, {}});
      executor::write_probe(probe, name, one.folder, site_.conf, programs_beside());
      const executor::SlurmJob job = executor::probe_job(probe, name, one.folder, program_folder());
      try {
        one.outcome.job = cluster_.submit(job);
        submitted_ = true;
      } catch (const executor::SlurmError& e) {
        submitted_ |= e.trouble() == executor::SlurmTrouble::kUnsure;
        one.outcome.refused = words_of(e);
        one.outcome.for_now = is_for_now(cluster_, job, e);
      }
    }
  }

  std::size_t count() const { return all_.size(); }

  // Until all have answered, or the time is over.
  void wait(double most_s) {
    const auto begin = Clock::now();
    const auto end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(most_s));
    auto next_status = begin + seconds(2);
    Clock::duration pause = seconds(2);
    while (!interrupted() && look(begin) && Clock::now() < end) {
      std::this_thread::sleep_for(kLook);
      if (Clock::now() < next_status) continue;
      ask();
      pause = std::min<Clock::duration>(pause * 3 / 2, kSlowestStatus);
      next_status = Clock::now() + pause;
    }
    if (!interrupted() && look(begin)) {
      ask();  // the reason for which they wait now
      look(begin);
    }
  }

  void report(FactPrinter& printer) const {
    for (const One& one : all_)
      printer.add(executor::probe_facts(one.probe, one.name, one.outcome, results_));
  }

  // Cancels what is left in the queue and removes the files.
  void clear() {
    const auto end = Clock::now() + kMostClearing;
    for (bool first = true; std::exchange(submitted_, false); first = false) {
      for (const executor::SlurmTask& task : cluster_.jobs()) {
        if (!task.name.starts_with(name_) || executor::has_ended(task.state)) continue;
        submitted_ = true;
        // One that has answered is about to end by itself.
        const bool answered = std::any_of(all_.begin(), all_.end(), [&](const One& one) {
          return one.name == task.name && !one.outcome.end.is_null();
        });
        if (!first || !answered) cluster_.cancel(std::to_string(task.job));
      }
      if (!submitted_) break;
      if (Clock::now() > end)
        throw Error("jobs named " + name_ + "-* are still in the queue (`scancel` ends them)");
      std::this_thread::sleep_for(milliseconds(500));
    }
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(std::exchange(folder_, {}), error);
    for (; !made_.empty(); made_.pop_back()) {
      std::error_code not_empty;
      fs::remove(made_.back(), not_empty);
    }
    if (error) throw Error("cannot remove " + name_ + " in " + results_.string() + ": " + error.message());
  }

 private:
  struct One {
    SiteProbe probe;
    std::string name;
    fs::path folder;
    ProbeOutcome outcome;
    std::optional<Clock::time_point> ended;  // Slurm says so
  };

  void make_folder() {
    for (fs::path at = results_; !path_exists(at); at = at.parent_path()) made_.insert(made_.begin(), at);
    folder_ = results_ / ("." + name_);
    make_folders(folder_);
  }

  // Whether there is something to wait for.
  bool look(Clock::time_point begin) {
    bool open = false;
    for (One& one : all_) {
      if (executor::has_answered(one.outcome)) continue;
      try {
        executor::read_probe(one.folder, one.name, one.outcome);
      } catch (const Error&) {  // half of a file, on a slow file system
      }
      one.outcome.waited_s = std::chrono::duration<double>(Clock::now() - begin).count();
      const bool late = one.ended && Clock::now() > *one.ended + kFileGrace;
      open |= !executor::has_answered(one.outcome) && !late;
    }
    return open;
  }

  void ask() {
    try {
      for (const executor::SlurmTask& task : cluster_.jobs())
        for (One& one : all_)
          if (one.name == task.name) {
            one.outcome.task = task;
            if (executor::has_ended(task.state) && !one.ended) one.ended = Clock::now();
          }
    } catch (const executor::SlurmError&) {  // files may come all the same
    }
  }

  executor::Cluster& cluster_;
  const workflow::SiteSpec& site_;
  fs::path results_, folder_;
  std::vector<fs::path> made_;  // folders that were not there before
  std::string name_;
  std::vector<One> all_;
  bool submitted_ = false;
};

// Whether Slurm would take the jobs that the site describes. Returns the places where it would not.
std::set<const workflow::SitePlace*> check_requests(executor::Cluster& cluster,
                                                    const workflow::SiteSpec& site, const std::string& name,
                                                    FactPrinter& printer) {
  std::set<const workflow::SitePlace*> refused;
  for (const executor::NamedPlace& place : executor::places_of(site)) {
    if (interrupted()) break;
    const std::string fact = place.name + " request";
    const executor::SlurmJob job = executor::largest_job(site, place, name);
    try {
      const std::int64_t start = cluster.expected_start(job);
      const std::int64_t wait_s = start - static_cast<std::int64_t>(std::time(nullptr));
      printer.add({fact,
                   start == 0 ? "Slurm would take the job"
                   : wait_s <= 60
                       ? "Slurm would take the job, and start it now"
                       : "Slurm would take the job, and start it in " + format_duration(seconds(wait_s)),
                   true, ""});
    } catch (const executor::SlurmError& e) {
      const bool for_now = is_for_now(cluster, job, e);
      printer.add({fact, words_of(e), for_now, ""});
      if (!for_now) refused.insert(place.place);
    }
  }
  return refused;
}

std::string random_name() {
  std::random_device device;
  char text[32];
  std::snprintf(text, sizeof text, "warpsmith-doctor-%08x", static_cast<unsigned>(device()));
  return text;
}

}  // namespace

std::vector<std::string> programs_beside() {
  std::vector<std::string> names;
  for (const char* name : {"warpsmith-shard", "warpsmith-collect", "warpsmith-service", "warpsmith-compile",
                           "warpsmith-twin", "warpsmith-generate", "warpsmith-measure", "warpsmith-train"})
    if (::access((program_folder() / name).c_str(), X_OK) == 0) names.emplace_back(name);
  return names;
}

int doctor_site(const DoctorSiteOptions& options, CommandContext& context) {
  FactPrinter printer(context);
  const auto site = controller::load_named_site(options.site);
  if (!site) {
    printer.add({"site", options.site + ": jobs run on this machine", true, ""});
    printer.add(process::machine_facts(fs::absolute(context.results)));
    return printer.finish();
  }
  printer.add({"site", site->name + ", " + site->file.string(), true, ""});
  std::unique_ptr<executor::Cluster> cluster;
  try {
    cluster = executor::open_cluster(program_folder(), site->conf);
  } catch (const Error& e) {
    printer.add(lack("slurm", e.what()));
    return printer.finish();
  }
  printer.add({"slurm", (program_folder() / "warpsmith-slurm.so").string(), true, ""});
  try {
    printer.add(executor::check_site(*site, executor::view_of(*cluster)));
  } catch (const executor::SlurmError& e) {
    printer.add(
        {"cluster", e.what(), false, "nothing else was checked; do `scontrol ping` and `munge -n` work?"});
    return printer.finish();
  }
  const std::string name = random_name();
  const process::StopSignals signals;
  const auto refused = check_requests(*cluster, *site, name, printer);
  if (options.wait_s > 0 && !interrupted()) {
    Probes probes(*cluster, *site, fs::absolute(context.results).lexically_normal(), name);
    probes.submit(refused);
    if (!context.json && probes.count() > 0)
      print_error("waiting for %zu jobs named %s-*, %g s at most\n", probes.count(), name.c_str(),
                  options.wait_s);
    probes.wait(options.wait_s);
    probes.clear();
    if (!interrupted()) probes.report(printer);
  }
  return interrupted() ? kExitInterrupted : printer.finish();
}

}  // namespace warpsmith::cli

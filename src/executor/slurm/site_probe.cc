#include "warpsmith/executor/site_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "causes.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/batch.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::executor {

namespace {

using workflow::SitePlace;

constexpr std::uint32_t kMinutes = 5;    // of a probe
constexpr double kProgramSeconds = 240;  // of `warpsmith doctor --on-node`
constexpr std::uint64_t kMemoryMib = 1024;

// What decides whether two places' jobs are alike.
auto kind_of(const SitePlace& p) {
  return std::tie(p.partition, p.account, p.qos, p.reservation, p.constraint, p.exclude, p.modules, p.setup,
                  p.container, p.environment, p.scratch);
}

SlurmJob small_job_at(const SitePlace& place, const std::string& name, int gpus) {
  SlurmJob job = job_at(place, gpus);
  job.name = name;
  job.script = "#!/bin/sh\n";
  job.folder = "/";
  job.output = "/dev/null";
  job.requeue = false;
  return job;
}

std::uint32_t whole_minutes(double seconds) { return static_cast<std::uint32_t>(seconds / 60); }
std::uint64_t whole_mib(std::uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

std::string last_line_of(const std::filesystem::path& file) {
  std::error_code missing;
  if (!std::filesystem::exists(file, missing)) return "";
  std::string last;
  for (const std::string& line : split_lines(read_file(file)))
    if (!trim(line).empty()) last = trim(line);
  return last;
}

Json json_in(const std::filesystem::path& file) {
  std::error_code missing;
  return std::filesystem::exists(file, missing) ? read_json_file(file) : Json();
}

std::string describe(const SlurmTask& task) {
  std::string text(to_string(task.state));
  if (task.exit_code != 0) text += fmt::format(", exit code {}", task.exit_code);
  if (task.signal != 0) text += fmt::format(", signal {}", task.signal);
  if (!task.reason.empty()) text += " (" + task.reason + ")";
  return text;
}

class Findings {
 public:
  Findings(const SiteProbe& probe, const std::string& name, const ProbeOutcome& outcome,
           const std::filesystem::path& folder)
      : probe_(probe), name_(name), o_(outcome), folder_(folder) {}

  std::vector<process::Fact> list() {
    if (!o_.refused.empty())
      add("job", o_.refused, o_.for_now,
          o_.for_now ? "the place is not shown to work yet: try again later" : "");
    else if (!o_.seen)
      add_unseen();
    else
      add_seen();
    return std::move(facts_);
  }

 private:
  void add(const char* what, std::string value, bool ok = true, std::string hint = "") {
    facts_.push_back({probe_.places + " " + what, std::move(value), ok, std::move(hint)});
  }

  void add_unseen() {
    const std::string job = fmt::format("job {}: ", o_.job);
    if (!o_.task)
      return add("job", job + fmt::format("Slurm did not say what became of it in {:.0f} s", o_.waited_s),
                 false);
    const std::string state = job + describe(*o_.task);
    if (o_.task->state == SlurmState::kPending) {
      const bool vain = waits_in_vain(o_.task->reason);
      return add("job", fmt::format("{} after {:.0f} s", state, o_.waited_s), !vain,
                 vain ? "it will not start until that is changed"
                      : "the place is not shown to work yet: --wait waits longer");
    }
    add("shared folder",
        fmt::format("{} did not write in {}; {}{}", o_.task->nodes, folder_.string(), state,
                    o_.last_line.empty() ? "" : ": " + o_.last_line),
        false, "results must lie where every node sees them under the same path: --results FOLDER");
  }

  void add_seen() {
    add("job", fmt::format("job {} ran on {}", o_.job, o_.node));
    if (*o_.seen != name_)
      return add("shared folder", fmt::format("{} reads something else in {}", o_.node, folder_.string()),
                 false, "the node has another folder under this path");
    add("shared folder", fmt::format("{} reads and writes {}", o_.node, folder_.string()));
    if (o_.end.is_null())
      return add("programs",
                 fmt::format("no word of warpsmith-shard{}{}", o_.task ? "; " + describe(*o_.task) : "",
                             o_.last_line.empty() ? "" : ": " + o_.last_line),
                 false, "the programs' folder, and libraries that they need, must be visible from the nodes");
    if (o_.answer.is_null()) return add_without_answer();
    add_programs();
    add_surroundings();
    add_device();
    add_machine();
    if (probe_.submits) add_submit();
  }

  // warpsmith-shard ended without a program's answer.
  void add_without_answer() {
    const std::string detail = o_.end.value("detail", ""), cause = o_.end.value("cause", "");
    if (probe_.gpus > 0 && !probe_.place->twin && detail.find("GPU") != std::string::npos)
      return add("device", detail, false,
                 detail.find("wrong") == 0 ? "`names` of the GPU type says which are right"
                                           : "GPU types whose nodes have no such GPU say `twin: true`");
    add("programs", fmt::format("warpsmith: {}{}", cause, detail.empty() ? "" : ": " + detail), false,
        o_.last_line);
  }

  void add_programs() {
    std::string good = "warpsmith " + o_.answer.value("version", "?");
    const Json programs = o_.answer.value("programs", Json::object());
    for (const auto& [program, problem] : programs.items()) {
      if (problem == "")
        good += ", " + (program.starts_with("warpsmith-") ? program.substr(9) : program);
      else
        add("programs", program + ": " + problem.get<std::string>(), false,
            "what it needs is not on the node: modules, setup or container of the site file");
    }
    add("programs", good + " start there");
  }

  // The script goes on where these fail, as a shell does.
  void add_surroundings() {
    const SitePlace& place = *probe_.place;
    if (!place.scratch.empty() && o_.answer.value("tmpdir", "").empty())
      add("scratch", place.scratch + " is no folder that can be written", false, o_.last_line);
    const std::vector<std::string> loaded = split(o_.answer.value("modules", ""), ':');
    for (const std::string& module : place.modules) {
      const bool there = std::any_of(loaded.begin(), loaded.end(), [&](const std::string& one) {
        return one == module || one.starts_with(module + "/");
      });
      // A container may clear the variable that tells.
      if (!there && place.container.empty()) add("modules", module + " was not loaded", false, o_.last_line);
    }
  }

  void add_device() {
    if (probe_.gpus == 0) return;
    std::string names;
    for (const Json& gpu : o_.answer.value("gpus", Json::array()))
      names += (names.empty() ? "" : ", ") + gpu.get<std::string>();
    if (!probe_.place->twin) {
      add("device", names);
      add_target();
    } else
      add("device",
          names.empty() ? "the CPU twin, as the site says" : names + ", unused: the site says `twin: true`");
  }

  // What is compiled for another GPU does not load on this one.
  void add_target() {
    const std::string& wanted = probe_.place->target;
    if (wanted.empty()) return;
    for (const Json& one : o_.answer.value("gpu_targets", Json::array()))
      if (const std::string own = one.get<std::string>(); !own.empty() && !process::runs_on(wanted, own))
        return add("target", fmt::format("`target: {}` does not run on it: it is {}", wanted, own), false,
                   "without `target` it follows from the type");
  }

  // What jobs need of a node; the rest of doctor's facts is about machines where people work.
  void add_machine() {
    std::string text;
    const bool compiles = probe_.gpus == 0 || probe_.place->twin;
    for (const Json& fact : o_.answer.value("machine", Json::array())) {
      const std::string name = fact.value("name", ""), value = fact.value("value", "");
      const bool needed = name == "sandbox" || (name == "compiler g++" && compiles);
      const bool told = name == "cores" || name == "sandbox" || (name == "compiler NVRTC" && compiles);
      if (told) text += (text.empty() ? "" : "; ") + name + " " + value;
      if (needed && !fact.value("ok", true)) add(name.c_str(), value, false, fact.value("hint", ""));
    }
    add("node", o_.node + ": " + text);
  }

  void add_submit() {
    const Json problem = o_.answer.value("submit", Json());
    if (problem.is_null()) return;
    const bool ok = problem == "";
    add("submits", ok ? o_.node + " may submit jobs" : problem.get<std::string>(), ok,
        ok ? "" : "a controller cannot run as a job there; `warpsmith run --site` from here can");
  }

  const SiteProbe& probe_;
  const std::string& name_;
  const ProbeOutcome& o_;
  const std::filesystem::path& folder_;
  std::vector<process::Fact> facts_;
};

}  // namespace

std::vector<SiteProbe> site_probes(const workflow::SiteSpec& site) {
  std::vector<SiteProbe> probes;
  for (const NamedPlace& named : places_of(site)) {
    const int gpus = named.gpu_type.empty() ? 0 : 1;
    const bool controller = named.place == &site.controller;
    const auto same = std::find_if(probes.begin(), probes.end(), [&](const SiteProbe& p) {
      return gpus == 0 && p.gpus == 0 && kind_of(*p.place) == kind_of(*named.place);
    });
    if (same != probes.end()) {
      same->places += ", " + named.name;
      same->submits |= controller;
    } else {
      probes.push_back({named.name, named.place, gpus, named.gpu_type, controller});
    }
  }
  return probes;
}

SlurmJob largest_job(const workflow::SiteSpec& site, const NamedPlace& named, const std::string& name) {
  const SitePlace& place = *named.place;
  SlurmJob job = small_job_at(place, name, named.gpu_type.empty() ? 0 : 1);
  job.minutes = whole_minutes(place.max_time_s);
  job.memory_mib = whole_mib(place.memory_per_cpu);
  if (&place == &site.controller) {
    if (site.controller_time_s > 0) job.minutes = whole_minutes(site.controller_time_s);
    job.memory_mib = whole_mib(site.controller_memory);
    job.cpus = static_cast<std::uint32_t>(site.controller_cpus);
  }
  return job;
}

SlurmJob probe_job(const SiteProbe& probe, const std::string& name, const std::filesystem::path& folder,
                   const std::filesystem::path& programs) {
  const SitePlace& place = *probe.place;
  run::ShardStart shard;
  shard.job_file = folder / "job.json";
  shard.program = programs / "warpsmith";
  shard.arguments = {"doctor", "--on-node"};
  shard.token = name;
  shard.resources.time_s = kProgramSeconds;
  shard.resources.gpus = probe.gpus;
  shard.resources.gpu_type = probe.gpu_type;

  SlurmJob job = small_job_at(place, name, probe.gpus);
  job.folder = folder;
  job.output = "slurm.log";
  job.script = batch_script(shard, 0, place, programs);
  const std::string seen =
      fmt::format("{{ cat {}; echo \"${{SLURMD_NODENAME:-$(uname -n)}}\"; }} >{}\n",
                  shell_word((folder / "token").native()), shell_word((folder / "seen").native()));
  job.script.insert(job.script.find('\n') + 1, seen);
  job.minutes = kMinutes;
  if (place.max_time_s > 0) job.minutes = std::clamp(whole_minutes(place.max_time_s), 1u, kMinutes);
  job.memory_mib = std::max(kMemoryMib, whole_mib(place.memory_per_cpu));
  return job;
}

void write_probe(const SiteProbe& probe, const std::string& name, const std::filesystem::path& folder,
                 const std::filesystem::path& conf, const std::vector<std::string>& programs) {
  make_folders(ends_folder(folder / "job.json"));
  const SitePlace& p = *probe.place;
  Json submit;
  if (probe.submits)
    submit = {{"partition", p.partition},     {"account", p.account},       {"qos", p.qos},
              {"reservation", p.reservation}, {"constraint", p.constraint}, {"exclude", p.exclude}};
  write_file_atomic(folder / "token", name + "\n");
  write_file_atomic(
      folder / "job.json",
      Json{{"token", name}, {"conf", conf.string()}, {"programs", programs}, {"submit", submit}}.dump());
}

void read_probe(const std::filesystem::path& folder, const std::string& name, ProbeOutcome& outcome) {
  std::error_code missing;
  outcome.seen.reset();
  if (std::filesystem::exists(folder / "seen", missing)) {
    const std::vector<std::string> lines = split_lines(read_file(folder / "seen"));
    if (!lines.empty()) outcome.node = lines.back();
    if (lines.size() > 1) outcome.seen = lines.front();
  }
  outcome.end = find_last_word(ends_folder(folder / "job.json"), name, 0);
  outcome.answer = json_in(folder / "answer.json");
  outcome.last_line = last_line_of(folder / "0/log.txt");
  if (outcome.last_line.empty()) outcome.last_line = last_line_of(folder / "slurm.log");
}

bool has_answered(const ProbeOutcome& outcome) {
  if (!outcome.refused.empty()) return true;
  if (!outcome.end.is_null())
    return outcome.end.value("cause", "") != "finished" || !outcome.answer.is_null();
  return outcome.task && outcome.task->state == SlurmState::kPending && waits_in_vain(outcome.task->reason);
}

bool waits_in_vain(std::string_view reason) {
  static const std::set<std::string, std::less<>> kReasons = {
      "AssocGrpSubmitJobsLimit", "JobHeldAdmin",      "JobHeldUser",
      "PartitionDown",           "PartitionInactive", "ReservationDeleted"};
  return never_starts(reason) || kReasons.contains(reason);
}

std::vector<process::Fact> probe_facts(const SiteProbe& probe, const std::string& name,
                                       const ProbeOutcome& outcome, const std::filesystem::path& folder) {
  return Findings(probe, name, outcome, folder).list();
}

}  // namespace warpsmith::executor

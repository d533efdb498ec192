// Runs a workflow while killing it: kill -9 of the controller, or of any process below it, at random moments;
// then checks that nothing was lost, nothing done twice, and that the course was that of a run that nobody
// killed.
//
//   kill_runs WARPSMITH WORKFLOW FOLDER [--kills 50] [--runs 3] [--seed 1] [--pause SECONDS] [--set
//   PATH=VALUE]…
//
// First the workflow runs undisturbed in FOLDER/undisturbed; then killed runs replay its timings. Exit code
// 0: all is well.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/random.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/shard.h"

namespace {

using namespace warpsmith;
using Clock = std::chrono::steady_clock;

struct Setup {
  std::string warpsmith, workflow;
  fs::path folder;
  int kills = 50, runs = 3;
  std::uint64_t seed = 1;
  double pause_s =
      0;  // between kills, on average; 0: from the time of the undisturbed run, which must not be there yet
  std::string calm;  // a stage; empty: the undisturbed run's timings are replayed
  std::vector<std::string> overrides;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

pid_t start(const Setup& setup, const fs::path& run, const std::string& replay,
            const std::string& until = "") {
  std::vector<std::string> argv = {setup.warpsmith, "run",        setup.workflow,
                                   "--run-dir",     run.string(), "--quiet"};
  for (const std::string& o : setup.overrides) argv.insert(argv.end(), {"--set", o});
  if (!replay.empty()) argv.insert(argv.end(), {"--replay-timings", replay});
  if (!until.empty()) argv.insert(argv.end(), {"--until", until});
  std::vector<char*> raw;
  for (std::string& a : argv) raw.push_back(a.data());
  raw.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(raw[0], raw.data());
    std::perror(raw[0]);
    ::_exit(127);
  }
  return pid;
}

// All processes below `root`, itself included.
std::vector<pid_t> tree(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    try {
      stat = read_file(entry.path() / "stat");
    } catch (const Error&) {
      continue;  // it has ended meanwhile
    }
    const auto end = stat.rfind(") ");  // pid (name) state ppid …
    if (end == std::string::npos) continue;
    children.emplace(static_cast<pid_t>(std::atol(stat.c_str() + end + 4)),
                     static_cast<pid_t>(std::stol(name)));
  }
  std::vector<pid_t> out = {root};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [from, to] = children.equal_range(out[i]);
    for (auto it = from; it != to; ++it) out.push_back(it->second);
  }
  return out;
}

// One record of each item of each job: by "stage round job item", the verdict, or "" where a record has none.
// And each row of metrics.jsonl.
struct Findings {
  std::map<std::string, std::string> verdicts;
  std::set<std::string> candidates;  // all that were compiled or measured
  int lost = 0, doubled = 0;
  bool measured = false;
};

bool is_clock_verdict(const std::string& verdict) { return verdict == "unstable" || verdict == "too_fast"; }

// Makes all that a run has measured steady: right programs are `ok`, at 1.00.
void make_steady(const fs::path& run) {
  for (const auto& entry : fs::recursive_directory_iterator(run / "stages")) {
    if (entry.path().filename() != "records.jsonl") continue;
    std::string text;
    scan_json_lines(entry.path(), 0, [&](Json&& record, std::uint64_t) {
      if (record.contains("speedup") && is_clock_verdict(record.value("verdict", ""))) {
        record["verdict"] = "ok";
        for (const char* key : {"speedup", "speedup_rounded"}) record[key] = 1.0;
        record["imprecise"] = false;
      }
      text += record.dump() + "\n";
    });
    write_file_atomic(entry.path(), text);
  }
}

Findings examine(const fs::path& run, bool calm) {
  Findings out;
  for (const auto& entry : fs::recursive_directory_iterator(run / "stages")) {
    if (entry.path().filename() != "job.json") continue;
    const fs::path folder = entry.path().parent_path();
    const JobFile job = read_job_file(entry.path());
    for (std::size_t s = 0; s < job.shards.size(); ++s) {
      std::map<std::string, int> count;
      std::map<std::string, std::string> verdict;
      for (int attempt = 1; fs::exists(folder / std::to_string(s) / std::to_string(attempt)); ++attempt)
        scan_json_lines(folder / std::to_string(s) / std::to_string(attempt) / "records.jsonl", 0,
                        [&](Json&& record, std::uint64_t) {
                          if (!record.contains("item")) return;
                          const std::string item = record.at("item").get<std::string>();
                          ++count[item];
                          // What the clock alone decided is no difference where timings are replayed.
                          const bool clock = job.program == "warpsmith-measure" &&
                                             !record.value("replayed", false) && calm &&
                                             is_clock_verdict(record.value("verdict", ""));
                          verdict.emplace(item, clock ? "ok" : record.value("verdict", ""));
                        });
      for (const Item& item : read_items(folder / "items.jsonl", job.shards[s].first, job.shards[s].second)) {
        const std::string key = job.stage + " " + std::to_string(job.round) + " " + job.job + " " + item.id;
        const int n = count.contains(item.id) ? count.at(item.id) : 0;
        if (n == 0) std::printf("  lost: %s\n", key.c_str());
        if (n > 1) std::printf("  %d times: %s\n", n, key.c_str());
        out.lost += n == 0;
        out.doubled += n > 1;
        out.verdicts[key] = verdict[item.id];
        out.measured |= job.program == "warpsmith-measure";
        if (const std::string_view kind = kind_of_job(job.job); kind == "compile" || kind == "measure")
          out.candidates.insert(item.id);
      }
    }
  }
  scan_json_lines(run / "metrics.jsonl", 0, [&](Json&& row, std::uint64_t) {
    const std::string key = "metrics of " + row.at("stage").get<std::string>() + ": " +
                            row.at("kind").get<std::string>() + " " + row.at("round").dump() + " " +
                            row.value("step", Json()).dump();
    const bool is_new = out.verdicts.emplace(key, "").second;
    if (!is_new) std::printf("  twice: %s\n", key.c_str());
    out.doubled += !is_new;
  });
  return out;
}

// Runs to the end under kills. Returns how many there were; -1 where the run failed.
int run_under_kills(const Setup& setup, const fs::path& run, const std::string& replay, int most,
                    double mean_s, Random& random) {
  int kills = 0, of_controller = 0;
  for (;;) {
    const pid_t controller = start(setup, run, replay);
    auto next = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(2 * mean_s * random.uniform()));
    for (;;) {
      int status = 0;
      if (::waitpid(controller, &status, WNOHANG) == controller) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
          std::printf("  finished after %d kills, %d of them of the controller\n", kills, of_controller);
          return kills;
        }
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
          break;  // ours: the same command again, at once
        std::printf("  the controller ended with status %d\n", status);
        return -1;
      }
      if (kills < most && Clock::now() >= next) {
        const std::vector<pid_t> processes = tree(controller);
        const pid_t victim = random.below(2) == 0 ? controller : processes[random.below(processes.size())];
        if (::kill(victim, SIGKILL) == 0) {
          ++kills;
          of_controller += victim == controller;
        }
        next = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(2 * mean_s * random.uniform()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

Setup parse(int argc, char** argv) {
  if (argc < 4)
    throw Error(
        "kill_runs WARPSMITH WORKFLOW FOLDER [--kills N] [--runs N] [--seed N] [--pause SECONDS] [--calm "
        "STAGE] [--set "
        "PATH=VALUE]",
        kExitUsage);
  Setup setup{.warpsmith = argv[1], .workflow = argv[2], .folder = argv[3], .overrides = {}};
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--kills")
      setup.kills = std::stoi(value);
    else if (option == "--runs")
      setup.runs = std::stoi(value);
    else if (option == "--seed")
      setup.seed = std::stoull(value);
    else if (option == "--pause")
      setup.pause_s = std::stod(value);
    else if (option == "--calm")
      setup.calm = value;
    else if (option == "--set")
      setup.overrides.push_back(value);
    else
      throw Error("unknown option " + option, kExitUsage);
  }
  return setup;
}

int run_all(const Setup& setup) {
  fs::remove_all(setup.folder);
  fs::create_directories(setup.folder);
  const fs::path undisturbed = setup.folder / "undisturbed";
  const auto begin = Clock::now();
  int status = 0;
  const bool calm = !setup.calm.empty();
  const fs::path steady = setup.folder / "steady";
  if (calm) {
    ::waitpid(start(setup, steady, "", setup.calm), &status, 0);
    if (status != 0) {
      std::printf("the run of %s ended with status %d\n", setup.calm.c_str(), status);
      return 1;
    }
    make_steady(steady);
  }
  ::waitpid(start(setup, undisturbed, calm ? steady.string() : ""), &status, 0);
  if (status != 0) {
    std::printf("the undisturbed run ended with status %d\n", status);
    return 1;
  }
  const double undisturbed_s = seconds_since(begin);
  const Findings expected = examine(undisturbed, calm);
  std::printf("undisturbed: %.1f s, %zu items, %zu candidates\n", undisturbed_s, expected.verdicts.size(),
              expected.candidates.size());

  const std::string replay = calm ? steady.string() : expected.measured ? undisturbed.string() : "";
  Random random(setup.seed);
  int kills = 0;
  bool good = expected.lost == 0 && expected.doubled == 0;
  // So many kills that a run gets its share of them, and more often if the runs before fell short.
  double mean_s = setup.pause_s > 0 ? setup.pause_s : undisturbed_s / (2.0 * setup.kills / setup.runs);
  for (int n = 1; n <= setup.runs && kills < setup.kills; ++n) {
    const int share = n == setup.runs ? setup.kills - kills : (setup.kills + setup.runs - 1) / setup.runs;
    std::printf("run %d:\n", n);
    const fs::path run = setup.folder / ("killed-" + std::to_string(n));
    const auto run_begin = Clock::now();
    const int done =
        run_under_kills(setup, run, replay, std::min(share, setup.kills - kills), mean_s, random);
    if (done < 0) return 1;
    kills += done;
    if (done < share) mean_s *= 0.5 * (done + 1) / share;
    const Findings found = examine(run, calm);
    const bool same = found.verdicts == expected.verdicts;
    std::printf("  %.1f s, %zu items, %d lost, %d doubled, candidates and verdicts %s\n",
                seconds_since(run_begin), found.verdicts.size(), found.lost, found.doubled,
                same ? "as undisturbed" : "DIFFER");
    if (!same) {
      int shown = 0;
      for (const auto& [key, verdict] : expected.verdicts)
        if ((!found.verdicts.contains(key) || found.verdicts.at(key) != verdict) && ++shown <= 10)
          std::printf("    %s: %s, undisturbed %s\n", key.c_str(),
                      found.verdicts.contains(key) ? found.verdicts.at(key).c_str() : "absent",
                      verdict.c_str());
    }
    good = good && same && found.lost == 0 && found.doubled == 0;
  }
  std::printf("%d kills in all\n", kills);
  if (kills < setup.kills) std::printf("fewer than the %d asked for\n", setup.kills);
  return good && kills == setup.kills ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run_all(parse(argc, argv));
  } catch (const Error& e) {
    std::fprintf(stderr, "kill_runs: %s\n", e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kill_runs: %s\n", e.what());
    return 1;
  }
}

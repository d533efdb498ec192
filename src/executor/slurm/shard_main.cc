// warpsmith-shard OPTIONS -- PROGRAM [ARGUMENT…] JOB.json: one task of a Slurm array, as the Slurm executor
// submits it.
//
// Runs PROGRAM … JOB.json SHARD with limits of time, memory and output, everything that it prints appended to
// the shard's log.txt, and says in a line below the job's ends/ folder how that ended. Where Slurm ends it
// (scancel, time limit, preemption, requeue) it says nothing: then Slurm's own word counts. A shard that has
// its word already, as a task that was requeued after it was done, is not run again.
//
//   --token T --base N      the shard is N + SLURM_ARRAY_TASK_ID of the submission T
//   --ends DIR
//   --threads N             OMP_NUM_THREADS
//   --time S --memory BYTES --output BYTES   limits, 0: none
//   --gpu-name WORDS        (repeatable) the GPU's name must hold one of them, else this is a failed launch
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../shard_child.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/workflow/site.h"

namespace {

using namespace warpsmith;
using std::chrono::milliseconds;

std::atomic<bool> told_to_end{false};

struct Options {
  std::string token;
  fs::path ends, job_file;
  std::uint32_t base = 0;
  executor::ShardCommand command;
  std::vector<std::string> gpu_names;
};

double number(const std::string& text, const std::string& option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw Error("warpsmith-shard: " + option + " " + text + " is no number", kExitUsage);
  return value;
}

Options read_options(int argc, char** argv) {
  Options o;
  int i = 1;
  for (; i + 1 < argc && std::string(argv[i]) != "--"; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--token")
      o.token = value;
    else if (option == "--ends")
      o.ends = value;
    else if (option == "--base")
      o.base = static_cast<std::uint32_t>(number(value, option));
    else if (option == "--threads")
      o.command.threads = static_cast<int>(number(value, option));
    else if (option == "--time")
      o.command.limits.time_s = number(value, option);
    else if (option == "--memory")
      o.command.limits.memory_bytes = static_cast<std::uint64_t>(number(value, option));
    else if (option == "--output")
      o.command.limits.output_bytes = static_cast<std::uint64_t>(number(value, option));
    else if (option == "--gpu-name")
      o.gpu_names.push_back(value);
    else
      throw Error("warpsmith-shard: unknown option " + option, kExitUsage);
  }
  if (i + 2 >= argc || o.token.empty() || o.ends.empty())
    throw Error("usage: warpsmith-shard OPTIONS -- PROGRAM [ARGUMENT…] JOB.json", kExitUsage);
  if (!o.gpu_names.empty()) o.command.limits.gpus = 1;  // one or more: what its exit code means depends on it
  o.command.program = argv[i + 1];
  o.command.arguments.assign(argv + i + 2, argv + argc);
  o.job_file = argv[argc - 1];
  return o;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Empty, or what is wrong with the GPUs of this node.
std::string wrong_gpu(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  workflow::SitePlace place;
  place.names = names;
  std::string problem;
  std::vector<process::Gpu> gpus = process::nvidia_gpus(&problem);
  if (gpus.empty()) return "this node shows no GPU" + (problem.empty() ? "" : " (" + problem + ")");
  // On a node with several types that hides none the others are nobody's concern. What cannot be read is no
  // reason to look at fewer: a slice has a name of its own there.
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr)
    if (auto ours = process::usable_gpus(gpus, visible); !ours.empty()) gpus = std::move(ours);
  for (const process::Gpu& gpu : gpus)
    if (!workflow::is_device_of(place, gpu.name)) return "wrong GPU: " + gpu.name;
  return "";
}

executor::ShardEnd run_shard(const Options& o) {
  if (const std::string wrong = wrong_gpu(o.gpu_names); !wrong.empty())
    return {.cause = EndCause::kLaunchFailure, .detail = wrong + " on " + process::host_name()};
  try {
    executor::ShardChild child(o.command);
    while (child.running()) {
      if (told_to_end) child.cancel(milliseconds(1000));
      pollfd fd{child.child().event_fd(), POLLIN, 0};
      const auto next = std::min(child.next_look(), std::chrono::steady_clock::now() + milliseconds(1000));
      const auto left = std::chrono::ceil<milliseconds>(next - std::chrono::steady_clock::now()).count();
      ::poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    }
    return child.end();
  } catch (const Error& e) {
    return {.cause = EndCause::kLaunchFailure, .detail = e.what()};
  }
}

int run_task(int argc, char** argv) {
  Options o = read_options(argc, argv);
  const std::string index = environment("SLURM_ARRAY_TASK_ID");
  const std::uint32_t shard =
      o.base + (index.empty() ? 0 : static_cast<std::uint32_t>(number(index, "task id")));
  if (!executor::find_last_word(o.ends, o.token, shard).is_null()) return kExitOk;
  const fs::path folder = o.job_file.parent_path() / std::to_string(shard);
  make_folders(folder);
  o.command.log = folder / "log.txt";
  o.command.arguments.push_back(std::to_string(shard));
  const executor::ShardEnd end = run_shard(o);
  if (told_to_end) return 128 + SIGTERM;
  const std::string slurm_name = environment("SLURMD_NODENAME");
  const std::string node = slurm_name.empty() ? process::host_name() : slurm_name;
  executor::append_last_word(o.ends, node,
                             {.token = o.token,
                              .shard = shard,
                              .told = {{"cause", to_string(end.cause)},
                                       {"exit_code", end.exit_code},
                                       {"signal", end.signal},
                                       {"wall_s", end.wall_s},
                                       {"cpu_s", end.cpu_s},
                                       {"memory", end.peak_memory_bytes},
                                       {"detail", end.detail},
                                       {"host", node},
                                       {"job", std::atoi(environment("SLURM_JOB_ID").c_str())},
                                       {"array", std::atoi(environment("SLURM_ARRAY_JOB_ID").c_str())}}});
  return end.cause == EndCause::kFinished ? kExitOk : end.exit_code != 0 ? end.exit_code : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_end = true; };
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(signal, &action, nullptr);
  try {
    process::become_subreaper();
    return run_task(argc, argv);
  } catch (const Error& e) {
    print_terminal_text(stderr, "warpsmith-shard: " + std::string(e.what()) + "\n");
    return e.exit_code();
  } catch (const std::exception& e) {
    print_terminal_text(stderr, "warpsmith-shard: internal error: " + std::string(e.what()) + "\n");
    return kExitEnvironment;
  }
}

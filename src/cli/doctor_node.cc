// What the tiny jobs of `warpsmith doctor --site` run on a node. Answers lie beside the question.
#include <unistd.h>

#include <cstdlib>

#include "doctor.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/cluster.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::cli {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Whether a job could be submitted from here: Slurm is asked when it would start.
std::string submit_problem(const Json& submit, const fs::path& conf) {
  try {
    const auto cluster = executor::open_cluster(program_folder(), conf);
    cluster->expected_start({.name = "warpsmith-doctor",
                             .script = "#!/bin/sh\n",
                             .folder = "/",
                             .output = "/dev/null",
                             .environment = {"PATH=/usr/bin:/bin"},
                             .partition = submit.value("partition", ""),
                             .account = submit.value("account", ""),
                             .qos = submit.value("qos", ""),
                             .reservation = submit.value("reservation", ""),
                             .constraint = submit.value("constraint", ""),
                             .exclude = submit.value("exclude", ""),
                             .minutes = 1});
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

std::string start_problem(const fs::path& program) {
  if (::access(program.c_str(), X_OK) != 0) return system_error(program.string(), errno).what();
  process::ChildSpec spec;
  spec.argv = {program.string()};
  spec.limits.wall_s = 30;
  const process::ChildResult result = process::run_child(spec);
  const bool started = result.ending == process::Ending::kTimedOut ||
                       (result.ending == process::Ending::kExited && result.exit_code < 126);
  if (started) return "";
  const std::vector<std::string> lines = split_lines(trim(result.err));
  if (!lines.empty()) return lines.back();
  if (!result.problem.empty()) return result.problem;
  return result.signal != 0 ? "signal " + std::to_string(result.signal)
                            : "exit code " + std::to_string(result.exit_code);
}

int doctor_on_node(const fs::path& question_file) {
  const Json question = read_json_file(question_file);
  Json answer = {{"version", WARPSMITH_VERSION}};
  Json& machine = answer["machine"] = Json::array();
  for (const process::Fact& fact : process::machine_facts(question_file.parent_path()))
    machine.push_back(to_json(fact));
  machine.push_back(to_json(nvrtc_fact()));
  Json& gpus = answer["gpus"] = Json::array();
  Json& targets = answer["gpu_targets"] = Json::array();
  for (const process::Gpu& gpu : process::nvidia_gpus()) {
    gpus.push_back(gpu.name);
    targets.push_back(process::compile_target(gpu.major, gpu.minor));
  }
  const std::string tmpdir = variable("TMPDIR");
  answer["tmpdir"] = ::access(tmpdir.c_str(), W_OK | X_OK) == 0 ? tmpdir : "";
  answer["modules"] = variable("LOADEDMODULES");
  Json& programs = answer["programs"] = Json::object();
  for (const std::string& name : question.value("programs", std::vector<std::string>{}))
    programs[name] = start_problem(program_folder() / name);
  const Json submit = question.value("submit", Json());
  answer["submit"] = submit.is_null() ? Json() : Json(submit_problem(submit, question.value("conf", "")));
  write_file_atomic(question_file.parent_path() / "answer.json", answer.dump() + "\n");
  return kExitOk;
}

}  // namespace warpsmith::cli

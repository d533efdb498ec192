#include "warpsmith/executor/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "../shard_child.h"
#include "warpsmith/base/files.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::executor {

namespace {

bool belongs_to_slurm(std::string_view name) {
  for (const std::string_view prefix : {"SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "PMI_", "PMIX_"})
    if (name.starts_with(prefix)) return name != "SLURM_CONF";  // which cluster, not which job
  return name == "ENVIRONMENT" || name == "CUDA_VISIBLE_DEVICES" || name == "GPU_DEVICE_ORDINAL" ||
         name == "ROCR_VISIBLE_DEVICES";
}

// Shell lines that a place wants before its programs.
std::string lines_before(const workflow::SitePlace& place) {
  std::string lines;
  for (const std::string& module : place.modules) lines += "module load " + shell_word(module) + "\n";
  for (const std::string& line : place.setup) lines += line + "\n";
  if (!place.scratch.empty()) lines += "export TMPDIR=\"" + place.scratch + "\"\nmkdir -p \"$TMPDIR\"\n";
  return lines;
}

std::string container_words(const workflow::SitePlace& place) {
  std::string words;
  for (const std::string& word : place.container) words += " \"" + word + "\"";  // may name variables
  return words;
}

// " PROGRAM ARGUMENT… JOB.json"
std::string program_words(const run::ShardStart& shard) {
  std::string words = " " + shell_word(shard.program.native());
  for (const std::string& argument : shard.arguments) words += " " + shell_word(argument);
  return words + " " + shell_word(shard.job_file.native());
}

// As sbatch hands it on: slurmd sets it before it opens the job's output.
std::string umask_variable() {
  const std::string status = read_file("/proc/self/status"), field = "\nUmask:\t";
  const auto begin = status.find(field);
  if (begin == std::string::npos) throw Error("the kernel does not say the umask in /proc/self/status");
  const auto value = begin + field.size();
  return "SLURM_UMASK=" + status.substr(value, status.find('\n', value) - value);
}

}  // namespace

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string batch_script(const run::ShardStart& model, std::uint32_t base, const workflow::SitePlace& place,
                         const std::filesystem::path& programs) {
  // Environment modules are shell functions that a login shell has.
  std::string script = place.modules.empty() ? "#!/bin/sh\n" : "#!/bin/bash -l\n";
  script += lines_before(place) + "exec" + container_words(place);
  const Resources& r = model.resources;
  script += fmt::format(" {} --token {} --base {} --ends {} --threads {} --time {:g} --memory {} --output {}",
                        shell_word((programs / "warpsmith-shard").native()), shell_word(model.token), base,
                        shell_word(ends_folder(model.job_file).native()), r.cpus, r.time_s, r.memory_bytes,
                        r.output_bytes);
  if (!place.twin && r.gpus > 0)
    for (const std::string& name : place.names) script += " --gpu-name " + shell_word(name);
  return script + " --" + program_words(model) + "\n";
}

std::string command_by_hand(const run::ShardStart& shard, const std::filesystem::path& folder,
                            const workflow::SitePlace* place) {
  std::map<std::string, std::string> variables = thread_environment(std::max(1, shard.resources.cpus));
  std::string command;
  if (!folder.empty())
    command = "cd " + shell_word(folder.native()) + " &&" + (place != nullptr ? "\n" : " ");
  if (place != nullptr) {
    command += lines_before(*place);
    for (const auto& [name, value] : place->environment) variables[name] = value;
  } else if (shard.resources.gpus == 0) {
    variables["CUDA_VISIBLE_DEVICES"] = "";
  }
  command += "env";
  for (const auto& [name, value] : variables) command += " " + name + "=" + shell_word(value);
  if (place != nullptr) command += container_words(*place);
  return command + program_words(shard) + " " + std::to_string(shard.key.shard);
}

std::vector<std::string> batch_environment(const std::map<std::string, std::string>& ours,
                                           const workflow::SitePlace& place) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : ours)
    if (!belongs_to_slurm(name) && !name.starts_with("BASH_FUNC_")) all.emplace(name, value);
  for (const auto& [name, value] : place.environment) all[name] = value;
  all.try_emplace("PATH", "/usr/bin:/bin");
  std::vector<std::string> out;
  out.reserve(all.size());
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

SlurmJob job_at(const workflow::SitePlace& place, int gpus) {
  std::vector<std::string> environment = batch_environment(process::our_environment(), place);
  environment.push_back(umask_variable());
  return {.environment = std::move(environment),
          .partition = place.partition,
          .account = place.account,
          .qos = place.qos,
          .reservation = place.reservation,
          .constraint = place.constraint,
          .exclude = place.exclude,
          .gpus = gpus > 0 ? place.gres + ":" + std::to_string(gpus) : ""};
}

}  // namespace warpsmith::executor

#include "warpsmith/executor/batch.h"

#include <fmt/format.h>

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
  for (const std::string& module : place.modules) script += "module load " + shell_word(module) + "\n";
  for (const std::string& line : place.setup) script += line + "\n";
  if (!place.scratch.empty()) script += "export TMPDIR=\"" + place.scratch + "\"\nmkdir -p \"$TMPDIR\"\n";
  script += "exec";
  for (const std::string& word : place.container) script += " \"" + word + "\"";  // may name variables
  const Resources& r = model.resources;
  script += fmt::format(" {} --token {} --base {} --ends {} --threads {} --time {:g} --memory {} --output {}",
                        shell_word((programs / "warpsmith-shard").native()), shell_word(model.token), base,
                        shell_word(ends_folder(model.job_file).native()), r.cpus, r.time_s, r.memory_bytes,
                        r.output_bytes);
  if (!place.twin && r.gpus > 0)
    for (const std::string& name : place.names) script += " --gpu-name " + shell_word(name);
  script += " -- " + shell_word(model.program.native());
  for (const std::string& argument : model.arguments) script += " " + shell_word(argument);
  return script + " " + shell_word(model.job_file.native()) + "\n";
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
  return {.environment = batch_environment(process::our_environment(), place),
          .partition = place.partition,
          .account = place.account,
          .qos = place.qos,
          .reservation = place.reservation,
          .constraint = place.constraint,
          .exclude = place.exclude,
          .gpus = gpus > 0 ? place.gres + ":" + std::to_string(gpus) : ""};
}

}  // namespace warpsmith::executor

// warpsmith-compile JOB.json SHARD: compiles candidates, one an item: tier `plan` for any device, tier
// `extension` for GPUs where nvcc is, tier `python` for GPUs where a python3 with torch is.
//
// params: device_kind ("cpu", or a GPU type such as "H100"), targets (of a GPU: ["sm_90a", …], by default
// what
//         device_kind is best served with), datasets, cache (relative to the run folder), timeout_s,
//         memory_bytes, log_bytes, unsandboxed
// item:   {"id": candidate id, "candidate": {…}}
// record: {"verdict" (not_measured: no fault of the candidate's; a few such in a row end the shard), "log",
// "binary" (relative to the run folder; empty unless ok), "seconds", "cached"}
//         and for a GPU, of whose targets these are the first that failed, else the first:
//         {"binaries": {target: path}, "kernels": {target: [resources of each kernel of the plan]},
//          "code": {target: code_structure() of the binary, where it is known},
//          "tensor_cores": {target: whether its machine code has instructions of theirs}}
//         (of tiers `extension` and `python`: {"binaries": …, "libraries": [what it is linked with],
//         "tensor_cores": …, of its own kernels, without targets of which it is not known})
// Where a candidate has a binary for a GPU, the kernels of the harness that will measure it are made as well.
#include <algorithm>
#include <map>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/records/shown_file.h"
#include "warpsmith/task/task_source.h"
#include "warpsmith/toolchain/code_structure.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/host.h"
#include "warpsmith/toolchain/python.h"

namespace {

using namespace warpsmith;

constexpr int kFaultsInARow = 3;

toolchain::CompileOptions options_of(const ShardSession& shard) {
  const Json& params = shard.job().params;
  toolchain::CompileOptions options;
  options.cache = shard.run_folder() / params.value("cache", "cache");
  options.timeout_s = params.value("timeout_s", options.timeout_s);
  options.memory_bytes = params.value("memory_bytes", options.memory_bytes);
  options.log_bytes = params.value("log_bytes", options.log_bytes);
  options.unsandboxed = params.value("unsandboxed", false);
  return options;
}

// Of a binary for `target`, "cpu" among them.
void add_code(const fs::path& binary, const std::string& target, Json& record) {
  if (std::string code = toolchain::code_structure(binary); !code.empty())
    record["code"][target] = std::move(code);
}

Json record_of(const toolchain::CompileResult& r, const fs::path& run_folder) {
  return {{"verdict", std::string(to_string(r.verdict))},
          {"log", r.log},
          {"binary", r.binary.empty() ? "" : fs::relative(r.binary, run_folder).string()},
          {"seconds", r.seconds},
          {"cached", r.cached}};
}

// Empty for the CPU.
std::vector<toolchain::GpuTarget> targets_of(const Json& params) {
  const std::string kind = params.value("device_kind", "cpu");
  if (kind == "cpu") return {};
  std::vector<toolchain::GpuTarget> targets;
  for (const std::string& name : params.value("targets", std::vector<std::string>())) {
    const auto target = toolchain::parse_gpu_target(name);
    if (!target) throw Error("params: targets: `" + name + "` is none (sm_80, sm_90a, …)", kExitUsage);
    targets.push_back(*target);
  }
  if (!targets.empty()) return targets;
  const auto target = toolchain::target_of_type(kind);
  if (!target)
    throw Error("params: device_kind `" + kind + "`: no GPU type that CUDA 13 makes code for; say `targets`",
                kExitUsage);
  return {*target};
}

Json resources_of(const toolchain::CubinFacts& facts) {
  Json kernels = Json::array();
  for (const toolchain::KernelFacts& k : facts.kernels)
    kernels.push_back({{"name", k.name},
                       {"registers", k.registers},
                       {"shared_bytes", k.shared_bytes},
                       {"local_bytes", k.local_bytes},
                       {"spill_bytes", k.spill_store_bytes + k.spill_load_bytes}});
  return kernels;
}

Json record_of(Tier tier, const std::vector<toolchain::GpuTarget>& targets,
               const std::vector<toolchain::CompileResult>& results, const fs::path& run_folder) {
  const auto failed =
      std::find_if(results.begin(), results.end(), [](const auto& r) { return r.verdict != Verdict::kOk; });
  Json record = record_of(failed == results.end() ? results.front() : *failed, run_folder);
  record["binaries"] = Json::object();
  record["tensor_cores"] = Json::object();
  if (tier == Tier::kPlan)
    record["kernels"] = Json::object();
  else
    record["libraries"] = Json::array();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (results[i].binary.empty()) continue;
    const std::string target = toolchain::to_string(targets[i]);
    record["binaries"][target] = fs::relative(results[i].binary, run_folder).string();
    add_code(results[i].binary, target, record);
    if (tier != Tier::kPlan) {
      const toolchain::ExtensionFacts facts = toolchain::read_extension_facts(results[i].binary);
      record["libraries"] = facts.libraries;
      if (facts.code.tensor_cores) record["tensor_cores"][target] = *facts.code.tensor_cores;
      continue;
    }
    const toolchain::CubinFacts facts = toolchain::read_cubin_facts(results[i].binary);
    record["kernels"][target] = resources_of(facts);
    record["tensor_cores"][target] = facts.tensor_cores;
  }
  return record;
}

std::vector<toolchain::CompileResult> compile_for(const std::vector<toolchain::GpuTarget>& targets,
                                                  const Candidate& candidate, const task::Task& task,
                                                  const toolchain::CompileOptions& options) {
  if (candidate.tier == Tier::kPlan) return toolchain::compile_for_gpus(candidate, task, targets, options);
  std::vector<toolchain::CompileResult> results;
  for (const toolchain::GpuTarget& target : targets)
    results.push_back(candidate.tier == Tier::kPython
                          ? toolchain::compile_python(candidate, task, target, options)
                          : toolchain::compile_extension(candidate, task, target, options));
  return results;
}

struct Compiler {
  std::vector<toolchain::GpuTarget> targets;  // none: the CPU
  toolchain::CompileOptions options;
  fs::path run_folder;
  toolchain::HostToolchain host{options};

  Json compile(const Candidate& candidate, const task::Task& task) {
    if (targets.empty()) {
      const toolchain::CompileResult result = host.compile(candidate, task);
      Json record = record_of(result, run_folder);
      if (!result.binary.empty()) add_code(result.binary, "cpu", record);
      return record;
    }
    return record_of(candidate.tier, targets, compile_for(targets, candidate, task, options), run_folder);
  }
};

// Of a candidate that is not to blame.
Json not_compiled(const std::vector<toolchain::GpuTarget>& targets, Tier tier, const std::string& why,
                  const fs::path& run_folder) {
  toolchain::CompileResult result;
  result.verdict = Verdict::kNotMeasured;
  result.log = why + "\n";
  if (targets.empty()) return record_of(result, run_folder);
  return record_of(tier, targets, std::vector<toolchain::CompileResult>(targets.size(), result), run_folder);
}

// So that no job which has a GPU makes them. It would, where they are missing.
void have_harness_ready(const std::vector<toolchain::GpuTarget>& targets,
                        const toolchain::CompileOptions& options) {
  for (const toolchain::GpuTarget& target : targets) {
    try {
      measure::harness_cubin(toolchain::to_string(target), options.cache, options.unsandboxed);
    } catch (const Error& e) {
      log_warning(e.what());
    }
  }
}

void compile_shard(ShardSession& shard) {
  process::become_subreaper();
  const std::vector<toolchain::GpuTarget> targets = targets_of(shard.job().params);
  task::TaskSource tasks(json_at<std::string>(shard.job().params, "datasets", "params"));
  const toolchain::CompileOptions options = options_of(shard);
  const std::string id = targets.empty() ? toolchain::host_toolchain_id() : toolchain::gpu_toolchain_id();
  log_info("compiling with " + id.substr(0, 60));
  if (targets.empty() && toolchain::nvrtc_of_twin().name.empty())
    log_warning("g++ alone decides what is a compile_error: " + toolchain::nvrtc_of_twin().why_none);
  Compiler compiler{targets, options, shard.run_folder()};
  int faults = 0;
  bool some_run = false;
  for (const Item& item : shard.open_items()) {
    const Candidate candidate = candidate_from_json(item.value.at("candidate"));
    Json record;
    try {
      record = compiler.compile(candidate, tasks.of(candidate.task));
      faults = 0;
    } catch (const InvalidInput&) {
      throw;
    } catch (const Error& e) {
      // Perhaps this one only; when it goes on, nothing can be compiled here.
      if (e.exit_code() == kExitUsage || ++faults >= kFaultsInARow) throw;
      log_warning(item.id.substr(0, 12) + ": " + name_shown_file(e.what(), candidate));
      record = not_compiled(targets, candidate.tier, e.what(), shard.run_folder());
    }
    record["log"] = name_shown_file(record.at("log").get<std::string>(), candidate);
    some_run = some_run || record.at("verdict") == to_string(Verdict::kOk);
    shard.write(item, std::move(record));
  }
  if (some_run) have_harness_ready(targets, options);
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) { return shard_main("warpsmith-compile", argc, argv, compile_shard); }

// The tables of the format: which keys each map of a workflow file has.
#pragma once

#include "keys.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

const Table<ModelSettings>& model_keys();
const Table<SampleSettings>& sample_keys();
const Table<OptimizerSettings>& optimizer_keys();
const Table<LoraSettings>& lora_keys();
const Table<CompileSettings>& compile_keys();
const Table<ProtocolSettings>& protocol_keys();
const Table<PromptSettings>& prompt_keys();
const Table<Notify>& notify_keys();
const Table<Budget>& budget_keys();
const Table<Resources>& resource_keys();
inline constexpr const char* kShardsAGpu = "shards_a_gpu";  // one of them, which measure jobs alone have
const Table<SynthesizeSettings>& synthesize_keys();
const Table<AugmentSettings>& augment_keys();

const Table<SftSettings>& sft_keys();
const Table<SelfSupervisedSettings>& self_supervised_keys();
const Table<ContrastiveSettings>& contrastive_keys();
const Table<MeasureSettings>& measure_keys();
const Table<CommandSettings>& command_keys();
const Table<ServiceSettings>& service_keys();

// Keys that every stage may have besides its kind's and its blocks'; those of them with plain values are in a
// table.
const Table<StageSpec>& stage_keys();
// The retry rule's causes.
struct CauseRule {
  EndCause cause;
  int standard;  // retries where the file says nothing
  const char* meaning;
};
const std::vector<CauseRule>& cause_rules();

// What a stage kind may say and what its jobs are.
struct KindRule {
  const char* name;
  const char* meaning;
  std::vector<std::string> blocks;  // of model, sample, optimizer, lora, compile, measure, prompt, policy:
                                    // those that its result depends on
  std::vector<std::string> jobs;    // whose threads its result depends on
  bool uses_dataset = true;
  bool trains = false;  // leaves a checkpoint
  bool needs_checkpoint = false;
  bool needs_candidates = false;
  bool checks = false;  // may have a `checker`
};
const std::vector<KindRule>& kind_rules();
const KindRule* find_kind(std::string_view name);
// Whether it leaves a checkpoint of its own: a server's model is not trained.
inline bool trains(const StageSpec& spec) { return find_kind(spec.kind)->trains && has_own_model(spec); }

}  // namespace warpsmith::workflow

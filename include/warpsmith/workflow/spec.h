// What a workflow file says, after substitution and matrix expansion. Format document: workflows/README.md.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/end_cause.h"
#include "warpsmith/records/job.h"
#include "warpsmith/workflow/prices.h"

namespace warpsmith::workflow {

// `retry:` by cause: how often a shard is started again after ending for that cause. memory_factor multiplies
// the memory limit at each retry after `out_of_memory`.
struct RetryRule {
  std::map<EndCause, int> times;
  double memory_factor = 1.5;
};

struct Notify {
  std::string on_end,
      on_failure;  // commands for /bin/sh; WARPSMITH_RUN, WARPSMITH_STATE in their environment
};

// `budget:`; 0: no bound. A run stops starting shards before it would be passed.
struct Budget {
  double gpu_hours = 0;
};

// A model of a Hugging Face folder, as it was found when the workflow was loaded.
struct PretrainedModel {
  std::string family;  // `model_type` of its config.json
  Json settings;       // DecoderSettings of warpsmith/model
  Json frame;          // Frame of warpsmith/tokenizer
  int context = 0;
  std::int64_t parameters = 0;
  std::string digest;  // of its files
  bool takes_lora = true;
  std::vector<std::string> notes;
};

// Decoder of the Qwen2/Llama family; see warpsmith/model.
struct ModelSettings {
  // Hugging Face folders, absolute: one to begin from, or one whose shape and tokenizer are taken, with
  // random weights. Where either is named, the sizes below are not used, but for `context`.
  std::string from, shape_of;
  std::shared_ptr<const PretrainedModel> pretrained;  // where either is named and it was looked at
  bool context_given = false;
  std::string export_as = "auto";  // a folder for transformers at a stage's end: "float32", "bfloat16",
                                   // "none"; auto: float32 where either is named, else none
  int layers = 4, width = 128, heads = 4, kv_heads = 2, hidden = 352, context = 1024, vocabulary = 1024;
  double rope_base = 10000.0, norm_epsilon = 1e-6;
  double init_deviation = 0.05;
};

struct SampleSettings {
  double temperature = 1.0, top_p = 1.0;
  int top_k = 0;  // 0: off
  int max_tokens = 400;
  std::string type = "auto";  // "float32", "bfloat16"; auto: bfloat16 on a GPU, else float32
  int wave = 64;              // samples that are drawn at a time, on a GPU
};

struct OptimizerSettings {
  double learning_rate = 4e-3;
  double final_rate = 0.1;  // share of learning_rate at the end of the cosine
  int warmup_steps = 50;
  double weight_decay = 0.01, beta1 = 0.9, beta2 = 0.95, clip_norm = 1.0;
  int batch_tokens = 1500;          // prompt and completion tokens of a step
  int micro_batch_tokens = 0;       // tokens that are computed at a time; 0: a whole step's
  bool recompute = false;           // layers again in the backward pass
  bool deterministic = true;        // on a GPU: sums in a fixed order
  std::string moments = "float32";  // of AdamW: "float32", "int8"
  std::string states = "auto";      // where they lie: "gpu", "host", "nvme"
  std::string states_folder;        // of "nvme"
  std::string type = "auto";  // of weights and gradients: "float32", "bfloat16"; as SampleSettings::type
  int checkpoint_every = 200;
  int keep_last = 2;
  bool keep_best = true;
};

// A server that speaks OpenAI's protocol, and how it is asked. Its key is read from the environment variable
// that `key_env` names, by the program that asks.
struct EndpointSettings {
  std::string url, model;      // of its API: "http://localhost:8000/v1"; as the server calls the model
  std::string service;         // in place of `url`: the stage that starts the server
  std::string key_env;         // empty: it wants no key
  std::string ca_file, proxy;  // an absolute path; empty: the system's
  bool chat = true;            // false: prompts are continued, as a model without a chat template does
  double timeout_s = 600;      // the longest to wait for an answer
  int tries = 8, in_flight = 16;
  double requests_a_minute = 0, tokens_a_minute = 0;  // 0: no limit
  // Of a stage, over all its rounds and lives; 0: no bound. Money is in the currency of the site's prices.
  struct Spending {
    int tokens = 0;
    double money = 0;
  } budget;
  TokenPrices prices;  // by resolve_devices(): those of the site; 0: it has none
};

// Low-rank adapters in the place of training all weights.
struct LoraSettings {
  int rank = 0;  // 0: none
  double alpha = 16;
  std::vector<std::string> targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                      "gate_proj", "up_proj", "down_proj"};
};

struct CompileSettings {
  double timeout_s = 20;
  std::uint64_t memory_bytes = 2ull << 30;
  std::uint64_t log_bytes = 4096;
};

// The measurement protocol's settings; meaning: results/measurement.md, defaults: workflows/README.md.
struct ProtocolSettings {
  std::string baseline = "eager";  // of the score
  std::vector<std::string> baselines = {
      "all"};  // timed for each task on a GPU, or "all"; that of the score always
  std::string math = "strict";
  int threads = 1;        // CPU threads of candidate and baseline
  double target = 0;      // half width of the interval, as a share of the score; 0: by the device
  double budget_s = 2.0;  // timing of one candidate
  int buckets = 7, rounds_a_bucket = 5;
  double variance_gate = 0;  // 0: ten times what the target implies
  int check_seeds = 2;
  double call_timeout_s = 10;
  double remeasure_above = 3.0;      // speedup over which a score is measured again …
  double remeasure_over_best = 2.0;  // … or this multiple of the task's best
  std::uint64_t memory_bytes = 2ull << 30;
};

struct DatasetSettings {
  std::filesystem::path folder;  // absolute
  // Ids of tasks. sft_only: stage 1 learns their programs as they are; nothing else is done with them.
  std::vector<std::string> train, heldout_combination, heldout_operation, heldout_length, heldout_people,
      sft_only;
  // All of these with their names, `train` first.
  using Group = std::pair<const char*, const std::vector<std::string>*>;
  std::array<Group, 6> groups() const {
    return {Group{"train", &train},
            {"heldout_combination", &heldout_combination},
            {"heldout_operation", &heldout_operation},
            {"heldout_length", &heldout_length},
            {"heldout_people", &heldout_people},
            {"sft_only", &sft_only}};
  }
  std::set<std::string> ids() const;  // of all groups
};

// Tasks from a grammar (datasets/synthesis.md). The same settings make the same tasks.
struct SynthesizeSettings {
  std::uint64_t seed = 1;
  std::uint64_t split_seed = 1;  // which pairs and operators are held out
  int count = 100;               // of trained tasks
  int unsolved = 0;              // of trained tasks that have no program
  int sft_only = 0;              // of tasks whose programs stage 1 learns as they are
  int heldout = 0;               // of each kind of held-out task
  int longest = 4;               // operators in a trained chain; longer ones are held out, up to three more
  int program_bytes = 0;         // longer programs are not given, nor tasks that have only such; 0: all are
  double traced_share = 0;       // of tasks that are written as KernelBench's are
  double pairs_share = 0.15;     // of pairs that are held out
  int operators_out = 2;         // operators that are held out
  double least_gain = 1.1;       // synthesis::gain_of()
  std::vector<std::string> families = {"chains"};  // of tasks, synthesis::family_of(): as many of each
  double branches = 0;                             // of tasks with a step in which two branches meet
  double half_precision = 0;                       // of tasks in our form that have 16 bits, where they can
  double strided = 0;                              // of tasks in our form whose matrix is not contiguous
};

struct PromptSettings {
  std::string style =
      "full";         // "full": the paper's five parts; "compact": the same parts, fixed ones one line each
  int exemplars = 2;  // N
  std::string answer = "plan";  // tier that a model writes: "plan", "extension", "python"
};

struct AugmentSettings {
  int variants = 0;  // tried for each successful dataset candidate
  bool rename_identifiers = false;
  std::vector<int> block_sizes;  // other block sizes
};

// A served model that writes candidates for stage 1; the numbers are the paper's.
struct TeacherSettings {
  std::string name;  // an identifier; its jobs and its share of the summary are named so
  EndpointSettings endpoint;
  int trials = 20, successes = 2;  // of a task: asked until so many distinct programs succeeded
  double temperature = 1, top_p = 1;
  int max_tokens = 4096;
};

struct HackDatabase;

// A served model that is asked about programs whose score jumped. What it says is advice.
struct CheckerSettings {
  EndpointSettings endpoint;
  double jump = 2;    // asked of a score of so many times the task's best before
  int cases = 3;      // known cases that a question quotes, the most alike
  std::string hacks;  // folder of known hacks, absolute; empty: those of the run alone
  double temperature = 0;
  int max_tokens = 1024;
  std::shared_ptr<const HackDatabase> known;  // what the folder holds; null: it names none
};

struct CollectSettings {
  AugmentSettings augment;
  std::vector<TeacherSettings> teachers;
};
struct SftSettings {
  int steps = 1200;
  double contrastive_share = 0.3;  // share of the examples with the contrastive prompt
  bool successes_only = true;
};
struct SelfSupervisedSettings {
  int rounds = 3, samples = 16;  // samples a task and round
  int steps = 60;                // optimiser steps a round
  bool distinct = true;  // each distinct success once (false: every success, the paper's literal form)
  int turns = 1;         // a sample is asked again, with what became of it, until there are so many answers
  int ahead = 0;         // rounds that are sampled while one is measured and trained on: 0 or 1
  double fastest = 1;    // share of each task's successes of a round that is learned from, the fastest first
  double replay = 0.5;   // share of each batch from stage 1's examples
  double reward_within = 0.05;  // what `fastest` compares: scores with an interval of at most ± this share
  double skip = 0;  // share of a round's programs that is not measured: those that seem to be slowest
};
enum class Exemplars { kBucket, kIsland, kRandom, kNone };
struct ContrastiveSettings {
  int rounds = 8;
  int prompts = 12;            // prompts a round
  int group = 8;               // G
  int turns = 1;               // a sample is asked again, with what became of it, so many answers in all
  int ahead = 0;               // as in SelfSupervisedSettings
  double turn_discount = 0.4;  // γ: what a turn gets of the next one's reward
  double skip = 0;             // as in SelfSupervisedSettings
  Exemplars exemplars = Exemplars::kBucket;
  double reward_within = 0.05;  // scores with an interval of at most ± this share are rewards and exemplars
  double plain_share = 0;       // share of the prompts that show no exemplar
  bool update = true;           // `update: grpo` (false: none)
  double bucket_width = 0.2;    // Δs
  double bucket_tau = 0.5;      // τ
  int islands = 4, island_reset_every = 4;
  double smoothing_clip = 1.5;      // k
  int smoothing_window = 100;       // iterations over which μ and σ roll
  std::string reward = "log";       // log | raw | milestones
  std::string advantage = "group";  // group | leave_one_out
  double length_penalty = 0;        // less for an answer of max_tokens
  double library_penalty = 0;       // less for a right program none of whose kernels is its own
  double failure_margin =
      1.0;  // a failure's smoothed reward lies this far below the task's lowest valid one, and at −k at most
  double clip_ratio = 0.2, kl = 0.01, kl_clamp = 10.0;
  int epochs = 2;
  std::string hacks;    // folder of known hacks (hack_database.h), absolute; empty: those of the run alone
  int quote_hacks = 0;  // that a prompt's restrictions quote, at most
};
// Samples from a stage's frozen checkpoint, compiled and measured; or the candidates of earlier stages, of
// another run, or imported ones.
struct MeasureSettings {
  std::string checkpoint_of;  // a stage; empty: one of the next three
  std::vector<std::string> candidates_of;
  std::string candidates_of_run;  // folder of a run, absolute
  std::string candidates;         // "imported": all that lie below imported/ of the tasks; or empty
  std::string select = "best";    // of candidates: "best" of each task, or "all"
  int samples = 8;                // a task
  bool contrastive_prompt = false;
  bool heldout = true;              // also the held-out tasks
  std::vector<std::string> groups;  // tasks of these groups alone; empty: as `heldout` says
  bool wants_group(std::string_view group) const {
    if (groups.empty()) return group == "train" || (heldout && group != "sft_only");
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }
  // Whether they come from elsewhere than a stage of the workflow: StageSpec::taken.
  bool takes() const { return !candidates_of_run.empty() || !candidates.empty(); }
};
struct CommandSettings {
  std::vector<std::string>
      argv;  // words that begin with ./ or ../ are made absolute, from the folder of the workflow file
  std::string items = "none";  // "none": one item; "tasks"; "candidates"
  std::string records =
      "own";  // "none": the program keeps none, its exit code 0 stands for all of a shard's items
};

// A server that the run starts itself, for the stages that ask it.
struct ServiceSettings {
  std::vector<std::string> argv;                // as CommandSettings::argv; {port} and {host} are replaced
  std::string health = "/health", api = "/v1";  // paths below http://HOST:PORT
  double ready_s = 900;                         // how long until it answers
};

using StageSettings = std::variant<CollectSettings, SftSettings, SelfSupervisedSettings, ContrastiveSettings,
                                   MeasureSettings, CommandSettings, ServiceSettings>;

// What the place where a run works has for a stage's `device`. kUnasked: it is cpu, or nobody has looked yet.
enum class DeviceFound { kUnasked, kReal, kTwin, kNone };

// The candidates that a stage takes from another run, or from its dataset's imported/.
struct TakenCandidates {
  std::vector<Candidate> list;  // in the order of the tasks
  std::string digest;           // SHA-256 of their ids, in this order
};

// One stage instance: a point of its matrix. Everything is resolved.
struct StageSpec {
  std::string name;  // "evaluate-sft": name in the file, then the values of the matrix point, joined by '-'
  std::string base_name;  // "evaluate"
  std::string kind;       // "collect", "sft", "self_supervised", "contrastive", "measure", "command",
                          // "service"
  std::map<std::string, std::string> point;  // matrix values
  std::vector<std::string> needs;            // instance names, sorted
  int generate_shards = 1;  // at least: `generate: {gpus: N}` are N shards, each of which has one GPU
  // Resources by job; collect jobs take compile's, command jobs train's.
  Resources generate, compile, measure, train, service;
  std::array<Resources*, 5> all_resources() { return {&generate, &compile, &measure, &train, &service}; }
  RetryRule retry;
  double tolerate = 0;  // share of failed shards that the stage survives
  int max_jobs = 0;     // shards of the stage at a time; 0: no limit
  Notify notify;
  std::string device = "cpu";  // device kind that it is measured on; "auto" only until it is resolved, below
  double shard_s = 60;         // expected duration of a shard: items are packed by it
  std::uint64_t seed = 1;
  DatasetSettings dataset;
  PromptSettings prompt;
  ModelSettings model;
  SampleSettings sample;
  OptimizerSettings optimizer;
  LoraSettings lora;
  std::optional<EndpointSettings> policy;  // the model that is sampled, where a server has it
  // Of a policy that is trained here, how its server gets new weights: "sglang", "vllm_lora", "restart";
  // "none": it keeps those that it has.
  std::string policy_weights = "none";
  std::optional<CheckerSettings> checker;
  bool train_gpus_named = false;  // the file gives GPUs to train jobs by name, not to all jobs of a stage
  CompileSettings compiler;
  ProtocolSettings protocol;
  StageSettings settings;
  Json resolved;  // every parameter that enters the hash, by name, for hashing and for `plan`'s "old -> new"
  int line = 0;   // in the file
  std::shared_ptr<const HackDatabase> hacks;  // what its folder of known hacks holds; null: it names none

  // What the file alone does not say. By resolve_devices() (devices.h):
  std::string
      wanted_device;  // `device` of the file, where that is no cpu; `device` is then what it is measured on
  DeviceFound device_found = DeviceFound::kUnasked;
  std::string auto_device;  // with `device: auto`, why it is what it is: "this machine has 2 L40"
  // Where the device is a GPU that is there: what its name must hold one of, by holds_words() in
  // base/words.h, and what it is compiled for, such as "sm_90a"; empty: it follows from the type.
  std::vector<std::string> device_names;
  std::string compile_target;
  std::string lacks;  // why nothing can be measured there: "no device: site lab has no H20"; empty: it can
  // By plan::take_candidates(), where MeasureSettings::takes():
  std::shared_ptr<const TakenCandidates> taken;
  // By both: why it cannot run as things stand, and what mends that; empty: it can.
  std::string blocked;
};

// The servers that a stage asks: policy, checker, teachers.
std::vector<EndpointSettings*> endpoints_of(StageSpec& stage);

// Whether the stage has a model of this workflow: what a server has alone is not trained here.
inline bool has_own_model(const StageSpec& stage) { return !stage.policy || stage.policy_weights != "none"; }

// In what type a stage that trains writes its model as a Hugging Face folder: float32, bfloat16, or empty: it
// writes none. A server that gets the weights reads them from there.
std::string export_type(const StageSpec& stage);

// Whether stages of the kind run a program of the user's: their `argv`.
inline bool runs_program(std::string_view kind) { return kind == "command" || kind == "service"; }

struct WorkflowSpec {
  std::string name;
  std::filesystem::path file;
  std::string text;  // as read
  std::uint64_t seed = 1;
  Json params = Json::object();
  Notify notify;
  Budget budget;
  Prices prices;                  // by resolve_devices(): those of the site
  std::vector<StageSpec> stages;  // in an order in which each follows those that it needs
};

}  // namespace warpsmith::workflow

#include "tables.h"

#include "warpsmith/records/job.h"

namespace warpsmith::workflow {

namespace {
constexpr double kManySteps = 100'000'000;

KeyRule reward_within_rule() {
  return {.name = "reward_within",
          .form = Form::kShare,
          .meaning =
              "A score says how fast a program is where its 95 % interval is within ± this share of it; else "
              "it is "
              "no reward and no exemplar.",
          .low = 0,
          .high = 1,
          .young = true};
}

KeyRule turns_rule() {
  return {.name = "turns",
          .form = Form::kInteger,
          .meaning = "Answers in a row: each is asked again, with what became of the one before. 1: none is.",
          .low = 1,
          .high = kMostTurns,
          .young = true};
}

KeyRule ahead_rule() {
  return {.name = "ahead",
          .form = Form::kInteger,
          .meaning =
              "1: the next round is sampled while one is measured and trained on, so by a model that is one "
              "update older. 0: one after the other.",
          .low = 0,
          .high = 1,
          .young = true};
}

KeyRule skip_rule() {
  constexpr double kMost = 0.9;
  return {.name = "skip",
          .form = Form::kShare,
          .meaning =
              "Share of the programs that compiled that is not measured: those that are predicted to "
              "be the slowest. 0%: all are measured.",
          .low = 0,
          .high = kMost,
          .young = true};
}

// Both types' keys: what weights are computed in.
KeyRule type_rule(const char* meaning) {
  return {.name = "type", .form = Form::kWord, .meaning = meaning, .words = {"auto", "float32", "bfloat16"}};
}

}  // namespace

const Table<ModelSettings>& model_keys() {
  using S = ModelSettings;
  static const Table<S> table = {
      {.rule = {.name = "from",
                .form = Form::kString,
                .meaning = "A Hugging Face folder to begin from: config.json, safetensors, tokenizer.json; "
                           "relative to the folder of this file.",
                .hashed = false},
       .member = &S::from},
      {.rule = {.name = "shape_of",
                .form = Form::kString,
                .meaning =
                    "The same, of which the shape and the tokenizer are taken; the weights are random.",
                .hashed = false},
       .member = &S::shape_of},
      {.rule = {.name = "export",
                .form = Form::kWord,
                .meaning =
                    "What each stage that trains leaves in `model/` of its folder for transformers: "
                    "weights of this type, or nothing; auto: float32 where the model came from a folder.",
                .words = {"auto", "float32", "bfloat16", "none"},
                .hashed = false},
       .member = &S::export_as},
      {{"layers", Form::kInteger, "Transformer blocks.", 1, 1000}, &S::layers},
      {{"width", Form::kInteger, "Width of the residual stream; a multiple of `heads`.", 8, 65536},
       &S::width},
      {{"heads", Form::kInteger, "Query heads.", 1, 1024}, &S::heads},
      {{"kv_heads", Form::kInteger, "Key and value heads; divides `heads`.", 1, 1024}, &S::kv_heads},
      {{"hidden", Form::kInteger, "Width inside the SwiGLU block.", 8, 262144}, &S::hidden},
      {{"context", Form::kInteger, "Longest prompt and completion together, in tokens.", 16, 4194304},
       &S::context},
      {{"vocabulary", Form::kInteger,
        "Tokens of the byte-level BPE: 256 bytes, the special ones, then merges.", 261, 1000000},
       &S::vocabulary},
      {{"rope_base", Form::kNumber, "Base of the rotary positions.", 0, 1e12, true}, &S::rope_base},
      {{"norm_epsilon", Form::kNumber, "Epsilon of RMSNorm.", 0, 1, true}, &S::norm_epsilon},
      {{"init_deviation", Form::kNumber, "Standard deviation of the initial weights.", 0, 10, true},
       &S::init_deviation},
  };
  return table;
}

const Table<SampleSettings>& sample_keys() {
  using S = SampleSettings;
  static const Table<S> table = {
      {{"temperature", Form::kNumber, "Divides the logits; 0 takes the most likely token.", 0, 100},
       &S::temperature},
      {{"top_p", Form::kNumber, "Smallest set of tokens with this probability together.", 0, 1, true},
       &S::top_p},
      {{"top_k", Form::kInteger, "Most likely tokens kept; 0: all.", 0, 1000000}, &S::top_k},
      {{"max_tokens", Form::kInteger, "Longest completion.", 1, 1000000}, &S::max_tokens},
      {.rule = type_rule("Type of the weights that sample; auto: bfloat16 on a GPU, else float32."),
       .member = &S::type},
      {{"wave", Form::kInteger, "On a GPU: samples that are drawn at a time. Equal waves give equal samples.",
        1, 100000},
       &S::wave},
  };
  return table;
}

const Table<OptimizerSettings>& optimizer_keys() {
  using S = OptimizerSettings;
  static const Table<S> table = {
      {{"learning_rate", Form::kNumber, "Highest learning rate, after the warm-up.", 0, 10, true},
       &S::learning_rate},
      {{"final_rate", Form::kShare, "Learning rate at the end of the cosine, as a share of the highest.", 0,
        1},
       &S::final_rate},
      {{"warmup_steps", Form::kInteger, "Steps of linear warm-up.", 0, kManySteps}, &S::warmup_steps},
      {{"weight_decay", Form::kNumber, "AdamW's decoupled weight decay.", 0, 10}, &S::weight_decay},
      {{"beta1", Form::kNumber, "AdamW's decay of the first moment.", 0, 0.999999}, &S::beta1},
      {{"beta2", Form::kNumber, "AdamW's decay of the second moment.", 0, 0.999999}, &S::beta2},
      {{"clip_norm", Form::kNumber, "Gradients with a larger norm are scaled to it; 0: never.", 0, 1e6},
       &S::clip_norm},
      {{"batch_tokens", Form::kInteger, "Tokens of prompts and completions in a step.", 1, kManySteps},
       &S::batch_tokens},
      {{"micro_batch_tokens", Form::kInteger,
        "At most so many of them are computed at a time, an example at least; 0: a whole step.", 0,
        kManySteps},
       &S::micro_batch_tokens},
      {.rule = {.name = "recompute",
                .form = Form::kBoolean,
                .meaning = "Compute layers again in the backward pass: less memory, the same numbers.",
                .hashed = false},
       .member = &S::recompute},
      {.rule = {.name = "deterministic",
                .form = Form::kBoolean,
                .meaning =
                    "On a GPU: sums in a fixed order, so that training repeats bit for bit, stopped or "
                    "not. false: faster attention.",
                .young = true},
       .member = &S::deterministic},
      {.rule = {.name = "moments",
                .form = Form::kWord,
                .meaning =
                    "Type of AdamW's two moments. int8: a byte each, scaled in blocks of 256; other numbers.",
                .words = {"float32", "int8"},
                .young = true},
       .member = &S::moments},
      {.rule = {.name = "states",
                .form = Form::kWord,
                .meaning =
                    "Where master weights and moments lie; the numbers stay the same. host, nvme (files): "
                    "each step copies them to the GPU and back, piece by piece. auto: on the GPU as far "
                    "as there is room, then on the host, then in files where `states_folder` is named.",
                .words = {"auto", "gpu", "host", "nvme"},
                .hashed = false},
       .member = &S::states},
      {.rule = {.name = "states_folder",
                .form = Form::kString,
                .meaning =
                    "Folder of the machine that trains for such files, on a fast disk: an absolute path.",
                .hashed = false},
       .member = &S::states_folder},
      {.rule =
           type_rule("Type of weights and gradients; auto: bfloat16 on a GPU, else float32. Master weights "
                     "and moments are float32."),
       .member = &S::type},
      {.rule = {.name = "checkpoint_every",
                .form = Form::kInteger,
                .meaning = "Steps between checkpoints.",
                .low = 1,
                .high = kManySteps,
                .hashed = false},
       .member = &S::checkpoint_every},
      {.rule = {.name = "keep_last",
                .form = Form::kInteger,
                .meaning = "Checkpoints of a stage that are kept.",
                .low = 1,
                .high = 1e6,
                .hashed = false},
       .member = &S::keep_last},
      {.rule = {.name = "keep_best",
                .form = Form::kBoolean,
                .meaning = "Keep the best checkpoint as well.",
                .hashed = false},
       .member = &S::keep_best},
  };
  return table;
}

const Table<LoraSettings>& lora_keys() {
  using S = LoraSettings;
  static const Table<S> table = {
      {{"rank", Form::kInteger, "Rank of each adapter; 0: all weights are trained.", 0, 65536}, &S::rank},
      {{"alpha", Form::kNumber, "What adapters add is multiplied by alpha / rank.", 0, 1e6, true}, &S::alpha},
      {.rule = {.name = "targets",
                .form = Form::kStrings,
                .meaning = "The matrices of each layer that have adapters.",
                .words = S{}.targets},
       .member = &S::targets},
  };
  return table;
}

const Table<CompileSettings>& compile_keys() {
  using S = CompileSettings;
  static const Table<S> table = {
      {{"timeout", Form::kSeconds, "Longest compilation of one candidate.", 0, kDay, true}, &S::timeout_s},
      {{"memory", Form::kBytes, "Memory of one compiler.", 16 * kMiB, 64 * kTiB}, &S::memory_bytes},
      {{"log", Form::kBytes, "Compiler messages that are kept.", 0, 64 * kMiB}, &S::log_bytes},
  };
  return table;
}

const Table<ProtocolSettings>& protocol_keys() {
  using S = ProtocolSettings;
  static const Table<S> table = {
      {.rule = {.name = "baseline",
                .form = Form::kWord,
                .meaning = "What the score compares candidates with. On device `cpu`: eager.",
                .words = {"eager", "cuda_graph", "torch_compile", "torch_compile_reduce_overhead",
                          "reduce_overhead", "cudnn"}},
       .member = Spelt<S>{[](S& s, const std::string& word) {
                            s.baseline = word == "reduce_overhead" ? "torch_compile_reduce_overhead" : word;
                          },
                          [](const S& s) { return s.baseline; }}},
      {.rule = {.name = "baselines",
                .form = Form::kStrings,
                .meaning =
                    "On a GPU: which baselines are timed, once for each task, beside that of the score.",
                .words = {"all", "eager", "cuda_graph", "torch_compile", "torch_compile_reduce_overhead",
                          "cudnn"},
                .hashed = false},
       .member = &S::baselines},
      {.rule =
           {.name = "math",
            .form = Form::kWord,
            .meaning =
                "strict: no TF32 and no reduced-precision accumulation, except in tasks that say otherwise. "
                "torch_default: torch's defaults in all tasks, as in published tables.",
            .words = {"strict", "torch_default"}},
       .member = &S::math},
      {{"threads", Form::kInteger, "CPU threads of candidate and baseline.", 1, 1024}, &S::threads},
      {{"target", Form::kShare,
        "Timing stops when half the score's 95 % interval is below this share of the score; 0: 0.5% on a "
        "GPU, "
        "1% on the CPU.",
        0, 0.5},
       &S::target},
      {{"budget", Form::kSeconds,
        "Longest series of paired rounds. Each repeated measurement may take as long again.", 0, kDay, true},
       &S::budget_s},
      {{"buckets", Form::kInteger, "Buckets of single-round scores.", 3, 31}, &S::buckets},
      {{"rounds_a_bucket", Form::kInteger, "Fewest paired rounds in a bucket.", 1, 1000000},
       &S::rounds_a_bucket},
      {{"variance_gate", Form::kNumber,
        "Variance between buckets over which a score is `unstable`; 0: ten times what `target` implies.", 0,
        1e6},
       &S::variance_gate},
      {{"check_seeds", Form::kInteger,
        "Seeds of input values in the correctness check, for each shape; each distribution has one.", 1,
        100000},
       &S::check_seeds},
      {{"call_timeout", Form::kSeconds, "Longest single call of a candidate.", 0, kDay, true},
       &S::call_timeout_s},
      {{"remeasure_above", Form::kNumber,
        "A higher speedup over the score's baseline is measured again in another process.", 0, 1e9, true},
       &S::remeasure_above},
      {{"remeasure_over_best", Form::kNumber,
        "A speedup over this multiple of the task's best so far is measured again too.", 0, 1e9, true},
       &S::remeasure_over_best},
      {{"memory", Form::kBytes,
        "On the CPU twin: memory of the process that runs a candidate. On a GPU its host code has 8 GiB.",
        16 * kMiB, 64 * kTiB},
       &S::memory_bytes},
  };
  return table;
}

const Table<PromptSettings>& prompt_keys() {
  using S = PromptSettings;
  static const Table<S> table = {
      {.rule = {.name = "style",
                .form = Form::kWord,
                .meaning =
                    "full: the paper's five parts. compact: the same parts, the fixed ones a line each.",
                .words = {"full", "compact"}},
       .member = &S::style},
      {{"exemplars", Form::kInteger, "Earlier candidates shown in a contrastive prompt (N).", 1, 16},
       &S::exemplars},
      {.rule = {.name = "answer",
                .form = Form::kWord,
                .meaning =
                    "Tier of the programs that a model writes and learns from; collect takes those of the "
                    "dataset. extension and python run on GPUs alone.",
                .words = {"plan", "extension", "python"},
                .young = true},
       .member = &S::answer},
  };
  return table;
}

const Table<Budget>& budget_keys() {
  using S = Budget;
  static const Table<S> table = {
      {{"gpu_hours", Form::kNumber, "GPU-hours of the whole run, over all its lives; 0: no bound.", 0, 1e5},
       &S::gpu_hours},
  };
  return table;
}

const Table<Notify>& notify_keys() {
  using S = Notify;
  static const Table<S> table = {
      {.rule = {.name = "on_end",
                .form = Form::kString,
                .meaning = "Command for /bin/sh when it ended well.",
                .hashed = false},
       .member = &S::on_end},
      {.rule = {.name = "on_failure",
                .form = Form::kString,
                .meaning = "Command for /bin/sh when it failed.",
                .hashed = false},
       .member = &S::on_failure},
  };
  return table;
}

const Table<Resources>& resource_keys() {
  using S = Resources;
  static const Table<S> table = {
      {{"cpus", Form::kInteger, "CPU cores of a shard; the threads of its program.", 1, 4096}, &S::cpus},
      {{"memory", Form::kBytes, "Memory of a shard; over it: out_of_memory.", 16 * kMiB, 64 * kTiB},
       &S::memory_bytes},
      {{"gpus", Form::kInteger, "GPUs of a shard.", 0, 64}, &S::gpus},
      {{"gpu_type", Form::kString,
        "GPU type, such as H100. Default: the stage's `device`, where that is one."},
       &S::gpu_type},
      {{"time", Form::kSeconds, "Wall clock of one attempt; over it: timeout.", 1, 60 * kDay}, &S::time_s},
      {{"output", Form::kBytes, "What one attempt may write.", 64 * kKiB, 1024 * kTiB}, &S::output_bytes},
      {{"ranks", Form::kInteger, "Processes of a shard that is a gang.", 1, 65536}, &S::ranks},
      {{"nodes", Form::kInteger, "Nodes that the ranks are spread over.", 1, 65536}, &S::nodes},
      {{kShardsAGpu, Form::kInteger,
        "On this machine: measure shards that share a GPU. One times while the others make ready. 0: each "
        "has "
        "its own.",
        0, 64},
       &S::shards_a_gpu},
  };
  return table;
}

const Table<SynthesizeSettings>& synthesize_keys() {
  using S = SynthesizeSettings;
  constexpr double kManyTasks = 1e6, kLargestSeed = 1e12;
  static const Table<S> table = {
      {{"seed", Form::kInteger, "Of what is drawn.", 0, kLargestSeed}, &S::seed},
      {{"split_seed", Form::kInteger, "Of which operators, and which pairs of them, are held out.", 0,
        kLargestSeed},
       &S::split_seed},
      {{"count", Form::kInteger, "Tasks to train on: their programs are measured.", 1, kManyTasks},
       &S::count},
      {{"unsolved", Form::kInteger,
        "More tasks to train on, which have no program: all that is learned of them, the model has written.",
        0, kManyTasks},
       &S::unsolved},
      {{"sft_only", Form::kInteger,
        "More tasks, whose programs stage 1 learns as they are. Nothing of them is measured.", 0, kManyTasks},
       &S::sft_only},
      {{"heldout", Form::kInteger,
        "Tasks of each kind that is held out: new pairs of operators, operators never seen, longer chains.",
        0, kManyTasks},
       &S::heldout},
      {{"longest", Form::kInteger, "Operators of a trained chain, at most.", 1, 12}, &S::longest},
      {{"program_bytes", Form::kInteger,
        "Longest program that is learned from, for small models; tasks that have only longer ones are "
        "dropped. "
        "0: all programs.",
        0, 1e6},
       &S::program_bytes},
      {{"traced_share", Form::kShare,
        "Share of the tasks that are written as KernelBench's are: sizes are numbers, an operator a line.", 0,
        1},
       &S::traced_share},
      {{"pairs_share", Form::kShare, "Share of the pairs of operators that is held out.", 0, 0.9},
       &S::pairs_share},
      {{"operators_out", Form::kInteger, "Operators that are held out.", 0, 20}, &S::operators_out},
      {{"least_gain", Form::kNumber,
        "How much longer eager takes than the roofline, at least; tasks with less to gain are dropped.", 1,
        100},
       &S::least_gain},
      {.rule = {.name = "families",
                .form = Form::kStrings,
                .meaning = "What tasks begin with, as many of each: chains over matrices, pooling, "
                           "convolution. The last two are always written as KernelBench's are.",
                .words = {"chains", "pooling", "convolution"},
                .young = true},
       .member = &S::families},
      {.rule = {.name = "branches",
                .form = Form::kShare,
                .meaning = "Share of the tasks in which two branches meet: a residual `x + f(x)`, a gate "
                           "`x * f(x)` or a gate by a function of another matrix.",
                .low = 0,
                .high = 1,
                .young = true},
       .member = &S::branches},
      {.rule = {.name = "half_precision",
                .form = Form::kShare,
                .meaning =
                    "Share of the tasks that have 16 bits an element: float16, or bfloat16 where float16 "
                    "could overflow. Products and tasks that are written as KernelBench's stay float32.",
                .low = 0,
                .high = 1,
                .young = true},
       .member = &S::half_precision},
      {.rule = {.name = "strided",
                .form = Form::kShare,
                .meaning =
                    "Share of the tasks whose matrix does not lie row after row: it is part of a wider "
                    "one, or stored by columns. Only of tasks that begin with a matrix, and not of those "
                    "that are written as KernelBench's.",
                .low = 0,
                .high = 1,
                .young = true},
       .member = &S::strided},
  };
  return table;
}

const Table<AugmentSettings>& augment_keys() {
  using S = AugmentSettings;
  static const Table<S> table = {
      {{"variants", Form::kInteger, "Variants tried for each successful dataset candidate.", 0, 1000},
       &S::variants},
      {{"rename_identifiers", Form::kBoolean, "Variants also rename kernels, parameters and locals."},
       &S::rename_identifiers},
      {{"block_sizes", Form::kIntegers, "Other block sizes that variants take.", 1, 1024}, &S::block_sizes},
  };
  return table;
}

const Table<SftSettings>& sft_keys() {
  using S = SftSettings;
  static const Table<S> table = {
      {{"steps", Form::kInteger, "Optimiser steps; 0: the model as it is, to be sampled and measured.", 0,
        kManySteps},
       &S::steps},
      {{"contrastive_share", Form::kShare, "Share of the examples that have the contrastive prompt.", 0, 1},
       &S::contrastive_share},
      {{"successes_only", Form::kBoolean, "Train on successes only."}, &S::successes_only},
  };
  return table;
}

const Table<SelfSupervisedSettings>& self_supervised_keys() {
  using S = SelfSupervisedSettings;
  static const Table<S> table = {
      {{"rounds", Form::kInteger, "Rounds of sampling, testing and training.", 1, 100000}, &S::rounds},
      {{"samples", Form::kInteger, "Samples for each task in a round.", 1, 100000}, &S::samples},
      {{"steps", Form::kInteger, "Optimiser steps of a round.", 1, kManySteps}, &S::steps},
      {{"distinct", Form::kBoolean,
        "Each distinct success once; false: every success, the paper's literal form."},
       &S::distinct},
      {{"fastest", Form::kShare,
        "Of each task's successes in a round, the share that is learned from, the fastest first and one at "
        "least; "
        "100%: all, as published.",
        0, 1},
       &S::fastest},
      {{"replay", Form::kShare, "Share of each batch that is taken from stage 1's examples.", 0, 1},
       &S::replay},
      {turns_rule(), &S::turns},
      {ahead_rule(), &S::ahead},
      {reward_within_rule(), &S::reward_within},
      {skip_rule(), &S::skip},
  };
  return table;
}

const Table<ContrastiveSettings>& contrastive_keys() {
  using S = ContrastiveSettings;
  static const std::vector<std::string> kExemplarWords = {"bucket", "island", "random", "none"};
  static const Table<S> table = {
      {{"rounds", Form::kInteger, "Rounds: prompts, samples, measurements, one GRPO update.", 1, 1000000},
       &S::rounds},
      {{"prompts", Form::kInteger, "Prompts a round.", 1, 100000}, &S::prompts},
      {{"group", Form::kInteger, "Samples for each prompt (G).", 2, 1024}, &S::group},
      {turns_rule(), &S::turns},
      {ahead_rule(), &S::ahead},
      {reward_within_rule(), &S::reward_within},
      {.rule = {.name = "turn_discount",
                .form = Form::kNumber,
                .meaning =
                    "With `turns`: what a turn gets of the reward of the next one, and its square of the one "
                    "behind that (γ); published: 0.4.",
                .low = 0,
                .high = 1,
                .young = true},
       .member = &S::turn_discount},
      {skip_rule(), &S::skip},
      {.rule = {.name = "exemplars",
                .form = Form::kWord,
                .meaning = "How the earlier candidates in a prompt are chosen.",
                .words = kExemplarWords},
       .member = Spelt<S>{[](S& s, const std::string& word) {
                            for (std::size_t i = 0; i < kExemplarWords.size(); ++i)
                              if (kExemplarWords[i] == word) s.exemplars = static_cast<Exemplars>(i);
                          },
                          [](const S& s) { return kExemplarWords[static_cast<std::size_t>(s.exemplars)]; }}},
      {.rule = {.name = "update",
                .form = Form::kWord,
                .meaning =
                    "grpo: train after each round. none: fixed parameters, the database alone evolves.",
                .words = {"grpo", "none"}},
       .member = Spelt<S>{[](S& s, const std::string& word) { s.update = word == "grpo"; },
                          [](const S& s) { return std::string(s.update ? "grpo" : "none"); }}},
      {.rule = {.name = "plain_share",
                .form = Form::kShare,
                .meaning =
                    "Share of the prompts that show no exemplar, as stage 1 asks; 0%: none, as published.",
                .low = 0,
                .high = 1,
                .young = true},
       .member = &S::plain_share},
      {{"bucket_width", Form::kNumber, "Width of a bucket of scores (the paper's Δs).", 0, 1e6, true},
       &S::bucket_width},
      {{"bucket_tau", Form::kNumber, "Temperature of the choice of buckets (τ).", 0, 1e6, true},
       &S::bucket_tau},
      {{"islands", Form::kInteger, "Islands, for `exemplars: island`.", 1, 10000}, &S::islands},
      {{"island_reset_every", Form::kInteger, "Rounds after which the worse half of the islands is reseeded.",
        1, 1000000},
       &S::island_reset_every},
      {{"smoothing_clip", Form::kNumber, "Smoothed rewards are clipped to ± this (k).", 0, 1e6, true},
       &S::smoothing_clip},
      {{"smoothing_window", Form::kInteger, "Iterations over which the reward's mean and deviation roll.", 1,
        1000000},
       &S::smoothing_window},
      {.rule = {.name = "reward",
                .form = Form::kWord,
                .meaning =
                    "log: logarithm of the speedup. raw: the speedup, as in the paper. milestones: -1, 1, "
                    "2 or 3, below.",
                .words = {"log", "raw", "milestones"}},
       .member = &S::reward},
      {.rule = {.name = "advantage",
                .form = Form::kWord,
                .meaning =
                    "group: reward less the group's mean, over its deviation. leave_one_out: reward less "
                    "the mean of the others.",
                .words = {"group", "leave_one_out"},
                .young = true},
       .member = &S::advantage},
      {.rule = {.name = "length_penalty",
                .form = Form::kNumber,
                .meaning = "What an answer of `max_tokens` tokens loses of its reward, a shorter one in "
                           "proportion; 0: nothing.",
                .low = 0,
                .high = 10,
                .young = true},
       .member = &S::length_penalty},
      {.rule = {.name = "library_penalty",
                .form = Form::kNumber,
                .meaning = "A right program's reward is less by this, times the share of its time on the GPU "
                           "that is in kernels which it does not declare itself; 0: nothing is taken off. Of "
                           "`answer: extension` and `python`.",
                .low = 0,
                .high = 10,
                .young = true},
       .member = &S::library_penalty},
      {{"failure_margin", Form::kNumber,
        "A failure's reward lies this far below the lowest valid score of its task.", 0, 1e6, true},
       &S::failure_margin},
      {{"clip_ratio", Form::kNumber, "GRPO's ε: the probability ratio is clipped to 1 ± this.", 0, 1, true},
       &S::clip_ratio},
      {{"kl", Form::kNumber, "GRPO's β: weight of the KL divergence from the stage's initial model.", 0,
        1000},
       &S::kl},
      {{"kl_clamp", Form::kNumber, "Highest KL term of one token.", 0, 1e6, true}, &S::kl_clamp},
      {{"epochs", Form::kInteger, "Passes over a round's samples.", 1, 1000}, &S::epochs},
      {.rule = {.name = "hacks",
                .form = Form::kString,
                .meaning =
                    "Folder of known hacks for the prompts to quote, relative to the folder of this file.",
                .hashed = false},  // the cases themselves are, where any are quoted
       .member = &S::hacks},
      {.rule = {.name = "quote_hacks",
                .form = Form::kInteger,
                .meaning = "Known hacks that the restrictions of a prompt quote, at most; 0: none.",
                .low = 0,
                .high = 16,
                .hashed = false},
       .member = &S::quote_hacks},
  };
  return table;
}

const Table<MeasureSettings>& measure_keys() {
  using S = MeasureSettings;
  static const Table<S> table = {
      {{"checkpoint_of", Form::kString,
        "Stage whose last checkpoint is sampled. Default: the stage of `needs` that trains, if it is one."},
       &S::checkpoint_of},
      {{"candidates_of", Form::kStrings,
        "Stages whose candidates are measured again; instead of `checkpoint_of`."},
       &S::candidates_of},
      {.rule = {.name = "candidates_of_run",
                .form = Form::kString,
                .meaning =
                    "Folder of a run whose candidates are measured again, relative to the folder of this "
                    "file; instead of `checkpoint_of`.",
                .hashed = false},  // the candidates themselves are
       .member = &S::candidates_of_run},
      {.rule = {.name = "candidates",
                .form = Form::kWord,
                .meaning = "imported: all kernels that lie below `imported/` of the tasks; instead of "
                           "`checkpoint_of`.",
                .words = {"imported"},
                .hashed = false},  // the kernels themselves are
       .member = &S::candidates},
      {.rule = {.name = "select",
                .form = Form::kWord,
                .meaning = "With `candidates_of` and `candidates_of_run`: the best of each task, or all.",
                .words = {"best", "all"}},
       .member = &S::select},
      {{"samples", Form::kInteger, "Samples for each task.", 1, 100000}, &S::samples},
      {{"contrastive_prompt", Form::kBoolean, "Sample with the contrastive prompt."}, &S::contrastive_prompt},
      {{"heldout", Form::kBoolean, "The held-out tasks as well."}, &S::heldout},
      {{.name = "groups",
        .form = Form::kStrings,
        .meaning = "Tasks of these groups alone; none: as `heldout` says.",
        .words = {"train", "heldout_combination", "heldout_operation", "heldout_length", "heldout_people"},
        .young = true},
       &S::groups},
  };
  return table;
}

const Table<ServiceSettings>& service_keys() {
  using S = ServiceSettings;
  static const Table<S> table = {
      {{"argv", Form::kStrings,
        "The server and its arguments. {port} becomes a free port, {host} the address to listen at, {model} "
        "the "
        "folder of a model."},
       &S::argv},
      {.rule = {.name = "health",
                .form = Form::kString,
                .meaning = "Path that answers with status 200 as soon as it is ready.",
                .hashed = false},
       .member = &S::health},
      {.rule = {.name = "api", .form = Form::kString, .meaning = "Path of OpenAI's API.", .hashed = false},
       .member = &S::api},
      {.rule = {.name = "ready",
                .form = Form::kSeconds,
                .meaning = "How long it may take until it is ready.",
                .high = kDay,
                .above_low = true,
                .hashed = false},
       .member = &S::ready_s},
  };
  return table;
}

const Table<CommandSettings>& command_keys() {
  using S = CommandSettings;
  static const Table<S> table = {
      {{"argv", Form::kStrings, "Program and arguments; the job file and the shard's number are appended."},
       &S::argv},
      {.rule = {.name = "items",
                .form = Form::kWord,
                .meaning = "What the items are: a single empty one, the tasks, or the candidates of the "
                           "stages that it needs.",
                .words = {"none", "tasks", "candidates"}},
       .member = &S::items},
      {.rule = {.name = "records",
                .form = Form::kWord,
                .meaning =
                    "Whether the program keeps records of its own; with `none` its exit code 0 is enough.",
                .words = {"own", "none"}},
       .member = &S::records},
  };
  return table;
}

const Table<StageSpec>& stage_keys() {
  using S = StageSpec;
  static const Table<S> table = {
      {.rule = {.name = "device",
                .form = Form::kString,
                .meaning =
                    "Device kind that it is measured on: cpu, a GPU type, or auto: a GPU where there is one.",
                .hashed = false},
       .member = &S::device},
      {.rule = {.name = "tolerate",
                .form = Form::kShare,
                .meaning = "Share of failed shards that the stage survives.",
                .high = 1,
                .hashed = false},
       .member = &S::tolerate},
      {.rule = {.name = "max_jobs",
                .form = Form::kInteger,
                .meaning = "Shards of the stage at a time; 0: no limit.",
                .high = 1e6,
                .hashed = false},
       .member = &S::max_jobs},
      {.rule = {.name = "shard_time",
                .form = Form::kSeconds,
                .meaning =
                    "Expected duration of a shard: items are packed by it, at first by a guess of what one "
                    "takes, later by what it took.",
                .low = 1,
                .high = 30 * kDay,
                .hashed = false},
       .member = &S::shard_s},
  };
  return table;
}

const std::vector<CauseRule>& cause_rules() {
  static const std::vector<CauseRule> rules = {
      {EndCause::kFailed, 0, "The program ended with an exit code that means a failure."},
      {EndCause::kCrash, 1, "The program was ended by a signal."},
      {EndCause::kTimeout, 1, "It ran past `resources: time`."},
      {EndCause::kOutOfMemory, 2,
       "It ran past `resources: memory`; each retry has `memory_factor` times as much."},
      {EndCause::kNodeFailure, 3, "Its node was lost."},
      {EndCause::kPreempted, 10, "It made room for another job."},
      {EndCause::kLaunchFailure, 3, "It could not be started."},
      {EndCause::kDiskFull, 0, "The disk was full."},
      {EndCause::kUnknown, 2, "The executor no longer knows it."},
  };
  return rules;
}

const std::vector<KindRule>& kind_rules() {
  static const std::vector<KindRule> rules = {
      {.name = "collect",
       .meaning =
           "Gathers candidates from the dataset's files, tries variants of them, compiles and measures all.",
       .blocks = {"compile", "measure"},
       .jobs = {}},
      {.name = "sft",
       .meaning = "Stage 1: makes a model and fine-tunes it on the successes of the stages that it needs.",
       .blocks = {"model", "optimizer", "lora", "prompt"},
       .jobs = {"train"},
       .trains = true,
       .needs_candidates = true},
      {.name = "self_supervised",
       .meaning = "Stage 2: samples, keeps what succeeds, trains on it, and again.",
       .blocks = {"sample", "optimizer", "lora", "compile", "measure", "prompt", "policy"},
       .jobs = {"generate", "train"},
       .trains = true,
       .needs_checkpoint = true,
       .checks = true},
      {.name = "contrastive",
       .meaning = "Stage 3: contrastive reinforcement learning with GRPO.",
       .blocks = {"sample", "optimizer", "lora", "compile", "measure", "prompt", "policy"},
       .jobs = {"generate", "train"},
       .trains = true,
       .needs_checkpoint = true,
       .checks = true},
      {.name = "measure",
       .meaning =
           "Samples from a frozen checkpoint, or takes candidates that are there already, and measures them.",
       .blocks = {"sample", "compile", "measure", "prompt", "policy"},
       .jobs = {"generate"},
       .checks = true},
      {.name = "command",
       .meaning = "Runs a program of yours; JSON lines in and out.",
       .blocks = {},
       .jobs = {}},
      {.name = "service",
       .meaning =
           "Starts a server for the stages that name it as their `endpoint`, and ends it behind the last.",
       .blocks = {},
       .jobs = {}},
  };
  return rules;
}

const KindRule* find_kind(std::string_view name) {
  for (const KindRule& rule : kind_rules())
    if (rule.name == name) return &rule;
  return nullptr;
}

}  // namespace warpsmith::workflow

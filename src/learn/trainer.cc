#include "warpsmith/learn/trainer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "warpsmith/base/allocator.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/model/gpu_memory.h"
#include "warpsmith/model/placement.h"

namespace warpsmith::learn {

namespace {

using model::PackedBatch;
using model::Token;

struct Encoded {
  std::vector<Token> prompt, completion;
  std::int64_t tokens() const { return static_cast<std::int64_t>(prompt.size() + completion.size()); }
};

template <typename T>
void shuffle(std::vector<T>& values, std::uint64_t key) {
  Random random(key);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// Examples of one packed batch, those with equal prompts together, each prompt computed once.
struct Packed {
  PackedBatch batch;
  std::vector<std::size_t> order;  // example numbers, in the order of the batch's completions
  std::vector<std::int64_t> lengths;
};

Packed pack(const std::vector<Encoded>& encoded, const std::vector<std::size_t>& numbers) {
  Packed packed;
  std::map<std::vector<Token>, std::vector<std::size_t>> by_prompt;
  for (const std::size_t i : numbers) by_prompt[encoded[i].prompt].push_back(i);
  for (const auto& [prompt, members] : by_prompt) {
    if (members.size() == 1) {
      model::append_sequence(packed.batch, prompt, encoded[members[0]].completion);
    } else {
      std::vector<std::vector<Token>> completions;
      for (const std::size_t i : members) completions.push_back(encoded[i].completion);
      model::append_group(packed.batch, prompt, completions);
    }
    for (const std::size_t i : members) {
      packed.order.push_back(i);
      packed.lengths.push_back(static_cast<std::int64_t>(encoded[i].completion.size()));
    }
  }
  return packed;
}

std::vector<std::vector<std::size_t>> plan_likelihood(const TrainerSettings& settings,
                                                      const std::vector<std::int64_t>& tokens) {
  std::vector<std::vector<std::size_t>> batches;
  std::vector<std::size_t> order(tokens.size());
  std::size_t next = order.size();
  std::uint64_t pass = 0;
  for (std::int64_t s = 0; s < settings.steps; ++s) {
    std::vector<std::size_t> batch;
    for (std::int64_t sum = 0;;) {
      if (next == order.size()) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        shuffle(order, random_key({settings.seed, name_key("order"), pass++}));
        next = 0;
      }
      sum += tokens[order[next]];
      if (!batch.empty() && sum > settings.optimizer.batch_tokens) break;
      batch.push_back(order[next++]);
      if (sum >= settings.optimizer.batch_tokens) break;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<std::vector<std::size_t>> plan_groups(const TrainerSettings& settings,
                                                  const std::vector<std::string>& groups) {
  std::vector<std::vector<std::size_t>> members;  // of each group, in order of appearance
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [entry, fresh] = index.emplace(groups[i], members.size());
    if (fresh) members.emplace_back();
    members[entry->second].push_back(i);
  }
  // What is dealt to the steps: groups, or single samples where there are more steps than groups.
  const auto steps = static_cast<std::size_t>(settings.steps);
  const bool whole = steps <= members.size() * static_cast<std::size_t>(settings.epochs);
  std::vector<std::vector<std::size_t>> sequence;
  for (std::int64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, random_key({settings.seed, name_key("groups"), static_cast<std::uint64_t>(epoch)}));
    for (const std::size_t g : order) {
      if (whole)
        sequence.push_back(members[g]);
      else
        for (const std::size_t i : members[g]) sequence.push_back({i});
    }
  }
  if (sequence.size() < steps)
    throw Error(std::to_string(steps) + " steps of " + std::to_string(sequence.size()) +
                    " samples in all: at most one step a sample and epoch",
                kExitUsage);
  std::vector<std::vector<std::size_t>> batches(steps);
  for (std::size_t s = 0; s < steps; ++s)
    for (std::size_t u = s * sequence.size() / steps; u < (s + 1) * sequence.size() / steps; ++u)
      batches[s].insert(batches[s].end(), sequence[u].begin(), sequence[u].end());
  return batches;
}

}  // namespace

Mode parse_mode(std::string_view name) {
  if (name == "sft") return Mode::kSft;
  if (name == "rejection") return Mode::kRejection;
  if (name == "grpo") return Mode::kGrpo;
  throw Error("mode `" + std::string(name) + "`: sft, rejection and grpo are known", kExitUsage);
}

std::vector<std::vector<std::size_t>> plan_batches(const TrainerSettings& settings,
                                                   const std::vector<std::int64_t>& tokens,
                                                   const std::vector<std::string>& groups) {
  return settings.mode == Mode::kGrpo ? plan_groups(settings, groups) : plan_likelihood(settings, tokens);
}

struct Trainer::State {
  TrainerSettings settings;
  model::Decoder decoder;              // in training
  std::optional<model::Decoder> host;  // where that is not on the CPU in float32: a copy that is
  model::Tokenizer tokenizer;
  AdamW optimizer;
  std::vector<Example> examples;
  std::vector<Encoded> encoded;
  std::vector<at::Tensor>
      reference;  // log-probabilities of each example under the reference; computed when first needed
  const model::Decoder* reference_decoder;
  std::optional<model::Decoder> own_reference;  // what it points to, where that is not the caller's
  std::vector<std::vector<std::size_t>> batches;
  std::size_t left_out = 0, exemplars_left_out = 0;
  std::int64_t done = 0;
  bool lacks_old = false;  // grpo: some examples came without their tokens and log-probabilities

  void encode(std::vector<Example> all);
  void compute_old(const model::Decoder& policy);
  std::map<std::string, std::vector<std::size_t>> by_group(const std::vector<std::size_t>& numbers) const;
  void likelihood_step(const std::vector<std::size_t>& numbers, StepRecord& record);
  void grpo_step(const std::vector<std::size_t>& numbers, StepRecord& record);
  void grpo_part(const std::vector<std::size_t>& numbers, std::int64_t samples, StepRecord& record);
  at::Tensor reference_of(const Packed& packed);
  // This rank's share of `numbers`, by tokens, in runs of at most micro_batch_tokens.
  std::vector<std::vector<std::size_t>> micro_batches(const std::vector<std::size_t>& numbers) const;
  std::vector<std::vector<std::size_t>> runs_of(const std::vector<std::size_t>& numbers) const;
};

std::vector<std::vector<std::size_t>> Trainer::State::micro_batches(
    const std::vector<std::size_t>& numbers) const {
  if (!settings.ranks) return runs_of(numbers);
  std::vector<std::size_t> share;
  std::int64_t before = 0, all = 0;
  for (const std::size_t i : numbers) all += encoded[i].tokens();
  for (const std::size_t i : numbers) {
    // An example is the rank's in whose share its middle lies.
    const std::int64_t middle = 2 * before + encoded[i].tokens();
    before += encoded[i].tokens();
    if (middle * settings.ranks->size() / (2 * all) == settings.ranks->rank()) share.push_back(i);
  }
  return runs_of(share);
}

std::vector<std::vector<std::size_t>> Trainer::State::runs_of(const std::vector<std::size_t>& numbers) const {
  std::vector<std::vector<std::size_t>> runs;
  std::int64_t sum = 0;
  for (const std::size_t i : numbers) {
    const std::int64_t tokens = encoded[i].tokens();
    if (runs.empty() || (settings.micro_batch_tokens > 0 && sum + tokens > settings.micro_batch_tokens)) {
      runs.emplace_back();
      sum = 0;
    }
    runs.back().push_back(i);
    sum += tokens;
  }
  return runs;
}

void Trainer::State::encode(std::vector<Example> all) {
  const bool grpo = settings.mode == Mode::kGrpo;
  for (Example& example : all) {
    const bool text_alone = grpo && example.tokens.empty() && example.log_probabilities.empty();
    if (text_alone) {
      example.tokens = tokenizer.encode_completion(example.completion);
      if (!example.finished) example.tokens.pop_back();  // it did not come to its end
      example.log_probabilities.resize(example.tokens.size());
      lacks_old = true;
      if (example.tokens.empty()) {
        ++left_out;
        continue;
      }
    }
    if (grpo && (example.tokens.empty() || example.tokens.size() != example.log_probabilities.size()))
      throw Error("example " + example.id + ": " + std::to_string(example.tokens.size()) + " tokens with " +
                      std::to_string(example.log_probabilities.size()) + " log-probabilities",
                  kExitUsage);
    std::vector<model::Token> completion =
        grpo ? example.tokens : tokenizer.encode_completion(example.completion);
    model::FittedPrompt fitted = tokenizer.encode_fitting(
        example.prompt, example.shorter,
        decoder.settings().context + 1 - static_cast<std::int64_t>(completion.size()));
    Encoded e{std::move(fitted.tokens), std::move(completion)};
    if (e.tokens() - 1 > decoder.settings().context) {
      ++left_out;
      continue;
    }
    exemplars_left_out += fitted.left_out;
    encoded.push_back(std::move(e));
    examples.push_back(std::move(example));
  }
  if (examples.empty())
    throw Error(all.empty() ? "there are no examples"
                            : "every example is longer than the context of " +
                                  std::to_string(decoder.settings().context) + " tokens",
                kExitUsage);
}

std::map<std::string, std::vector<std::size_t>> Trainer::State::by_group(
    const std::vector<std::size_t>& numbers) const {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const std::size_t i : numbers) groups[examples[i].group].push_back(i);
  return groups;
}

// The examples' old log-probabilities by the trainer's own forward pass.
void Trainer::State::compute_old(const model::Decoder& policy) {
  const at::NoGradGuard guard;
  std::vector<std::size_t> numbers(examples.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  double sum = 0;
  std::size_t far = 0, tokens = 0;
  for (const auto& [name, members] : by_group(numbers))
    for (const std::vector<std::size_t>& run : runs_of(members)) {
      const Packed packed = pack(encoded, run);
      const at::Tensor all = policy.log_probabilities(packed.batch).to(at::kCPU, at::kFloat);
      const float* next = all.const_data_ptr<float>();
      for (const std::size_t i : packed.order)
        for (float& old : examples[i].log_probabilities) {
          const double difference = std::abs(old - *next);
          sum += difference;
          far += difference > 0.1;
          ++tokens;
          old = *next++;
        }
    }
  if (lacks_old) return;
  log_info("the sampler's log-probabilities of " + std::to_string(tokens) +
           " tokens differ from the trainer's by " + std::to_string(sum / static_cast<double>(tokens)) +
           " on average, " + std::to_string(far) + " of them by more than 0.1: the trainer's count");
}

void Trainer::State::likelihood_step(const std::vector<std::size_t>& numbers, StepRecord& record) {
  const auto weight_of = [&](std::size_t i) {
    return settings.mode == Mode::kSft ? examples[i].weight : 1.0;
  };
  double weighted_tokens = 0;
  for (const std::size_t i : numbers)
    weighted_tokens += weight_of(i) * static_cast<double>(encoded[i].completion.size());
  at::Tensor total;
  for (const std::vector<std::size_t>& run : micro_batches(numbers)) {
    const Packed packed = pack(encoded, run);
    std::vector<double> weights;
    for (const std::size_t i : packed.order) weights.push_back(weight_of(i));
    const at::Tensor known =
        likelihood_gradient(packed.lengths, weights, weighted_tokens, settings.placement.dtype(at::kFloat));
    const at::Tensor loss = (decoder.log_probabilities(packed.batch, known) * known).sum();
    loss.backward();
    total = total.defined() ? total + loss.detach() : loss.detach();
  }
  if (total.defined()) record.loss = total.item().toDouble();  // a rank may have no share
}

at::Tensor Trainer::State::reference_of(const Packed& packed) {
  if (!reference_decoder || settings.grpo.kl == 0) return {};
  bool known = true;
  for (const std::size_t i : packed.order) known = known && reference[i].defined();
  if (!known) {
    const at::NoGradGuard guard;
    const at::Tensor all = reference_decoder->log_probabilities(packed.batch);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < packed.order.size(); begin += packed.lengths[i++])
      reference[packed.order[i]] = all.narrow(0, begin, packed.lengths[i]);
  }
  std::vector<at::Tensor> parts;
  for (const std::size_t i : packed.order) parts.push_back(reference[i]);
  return at::cat(parts);
}

void Trainer::State::grpo_step(const std::vector<std::size_t>& numbers, StepRecord& record) {
  // One group after the other: their gradients add up, and memory does not grow with the groups of a step.
  for (const std::size_t i : numbers) record.truncated += !examples[i].finished;
  const auto samples = static_cast<std::int64_t>(numbers.size());
  for (const auto& [name, members] : by_group(numbers)) {
    ++record.groups;
    record.groups_without_spread += std::all_of(members.begin(), members.end(),
                                                [&](std::size_t i) { return examples[i].advantage == 0; });
    for (const std::vector<std::size_t>& run : micro_batches(members)) grpo_part(run, samples, record);
  }
}

void Trainer::State::grpo_part(const std::vector<std::size_t>& numbers, std::int64_t samples,
                               StepRecord& record) {
  const Packed packed = pack(encoded, numbers);
  GrpoSamples part{{}, reference_of(packed), packed.lengths, {}};
  std::vector<float> old;
  for (const std::size_t i : packed.order) {
    old.insert(old.end(), examples[i].log_probabilities.begin(), examples[i].log_probabilities.end());
    part.advantages.push_back(examples[i].advantage);
  }
  part.old_log_probabilities = at::tensor(old, at::kFloat).to(settings.placement.device());
  const GrpoTerms terms = grpo_loss(decoder.log_probabilities(packed.batch), part, settings.grpo, samples);
  terms.loss.backward();
  const auto all = static_cast<double>(samples);
  record.loss += terms.loss.item().toDouble();
  record.kl += terms.kl / all;
  record.clip_share += terms.clip_share / all;
  record.ratio_mean += terms.ratio / all;
  record.entropy += terms.entropy / all;
}

// The reference where `trained` is; without a second copy of weights that both add to. `decoder`: `trained`
// on the host. Nothing where the reference can be used as it is.
static std::optional<model::Decoder> reference_beside(const model::Decoder& trained,
                                                      const model::Decoder& decoder,
                                                      const model::Decoder& reference) {
  const model::LoraSettings &own = decoder.settings().lora, &other = reference.settings().lora;
  if (own.rank > 0 && (other.rank == 0 || other == own) && at::equal(decoder.flat(), reference.flat())) {
    model::Decoder beside = trained.beside();
    const at::NoGradGuard guard;
    if (other.rank > 0) beside.trained_flat().copy_(reference.trained_flat());
    return beside;
  }
  if (&trained == &decoder) return std::nullopt;
  return reference.copied(trained.options());
}

// Bytes of the GPU that are left for the optimiser's states beside what a step computes at a time; nothing:
// not known, or on the CPU.
// `others`: copies of the weights that are made later.
static std::optional<std::uint64_t> room_for_states(const TrainerSettings& settings,
                                                    const model::Decoder& decoder, std::uint64_t others) {
  const std::optional<std::uint64_t> free = model::free_memory(settings.placement);
  if (!free) return std::nullopt;
  const std::int64_t ranks = settings.ranks ? settings.ranks->size() : 1;
  const std::int64_t share = (settings.optimizer.batch_tokens + ranks - 1) / ranks;
  const model::GpuMemory memory = model::training_memory(
      decoder.settings(),
      {.tokens = settings.micro_batch_tokens > 0 ? std::min(settings.micro_batch_tokens, share) : share,
       .bfloat16 = decoder.flat().scalar_type() != at::kFloat,
       .recompute = settings.recompute});
  const std::uint64_t later = others * memory.weights;
  return *free > later ? model::room_for_states(*free - later, memory) : 0;
}

Trainer::Trainer(const TrainerSettings& settings, model::Decoder decoder, model::Tokenizer tokenizer,
                 std::optional<model::OptimizerState> optimizer, const model::Decoder* reference,
                 std::vector<Example> examples, const model::Decoder* sampled_by) {
  std::optional<model::Decoder> placed, host, own_reference;
  if (!model::is_host(settings.placement)) placed = decoder.copied(settings.placement);
  if (reference) own_reference = reference_beside(placed ? *placed : decoder, decoder, *reference);
  AdamW adamw(settings.optimizer, placed ? *placed : decoder, decoder.trained_flat(), std::move(optimizer),
              settings.ranks, room_for_states(settings, placed ? *placed : decoder, sampled_by ? 1 : 0));
  if (placed) host = std::move(decoder);
  state_ = std::make_unique<State>(State{settings,
                                         placed ? std::move(*placed) : std::move(decoder),
                                         std::move(host),
                                         std::move(tokenizer),
                                         std::move(adamw),
                                         {},
                                         {},
                                         {},
                                         reference,
                                         std::move(own_reference),
                                         {},
                                         0,
                                         0});
  State& s = *state_;
  if (s.own_reference) s.reference_decoder = &*s.own_reference;
  s.decoder.recompute(settings.recompute);
  if (s.tokenizer.size() > s.decoder.settings().vocabulary)
    throw Error("a tokenizer of " + std::to_string(s.tokenizer.size()) + " tokens for a model of " +
                    std::to_string(s.decoder.settings().vocabulary),
                kExitUsage);
  s.encode(std::move(examples));
  if (settings.mode == Mode::kGrpo && (s.lacks_old || !model::is_host(settings.placement))) {
    if (sampled_by && model::is_host(settings.placement))
      s.compute_old(*sampled_by);
    else if (sampled_by)
      s.compute_old(sampled_by->copied(settings.placement));
    else
      s.compute_old(s.decoder);
  }
  s.reference.resize(s.examples.size());
  std::vector<std::int64_t> tokens;
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < s.examples.size(); ++i) {
    tokens.push_back(s.encoded[i].tokens());
    groups.push_back(s.examples[i].group);
  }
  s.batches = plan_batches(settings, tokens, groups);
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

std::int64_t Trainer::done() const { return state_->done; }
void Trainer::skip_to(std::int64_t done) { state_->done = done; }
std::size_t Trainer::left_out() const { return state_->left_out; }
std::size_t Trainer::exemplars_left_out() const { return state_->exemplars_left_out; }
const model::Decoder& Trainer::decoder() const {
  if (!state_->host) return state_->decoder;
  state_->optimizer.copy_master(state_->host->trained_flat());
  return *state_->host;
}
const model::Tokenizer& Trainer::tokenizer() const { return state_->tokenizer; }
model::OptimizerState Trainer::optimizer_state() const { return state_->optimizer.state(); }

StepRecord Trainer::step() {
  State& s = *state_;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::size_t>& numbers = s.batches.at(static_cast<std::size_t>(s.done));
  StepRecord record;
  for (const std::size_t i : numbers) record.tokens += s.encoded[i].tokens();
  s.decoder.zero_gradient();
  if (s.settings.mode == Mode::kGrpo)
    s.grpo_step(numbers, record);
  else
    s.likelihood_step(numbers, record);
  if (s.settings.ranks) {
    const std::vector<double> sums = s.settings.ranks->sums(
        {record.loss, record.kl, record.clip_share, record.ratio_mean, record.entropy});
    record.loss = sums[0], record.kl = sums[1], record.clip_share = sums[2], record.ratio_mean = sums[3];
    record.entropy = sums[4];
  }
  record.learning_rate = learning_rate(s.settings.optimizer, s.done, s.settings.steps);
  record.gradient_norm = s.optimizer.step(s.decoder, record.learning_rate);
  ++s.done;
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return record;
}

void prepare_process(int threads, bool gpu, bool deterministic) {
  at::set_num_threads(std::max(1, threads));
  // On a GPU a few operators have no such form; torch warns of each once.
  at::globalContext().setDeterministicAlgorithms(deterministic || !gpu, gpu);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // it would fill every new tensor
  keep_freed_memory();  // activations of a step are megabytes each
}

}  // namespace warpsmith::learn

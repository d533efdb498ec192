// Samples completions of prompts.
//
// By the loops: one prompt at a time. The prompt is computed once, its keys and values are shared by all
// samples, each of which adds its own behind them. Samples that end leave the batch.
//
// By the operators: in waves of `batch` samples of any prompts, each computed once. Keys and values lie in
// buffers that do not grow; a wave ends when all its samples have.
//
// What a sample draws depends on the weights, the prompt, the settings and its keys, and on the other samples
// of the same call only through rounding in the matrix products. So callers make equal calls whatever the
// shard or attempt: then results are the same on devices of one type, on CPUs with one number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "warpsmith/model/decoder.h"
#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {

struct SamplerSettings {
  double temperature = 1.0;           // 0: always the most probable token
  double top_p = 1.0;                 // the smallest set of tokens with at least this share; 1: off
  std::int64_t top_k = 0;             // 0: off
  std::int64_t max_tokens = 400;      // of a completion, the token that ends it included
  std::int64_t batch = 64;            // samples at a time, the size of a wave; further ones follow
  std::vector<Token> stops = {kEos};  // each ends a completion: Tokenizer::stops()
};

struct Sample {
  std::vector<Token> tokens;  // with the token that ended it, where one did
  // Of each token: log softmax(logits) at temperature 1 over the whole vocabulary, which is what the trainer
  // computes. It is the log-probability of the draw itself where temperature and top_p are 1 and top_k is 0.
  // Otherwise samples come from a sharper distribution than the one that the policy-gradient ratio is formed
  // with.
  std::vector<float> log_probabilities;
  bool finished = false;  // ended by a token of `stops`; otherwise max_tokens or the context cut it off
};

// A prompt as Tokenizer::encode_prompt gives it; one sample for each of `keys`.
struct SampleRequest {
  std::vector<Token> prompt;
  std::vector<std::uint64_t> keys;
};
// By the decoder's backend; samples of each request. Errors as for sample().
std::vector<std::vector<Sample>> sample_all(const Decoder& decoder, std::span<const SampleRequest> requests,
                                            const SamplerSettings& settings);

// By the loops alone. `prompt` as Tokenizer::encode_prompt gives it; one sample for each of `keys`, whose
// random numbers are Random(key): one for each token. Where the prompt fills the context the samples are
// empty. Throws Error for settings that make no sense.
std::vector<Sample> sample(const Decoder& decoder, std::span<const Token> prompt,
                           std::span<const std::uint64_t> keys, const SamplerSettings& settings);

// The token that a uniform number in [0, 1) picks: inverse distribution over ids in ascending order. For
// tests.
Token pick_token(std::span<const float> logits, const SamplerSettings& settings, double uniform);

}  // namespace warpsmith::model

// What sampling and training cost: tokens a second of one thread, with random weights of the quickstart's
// size.
//
//   sampler_bench [THREADS]
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "warpsmith/base/random.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/sampler.h"

namespace {

using namespace warpsmith;

double seconds_of(const auto& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<model::Token> random_tokens(std::size_t n) {
  Random random(n);
  std::vector<model::Token> tokens(n);
  for (model::Token& token : tokens) token = static_cast<model::Token>(model::kFirstByte + random.below(256));
  return tokens;
}

void bench_sampler(const model::Decoder& decoder) {
  std::printf("sampling, 150 tokens a sample\n  prompt  batch   tokens/s\n");
  for (const std::size_t prompt : {150u, 600u})
    for (const std::size_t batch : {1u, 8u, 16u, 32u, 64u}) {
      std::vector<std::uint64_t> keys(batch);
      for (std::size_t i = 0; i < batch; ++i) keys[i] = random_key({i});
      double best = 1e9;
      std::size_t tokens = 0;
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<model::Sample> samples;
        best = std::min(best, seconds_of([&] {
                          samples = model::sample(decoder, random_tokens(prompt), keys, {.max_tokens = 150});
                        }));
        tokens = 0;
        for (const model::Sample& s : samples) tokens += s.tokens.size();
      }
      std::printf("  %6zu  %5zu  %9.0f\n", prompt, batch, static_cast<double>(tokens) / best);
    }
}

void bench_training(int threads) {
  std::printf("supervised steps of 1500 tokens\n  prompt  completion  ms/step   tokens/s\n");
  for (const std::size_t prompt : {150u, 600u}) {
    std::vector<learn::Example> examples;
    for (int i = 0; i < 20; ++i) {
      std::string text(prompt, 'a'), answer(150, 'b');
      text[static_cast<std::size_t>(i)] = 'c';  // prompts differ: nothing is shared
      examples.push_back({std::to_string(i), text, answer, 1.0, "", 0, {}, {}});
    }
    learn::TrainerSettings settings;
    settings.steps = 40;
    model::Decoder decoder{model::DecoderSettings{}};
    decoder.initialise(1);
    learn::Trainer trainer(settings, std::move(decoder), model::Tokenizer::train({}, 512), std::nullopt,
                           nullptr, examples);
    double best = 1e9, tokens = 0;
    for (int i = 0; i < 40; ++i) {
      const learn::StepRecord step = trainer.step();
      if (step.seconds < best) best = step.seconds, tokens = static_cast<double>(step.tokens);
    }
    std::printf("  %6zu  %10d  %7.1f  %9.0f   (%d threads, the fastest of 40)\n", prompt, 150, best * 1e3,
                tokens / best, threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  learn::prepare_process(threads);
  model::Decoder decoder{model::DecoderSettings{}};
  decoder.initialise(1);
  std::printf("%lld parameters, %d thread(s)\n", static_cast<long long>(decoder.flat().numel()), threads);
  bench_sampler(decoder);
  bench_training(threads);
  return 0;
}

// What training and sampling cost, in tokens a second.
//
//   model_bench [THREADS]           the quickstart's model on the CPU, by both backends
//   model_bench SHAPE [--gpu] [--type T] [--sequences N] [--length L] [--steps S] [--peak TFLOPS]
//       [--only train|sample] [--trace FILE] [--ranks R] [--losses] [--deterministic]
//       [--states PLACE [--folder F] [--memory GIB] [--micro N] [--recompute] [--lora RANK]]
//
// SHAPE: smollm2-135m, qwen2-0.5b, qwen2.5-7b, or a Hugging Face folder, whose shape is taken; weights are
// random. Training: packed steps of N sequences of L tokens, all of them real, AdamW included. Sampling: 512
// + 128 tokens of distinct prompts, prefill included, nothing in common, at 1, 16 and 128 prompts. `--peak`:
// the device's peak for that type; the share of it that 6 operations a parameter and token are, attention
// left out, is printed. `--trace`: what the last step and the last wave launch, for chrome://tracing.
// `--deterministic`: training that repeats bit for bit, as workflows have it where they say nothing else.
// `--ranks`: training by R processes, each on a GPU of its own with N sequences. One more step then says how
// long NCCL's kernels ran, in which a rank waits for slower ones. `--losses`: prints the loss of every step,
// each of which has the same sequences, of 64 kinds of tokens, so that it falls; R times N sequences give the
// same whatever R. `--micro`: sequences computed at a time. `--states`: the optimiser's lie there (optimiser
// settings, `states`): steps in a row with the optimiser and without it, of which the GPU's memory holds at
// most GIB; with `--losses` the steps with it alone. `--lora`: adapters of all matrices are trained, the
// weights are not. It, GIB, `--micro` and `--recompute` mean `--states auto` where no place is said.
// model_bench.py does the same with transformers.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/equal.h>
#include <fcntl.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/config.h"
#include "warpsmith/model/folder.h"
#include "warpsmith/model/gpu_memory.h"
#include "warpsmith/model/placement.h"
#include "warpsmith/model/ranks.h"
#include "warpsmith/model/sampler.h"

namespace {

using namespace warpsmith;

double seconds_of(const auto& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<model::Token> random_tokens(std::uint64_t key, std::size_t n, std::int64_t vocabulary) {
  Random random(random_key({key}));
  std::vector<model::Token> tokens(n);
  for (model::Token& token : tokens)
    token = static_cast<model::Token>(random.below(static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

struct Asked {
  std::string shape;
  at::TensorOptions placement = at::kFloat;
  std::int64_t sequences = 8, length = 2048, steps = 10;
  double peak = 0;  // operations a second
  std::string only, trace;
  bool losses = false, recompute = false;
  std::int64_t micro = 0;  // sequences; 0: all of a step
  std::int64_t lora = 0;   // rank; 0: all weights are trained
  std::string states, folder;
  std::uint64_t memory = 0;  // bytes of the GPU; 0: all
  model::Collective* ranks = nullptr;
};

namespace profiler = torch::autograd::profiler;

std::unique_ptr<profiler::ProfilerResult> profiled(const auto& call) {
  const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CPU,
                                                       profiler::ActivityType::CUDA};
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  call();
  return profiler::disableProfiler();
}

// Calls, and where a trace is asked for writes FILE.WHAT.json, of ranks but the first FILE.WHAT.RANK.json.
void traced(const Asked& asked, const std::string& what, bool now, const auto& call) {
  if (asked.trace.empty() || !now) return call();
  const int rank = asked.ranks ? asked.ranks->rank() : 0;
  profiled(call)->save(asked.trace + "." + what + (rank > 0 ? "." + std::to_string(rank) : "") + ".json");
}

void wait_for_device(const Asked& asked) {
  if (!asked.placement.device().is_cpu()) at::detail::getCUDAHooks().deviceSynchronize(0);
}

// What each rank says, by rank.
std::vector<double> of_all_ranks(const Asked& asked, double own) {
  if (!asked.ranks) return {own};
  std::vector<double> all(static_cast<std::size_t>(asked.ranks->size()));
  all[static_cast<std::size_t>(asked.ranks->rank())] = own;
  return asked.ranks->sums(all);
}

// Where several ranks train: what NCCL's kernels take of a step that takes `seconds` when nobody looks. On a
// GPU: the memory of the rank that took most. Every rank calls.
void print_costs_of_ranks(const Asked& asked, double seconds, const auto& step) {
  if (asked.ranks && !asked.placement.device().is_cpu()) {
    const auto result = profiled([&] {
      asked.ranks->sums({0});  // a profiler takes its time to begin: all start the step together
      step();
      wait_for_device(asked);
    });
    std::vector<std::pair<std::uint64_t, std::uint64_t>> kernels;  // begin, nanoseconds
    for (const profiler::KinetoEvent& event : result->events())
      if (event.deviceType() == at::kCUDA && event.name().starts_with("nccl"))
        kernels.emplace_back(event.startNs(), event.durationNs());
    std::sort(kernels.begin(), kernels.end());
    double own = 0;
    for (std::size_t i = 1; i < kernels.size(); ++i) own += 1e-9 * static_cast<double>(kernels[i].second);
    const std::vector<double> all = of_all_ranks(asked, own);
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    if (asked.ranks->rank() == 0)
      std::printf("NCCL      %.1f to %.1f ms a step by rank, waiting included: %.1f to %.1f %% of the step\n",
                  1e3 * *least, 1e3 * *most, 100 * *least / seconds, 100 * *most / seconds);
  }
  if (const std::optional<model::PeakMemory> peak = model::peak_memory(asked.placement)) {
    const auto most = [&](std::uint64_t bytes) {
      const std::vector<double> all = of_all_ranks(asked, static_cast<double>(bytes));
      return *std::max_element(all.begin(), all.end()) / (1ull << 30);
    };
    const double tensors = most(peak->tensors), reserved = most(peak->reserved);
    if (!asked.ranks || asked.ranks->rank() == 0)
      std::printf("memory    at most %.1f GiB of tensors a GPU, %.1f GiB reserved\n", tensors, reserved);
  }
}

model::DecoderSettings settings_of(const std::string& shape) {
  model::DecoderSettings s;
  s.init_deviation = 0.02;
  if (shape == "smollm2-135m") {
    s.layers = 30, s.width = 576, s.heads = 9, s.kv_heads = 3, s.hidden = 1536, s.vocabulary = 49152;
    s.context = 2048, s.rope_base = 100000, s.norm_epsilon = 1e-5, s.qkv_bias = false;
    return s;
  }
  if (shape == "qwen2-0.5b") {
    s.layers = 24, s.width = 896, s.heads = 14, s.kv_heads = 2, s.hidden = 4864, s.vocabulary = 151936;
    s.context = 2048, s.rope_base = 1e6;
    return s;
  }
  if (shape == "qwen2.5-7b") {
    s.layers = 28, s.width = 3584, s.heads = 28, s.kv_heads = 4, s.hidden = 18944, s.vocabulary = 152064;
    s.context = 2048, s.rope_base = 1e6, s.tied = false;
    return s;
  }
  return model::settings_of_config(model::read_config(shape), shape + "/config.json", 2048);
}

// `--losses`: tokens of a few kinds, at a rate that rises and falls, are learned fast and without leaps.
// Where losses leap, two ways of rounding soon part.
constexpr std::int64_t kFewTokens = 64, kWarmupSteps = 10;
double rate_for_losses(const Asked& asked, std::int64_t step) {
  return 3e-4 * std::min(1., static_cast<double>(step + 1) / kWarmupSteps) *
         (1 - static_cast<double>(step) / static_cast<double>(asked.steps));
}

void bench_training(const Asked& asked, const model::DecoderSettings& settings) {
  model::Decoder host(settings);
  host.initialise(1);
  model::Decoder decoder = host.copied(asked.placement);
  const std::int64_t rank = asked.ranks ? asked.ranks->rank() : 0,
                     ranks = asked.ranks ? asked.ranks->size() : 1;
  learn::AdamW optimizer({}, decoder, host.trained_flat(), std::nullopt, asked.ranks);
  double best = 1e9, loss = 0;
  const std::int64_t tokens = ranks * asked.sequences * asked.length;
  const auto train = [&](std::int64_t step, const auto& around) {
    model::PackedBatch batch;
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < asked.sequences; ++i) {
      std::vector<model::Token> all = random_tokens(
          static_cast<std::uint64_t>(((asked.losses ? 0 : step) * ranks + rank) * asked.sequences + i),
          static_cast<std::size_t>(asked.length + 1), asked.losses ? kFewTokens : settings.vocabulary);
      model::append_sequence(batch, {all.front()}, {all.begin() + 1, all.end()});
      lengths.push_back(asked.length);
    }
    const std::vector<double> weights(lengths.size(), 1);
    around([&] {
      decoder.zero_gradient();
      const at::Tensor known = learn::likelihood_gradient(lengths, weights, static_cast<double>(tokens),
                                                          asked.placement.dtype(at::kFloat));
      const at::Tensor sum = (decoder.log_probabilities(batch, known) * known).sum();
      sum.backward();
      // Reads the norm: waits for the device.
      optimizer.step(decoder, asked.losses ? rate_for_losses(asked, step) : 1e-5);
      loss = sum.item().toDouble();
      if (asked.ranks) loss = asked.ranks->sums({loss})[0];
    });
  };
  for (std::int64_t step = 0; step < asked.steps; ++step) {
    train(step, [&](const auto& one_step) {
      best = std::min(best, seconds_of([&] { traced(asked, "train", step + 1 == asked.steps, one_step); }));
    });
    if (asked.losses && rank == 0)
      std::printf("step %3lld  loss %.6f\n", static_cast<long long>(step + 1), loss);
  }
  const double rate = static_cast<double>(tokens) / best;
  if (rank == 0) {
    std::printf(
        "training  %3lld x %lld  %8.1f ms/step  %9.0f tokens/s  loss %.3f  %.1f MB of optimiser a rank",
        static_cast<long long>(ranks * asked.sequences), static_cast<long long>(asked.length), best * 1e3,
        rate, loss, static_cast<double>(optimizer.bytes().all()) / 1e6);
    const double done = 6.0 * static_cast<double>(model::parameter_count(settings)) * rate;
    if (asked.peak > 0)
      std::printf("  %.1f %% of the peak", 100 * done / asked.peak / static_cast<double>(ranks));
    std::printf("\n");
  }
  train(asked.steps, [&](const auto& one_step) { print_costs_of_ranks(asked, best, one_step); });
}

// Random weights where they are wanted: billions of them take minutes on the host.
void fill_randomly(const model::Decoder& decoder) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  for (const std::vector<model::NamedTensor>* list : {&decoder.parameters(), &decoder.adapters()})
    for (const model::NamedTensor& p : *list) {
      if (p.decays)
        p.tensor.normal_(0, 0.02);
      else
        p.tensor.fill_(p.name.ends_with("norm") ? 1 : 0);
    }
}

// What the folder's disk does by itself: 4 GiB past the page cache, written and read by four threads.
void print_rates_of_disk(const std::filesystem::path& folder) {
  constexpr std::size_t kChunk = 64u << 20, kThreads = 4, kChunks = 16;  // of each thread
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
  if (file < 0) return;
  std::printf("the disk by itself:");
  for (const bool reads : {false, true}) {
    std::atomic<bool> well = true;
    const double seconds = seconds_of([&] {
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kChunk),
                                                                   std::free);
          std::memset(memory.get(), 7, kChunk);
          for (std::size_t i = 0; i < kChunks; ++i) {
            const auto at = static_cast<off_t>((t * kChunks + i) * kChunk);
            const ssize_t moved =
                reads ? ::pread(file, memory.get(), kChunk, at) : ::pwrite(file, memory.get(), kChunk, at);
            if (moved != static_cast<ssize_t>(kChunk)) well = false;
          }
        });
    });
    if (well)
      std::printf("  %.2f GB/s %s", 1e-9 * kChunk * kThreads * kChunks / seconds, reads ? "read" : "written");
    else
      std::printf("  %s in part only", reads ? "read" : "written");
  }
  std::printf("\n");
  ::close(file);
}

// Steps in a row with the optimiser, whose states lie elsewhere, and without it.
void bench_states(const Asked& asked, const model::DecoderSettings& settings) {
  model::Decoder decoder(settings, asked.placement);
  decoder.recompute(asked.recompute);
  fill_randomly(decoder);
  const std::int64_t micro = asked.micro > 0 ? asked.micro : asked.sequences;
  const model::GpuMemory takes =
      model::training_memory(settings, {.tokens = micro * asked.length, .recompute = asked.recompute});
  std::optional<std::uint64_t> room = model::free_memory(asked.placement);
  const std::uint64_t all = room.value_or(0) + takes.weights + takes.gradients;
  if (room && asked.memory > 0 && asked.memory < all) *room -= std::min(*room, all - asked.memory);
  if (room) room = model::room_for_states(*room, takes);
  learn::OptimizerSettings how;
  how.states = asked.states;
  how.states_folder = asked.folder;
  const std::int64_t rank = asked.ranks ? asked.ranks->rank() : 0,
                     ranks = asked.ranks ? asked.ranks->size() : 1;
  if (asked.ranks) asked.ranks->broadcast(decoder.flat(), 0);
  learn::AdamW optimizer(how, decoder, decoder.trained_flat(), std::nullopt, asked.ranks, room);
  if (rank == 0)
    std::printf("states%s: %s\n", ranks > 1 ? " of a rank" : "", learn::to_string(optimizer.bytes()).c_str());
  const std::int64_t tokens = ranks * asked.sequences * asked.length;
  double loss = 0;
  const auto step = [&](std::int64_t number, bool with) {
    decoder.zero_gradient();
    at::Tensor sum;
    for (std::int64_t first = 0; first < asked.sequences; first += micro) {
      model::PackedBatch batch;
      std::vector<std::int64_t> lengths;
      for (std::int64_t i = first; i < std::min(first + micro, asked.sequences); ++i) {
        const std::vector<model::Token> row = random_tokens(
            static_cast<std::uint64_t>(((asked.losses ? 0 : number) * ranks + rank) * asked.sequences + i),
            static_cast<std::size_t>(asked.length + 1), kFewTokens);
        model::append_sequence(batch, {row.front()}, {row.begin() + 1, row.end()});
        lengths.push_back(asked.length);
      }
      const at::Tensor known =
          learn::likelihood_gradient(lengths, std::vector<double>(lengths.size(), 1),
                                     static_cast<double>(tokens), asked.placement.dtype(at::kFloat));
      const at::Tensor part = (decoder.log_probabilities(batch, known) * known).sum();
      part.backward();
      sum = sum.defined() ? sum + part.detach() : part.detach();
    }
    if (with) optimizer.step(decoder, asked.losses ? rate_for_losses(asked, number) : 1e-4);
    loss = sum.item().toDouble();
    if (asked.ranks && with) loss = asked.ranks->sums({loss})[0];
  };
  if (asked.losses) {
    for (std::int64_t i = 0; i < asked.steps; ++i) {
      step(i, true);
      if (rank == 0) std::printf("step %3lld  loss %.6f\n", static_cast<long long>(i + 1), loss);
    }
    return;
  }
  const auto in_a_row = [&](bool with) {
    step(0, with);  // warms up
    wait_for_device(asked);
    const double seconds = seconds_of([&] {
      for (std::int64_t i = 0; i < asked.steps; ++i) {
        const at::Tensor before = decoder.trained_flat().slice(0, 0, std::nullopt, 1 << 20).clone();
        step(i + 1, with);
        if (with == at::equal(before, decoder.trained_flat().slice(0, 0, std::nullopt, 1 << 20)))
          std::printf("step %lld: parameters %s\n", static_cast<long long>(i), with ? "stay" : "change");
      }
      wait_for_device(asked);
    });
    return seconds / static_cast<double>(asked.steps);
  };
  const double without = in_a_row(false), with = in_a_row(true);
  const std::int64_t computed =
      model::parameter_count(settings) - (settings.tied ? 0 : settings.vocabulary * settings.width);
  // Weights that are not trained have no gradients.
  const int operations = settings.lora.rank > 0 ? 4 : 6;
  const auto print_rate = [&](const char* what, double seconds) {
    const double rate = static_cast<double>(tokens) / seconds,
                 done = operations * static_cast<double>(computed) * rate / static_cast<double>(ranks);
    std::printf("%s: %.0f tokens/s, %.1f %% of the peak (%d operations a parameter and token)\n", what, rate,
                100 * done / asked.peak, operations);
  };
  if (rank == 0) {
    std::printf(
        "%lld x %lld, %lld at a time: arithmetic alone %.1f ms, with the optimiser %.1f ms: %.3fx  loss "
        "%.3f\n",
        static_cast<long long>(ranks * asked.sequences), static_cast<long long>(asked.length),
        static_cast<long long>(micro), without * 1e3, with * 1e3, with / without, loss);
    if (asked.peak > 0) print_rate("arithmetic alone", without);
    if (asked.peak > 0) print_rate("with the optimiser", with);
  }
  print_costs_of_ranks(asked, with, [&] { step(asked.steps, true); });
  if (rank > 0) return;
  if (!asked.folder.empty()) print_rates_of_disk(asked.folder);
  if (const std::optional<std::uint64_t> left = model::free_memory(asked.placement))
    std::printf("free on the GPU at the end: %.1f GiB\n", static_cast<double>(*left) / (1ull << 30));
}

void bench_sampling(const Asked& asked, const model::DecoderSettings& settings) {
  model::Decoder decoder(settings);
  decoder.initialise(1);
  if (!model::is_host(asked.placement)) decoder = decoder.copied(asked.placement);
  const std::size_t prompt = std::min<std::size_t>(512, static_cast<std::size_t>(settings.context / 2));
  for (const std::size_t batch : {1u, 16u, 128u}) {
    std::vector<model::SampleRequest> requests;
    for (std::size_t i = 0; i < batch; ++i)
      requests.push_back({random_tokens(1000 + i, prompt, settings.vocabulary), {random_key({i})}});
    model::SamplerSettings how;
    how.max_tokens = 128;
    how.batch = static_cast<std::int64_t>(batch);
    how.stops = {};
    double best = 1e9;
    std::size_t tokens = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<std::vector<model::Sample>> samples;
      const std::string what = "sample" + std::to_string(batch);
      best = std::min(best, seconds_of([&] {
                        traced(asked, what.c_str(), repeat == 2,
                               [&] { samples = model::sample_all(decoder, requests, how); });
                      }));
      tokens = 0;
      for (const auto& of_prompt : samples)
        for (const model::Sample& one : of_prompt) tokens += one.tokens.size();
    }
    std::printf("sampling  %3zu prompts of %zu + 128  %8.1f ms  %9.0f tokens/s\n", batch, prompt, best * 1e3,
                static_cast<double>(tokens) / best);
    std::fflush(stdout);
  }
}

// The quickstart's model: why its loops stay.
void compare_backends(int threads) {
  model::Decoder loops{model::DecoderSettings{}};
  loops.initialise(1);
  std::printf("the quickstart's model, %lld parameters, %d thread(s), float32 on the CPU\n",
              static_cast<long long>(loops.flat().numel()), threads);
  double seconds[2][2] = {};
  const std::int64_t vocabulary = loops.settings().vocabulary;
  for (const bool operators : {false, true}) {
    model::Decoder decoder =
        loops.copied(at::kFloat, operators ? model::Backend::kOperators : model::Backend::kLoops);
    model::PackedBatch batch;
    for (std::uint64_t i = 0; i < 5; ++i)
      model::append_sequence(batch, random_tokens(i, 150, vocabulary), random_tokens(i + 9, 150, vocabulary));
    const std::vector<model::SampleRequest> requests = {
        {random_tokens(3, 300, vocabulary),
         std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}};
    double train = 1e9, sample = 1e9;
    for (int repeat = 0; repeat < 10; ++repeat)
      train = std::min(train, seconds_of([&] {
                         decoder.zero_gradient();
                         decoder.log_probabilities(batch).sum().backward();
                       }));
    for (int repeat = 0; repeat < 3; ++repeat)
      sample = std::min(sample, seconds_of([&] {
                          model::SamplerSettings how;
                          how.max_tokens = 150;
                          how.stops = {};
                          model::sample_all(decoder, requests, how);
                        }));
    seconds[operators][0] = train;
    seconds[operators][1] = sample;
  }
  const char* names[] = {"gradients of 1,500 tokens", "16 samples of 150 tokens"};
  std::printf("  %-26s %10s %12s %7s\n", "", "loops", "operators", "ratio");
  for (int i = 0; i < 2; ++i)
    std::printf("  %-26s %7.1f ms %9.1f ms %6.2fx\n", names[i], seconds[0][i] * 1e3, seconds[1][i] * 1e3,
                seconds[1][i] / seconds[0][i]);
}

int run(int argc, char** argv) {
  Asked asked;
  bool gpu = false, deterministic = false;
  int processes = 1;
  std::string type = "auto";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] {
      if (i + 1 >= argc) throw Error(word + " wants a value", kExitUsage);
      return std::string(argv[++i]);
    };
    if (word == "--gpu")
      gpu = true;
    else if (word == "--type")
      type = next();
    else if (word == "--sequences")
      asked.sequences = std::stoll(next());
    else if (word == "--length")
      asked.length = std::stoll(next());
    else if (word == "--steps")
      asked.steps = std::stoll(next());
    else if (word == "--peak")
      asked.peak = 1e12 * std::stod(next());
    else if (word == "--ranks")
      processes = std::stoi(next());
    else if (word == "--losses")
      asked.losses = true;
    else if (word == "--deterministic")
      deterministic = true;
    else if (word == "--recompute")
      asked.recompute = true;
    else if (word == "--micro")
      asked.micro = std::stoll(next());
    else if (word == "--states")
      asked.states = next();
    else if (word == "--lora")
      asked.lora = std::stoll(next());
    else if (word == "--folder")
      asked.folder = next();
    else if (word == "--memory")
      asked.memory = std::stoull(next()) << 30;
    else if (word == "--trace")
      asked.trace = next();
    else if (word == "--only")
      asked.only = next();
    else
      asked.shape = word;
  }
  const model::Ranks ranks(processes, gpu);
  asked.placement = model::place_for(gpu, type);
  const std::unique_ptr<model::Collective> together = ranks.connect(asked.placement);
  asked.ranks = together.get();
  const bool by_threads =
      !asked.shape.empty() && asked.shape.find_first_not_of("0123456789") == std::string::npos;
  const int threads = by_threads ? std::atoi(asked.shape.c_str()) : gpu || asked.shape.empty() ? 1 : 2;
  learn::prepare_process(threads, gpu, deterministic);
  if (asked.shape.empty() || by_threads) {
    compare_backends(threads);
    return 0;
  }
  model::DecoderSettings settings = settings_of(asked.shape);
  if (asked.lora > 0)
    settings.lora = {asked.lora,
                     2.0 * static_cast<double>(asked.lora),
                     {std::begin(model::kLoraTargets), std::end(model::kLoraTargets)}};
  if (ranks.rank() == 0)
    std::printf("%s, %lld parameters, %s on %s\n", asked.shape.c_str(),
                static_cast<long long>(model::parameter_count(settings)),
                at::toString(asked.placement.dtype().toScalarType()), gpu ? "the GPU" : "the CPU");
  // These say something to steps in a row alone.
  if (asked.states.empty() && (asked.lora > 0 || asked.micro > 0 || asked.memory > 0 || asked.recompute))
    asked.states = "auto";
  if (!asked.states.empty()) {
    bench_states(asked, settings);
    return 0;
  }
  if (asked.only != "sample") bench_training(asked, settings);
  if (asked.only != "train" && processes == 1) bench_sampling(asked, settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // who is stopped has said what it knew
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "model_bench: %s\n", e.what());
    return 1;
  }
}

// warpsmith-generate JOB.json SHARD: samples completions of prompts from a checkpoint.
//
// params: checkpoint (relative to the run folder), temperature, top_k, top_p, max_tokens, batch, threads.
// items: {"id", "task", "prompt", "n"}. Records: {"prompt_tokens", "samples": [{"text", "finished", "tokens",
// "tokens_blob"
//   (int32 ids, with the stop token), "logprobs_blob" (float32)}], "seconds"}; "error" where the prompt
//   leaves no room.
//
// Each item is sampled by itself, with random numbers of (seed, stage, round, item, sample): see
// model/sampler.h.
#include <chrono>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/sampler.h"
#include "warpsmith/records/shard.h"

namespace {

using namespace warpsmith;

Json sample_item(ShardSession& shard, const Item& item, const model::Checkpoint& checkpoint,
                 const model::SamplerSettings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  const JobFile& job = shard.job();
  const std::vector<model::Token> prompt =
      checkpoint.tokenizer.encode_prompt(json_at<std::string>(item.value, "prompt", "item " + item.id));
  std::vector<std::uint64_t> keys(json_at<std::size_t>(item.value, "n", "item " + item.id));
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = random_key(
        {job.seed, name_key(job.stage), static_cast<std::uint64_t>(job.round), name_key(item.id), i});
  Json samples = Json::array();
  for (const model::Sample& sample : model::sample(checkpoint.decoder, prompt, keys, settings))
    samples.push_back(
        {{"text", checkpoint.tokenizer.decode(sample.tokens)},
         {"finished", sample.finished},
         {"tokens", sample.tokens.size()},
         {"tokens_blob", to_json(shard.write_blob(std::as_bytes(std::span(sample.tokens))))},
         {"logprobs_blob", to_json(shard.write_blob(std::as_bytes(std::span(sample.log_probabilities))))}});
  Json record = {{"prompt_tokens", prompt.size()}, {"samples", std::move(samples)}};
  if (static_cast<std::int64_t>(prompt.size()) >= checkpoint.decoder.settings().context)
    record["error"] = "a prompt of " + std::to_string(prompt.size()) +
                      " tokens leaves no room in a context of " +
                      std::to_string(checkpoint.decoder.settings().context);
  record["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return record;
}

void generate(int argc, char** argv) {
  if (argc != 3) throw Error("usage: warpsmith-generate JOB.json SHARD", kExitUsage);
  ShardSession shard(argv[1], std::stoul(argv[2]));
  const Json& params = shard.job().params;
  learn::prepare_process(params.value("threads", 1));
  const std::vector<Item> open = shard.open_items();
  if (!open.empty()) {
    const model::Checkpoint checkpoint =
        model::load_checkpoint(shard.run_folder() / json_at<std::string>(params, "checkpoint", "job.json"));
    model::SamplerSettings settings;
    settings.temperature = params.value("temperature", settings.temperature);
    settings.top_p = params.value("top_p", settings.top_p);
    settings.top_k = params.value("top_k", settings.top_k);
    settings.max_tokens = params.value("max_tokens", settings.max_tokens);
    settings.batch = params.value("batch", settings.batch);
    settings.stops = checkpoint.tokenizer.stops();
    std::int64_t tokens = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      Json record = sample_item(shard, open[i], checkpoint, settings);
      for (const Json& sample : record["samples"]) tokens += sample["tokens"].get<std::int64_t>();
      seconds += record["seconds"].get<double>();
      if (record.contains("error"))
        log_warning("item " + open[i].id + ": " + record["error"].get<std::string>());
      shard.write(open[i], std::move(record));
      log_info("prompt " + std::to_string(i + 1) + "/" + std::to_string(open.size()) + "  " +
               std::to_string(static_cast<std::int64_t>(static_cast<double>(tokens) / seconds)) +
               " tokens/s");
    }
  }
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("warpsmith-generate");
  try {
    generate(argc, argv);
    return kExitOk;
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    log_error(e.what());
    return kExitFailed;
  }
}

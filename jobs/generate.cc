// warpsmith-generate JOB.json SHARD: samples completions of prompts from a checkpoint; or, where params have
// `endpoint`, from a server (server_samples.h).
//
// params: checkpoint (relative to the run folder), temperature, top_k, top_p, max_tokens, threads; batch
// (samples at a time), gpus (0 or 1), type ("auto", "float32", "bfloat16"); base_folder (see
// load_checkpoint()).
// items: {"id", "task", "prompt", "shorter", "n"}. `shorter`: prompts with one exemplar less each, or none.
// Asked is the first that leaves room for max_tokens, else the last.
// Records: {"prompt_tokens", "samples": [{"text", "finished", "tokens", "tokens_blob" (int32 ids, with the
// stop token), "logprobs_blob" (float32)}], "seconds"}; "exemplars_left_out" of `shorter`; "error" where the
// prompt leaves no room. `seconds` is the item's share of the time of what was sampled together.
//
// Random numbers are of (seed, stage, round, item, sample). On the CPU each item is sampled by itself, on a
// GPU in waves that the shard's list of items fixes, whatever is recorded already: see model/sampler.h.
#include <algorithm>
#include <chrono>

#include "server_samples.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/placement.h"
#include "warpsmith/model/sampler.h"
#include "warpsmith/records/shard.h"

namespace {

using namespace warpsmith;

// An item to be sampled.
struct Asked {
  const Item* item;
  model::SampleRequest request;
  std::size_t left_out = 0;  // exemplars
};

Asked ask(const ShardSession& shard, const Item& item, const model::Checkpoint& checkpoint,
          std::int64_t max_tokens) {
  const JobFile& job = shard.job();
  std::vector<std::string> shorter;
  if (item.value.contains("shorter"))
    shorter = json_at<std::vector<std::string>>(item.value, "shorter", "item " + item.id);
  model::FittedPrompt fitted =
      checkpoint.tokenizer.encode_fitting(json_at<std::string>(item.value, "prompt", "item " + item.id),
                                          shorter, checkpoint.decoder.settings().context - max_tokens);
  Asked asked{&item,
              {std::move(fitted.tokens),
               std::vector<std::uint64_t>(json_at<std::size_t>(item.value, "n", "item " + item.id))},
              fitted.left_out};
  std::vector<std::uint64_t>& keys = asked.request.keys;
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = random_key(
        {job.seed, name_key(job.stage), static_cast<std::uint64_t>(job.round), name_key(item.id), i});
  return asked;
}

Json to_record(ShardSession& shard, const Asked& asked, const std::vector<model::Sample>& samples,
               const model::Checkpoint& checkpoint, double seconds) {
  Json list = Json::array();
  for (const model::Sample& sample : samples)
    list.push_back(
        {{"text", checkpoint.tokenizer.decode(sample.tokens)},
         {"finished", sample.finished},
         {"tokens", sample.tokens.size()},
         {"tokens_blob", to_json(shard.write_blob(std::as_bytes(std::span(sample.tokens))))},
         {"logprobs_blob", to_json(shard.write_blob(std::as_bytes(std::span(sample.log_probabilities))))}});
  const std::size_t prompt = asked.request.prompt.size();
  Json record = {{"prompt_tokens", prompt}, {"samples", std::move(list)}, {"seconds", seconds}};
  if (asked.left_out > 0) record["exemplars_left_out"] = asked.left_out;
  const std::int64_t context = checkpoint.decoder.settings().context;
  if (static_cast<std::int64_t>(prompt) < context) return record;
  record["error"] = "a prompt of " + std::to_string(prompt) + " tokens leaves no room in a context of " +
                    std::to_string(context);
  log_warning("item " + asked.item->id + ": " + record["error"].get<std::string>());
  return record;
}

// Items that are sampled together: by loops each alone, by operators as many as fill a wave.
std::vector<std::vector<const Item*>> waves_of(const ShardSession& shard, bool alone, std::int64_t batch) {
  std::vector<std::vector<const Item*>> waves;
  std::int64_t filled = 0;
  for (const Item& item : shard.items()) {
    const auto n = json_at<std::int64_t>(item.value, "n", "item " + item.id);
    if (waves.empty() || alone || filled + n > batch) {
      waves.emplace_back();
      filled = 0;
    }
    waves.back().push_back(&item);
    filled += n;
  }
  return waves;
}

void sample_items(ShardSession& shard, const model::Checkpoint& checkpoint,
                  const model::SamplerSettings& settings) {
  const model::Decoder& decoder = checkpoint.decoder;
  const auto recorded = [&](const Item* item) { return shard.earlier_records().contains(item->id); };
  std::size_t done = 0, tokens = 0;
  double all_s = 0;
  for (const auto& wave : waves_of(shard, decoder.backend() == model::Backend::kLoops, settings.batch)) {
    done += wave.size();
    if (std::all_of(wave.begin(), wave.end(), recorded)) continue;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Asked> asked;
    std::vector<model::SampleRequest> requests;
    std::size_t samples_asked = 0;
    for (const Item* item : wave) {
      asked.push_back(ask(shard, *item, checkpoint, settings.max_tokens));
      requests.push_back(asked.back().request);
      samples_asked += requests.back().keys.size();
    }
    const std::vector<std::vector<model::Sample>> samples = model::sample_all(decoder, requests, settings);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    all_s += seconds;
    for (std::size_t i = 0; i < wave.size(); ++i) {
      for (const model::Sample& sample : samples[i]) tokens += sample.tokens.size();
      if (recorded(wave[i])) continue;
      const double share = static_cast<double>(samples[i].size()) /
                           static_cast<double>(std::max<std::size_t>(1, samples_asked));
      shard.write(*wave[i], to_record(shard, asked[i], samples[i], checkpoint, seconds * share));
    }
    log_info("prompt " + std::to_string(done) + "/" + std::to_string(shard.items().size()) + "  " +
             std::to_string(static_cast<std::int64_t>(static_cast<double>(tokens) / all_s)) + " tokens/s");
  }
}

void generate(ShardSession& shard) {
  const Json& params = shard.job().params;
  if (params.contains("endpoint")) {
    sample_from_server(shard);
    return shard.finish();
  }
  const at::TensorOptions placement =
      model::place_for(params.value("gpus", 0) > 0, params.value("type", "float32"));
  learn::prepare_process(params.value("threads", 1), placement.device().is_cuda(), false);
  if (!shard.open_items().empty()) {
    model::Checkpoint checkpoint =
        model::load_checkpoint(shard.run_folder() / json_at<std::string>(params, "checkpoint", "job.json"),
                               false, params.value("base_folder", ""));
    if (checkpoint.decoder.settings().lora.rank > 0) checkpoint.decoder = checkpoint.decoder.merged();
    if (!model::is_host(placement)) checkpoint.decoder = checkpoint.decoder.copied(placement);
    model::SamplerSettings settings;
    settings.temperature = params.value("temperature", settings.temperature);
    settings.top_p = params.value("top_p", settings.top_p);
    settings.top_k = params.value("top_k", settings.top_k);
    settings.max_tokens = params.value("max_tokens", settings.max_tokens);
    settings.batch = params.value("batch", settings.batch);
    settings.stops = checkpoint.tokenizer.stops();
    sample_items(shard, checkpoint, settings);
  }
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) { return shard_main("warpsmith-generate", argc, argv, generate); }

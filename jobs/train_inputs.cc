#include "train_inputs.h"

#include <ATen/core/grad_mode.h>

#include <charconv>
#include <cstring>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/model/folder.h"
#include "warpsmith/model/pretrained.h"

namespace warpsmith {

namespace {

template <typename T>
std::vector<T> read_array(const fs::path& folder, const Json& ref) {
  const std::string bytes = read_blob(folder, blob_ref_from_json(ref));
  if (bytes.size() % sizeof(T) != 0) throw Error((folder / "blob.bin").string() + ": half a number");
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<learn::Example> read_examples(const ShardSession& shard, learn::Mode mode) {
  const fs::path path = shard.job_folder() / "examples.jsonl";
  if (!fs::exists(path)) throw Error("there is no " + path.string(), kExitUsage);
  std::vector<learn::Example> examples;
  const JsonLinesScan scan = scan_json_lines(path, 0, [&](Json&& json, std::uint64_t) {
    learn::Example e;
    e.id = json_at<std::string>(json, "id", "example");
    e.prompt = json_at<std::string>(json, "prompt", "example " + e.id);
    e.completion = json.value("completion", "");
    e.shorter = json.value("shorter", std::vector<std::string>{});
    e.weight = json.value("weight", 1.0);
    if (mode == learn::Mode::kGrpo) {
      e.group = json_at<std::string>(json, "group", "example " + e.id);
      e.advantage = json_at<double>(json, "advantage", "example " + e.id);
      e.finished = json.value("finished", true);
      if (!json.contains("tokens")) {  // a server has sampled it
        examples.push_back(std::move(e));
        return;
      }
      const fs::path folder = shard.run_folder() / json_at<std::string>(json, "folder", "example " + e.id);
      e.tokens = read_array<model::Token>(folder, json.at("tokens"));
      e.log_probabilities = read_array<float>(folder, json.at("logprobs"));
    }
    examples.push_back(std::move(e));
  });
  if (scan.cut_tail) throw Error(path.string() + ": its last line is cut short");
  return examples;
}

std::optional<model::Checkpoint> load_if_named(const ShardSession& shard, const char* key) {
  const Json& params = shard.job().params;
  if (!params.contains(key) || params[key].is_null()) return std::nullopt;
  return model::load_checkpoint(shard.run_folder() / params[key].get<std::string>(), true,
                                params.value("base_folder", ""));
}

learn::TrainerSettings read_settings(const ShardSession& shard) {
  const JobFile& job = shard.job();
  const Json& params = job.params;
  learn::TrainerSettings settings;
  settings.mode = learn::parse_mode(json_at<std::string>(params, "mode", "job.json"));
  settings.optimizer = learn::optimizer_settings_from_json(params.value("optimizer", Json::object()));
  settings.grpo = {params.value("clip_ratio", 0.2), params.value("kl", 0.01), params.value("kl_clamp", 10.0)};
  settings.epochs = params.value("epochs", 1);
  settings.micro_batch_tokens = params.value("micro_batch_tokens", std::int64_t{0});
  settings.recompute = params.value("recompute", false);
  settings.steps = params.value("steps", static_cast<std::int64_t>(shard.items().size()));
  settings.seed = random_key({job.seed, name_key(job.stage), static_cast<std::uint64_t>(job.round)});
  return settings;
}

}  // namespace

std::int64_t step_of(const Item& item) {
  std::int64_t step = 0;
  if (!item.id.starts_with("step-") ||
      std::from_chars(item.id.data() + 5, item.id.data() + item.id.size(), step).ptr !=
          item.id.data() + item.id.size())
    throw Error("item `" + item.id + "` is no step", kExitUsage);
  return step;
}

namespace {

// `pretrained`: {"folder", "weights", "frame"}.
model::Checkpoint model_of_folder(const Json& pretrained, const model::DecoderSettings& settings,
                                  std::uint64_t seed) {
  const fs::path folder = json_at<std::string>(pretrained, "folder", "job.json");
  const bool weights = json_at<bool>(pretrained, "weights", "job.json");
  model::Decoder decoder =
      weights ? model::load_pretrained(folder, settings.context) : model::Decoder(settings);
  if (!weights) decoder.initialise(seed);
  if (decoder.settings() != settings)
    throw Error(folder.string() + ": its config.json was changed since the run was planned", kExitUsage);
  model::CheckpointFacts facts;
  facts.companions = model::companions_of(folder);
  if (weights) facts.base = {folder.string(), false, model::weights_digest(folder)};
  const fs::path tokens = folder / "tokenizer.json";
  return {std::move(facts), "", std::move(decoder),
          model::Tokenizer::pretrained(
              read_file(tokens), tokens.string(),
              tokenizer::frame_from_json(json_at<Json>(pretrained, "frame", "job.json"))),
          std::nullopt};
}

}  // namespace

model::Checkpoint first_model(const Json& params, const std::vector<learn::Example>& examples,
                              std::uint64_t seed) {
  if (params.contains("pretrained")) {
    model::Checkpoint first =
        model_of_folder(params["pretrained"],
                        model::decoder_settings_from_json(json_at<Json>(params, "model", "job.json")), seed);
    return with_lora(std::move(first), params, seed);
  }
  if (params.contains("lora") && !params["lora"].is_null())
    throw Error("`lora` adds to weights that somebody trained, and these are random", kExitUsage);
  std::vector<std::string> texts;
  for (const learn::Example& e : examples) texts.insert(texts.end(), {e.prompt, e.completion});
  model::Decoder decoder(model::decoder_settings_from_json(params.value("model", Json::object())));
  decoder.initialise(seed);
  const auto vocabulary = static_cast<int>(decoder.settings().vocabulary);
  return {{}, "", std::move(decoder), model::Tokenizer::train(texts, vocabulary), std::nullopt};
}

model::Checkpoint with_lora(model::Checkpoint start, const Json& params, std::uint64_t seed) {
  model::DecoderSettings settings = start.decoder.settings();
  const model::LoraSettings has = settings.lora;
  Json asked = model::to_json(settings);
  asked.erase("lora");
  if (params.contains("lora") && !params["lora"].is_null()) asked["lora"] = params["lora"];
  settings = model::decoder_settings_from_json(asked);
  if (settings.lora == has) return start;
  start.optimizer.reset();
  if (settings.lora.rank == 0) {
    start.decoder = start.decoder.merged();
    start.facts.base.reset();
    return start;
  }
  if (has.rank > 0)
    throw Error(
        "this stage's `lora` is another than that of the stage that it goes on from: give both the same, or "
        "none to one of them",
        kExitUsage);
  model::Decoder decoder(settings);
  const at::NoGradGuard guard;
  at::Tensor flat = decoder.flat();
  flat.copy_(start.decoder.flat());
  decoder.initialise_adapters(seed);
  start.decoder = std::move(decoder);
  // A folder's model brought it; a checkpoint becomes the base of those that are written beside it.
  if (!start.digest.empty()) {
    const fs::path init = json_at<std::string>(params, "init", "job.json");
    start.facts.base = {"../" + init.filename().string(), true, start.digest};
  }
  if (!start.facts.base)
    throw Error("`lora` adds to weights that somebody trained, and these are random", kExitUsage);
  return start;
}

TrainInputs read_train_inputs(const ShardSession& shard) {
  TrainInputs inputs;
  inputs.settings = read_settings(shard);
  inputs.examples = read_examples(shard, inputs.settings.mode);
  inputs.init = load_if_named(shard, "init");
  inputs.reference = load_if_named(shard, "reference");
  inputs.sampled_by = load_if_named(shard, "sampled_by");
  if (inputs.init) inputs.parents.push_back(inputs.init->digest);
  if (inputs.reference) inputs.parents.push_back(inputs.reference->digest);
  inputs.first = inputs.init ? inputs.init->facts.step : 0;
  const Item &front = shard.items().front(), &back = shard.items().back();
  const std::int64_t begin = inputs.first + (inputs.settings.steps > 0 ? 1 : 0);
  if (step_of(front) != begin || step_of(back) != inputs.first + inputs.settings.steps)
    throw Error("the items are " + front.id + " to " + back.id + ", the init checkpoint ends at step " +
                    std::to_string(inputs.first),
                kExitUsage);
  return inputs;
}

}  // namespace warpsmith

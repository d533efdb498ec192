// warpsmith-train JOB.json SHARD: trains a model on the examples beside the job file, one item a step.
//
// params: mode (sft, rejection, grpo); model (settings, where init is null); init, reference (checkpoints,
// relative to the
//   run folder, or null); optimizer (OptimizerSettings by name); threads; checkpoint_prefix; grpo: epochs,
//   clip_ratio, kl, kl_clamp.
// examples.jsonl: {"id", "prompt", "completion", "weight"}; grpo also "group", "advantage", "folder" (an
// attempt's, relative
//   to the run folder), "tokens" and "logprobs" (blobs there).
// items: {"id": "step-17"}, numbered on from the init checkpoint. Records: step, loss, learning_rate,
// grad_norm, tokens,
//   seconds; grpo also kl, clip_share, ratio_mean; the last one also checkpoint and checkpoint_digest.
//
// The tokenizer is trained on the examples where init is null, else taken from it. AdamW's moments are taken
// from init where the same stage wrote it. A retried attempt goes on from the newest whole checkpoint of an
// earlier one.
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/text.h"
#include "warpsmith/learn/series.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/records/shard.h"

namespace {

using namespace warpsmith;

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
    e.weight = json.value("weight", 1.0);
    if (mode == learn::Mode::kGrpo) {
      e.group = json_at<std::string>(json, "group", "example " + e.id);
      e.advantage = json_at<double>(json, "advantage", "example " + e.id);
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
  return model::load_checkpoint(shard.run_folder() / params[key].get<std::string>(), true);
}

std::int64_t step_of(const Item& item) {
  std::int64_t step = 0;
  if (!item.id.starts_with("step-") ||
      std::from_chars(item.id.data() + 5, item.id.data() + item.id.size(), step).ptr !=
          item.id.data() + item.id.size())
    throw Error("item `" + item.id + "` is no step", kExitUsage);
  return step;
}

Json to_record(const learn::StepRecord& r, std::int64_t step, learn::Mode mode) {
  Json record = {{"step", step},
                 {"loss", r.loss},
                 {"learning_rate", r.learning_rate},
                 {"grad_norm", r.gradient_norm},
                 {"tokens", r.tokens},
                 {"seconds", r.seconds}};
  if (mode == learn::Mode::kGrpo)
    record.update({{"kl", r.kl}, {"clip_share", r.clip_share}, {"ratio_mean", r.ratio_mean}});
  return record;
}

Json checkpoint_fields(const ShardSession& shard, std::int64_t step, const std::string& digest) {
  const auto prefix = json_at<std::string>(shard.job().params, "checkpoint_prefix", "job.json");
  return {{"checkpoint", prefix + "-" + std::to_string(step)}, {"checkpoint_digest", digest}};
}

// The newest checkpoint of an earlier attempt from which every record that is not written can still be made:
// all steps up to it have records, or, for its own step, the record lies in its origin.
std::optional<std::int64_t> resumable(const ShardSession& shard, const learn::CheckpointSeries& series) {
  for (const std::int64_t step : series.whole_steps([](const std::string& damage) { log_warning(damage); })) {
    bool recorded = true;
    for (const Item& item : shard.items())
      recorded = recorded && (step_of(item) >= step || shard.earlier_records().contains(item.id));
    if (recorded) return step;
  }
  return std::nullopt;
}

learn::TrainerSettings read_settings(const ShardSession& shard, learn::Mode mode, std::uint64_t seed) {
  const Json& params = shard.job().params;
  learn::TrainerSettings settings;
  settings.mode = mode;
  settings.optimizer = learn::optimizer_settings_from_json(params.value("optimizer", Json::object()));
  settings.grpo = {params.value("clip_ratio", 0.2), params.value("kl", 0.01), params.value("kl_clamp", 10.0)};
  settings.epochs = params.value("epochs", 1);
  settings.steps = static_cast<std::int64_t>(shard.items().size());
  settings.seed = seed;
  return settings;
}

// Random weights, and a tokenizer trained on the examples.
model::Checkpoint from_nothing(const Json& params, const std::vector<learn::Example>& examples,
                               std::uint64_t seed) {
  std::vector<std::string> texts;
  for (const learn::Example& e : examples) texts.insert(texts.end(), {e.prompt, e.completion});
  model::Decoder decoder(model::decoder_settings_from_json(params.value("model", Json::object())));
  decoder.initialise(seed);
  const auto vocabulary = static_cast<int>(decoder.settings().vocabulary);
  return {{}, "", std::move(decoder), model::Tokenizer::train(texts, vocabulary), std::nullopt};
}

// A line every two seconds: step, loss, tokens a second, time left.
class Progress {
 public:
  Progress(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}
  void say(std::int64_t done, const learn::StepRecord& step) {
    tokens_ += static_cast<double>(step.tokens);
    const auto now = std::chrono::steady_clock::now();
    if (done < last_ && now - said_ < std::chrono::seconds(2)) return;
    said_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double left = seconds / static_cast<double>(done - first_) * static_cast<double>(last_ - done);
    log_info("step " + std::to_string(done) + "/" + std::to_string(last_) + "  loss " +
             std::to_string(step.loss) + "  " + std::to_string(std::llround(tokens_ / seconds)) +
             " tokens/s  " + format_duration(std::chrono::milliseconds(std::llround(1e3 * left))) + " left");
  }

 private:
  std::int64_t first_, last_;
  double tokens_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), said_ = begin_;
};

// Steps (done, last], their records and checkpoints.
void run_steps(ShardSession& shard, learn::Trainer& trainer, learn::CheckpointSeries& series,
               const learn::TrainerSettings& settings, const std::vector<std::string>& parents,
               std::int64_t first) {
  const std::int64_t last = first + settings.steps, every = settings.optimizer.checkpoint_every;
  Progress progress(first + trainer.done(), last);
  double losses = 0;
  std::int64_t summed = 0;
  while (trainer.done() < settings.steps) {
    const learn::StepRecord step = trainer.step();
    const Item& item = shard.items()[static_cast<std::size_t>(trainer.done() - 1)];
    const std::int64_t done = first + trainer.done();
    Json record = to_record(step, done, settings.mode);
    losses += step.loss;
    ++summed;
    if (done == last || (every > 0 && trainer.done() % every == 0)) {
      shard.sync();  // the records up to here are at least as durable as the checkpoint
      const std::string digest = series.save(
          {shard.job().stage, done, losses / static_cast<double>(summed), parents, {{"record", record}}},
          trainer.decoder(), trainer.tokenizer(), &trainer.optimizer_state());
      losses = 0;
      summed = 0;
      if (done == last) record.update(checkpoint_fields(shard, done, digest));
    }
    if (!shard.earlier_records().contains(item.id)) shard.write(item, std::move(record));
    progress.say(done, step);
  }
}

void train(int argc, char** argv) {
  if (argc != 3) throw Error("usage: warpsmith-train JOB.json SHARD", kExitUsage);
  ShardSession shard(argv[1], std::stoul(argv[2]));
  const JobFile& job = shard.job();
  const std::vector<Item>& items = shard.items();
  if (items.empty()) throw Error("a job without steps", kExitUsage);
  const learn::Mode mode = learn::parse_mode(json_at<std::string>(job.params, "mode", "job.json"));
  const std::uint64_t seed =
      random_key({job.seed, name_key(job.stage), static_cast<std::uint64_t>(job.round)});
  const learn::TrainerSettings settings = read_settings(shard, mode, seed);
  learn::prepare_process(job.params.value("threads", 1));

  std::vector<learn::Example> examples = read_examples(shard, mode);
  std::optional<model::Checkpoint> start = load_if_named(shard, "init");
  const std::optional<model::Checkpoint> reference = load_if_named(shard, "reference");
  std::vector<std::string> parents;
  if (start) parents.push_back(start->digest);
  if (reference) parents.push_back(reference->digest);
  const std::int64_t first = start ? start->facts.step : 0, last = first + settings.steps;
  if (step_of(items.front()) != first + 1 || step_of(items.back()) != last)
    throw Error("the items are " + items.front().id + " to " + items.back().id +
                    ", the init checkpoint ends at step " + std::to_string(first),
                kExitUsage);

  // A GRPO loss says nothing about how good a model is: only the newest are kept there.
  learn::CheckpointSeries series(
      shard.run_folder() / json_at<std::string>(job.params, "checkpoint_prefix", "job.json"),
      job.token + "/" + std::to_string(shard.shard()), settings.optimizer.keep_last,
      settings.optimizer.keep_best && mode != learn::Mode::kGrpo);
  std::int64_t done = first;
  if (const std::optional<std::int64_t> resume = resumable(shard, series)) {
    done = *resume;
    start = model::load_checkpoint(series.folder_of(done), true);
    log_info("resuming behind step " + std::to_string(done));
    const Item& item = items[static_cast<std::size_t>(done - first - 1)];
    if (!shard.earlier_records().contains(item.id)) {
      Json record = start->facts.origin.at("record");
      if (done == last) record.update(checkpoint_fields(shard, done, start->digest));
      shard.write(item, std::move(record));
    }
  } else if (!start) {
    start = from_nothing(job.params, examples, seed);
  } else if (start->facts.stage != job.stage) {
    start->optimizer.reset();
  }
  learn::Trainer trainer(settings, std::move(start->decoder), std::move(start->tokenizer),
                         std::move(start->optimizer), reference ? &reference->decoder : nullptr,
                         std::move(examples));
  trainer.skip_to(done - first);
  if (trainer.left_out() > 0)
    log_warning(std::to_string(trainer.left_out()) +
                " examples are longer than the model's context: left out");
  run_steps(shard, trainer, series, settings, parents, first);
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("warpsmith-train");
  try {
    train(argc, argv);
    return kExitOk;
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    log_error(e.what());
    return kExitFailed;
  }
}

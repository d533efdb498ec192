// warpsmith-train JOB.json SHARD: trains a model on the examples beside the job file, one item a step.
//
// params: mode (sft, rejection, grpo); model (settings, where init is null); init, reference (checkpoints,
// relative to the run folder, or null); optimizer (OptimizerSettings by name); threads; checkpoint_prefix;
// gpus (one process, a rank, for each; 0: on the CPU), ranks (processes on the CPU, by default 1), type
// ("auto", "float32", "bfloat16"), micro_batch_tokens, recompute; lora (rank, alpha, targets) or null;
// base_folder (see load_checkpoint()); grpo: epochs, clip_ratio, kl, kl_clamp, sampled_by (the checkpoint
// that drew the samples, where it is not init).
//
// examples.jsonl: {"id", "prompt", "completion", "weight"}; grpo also "group", "advantage", "finished",
// "folder" (an attempt's, relative to the run folder), "tokens" and "logprobs" (blobs there); without these
// three a server has sampled it.
//
// items: {"id": "step-17"}, numbered on from the init checkpoint.
//
// Records: step, loss, learning_rate, grad_norm, tokens, seconds; grpo also kl, clip_share, ratio_mean,
// entropy, groups, groups_without_spread, truncated; the last one also checkpoint and checkpoint_digest.
//
// Where init is null: `pretrained` ({"folder", "weights", "frame"}) is a Hugging Face folder from which the
// weights (or their shape alone) and the tokenizer come; without it the tokenizer is trained on the examples.
// Else both are init's. AdamW's moments are taken from init where the same stage wrote it. A retried attempt
// goes on from the newest whole checkpoint of an earlier one.
//
// Where params.steps is 0 there is one item, the init's own step: its checkpoint is written and nothing
// trained.
//
// Mode `export` writes init as a Hugging Face folder instead: see write_export().
#include <algorithm>
#include <chrono>
#include <cmath>

#include "train_inputs.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"
#include "warpsmith/learn/series.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/placement.h"
#include "warpsmith/model/pretrained.h"
#include "warpsmith/model/ranks.h"
#include "warpsmith/records/shard.h"

namespace {

using namespace warpsmith;

Json to_record(const learn::StepRecord& r, std::int64_t step, learn::Mode mode) {
  Json record = {{"step", step},
                 {"loss", r.loss},
                 {"learning_rate", r.learning_rate},
                 {"grad_norm", r.gradient_norm},
                 {"tokens", r.tokens},
                 {"seconds", r.seconds}};
  if (mode == learn::Mode::kGrpo)
    record.update({{"kl", r.kl},
                   {"clip_share", r.clip_share},
                   {"ratio_mean", r.ratio_mean},
                   {"entropy", r.entropy},
                   {"groups", r.groups},
                   {"groups_without_spread", r.groups_without_spread},
                   {"truncated", r.truncated}});
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

// The model that this attempt starts with: that of the newest checkpoint of an earlier one, else the job's.
// Writes the record of the checkpoint's own step where the earlier attempt did not come to it, where this
// process `leads` the others.
model::Checkpoint start_model(ShardSession& shard, const learn::CheckpointSeries& series, TrainInputs& inputs,
                              bool leads) {
  const JobFile& job = shard.job();
  if (const std::optional<std::int64_t> step = resumable(shard, series)) {
    // Else it drew the samples.
    if (inputs.settings.mode != learn::Mode::kGrpo || inputs.sampled_by) inputs.init.reset();
    model::Checkpoint start =
        model::load_checkpoint(series.folder_of(*step), true, job.params.value("base_folder", ""));
    if (!leads) return start;
    log_info("resuming behind step " + std::to_string(*step));
    const Item& item = shard.items()[static_cast<std::size_t>(*step - inputs.first - 1)];
    if (!shard.earlier_records().contains(item.id)) {
      Json record = start.facts.origin.at("record");
      if (*step == inputs.first + inputs.settings.steps)
        record.update(checkpoint_fields(shard, *step, start.digest));
      shard.write(item, std::move(record));
    }
    return start;
  }
  if (!inputs.init) return first_model(job.params, inputs.examples, inputs.settings.seed);
  model::Checkpoint start = with_lora(std::move(*inputs.init), job.params, inputs.settings.seed);
  if (start.facts.stage != job.stage) start.optimizer.reset();
  return start;
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
               const TrainInputs& inputs, const model::CheckpointFacts& began) {
  const learn::TrainerSettings& settings = inputs.settings;
  const std::int64_t first = inputs.first, last = first + settings.steps;
  const std::int64_t every = settings.optimizer.checkpoint_every;
  const bool leads = !settings.ranks || settings.ranks->rank() == 0;
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
      if (leads) shard.sync();  // the records up to here are at least as durable as the checkpoint
      const model::CheckpointFacts facts = {shard.job().stage,
                                            done,
                                            losses / static_cast<double>(summed),
                                            inputs.parents,
                                            {{"record", record}},
                                            began.companions,
                                            began.base};
      const model::OptimizerState moments = trainer.optimizer_state();
      const model::Decoder& decoder = trainer.decoder();  // of all ranks
      const std::string digest = leads ? series.save(facts, decoder, trainer.tokenizer(), &moments) : "";
      losses = 0;
      summed = 0;
      if (done == last) record.update(checkpoint_fields(shard, done, digest));
    }
    if (!leads) continue;
    if (!shard.earlier_records().contains(item.id)) shard.write(item, std::move(record));
    progress.say(done, step);
  }
}

// The model that training would begin with.
void write_start(ShardSession& shard, learn::CheckpointSeries& series, TrainInputs& inputs) {
  if (!shard.open_items().empty()) {
    const Json& params = shard.job().params;
    const model::Checkpoint start = inputs.init
                                        ? with_lora(std::move(*inputs.init), params, inputs.settings.seed)
                                        : first_model(params, inputs.examples, inputs.settings.seed);
    Json record = {{"step", inputs.first}, {"tokens", 0}};
    const model::CheckpointFacts facts = {shard.job().stage, inputs.first,         0,
                                          inputs.parents,    {{"record", record}}, start.facts.companions,
                                          start.facts.base};
    record.update(
        checkpoint_fields(shard, inputs.first, series.save(facts, start.decoder, start.tokenizer, nullptr)));
    shard.write(shard.open_items().front(), std::move(record));
  }
  shard.finish();
}

// params: init, type ("float32", "bfloat16"), stage_folder.
void write_export(ShardSession& shard) {
  const Json& params = shard.job().params;
  const std::vector<Item> open = shard.open_items();
  if (!open.empty()) {
    const model::Checkpoint checkpoint =
        model::load_checkpoint(shard.run_folder() / json_at<std::string>(params, "init", "job.json"), false,
                               params.value("base_folder", ""));
    const std::string folder = json_at<std::string>(params, "stage_folder", "job.json") + "/model";
    const auto type = json_at<std::string>(params, "type", "job.json");
    const std::uint64_t bytes = model::export_checkpoint(shard.run_folder() / folder, checkpoint,
                                                         type == "bfloat16" ? at::kBFloat16 : at::kFloat);
    shard.write(open.front(),
                {{"folder", folder}, {"type", type}, {"bytes", bytes}, {"digest", checkpoint.digest}});
  }
  shard.finish();
}

void train(ShardSession& shard) {
  const JobFile& job = shard.job();
  if (shard.items().empty()) throw Error("a job without steps", kExitUsage);
  const bool exports = job.params.value("mode", "") == "export";
  const int gpus = job.params.value("gpus", 0);
  const model::Ranks ranks(exports ? 1 : std::max(gpus, job.params.value("ranks", 1)), gpus > 0);
  const at::TensorOptions placement = model::place_for(gpus > 0, job.params.value("type", "float32"));
  const int threads = std::max(1, job.params.value("threads", 1) / ranks.size());
  if (exports) {
    learn::prepare_process(threads);
    return write_export(shard);
  }
  TrainInputs inputs = read_train_inputs(shard);
  inputs.settings.placement = placement;
  const learn::TrainerSettings& settings = inputs.settings;
  learn::prepare_process(threads, placement.device().is_cuda(), settings.optimizer.deterministic);

  // A GRPO loss says nothing about how good a model is: only the newest are kept there.
  learn::CheckpointSeries series(
      shard.run_folder() / json_at<std::string>(job.params, "checkpoint_prefix", "job.json"),
      job.token + "/" + std::to_string(shard.shard()), settings.optimizer.keep_last,
      settings.optimizer.keep_best && settings.mode != learn::Mode::kGrpo);
  if (settings.steps == 0) return ranks.rank() == 0 ? write_start(shard, series, inputs) : void();
  const std::unique_ptr<model::Collective> together = ranks.connect(placement);
  inputs.settings.ranks = together.get();
  model::Checkpoint start = start_model(shard, series, inputs, ranks.rank() == 0);
  // All have read what an earlier attempt left before the first of them writes.
  if (together) (void)together->sums({0});
  const std::int64_t done = start.facts.step - inputs.first;
  const model::Decoder* sampled_by = inputs.sampled_by         ? &inputs.sampled_by->decoder
                                     : done > 0 && inputs.init ? &inputs.init->decoder
                                                               : nullptr;
  learn::Trainer trainer(settings, std::move(start.decoder), std::move(start.tokenizer),
                         std::move(start.optimizer), inputs.reference ? &inputs.reference->decoder : nullptr,
                         std::move(inputs.examples), sampled_by);
  trainer.skip_to(done);
  inputs.init.reset();
  inputs.sampled_by.reset();
  if (trainer.left_out() > 0 && ranks.rank() == 0)
    log_warning(std::to_string(trainer.left_out()) +
                " examples are longer than the model's context: left out");
  if (trainer.exemplars_left_out() > 0 && ranks.rank() == 0)
    log_info(std::to_string(trainer.exemplars_left_out()) +
             " exemplars are left out of prompts, so that they fit the model's context");
  run_steps(shard, trainer, series, inputs, start.facts);
  if (ranks.rank() == 0) shard.finish();
}

}  // namespace

int main(int argc, char** argv) { return shard_main("warpsmith-train", argc, argv, train); }

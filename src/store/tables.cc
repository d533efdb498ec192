#include "warpsmith/store/tables.h"

#include "warpsmith/base/json.h"

namespace warpsmith::store {

namespace {

constexpr FieldNotes kStage{.meaning = "stage that the row belongs to", .presence = Presence::kColumn};
constexpr FieldNotes kHash8{.meaning = "and its version", .presence = Presence::kColumn, .width = 8};
constexpr FieldNotes kRound{.meaning = "round of the stage", .presence = Presence::kColumn};

template <typename Row>
Fields<Row> place_fields() {
  return {field("stage", &Row::stage, kStage), field("hash8", &Row::hash8, kHash8),
          field("round", &Row::round, kRound)};
}

// Place, and then the fields of the row's value.
template <typename Row, typename Value>
Fields<Row> with_place(const Fields<Value>& of_value, Value Row::*value) {
  Fields<Row> fields = place_fields<Row>();
  for (const Field<Value>& one : of_value)
    if (one.notes.column) fields.push_back(lifted(one, value));
  return fields;
}

template <typename Row>
Fields<Row> joined(Fields<Row> fields, const Fields<Row>& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

}  // namespace

const Table<TaskRow>& task_table() {
  using R = TaskRow;
  static const Table<R> table{
      "tasks",
      &Results::tasks,
      {
          field("id", &R::id, {.meaning = "id of the task"}),
          field("title", &R::title, {.meaning = "its title"}),
          field("split", &R::split, {.meaning = "part of the dataset"}),
          field("ops", &R::ops, {.meaning = "its operations", .presence = Presence::kColumn}),
          field("reference", &R::reference, {.meaning = "its reference (TorchScript)"}),
          field("level", &R::level, {.meaning = "its level"}),
          field("degenerate", &R::degenerate,
                {.meaning = "why a program without any work would pass; empty: none would"}),
          field("stage", &R::stage, kStage),
          field("hash8", &R::hash8, kHash8),
      }};
  return table;
}

const Table<CandidateRow>& candidate_table() {
  using R = CandidateRow;
  static const Table<R> table{
      "candidates",
      &Results::candidates,
      {
          field("id", &R::id, {.meaning = "SHA-256 of tier, task, options and files", .width = 64}),
          field("task", &R::task, {.meaning = "task"}),
          field("tier", &R::tier, {.meaning = "`plan`, `extension` or `python`", .width = 16}),
          field("origin", &R::origin,
                {.meaning = "who wrote it: `dataset`, `augmented`, `generated`, …", .width = 16}),
          field("stage", &R::stage, {.meaning = "stage that made it"}),
          field(
              "hash8", &R::hash8,
              {.meaning = "and its version; empty: its folder is gone, or it is of another run", .width = 8}),
          field("round", &R::round, kRound),
          field("detail", &R::detail, {.meaning = "what it was made from"}),
          field("parent", &R::parent, {.meaning = "id of the program that it was made from", .width = 64}),
          field("source", &R::source, {.meaning = "its files"}),
      }};
  return table;
}

const Table<CompileRow>& compile_table() {
  using R = CompileRow;
  static const Table<R> table{
      "compiles", &Results::compiles,
      joined<R>(
          {field("candidate", &R::candidate, {.meaning = "id of the program", .width = 64, .json = "/item"})},
          joined<R>(place_fields<R>(),
                    {
                        field("verdict", &R::verdict, {.meaning = "`ok`, or what was wrong", .width = 24}),
                        field("log", &R::log, {.meaning = "what the compiler said"}),
                        field("seconds", &R::seconds, {.unit = "s", .meaning = "that it took"}),
                        field("cached", &R::cached, {.meaning = "1: the cache had it"}),
                    }))};
  return table;
}

const Table<MeasurementRow>& measurement_table() {
  using R = MeasurementRow;
  static const Table<R> table{
      "measurements", &Results::measurements,
      joined<R>(with_place<R>(measurement_fields(), &R::value),
                {
                    field("device", &R::device, {.meaning = "row of `/devices`; −1: none"}),
                    field("sample_begin", &R::sample_begin,
                          {.meaning = "where its part of `/measurements/samples_ns` begins"}),
                    field("sample_count", &R::sample_count, {.meaning = "and how long it is"}),
                })};
  return table;
}

const Table<BaselineRow>& baseline_table() {
  static const Table<BaselineRow> table{"baselines", &Results::baselines,
                                        with_place<BaselineRow>(baseline_fields(), &BaselineRow::value)};
  return table;
}

const Table<DeviceFacts>& device_table() {
  static const Table<DeviceFacts> table = [] {
    Fields<DeviceFacts> fields;
    for (const Field<DeviceFacts>& one : device_fields())
      if (one.notes.column) fields.push_back(one);
    Field<DeviceFacts> facts{"facts", {.meaning = "all that is known of it (JSON)"}, {}, {}, {}};
    facts.column =
        FieldColumn<DeviceFacts, std::string>{[](const DeviceFacts& d) { return to_json(d).dump(); },
                                              [](DeviceFacts& d, const std::string& text) {
                                                d = device_facts_from_json(parse_json(text, "device facts"));
                                              }};
    fields.push_back(std::move(facts));
    return Table<DeviceFacts>{"devices", &Results::devices, std::move(fields)};
  }();
  return table;
}

const Table<SampleRow>& sample_table() {
  using R = SampleRow;
  static const Table<R> table{
      "samples",
      &Results::generated,
      {
          field("stage", &R::stage, kStage),
          field("hash8", &R::hash8, kHash8),
          field("round", &R::round, {.meaning = "round of the stage"}),
          field("task", &R::task, {.meaning = "task"}),
          field(
              "group", &R::group,
              {.meaning =
                   "`train`, `heldout_combination`, `heldout_operation`, `heldout_length`, `heldout_people`",
               .width = 24}),
          field("candidate", &R::candidate, {.meaning = "id of the program", .width = 64}),
          field("verdict", &R::verdict, {.meaning = "what became of it", .width = 24}),
          field("speedup", &R::speedup, {.meaning = "its score; 0: no success"}),
          field("repeated", &R::repeated,
                {.meaning = "1: a program that no model wrote and that the stage found in the database",
                 .since = 8}),
          field(
              "known", &R::known,
              {.meaning = "1: such a program, or one that differs from a program of others, for whatever "
                          "task, in names and constants alone, in its source or in its machine code. 0: the "
                          "model's own, a novel one",
               .since = 9}),
          field("of_template", &R::of_template,
                {.meaning = "1: a novel program that is, but for names and constants, what a template of the "
                            "grammar writes for a task that the model was to solve; nothing was learned from "
                            "it",
                 .since = 15}),
          field("turn", &R::turn,
                {.meaning =
                     "1: its prompt was the round's. 2 and more: it was asked again, with the answer of the "
                     "turn before",
                 .since = 16}),
          field(
              "behind", &R::behind,
              {.meaning = "updates that the newest model had when the round began, and the policy that drew "
                          "it had not: 0, or 1 with `ahead`",
               .since = 17}),
      }};
  return table;
}

const Table<TrainingRow>& training_table() {
  using R = TrainingRow;
  static const Table<R> table{
      "training", &Results::training,
      joined<R>(
          place_fields<R>(),
          {
              field("step", &R::step, {.meaning = "number of the optimiser step"}),
              field("tokens", &R::tokens, {.meaning = "tokens in it"}),
              field("loss", &R::loss, {.unit = "nats a token", .meaning = "loss"}),
              field("learning_rate", &R::learning_rate, {.meaning = "learning rate"}),
              field("grad_norm", &R::grad_norm, {.meaning = "norm of the gradient, before clipping"}),
              field("seconds", &R::seconds, {.unit = "s", .meaning = "that it took"}),
              field("kl", &R::kl, {.unit = "nats a token", .meaning = "GRPO: KL to the reference model"}),
              field("clip_share", &R::clip_share, {.meaning = "GRPO: share of tokens that were clipped"}),
              field("ratio_mean", &R::ratio_mean, {.meaning = "GRPO: mean ratio of probabilities"}),
              field("entropy", &R::entropy,
                    {.unit = "nats a token",
                     .meaning = "GRPO: entropy, estimated by the samples",
                     .since = 10}),
              field("groups", &R::groups, {.meaning = "GRPO: groups in the step", .since = 10}),
              field("groups_without_spread", &R::groups_without_spread,
                    {.meaning = "GRPO: of these, those whose samples were all as good: they teach nothing",
                     .since = 10}),
              field("truncated", &R::truncated,
                    {.meaning = "GRPO: samples of the step that max_tokens cut off", .since = 10}),
          })};
  return table;
}

const Table<OpinionRow>& opinion_table() {
  using R = OpinionRow;
  static const Table<R> table{
      "opinions",
      &Results::opinions,
      {
          field("stage", &R::stage, kStage),
          field("hash8", &R::hash8, kHash8),
          field("round", &R::round, {.meaning = "round of the stage"}),
          field("candidate", &R::candidate, {.meaning = "id of the program", .width = 64}),
          field("task", &R::task, {.meaning = "task"}),
          field("score", &R::score, {.meaning = "its score"}),
          field("before", &R::before, {.meaning = "the task's best score before it; 1: of the reference"}),
          field("says", &R::says, {.meaning = "`hack`, `honest`, `unclear` or `no answer`", .width = 16}),
          field("reason", &R::reason, {.meaning = "in the model's words, on one line"}),
          field("model", &R::model, {.meaning = "the model that was asked"}),
          field("cases", &R::cases,
                {.meaning = "known hacks that it was shown, with `candidate`, `kind` and `likeness` (JSON)",
                 .presence = Presence::kColumn}),
      },
      14};
  return table;
}

const Table<StageRow>& stage_table() {
  using R = StageRow;
  static const Table<R> table{
      "stages",
      &Results::stages,
      {
          field("name", &R::name, {.meaning = "name of the stage"}),
          field("kind", &R::kind, {.meaning = "its kind"}),
          field("hash8", &R::hash8, {.meaning = "its version", .width = 8}),
          field("place", &R::place,
                {.meaning = "place in the workflow, counting from 0; −1: no longer in it",
                 .presence = Presence::kWritten}),
          field("current", &R::current, {.meaning = "1: it counts", .presence = Presence::kWritten}),
          field("finished", &R::finished, {.meaning = "1: it has finished", .presence = Presence::kWritten}),
          field("summary", &R::summary, {.meaning = "what it says of itself (JSON)"}),
          field("output_digest", &R::output_digest, {.meaning = "SHA-256 of output.json", .width = 64}),
          field("base", &R::base, {.meaning = "name in the workflow, without the values of a matrix"}),
          field("device", &R::device, {.meaning = "what the workflow asks for: `cpu`, or a GPU type"}),
          field("device_found", &R::device_found,
                {.meaning = "what there was of that GPU: `real`, `twin`, `none`", .width = 8}),
      }};
  return table;
}

const Table<ShardRow>& shard_table() {
  using R = ShardRow;
  static const Table<R> table{
      "shards", &Results::shards,
      joined<R>({field("folder", &R::folder, {.meaning = "folder, in the run's"})},
                joined<R>(place_fields<R>(),
                          {
                              field("job", &R::job, {.meaning = "job", .width = kLongestText}),
                              field("shard", &R::shard, {.meaning = "number of the shard"}),
                              field("program", &R::program, {.meaning = "program"}),
                              field("resources", &R::resources, {.meaning = "what it asked for (JSON)"}),
                              field("records", &R::records,
                                    {.meaning = "whole records; what was left out does not count"}),
                              field("attempts", &R::attempts, {.meaning = "attempts that have a folder"}),
                              field("ended", &R::ended, {.meaning = "1: it has its end record"}),
                              field("tokens", &R::tokens,
                                    {.meaning = "of a `generate` job: tokens that a model wrote, in the "
                                                "records that count",
                                     .since = 16}),
                          }))};
  return table;
}

// There may be as many rows as shards, and more: no text of variable length, which is never compressed.
const Table<AttemptRow>& attempt_table() {
  using R = AttemptRow;
  constexpr auto kLongest = kLongestText;
  Fields<R> place = place_fields<R>();
  place.front().notes.width = kLongest;
  static const Table<R> table{
      "attempts", &Results::attempts,
      joined<R>(
          place,
          {
              field("job", &R::job, {.meaning = "job", .width = kLongest}),
              field("shard", &R::shard, {.meaning = "number of the shard"}),
              field("attempt", &R::attempt, {.meaning = "attempts of a shard count from 1"}),
              field("cause", &R::cause, {.meaning = "why it ended, above", .width = 16}),
              field("exit_code", &R::exit_code, {.meaning = "exit code"}),
              field("signal", &R::signal, {.meaning = "signal that ended it; 0: none"}),
              field("items", &R::items, {.meaning = "items that got their record in it"}),
              field("open", &R::open, {.meaning = "items of the shard that were left without one"}),
              field("where", &R::where,
                    {.meaning = "host and process, or Slurm job and node; empty: it had not started",
                     .width = kLongest}),
              field("wall_s", &R::wall_s, {.unit = "s", .meaning = "wall time; 0: nobody saw its end"}),
              field("cpu_s", &R::cpu_s, {.unit = "s", .meaning = "CPU time; 0: nobody saw its end"}),
              field("peak_memory_bytes", &R::peak_memory_bytes, {.unit = "bytes", .meaning = "memory used"}),
              field("cpus", &R::cpus, {.meaning = "CPU cores asked for; 0: the journal does not say"}),
              field("gpus", &R::gpus, {.meaning = "GPUs asked for"}),
              field("gpu_type", &R::gpu_type,
                    {.meaning = "GPU type asked for; empty: any", .width = kLongest}),
              field("memory_bytes", &R::memory_bytes,
                    {.unit = "bytes", .meaning = "memory asked for; 0: not limited"}),
              field("time_s", &R::time_s, {.unit = "s", .meaning = "time asked for; 0: not limited"}),
              field("set_aside", &R::set_aside,
                    {.meaning = "1: its results were set aside or removed since (`run --force`)"}),
              field("shards_a_gpu", &R::shards_a_gpu,
                    {.meaning = "shards that might share the GPU; 1: it was this one's own", .since = 12}),
              field("money", &R::money,
                    {.meaning = "by the site's prices of its GPU-hours, or of its CPU-hours without a GPU; "
                                "0: there is none",
                     .since = 13}),
          })};
  return table;
}

}  // namespace warpsmith::store

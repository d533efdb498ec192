#include "tables.h"

#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "warpsmith/base/error.h"

namespace warpsmith::store {

namespace {

std::string shape_text(const std::vector<std::pair<std::string, std::int64_t>>& shape) {
  std::string text;
  for (const auto& [name, size] : shape)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

std::vector<std::pair<std::string, std::int64_t>> parse_shape(const std::string& text) {
  std::vector<std::pair<std::string, std::int64_t>> shape;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto at = word.find('=');
    if (at != std::string::npos) shape.emplace_back(word.substr(0, at), std::stoll(word.substr(at + 1)));
  }
  return shape;
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Columns of what a GPU told at one moment; the state is there where one of them is known.
void add_gpu_state(Table<MeasurementRow>& t, const std::string& moment,
                   std::optional<GpuState> Measurement::*state) {
  using R = MeasurementRow;
  const auto integer = [&](const std::string& name, std::optional<int> GpuState::*m) {
    t.integers.push_back({name + "_" + moment,
                          [=](const R& r) {
                            const auto& s = r.value.*state;
                            return s && (*s).*m ? std::int64_t{*((*s).*m)} : -1;
                          },
                          [=](R& r, std::int64_t v) {
                            if (v < 0) return;
                            auto& s = r.value.*state;
                            if (!s) s.emplace();
                            (*s).*m = static_cast<int>(v);
                          },
                          0, ""});
  };
  integer("sm_clock_mhz", &GpuState::sm_clock_mhz);
  integer("memory_clock_mhz", &GpuState::memory_clock_mhz);
  integer("temperature_c", &GpuState::temperature_c);
  t.reals.push_back({"power_w_" + moment,
                     [=](const R& r) {
                       const auto& s = r.value.*state;
                       return s ? s->power_w.value_or(kUnknown) : kUnknown;
                     },
                     [=](R& r, double v) {
                       if (std::isnan(v)) return;
                       auto& s = r.value.*state;
                       if (!s) s.emplace();
                       s->power_w = v;
                     },
                     0, "W"});
}

BaselineState parse_state(const std::string& text) {
  for (const BaselineState state :
       {BaselineState::kCovered, BaselineState::kMissing, BaselineState::kNotCovered})
    if (to_string(state) == text) return state;
  throw Error("unknown state of a baseline `" + text + "`");
}

}  // namespace

Table<TaskRow> task_table() {
  Table<TaskRow> t{"tasks", {}, {}, {}};
  t.text("id", &TaskRow::id)
      .text("title", &TaskRow::title)
      .text("split", &TaskRow::split)
      .text("ops", &TaskRow::ops);
  t.text("reference", &TaskRow::reference)
      .integer("level", &TaskRow::level)
      .text("degenerate", &TaskRow::degenerate);
  t.text("stage", &TaskRow::stage).text("hash8", &TaskRow::hash8, 8);
  return t;
}

Table<CandidateRow> candidate_table() {
  using R = CandidateRow;
  Table<R> t{"candidates", {}, {}, {}};
  t.text("id", &R::id, 64).text("task", &R::task).text("tier", &R::tier, 16).text("origin", &R::origin, 16);
  t.text("stage", &R::stage)
      .text("hash8", &R::hash8, 8)
      .text("detail", &R::detail)
      .text("parent", &R::parent, 64)
      .text("source", &R::source);
  t.integer("round", &R::round);
  return t;
}

Table<CompileRow> compile_table() {
  using R = CompileRow;
  Table<R> t{"compiles", {}, {}, {}};
  t.text("candidate", &R::candidate, 64)
      .text("stage", &R::stage)
      .text("hash8", &R::hash8, 8)
      .text("verdict", &R::verdict, 24)
      .text("log", &R::log);
  t.integer("round", &R::round).real("seconds", &R::seconds, "s").flag("cached", &R::cached);
  return t;
}

Table<MeasurementRow> measurement_table() {
  using R = MeasurementRow;
  Table<R> t{"measurements", {}, {}, {}};
  const auto text = [&t](const std::string& name, std::string Measurement::*m, hdf5::Size bytes) {
    t.texts.push_back({name, [m](const R& r) { return r.value.*m; },
                       [m](R& r, std::string v) { r.value.*m = std::move(v); }, bytes, ""});
  };
  const auto real = [&t](const std::string& name, double Measurement::*m, const std::string& unit) {
    t.reals.push_back(
        {name, [m](const R& r) { return r.value.*m; }, [m](R& r, double v) { r.value.*m = v; }, 0, unit});
  };
  const auto integer = [&t](const std::string& name, int Measurement::*m) {
    t.integers.push_back({name, [m](const R& r) { return std::int64_t{r.value.*m}; },
                          [m](R& r, std::int64_t v) { r.value.*m = static_cast<int>(v); }, 0, ""});
  };
  text("candidate", &Measurement::candidate, 64);
  text("task", &Measurement::task, 0);
  t.text("stage", &R::stage).text("hash8", &R::hash8, 8);
  text("baseline", &Measurement::baseline, 32);
  text("math", &Measurement::math, 16);
  t.texts.push_back({"verdict", [](const R& r) { return std::string(to_string(r.value.verdict)); },
                     [](R& r, const std::string& v) {
                       const auto verdict = parse_verdict(v);
                       if (!verdict) throw Error("unknown verdict `" + v + "`");
                       r.value.verdict = *verdict;
                     },
                     24, ""});
  text("detail", &Measurement::detail, 0);
  text("hack", &Measurement::hack, 32);
  t.texts.push_back({"shape", [](const R& r) { return shape_text(r.value.shape); },
                     [](R& r, const std::string& v) { r.value.shape = parse_shape(v); }, 0, ""});
  real("speedup", &Measurement::speedup, "");
  real("speedup_rounded", &Measurement::speedup_rounded, "");
  real("speedup_low", &Measurement::speedup_low, "");
  real("speedup_high", &Measurement::speedup_high, "");
  real("baseline_ns", &Measurement::baseline_ns, "ns");
  real("candidate_ns", &Measurement::candidate_ns, "ns");
  real("baseline_ratio", &Measurement::baseline_ratio, "");
  real("variance", &Measurement::variance, "");
  real("max_error", &Measurement::max_error, "");
  real("error_bound", &Measurement::error_bound, "");
  real("seconds", &Measurement::seconds, "s");
  // What is not known: NaN, and of whole numbers -1.
  const auto maybe_real = [&t](const std::string& name, std::optional<double> Measurement::*m,
                               const std::string& unit, int since = 0) {
    t.reals.push_back({name, [m](const R& r) { return (r.value.*m).value_or(kUnknown); },
                       [m](R& r, double v) {
                         if (!std::isnan(v)) r.value.*m = v;
                       },
                       0, unit, since});
  };
  const auto maybe_flag = [&t](const std::string& name, std::optional<bool> Measurement::*m, int since = 0) {
    t.integers.push_back({name, [m](const R& r) { return r.value.*m ? std::int64_t{*(r.value.*m)} : -1; },
                          [m](R& r, std::int64_t v) {
                            if (v >= 0) r.value.*m = v != 0;
                          },
                          0, "", since});
  };
  maybe_real("gpu_held_s", &Measurement::gpu_held_s, "s");
  maybe_real("gpu_timed_s", &Measurement::gpu_timed_s, "s");
  maybe_real("baseline_idle_ns", &Measurement::baseline_idle_ns, "ns");
  maybe_real("candidate_idle_ns", &Measurement::candidate_idle_ns, "ns");
  maybe_real("roofline_ns", &Measurement::roofline_ns, "ns");
  maybe_real("baseline_alone_ns", &Measurement::baseline_alone_ns, "ns", 6);
  maybe_real("candidate_event_ns", &Measurement::candidate_event_ns, "ns", 6);
  maybe_real("speedup_before", &Measurement::speedup_before, "", 6);
  text("roofline_bound", &Measurement::roofline_bound, 8);
  text("clock_reasons", &Measurement::clock_reasons, kLongest);
  t.texts.push_back(
      {"clock", [](const R& r) { return r.value.clock.empty() ? std::string() : Json(r.value.clock).dump(); },
       [](R& r, const std::string& v) {
         if (v.empty()) return;
         r.value.clock = parse_json(v, "clock of a measurement").get<std::map<std::string, std::string>>();
       },
       kLongest, "", 6});
  maybe_flag("host_bound", &Measurement::host_bound);
  maybe_flag("tensor_cores", &Measurement::tensor_cores, 6);
  const auto maybe_integer = [&t](const std::string& name, std::optional<std::int64_t> Measurement::*m,
                                  const std::string& unit, int since) {
    t.integers.push_back({name, [m](const R& r) { return (r.value.*m).value_or(-1); },
                          [m](R& r, std::int64_t v) {
                            if (v >= 0) r.value.*m = v;
                          },
                          0, unit, since});
  };
  maybe_integer("registers", &Measurement::registers, "", 7);
  maybe_integer("shared_bytes", &Measurement::shared_bytes, "bytes", 7);
  maybe_integer("spill_bytes", &Measurement::spill_bytes, "bytes", 7);
  add_gpu_state(t, "before", &Measurement::gpu_before);
  add_gpu_state(t, "after", &Measurement::gpu_after);
  integer("rounds_thrown_away", &Measurement::rounds_thrown_away);
  integer("rounds", &Measurement::rounds);
  integer("batch", &Measurement::batch);
  integer("remeasured", &Measurement::remeasured);
  t.integers.push_back({"imprecise", [](const R& r) { return std::int64_t{r.value.imprecise}; },
                        [](R& r, std::int64_t v) { r.value.imprecise = v != 0; }, 0, ""});
  t.integer("round", &R::round).integer("device", &R::device);
  t.integer("sample_begin", &R::sample_begin).integer("sample_count", &R::sample_count);
  return t;
}

Table<BaselineRow> baseline_table() {
  using R = BaselineRow;
  using V = BaselineTiming;
  Table<R> t{"baselines", {}, {}, {}};
  const auto text = [&t](const std::string& name, std::string V::*m, hdf5::Size bytes = 0) {
    t.texts.push_back({name, [m](const R& r) { return r.value.*m; },
                       [m](R& r, std::string v) { r.value.*m = std::move(v); }, bytes, ""});
  };
  const auto real = [&t](const std::string& name, double V::*m, const std::string& unit = "") {
    t.reals.push_back(
        {name, [m](const R& r) { return r.value.*m; }, [m](R& r, double v) { r.value.*m = v; }, 0, unit});
  };
  const auto integer = [&t](const std::string& name, int V::*m) {
    t.integers.push_back({name, [m](const R& r) { return std::int64_t{r.value.*m}; },
                          [m](R& r, std::int64_t v) { r.value.*m = static_cast<int>(v); }, 0, ""});
  };
  t.text("stage", &R::stage).text("hash8", &R::hash8, 8);
  text("task", &V::task);
  text("baseline", &V::name, 32);
  text("math", &V::math, 16);
  t.texts.push_back({"state", [](const R& r) { return std::string(to_string(r.value.state)); },
                     [](R& r, const std::string& v) { r.value.state = parse_state(v); }, 16, ""});
  text("reason", &V::reason);
  t.texts.push_back({"shape", [](const R& r) { return shape_text(r.value.shape); },
                     [](R& r, const std::string& v) { r.value.shape = parse_shape(v); }, 0, ""});
  t.texts.push_back({"flags", [](const R& r) { return Json(r.value.flags).dump(); },
                     [](R& r, const std::string& v) {
                       r.value.flags =
                           parse_json(v, "flags of a baseline").get<std::map<std::string, std::string>>();
                     },
                     0, ""});
  text("device_kind", &V::device_kind);
  text("device_name", &V::device_name);
  text("device_uuid", &V::device_uuid);
  real("ratio", &V::ratio);
  real("low", &V::low);
  real("high", &V::high);
  real("eager_ns", &V::eager_ns, "ns");
  real("baseline_ns", &V::baseline_ns, "ns");
  real("variance", &V::variance);
  real("seconds", &V::seconds, "s");
  t.integer("round", &R::round);
  integer("rounds", &V::rounds);
  integer("batch", &V::batch);
  t.integers.push_back({"imprecise", [](const R& r) { return std::int64_t{r.value.imprecise}; },
                        [](R& r, std::int64_t v) { r.value.imprecise = v != 0; }, 0, ""});
  return t;
}

Table<DeviceRow> device_table() {
  using R = DeviceRow;
  Table<R> t{"devices", {}, {}, {}};
  t.text("kind", &R::kind)
      .text("name", &R::name)
      .text("uuid", &R::uuid)
      .text("driver", &R::driver)
      .text("host", &R::host);
  t.text("sandbox", &R::sandbox)
      .text("facts", &R::facts)
      .integer("threads", &R::threads)
      .integer("cores", &R::cores);
  return t;
}

Table<SampleRow> sample_table() {
  using R = SampleRow;
  Table<R> t{"samples", {}, {}, {}};
  t.text("stage", &R::stage)
      .text("hash8", &R::hash8, 8)
      .text("task", &R::task)
      .text("group", &R::group, 24)
      .text("candidate", &R::candidate, 64);
  t.text("verdict", &R::verdict, 24).integer("round", &R::round).real("speedup", &R::speedup);
  return t;
}

Table<TrainingRow> training_table() {
  using R = TrainingRow;
  Table<R> t{"training", {}, {}, {}};
  t.text("stage", &R::stage)
      .text("hash8", &R::hash8, 8)
      .integer("round", &R::round)
      .integer("step", &R::step)
      .integer("tokens", &R::tokens);
  t.real("loss", &R::loss, "nats a token")
      .real("learning_rate", &R::learning_rate)
      .real("grad_norm", &R::grad_norm);
  t.real("seconds", &R::seconds, "s")
      .real("kl", &R::kl)
      .real("clip_share", &R::clip_share)
      .real("ratio_mean", &R::ratio_mean);
  return t;
}

Table<StageRow> stage_table() {
  using R = StageRow;
  Table<R> t{"stages", {}, {}, {}};
  t.text("name", &R::name).text("kind", &R::kind).text("hash8", &R::hash8, 8).text("summary", &R::summary);
  t.text("output_digest", &R::output_digest, 64);
  t.text("base", &R::base).text("device", &R::device).text("device_found", &R::device_found, 8);
  t.integer("place", &R::place).flag("current", &R::current).flag("finished", &R::finished);
  return t;
}

Table<ShardRow> shard_table() {
  using R = ShardRow;
  Table<R> t{"shards", {}, {}, {}};
  t.text("folder", &R::folder)
      .text("stage", &R::stage)
      .text("hash8", &R::hash8, 8)
      .text("job", &R::job, 16)
      .text("program", &R::program);
  t.text("resources", &R::resources)
      .integer("round", &R::round)
      .integer("shard", &R::shard)
      .integer("records", &R::records);
  t.integer("attempts", &R::attempts).flag("ended", &R::ended);
  return t;
}

// There may be as many as shards, and more: no text of variable length, which is never compressed.
Table<AttemptRow> attempt_table() {
  using R = AttemptRow;
  Table<R> t{"attempts", {}, {}, {}};
  t.text("stage", &R::stage, kLongest)
      .text("hash8", &R::hash8, 8)
      .text("job", &R::job, kLongest)
      .text("cause", &R::cause, 16);
  t.text("where", &R::where, kLongest).text("gpu_type", &R::gpu_type, kLongest);
  t.integer("round", &R::round).integer("shard", &R::shard).integer("attempt", &R::attempt);
  t.integer("exit_code", &R::exit_code)
      .integer("signal", &R::signal)
      .integer("items", &R::items)
      .integer("open", &R::open);
  t.integer("cpus", &R::cpus).integer("gpus", &R::gpus).integer("memory_bytes", &R::memory_bytes);
  t.integer("peak_memory_bytes", &R::peak_memory_bytes).flag("set_aside", &R::set_aside);
  t.real("time_s", &R::time_s, "s").real("wall_s", &R::wall_s, "s").real("cpu_s", &R::cpu_s, "s");
  return t;
}

}  // namespace warpsmith::store

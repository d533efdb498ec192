// Rows to results.h5 and back. Each table is a group, each column a dataset of one value a row; the layout is
// written down in results/README.md. A column is described once, and serves writing and reading.
#include "results_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>

#include "warpsmith/base/files.h"
#include "warpsmith/hdf5/hdf5.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

constexpr hdf5::Size kLongest = ~hdf5::Size{0};
constexpr std::array<const char*, 2> kOlderSchemas = {"warpsmith.results/5",
                                                      "warpsmith.results/6"};  // can be read

// The number of a schema that can be read; 0: it cannot.
int schema_number(const std::string& schema) {
  const bool older = std::find(kOlderSchemas.begin(), kOlderSchemas.end(), schema) != kOlderSchemas.end();
  return older || schema == kSchema ? std::stoi(schema.substr(schema.find('/') + 1)) : 0;
}

template <typename Row, typename T>
struct Column {
  std::string name;
  std::function<T(const Row&)> get;
  std::function<void(Row&, T)> set;
  hdf5::Size bytes = 0;  // text only: 0 is variable length, kLongest as much as the longest takes
  std::string unit;      // attribute `unit`; may be empty
  int since = 0;         // files of schemas before this one lack it
};

template <typename Row>
struct Table {
  std::string path;
  std::vector<Column<Row, std::string>> texts;
  std::vector<Column<Row, std::int64_t>> integers;
  std::vector<Column<Row, double>> reals;

  Table& text(const std::string& name, std::string Row::*member, hdf5::Size bytes = 0) {
    texts.push_back({name, [member](const Row& r) { return r.*member; },
                     [member](Row& r, std::string v) { r.*member = std::move(v); }, bytes, ""});
    return *this;
  }
  Table& integer(const std::string& name, std::int64_t Row::*member) {
    integers.push_back({name, [member](const Row& r) { return r.*member; },
                        [member](Row& r, std::int64_t v) { r.*member = v; }, 0, ""});
    return *this;
  }
  Table& flag(const std::string& name, bool Row::*member) {
    integers.push_back({name, [member](const Row& r) { return std::int64_t{r.*member}; },
                        [member](Row& r, std::int64_t v) { r.*member = v != 0; }, 0, ""});
    return *this;
  }
  Table& real(const std::string& name, double Row::*member, const std::string& unit = "") {
    reals.push_back({name, [member](const Row& r) { return r.*member; },
                     [member](Row& r, double v) { r.*member = v; }, 0, unit});
    return *this;
  }
};

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

BaselineState parse_state(const std::string& text) {
  for (const BaselineState state :
       {BaselineState::kCovered, BaselineState::kMissing, BaselineState::kNotCovered})
    if (to_string(state) == text) return state;
  throw Error("unknown state of a baseline `" + text + "`");
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

// Devices as JSON lines of their facts, with the facts that people filter by as columns of their own.
struct DeviceRow {
  std::string kind, name, uuid, driver, host, sandbox, facts;
  std::int64_t threads = 0, cores = 0;
};

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

// HDF5 strings end at a NUL; a program written by a model may hold one.
std::string without_nul(std::string text) {
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at + 3))
    text.replace(at, 1, "\xEF\xBF\xBD");
  return text;
}

hdf5::DatasetOptions column_options(std::size_t rows) {
  // Small columns are stored plainly: compression of a few rows costs more than it saves.
  hdf5::DatasetOptions options;
  options.shape = {rows};
  if (rows > 4096) {
    options.chunk_rows = 16384;
    options.deflate = 1;
  }
  return options;
}

template <typename Row>
void write_table(hdf5::File& file, const Table<Row>& table, const std::vector<Row>& rows) {
  hdf5::Group group = file.create_group(table.path);
  group.set_attribute("rows", static_cast<std::uint64_t>(rows.size()));
  std::vector<std::string> words(rows.size());
  for (const auto& column : table.texts) {
    for (std::size_t i = 0; i < rows.size(); ++i) words[i] = without_nul(column.get(rows[i]));
    hdf5::DatasetOptions options = column_options(rows.size());
    options.string_bytes = column.bytes;
    if (column.bytes == kLongest) {
      options.string_bytes = 1;
      for (const std::string& word : words)
        options.string_bytes = std::max<hdf5::Size>(options.string_bytes, word.size());
    }
    if (options.string_bytes == 0) options.deflate = 0;
    for (std::string& word : words)
      if (options.string_bytes > 0 && word.size() > options.string_bytes) word.resize(options.string_bytes);
    group.write_strings(column.name, words, options);
  }
  std::vector<std::int64_t> integers(rows.size());
  for (const auto& column : table.integers) {
    for (std::size_t i = 0; i < rows.size(); ++i) integers[i] = column.get(rows[i]);
    hdf5::Dataset data = group.write<std::int64_t>(column.name, integers, column_options(rows.size()));
    if (!column.unit.empty()) data.set_attribute("unit", column.unit);
  }
  std::vector<double> reals(rows.size());
  for (const auto& column : table.reals) {
    for (std::size_t i = 0; i < rows.size(); ++i) reals[i] = column.get(rows[i]);
    hdf5::Dataset data = group.write<double>(column.name, reals, column_options(rows.size()));
    if (!column.unit.empty()) data.set_attribute("unit", column.unit);
  }
}

template <typename Row>
std::vector<Row> read_table(const hdf5::File& file, const Table<Row>& table) {
  const hdf5::Group group = file.open_group(table.path);
  const int schema = schema_number(file.string_attribute("schema"));
  std::vector<Row> rows(static_cast<std::size_t>(group.int_attribute("rows")));
  const auto check = [&](std::size_t found, const std::string& name) {
    if (found != rows.size())
      throw Error("table " + table.path + ": column " + name + " has " + std::to_string(found) +
                  " rows, not " + std::to_string(rows.size()));
  };
  for (const auto& column : table.texts) {
    if (schema < column.since) continue;
    std::vector<std::string> words = group.open_dataset(column.name).read_strings();
    check(words.size(), column.name);
    for (std::size_t i = 0; i < rows.size(); ++i) column.set(rows[i], std::move(words[i]));
  }
  for (const auto& column : table.integers) {
    if (schema < column.since) continue;
    const auto values = group.open_dataset(column.name).template read<std::int64_t>();
    check(values.size(), column.name);
    for (std::size_t i = 0; i < rows.size(); ++i) column.set(rows[i], values[i]);
  }
  for (const auto& column : table.reals) {
    if (schema < column.since) continue;
    const auto values = group.open_dataset(column.name).template read<double>();
    check(values.size(), column.name);
    for (std::size_t i = 0; i < rows.size(); ++i) column.set(rows[i], values[i]);
  }
  return rows;
}

}  // namespace

void write_results(const fs::path& path, const Results& results) {
  const fs::path part = path.string() + ".part" + std::to_string(::getpid());
  try {
    hdf5::File file = hdf5::File::create(part);
    file.set_attribute("schema", kSchema);
    file.set_attribute("run", results.run);
    file.set_attribute("host", results.host);
    file.set_attribute("version", results.version);
    const std::vector<std::string> workflow = {without_nul(results.workflow)},
                                   provenance = {without_nul(results.provenance)};
    file.write_strings("workflow", workflow);
    file.write_strings("provenance", provenance);
    write_table(file, task_table(), results.tasks);
    write_table(file, candidate_table(), results.candidates);
    write_table(file, compile_table(), results.compiles);
    write_table(file, measurement_table(), results.measurements);
    write_table(file, baseline_table(), results.baselines);
    std::vector<DeviceRow> devices;
    for (const DeviceFacts& d : results.devices)
      devices.push_back(
          {d.kind, d.name, d.uuid, d.driver, d.host, d.sandbox, to_json(d).dump(), d.threads, d.cores});
    write_table(file, device_table(), devices);
    write_table(file, sample_table(), results.generated);
    write_table(file, training_table(), results.training);
    write_table(file, stage_table(), results.stages);
    write_table(file, shard_table(), results.shards);
    write_table(file, attempt_table(), results.attempts);
    // Left uncompressed: deflating raw timings costs more time than writing them does.
    hdf5::DatasetOptions options;
    options.shape = {results.samples.size()};
    if (!results.samples.empty()) {
      options.chunk_rows = 1 << 16;
      options.checksum = true;
    }
    file.write<std::int64_t>("measurements/samples_ns", results.samples, options)
        .set_attribute("unit", "ns a call");
    file.close();
    sync_file(part);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
  std::error_code error;
  fs::rename(part, path, error);
  if (error) throw system_error("cannot write " + path.string(), error.value());
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

namespace {

hdf5::File open_results(const fs::path& path, bool or_older) {
  hdf5::File file = hdf5::File::open_read_only(path);
  const std::string schema = file.has_attribute("schema") ? file.string_attribute("schema") : "";
  if (schema != kSchema && !(or_older && schema_number(schema) > 0))
    throw Error("its schema is not " + std::string(kSchema));
  return file;
}

}  // namespace

Progress read_progress(const fs::path& path) {
  try {
    const hdf5::File file = open_results(path, false);
    return {
        .stages = read_table(file, stage_table()),
        .shards = read_table(file, shard_table()),
        .attempts = static_cast<std::size_t>(file.open_group(attempt_table().path).int_attribute("rows"))};
  } catch (const Error& e) {
    throw e.with_context("while reading " + path.string());
  }
}

Results read_results(const fs::path& path) {
  try {
    const hdf5::File file = open_results(path, true);
    Results r;
    r.run = file.string_attribute("run");
    r.host = file.string_attribute("host");
    r.version = file.string_attribute("version");
    r.workflow = file.open_dataset("workflow").read_strings().at(0);
    r.provenance = file.open_dataset("provenance").read_strings().at(0);
    r.tasks = read_table(file, task_table());
    r.candidates = read_table(file, candidate_table());
    r.compiles = read_table(file, compile_table());
    r.measurements = read_table(file, measurement_table());
    r.baselines = read_table(file, baseline_table());
    for (const DeviceRow& d : read_table(file, device_table()))
      r.devices.push_back(device_facts_from_json(parse_json(d.facts, "device facts")));
    r.generated = read_table(file, sample_table());
    r.training = read_table(file, training_table());
    r.stages = read_table(file, stage_table());
    r.shards = read_table(file, shard_table());
    r.attempts = read_table(file, attempt_table());
    r.samples = file.open_dataset("measurements/samples_ns").read<std::int64_t>();
    return r;
  } catch (const Error& e) {
    throw e.with_context("while reading " + path.string());
  }
}

}  // namespace warpsmith::store

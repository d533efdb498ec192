// Rows to results.h5 and back; what columns there are is in tables.h.
#include "results_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "tables.h"
#include "warpsmith/base/files.h"
#include "warpsmith/hdf5/hdf5.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {

namespace {

constexpr std::array<const char*, 2> kOlderSchemas = {"warpsmith.results/5",
                                                      "warpsmith.results/6"};  // can be read

// The number of a schema that can be read; 0: it cannot.
int schema_number(const std::string& schema) {
  const bool older = std::find(kOlderSchemas.begin(), kOlderSchemas.end(), schema) != kOlderSchemas.end();
  return older || schema == kSchema ? std::stoi(schema.substr(schema.find('/') + 1)) : 0;
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

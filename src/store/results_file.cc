// Rows to results.h5 and back; which columns there are is in tables.cc.
#include "results_file.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/hdf5/hdf5.h"
#include "warpsmith/store/tables.h"

namespace warpsmith::store {

namespace {

constexpr int kOldestSchema = 5;  // that can be read

// The number of a schema that can be read; 0: it cannot.
int schema_number(const std::string& schema) {
  const std::string newest = kSchema, name = newest.substr(0, newest.find('/') + 1);
  for (int number = std::stoi(newest.substr(name.size())); number >= kOldestSchema; --number)
    if (schema == name + std::to_string(number)) return number;
  return 0;
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

// Unknown: an empty text, -1, NaN.
template <typename T>
T unknown() {
  if constexpr (std::is_same_v<T, std::int64_t>) return -1;
  if constexpr (std::is_same_v<T, double>) return std::numeric_limits<double>::quiet_NaN();
  return T{};
}
bool is_unknown(const std::string& value) { return value.empty(); }
bool is_unknown(std::int64_t value) { return value == -1; }
bool is_unknown(double value) { return std::isnan(value); }

void write_column(hdf5::Group& group, const std::string& name, std::size_t width,
                  std::vector<std::string>& words) {
  for (std::string& word : words) word = without_nul(std::move(word));
  hdf5::DatasetOptions options = column_options(words.size());
  options.string_bytes = width;
  if (width == kLongestText) {
    options.string_bytes = 1;
    for (const std::string& word : words)
      options.string_bytes = std::max<hdf5::Size>(options.string_bytes, word.size());
  }
  if (options.string_bytes == 0) options.deflate = 0;
  for (std::string& word : words)
    if (options.string_bytes > 0 && word.size() > options.string_bytes) word.resize(options.string_bytes);
  group.write_strings(name, words, options);
}

template <typename T>
void write_column(hdf5::Group& group, const std::string& name, const char* unit, std::vector<T>& numbers) {
  hdf5::Dataset data = group.write<T>(name, numbers, column_options(numbers.size()));
  if (*unit != '\0') data.set_attribute("unit", unit);
}

template <typename Row>
void write_table(hdf5::File& file, const Table<Row>& table, const std::vector<Row>& rows) {
  hdf5::Group group = file.create_group(table.name);
  group.set_attribute("rows", static_cast<std::uint64_t>(rows.size()));
  for (const Field<Row>& field : table.fields)
    std::visit(
        [&](const auto& column) {
          using T = typename decltype(column.get(rows.front()))::value_type;
          std::vector<T> values;
          values.reserve(rows.size());
          for (const Row& row : rows) values.push_back(column.get(row).value_or(unknown<T>()));
          if constexpr (std::is_same_v<T, std::string>)
            write_column(group, field.name, field.notes.width, values);
          else
            write_column(group, field.name, field.notes.unit, values);
        },
        field.column);
}

template <typename Row>
std::vector<Row> read_table(const hdf5::File& file, const Table<Row>& table) {
  const int schema = schema_number(file.string_attribute("schema"));
  if (schema < table.since) return {};
  const hdf5::Group group = file.open_group(table.name);
  std::vector<Row> rows(static_cast<std::size_t>(group.int_attribute("rows")));
  const auto fill = [&](const std::string& name, const auto& column, auto&& values) {
    if (values.size() != rows.size())
      throw Error(std::string("table ") + table.name + ": column " + name + " has " +
                  std::to_string(values.size()) + " rows, not " + std::to_string(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!column.may_be_unknown || !is_unknown(values[i])) column.set(rows[i], std::move(values[i]));
  };
  for (const Field<Row>& field : table.fields) {
    if (schema < field.notes.since) continue;
    const hdf5::Dataset data = group.open_dataset(field.name);
    std::visit(
        [&](const auto& column) {
          using T = typename decltype(column.get(Row()))::value_type;
          if constexpr (std::is_same_v<T, std::string>)
            fill(field.name, column, data.read_strings());
          else
            fill(field.name, column, data.read<T>());
        },
        field.column);
  }
  return rows;
}

}  // namespace

namespace {

// The file that is to become `path`, closed and synced.
fs::path write_part(const fs::path& path, const Results& results) {
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
    for_each_table([&](const auto& table) { write_table(file, table, results.*table.rows); });
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
  return part;
}

// A folder, say, that somebody put where a file should be.
void make_room(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    log_warning(path.string() + ": it is a folder, " + set_aside_damaged(path));
}

void put(const fs::path& part, const fs::path& path) {
  make_room(path);
  std::error_code error;
  fs::rename(part, path, error);
  if (!error) return sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
  ::unlink(part.c_str());
  throw system_error("cannot write " + path.string(), error.value());
}

}  // namespace

void write_results(const fs::path& path, const Results& results) { put(write_part(path, results), path); }

void replace_results(const fs::path& path, const Results& results) {
  const fs::path part = write_part(path, results), sum = path.string() + ".sha256";
  const std::string line = sha256_file_hex(part) + "  " + path.filename().string() + "\n";
  make_room(sum);
  ::unlink(sum.c_str());
  put(part, path);
  write_file_atomic(sum, line);
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
    const auto rows = [&](const auto& table) {
      return static_cast<std::size_t>(file.open_group(table.name).int_attribute("rows"));
    };
    return {.stages = read_table(file, stage_table()),
            .shards = read_table(file, shard_table()),
            .attempts = rows(attempt_table()),
            .baselines = rows(baseline_table())};
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
    for_each_table([&](const auto& table) { r.*table.rows = read_table(file, table); });
    for (SampleRow& row : r.generated) row.known = row.known || row.repeated;  // an older file says no more
    r.samples = file.open_dataset("measurements/samples_ns").read<std::int64_t>();
    return r;
  } catch (const Error& e) {
    throw e.with_context("while reading " + path.string());
  }
}

}  // namespace warpsmith::store

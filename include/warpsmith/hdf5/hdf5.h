// HDF5 files: one thin wrapper a call of the C library, each handle closing by itself.
//
//   File file = File::create("curve.h5");
//   Dataset loss = file.create_group("train").create_dataset<double>("loss", {.shape = {0}, .extendible =
//   true}); loss.append<double>(values);                    // one more block of rows
//   loss.set_attribute("unit", "nats a token");
//   file.close();                                   // throws; a destructor closes too, but says nothing
//
// Failures throw Error with the library's own messages; the library prints nothing. Handles are move-only. A
// child handle (Group, Dataset) keeps the file open until it is destroyed. Not thread-safe: Debian's library
// has one global state, so all calls of a process belong in one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::hdf5 {

using Size = std::uint64_t;
using Shape = std::vector<Size>;

enum class Type {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat32,
  kFloat64,
  kString
};

template <typename T>
constexpr Type type_of();

// A handle of the library (hid_t), closed once. The one place that owns.
class Handle {
 public:
  using Close = int (*)(std::int64_t);
  Handle() = default;
  Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  Handle& operator=(Handle&& other) noexcept;
  std::int64_t id() const { return id_; }
  int reset() noexcept;  // closes; the library's return value, 0 where nothing was open

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

// What has attributes: groups, files, datasets. Setting an attribute replaces it.
class Node {
 public:
  void set_attribute(const std::string& name, std::int64_t value);
  void set_attribute(const std::string& name, int value) { set_attribute(name, std::int64_t{value}); }
  void set_attribute(const std::string& name, std::uint64_t value);
  void set_attribute(const std::string& name, double value);
  void set_attribute(const std::string& name, std::string_view value);  // UTF-8, without NUL
  void set_attribute(const std::string& name, const char* value) {
    set_attribute(name, std::string_view(value));
  }
  bool has_attribute(const std::string& name) const;
  std::int64_t int_attribute(const std::string& name) const;
  double float_attribute(const std::string& name) const;
  std::string string_attribute(const std::string& name) const;
  std::vector<std::string> attribute_names() const;  // sorted

 protected:
  explicit Node(Handle handle) : handle_(std::move(handle)) {}
  std::int64_t id() const { return handle_.id(); }
  Handle handle_;
};

struct DatasetOptions {
  Shape shape = {};         // at creation; {} is a scalar
  bool extendible = false;  // the first extent is unlimited
  Size chunk_rows =
      0;            // rows of a chunk; 0: about 64 KiB. Chunked where extendible, compressed or checksummed
  int deflate = 0;  // 0 (off) to 9, after a byte shuffle
  bool checksum = false;  // Fletcher-32 a chunk: a read of damaged data fails
  Size string_bytes =
      0;  // strings: 0 is variable length (never compressed), else padded with NUL to this many bytes
};

class Dataset : public Node {
 public:
  Type type() const;
  Shape shape() const;
  Size rows() const;  // first extent; 1 for a scalar

  // Whole dataset, row-major. Numbers are converted from the stored type.
  template <typename T>
  std::vector<T> read() const;
  // Rows [begin, begin + count).
  template <typename T>
  std::vector<T> read_rows(Size begin, Size count) const;
  std::vector<std::string> read_strings() const;
  std::vector<std::string> read_strings(Size begin, Size count) const;
  std::string read_string() const;  // of a scalar

  // Replaces rows [begin, …); `values` must be whole rows inside the dataset.
  template <typename T>
  void write_rows(Size begin, std::span<const T> values);
  // Extends by whole rows.
  template <typename T>
  void append(std::span<const T> values);
  void append_strings(std::span<const std::string> values);
  void resize(Size rows);  // cut or extend (with zeros)

 private:
  friend class Group;
  explicit Dataset(Handle handle) : Node(std::move(handle)) {}
  Size row_values() const;  // numbers in a row
  void read_raw(Type type, Size begin, Size count, void* out) const;
  void write_raw(Type type, Size begin, Size count, const void* values);
  void append_raw(Type type, const void* values, Size count);
};

// Paths are relative to the group, with '/' between; missing intermediate groups are made.
class Group : public Node {
 public:
  Group create_group(const std::string& path);
  Group open_group(const std::string& path) const;
  Group require_group(const std::string& path);  // opens, or creates what is missing
  bool contains(const std::string& path) const;
  std::vector<std::string> names() const;  // of members, sorted
  void remove(const std::string& path);    // unlinks; the file does not shrink

  template <typename T>
  Dataset create_dataset(const std::string& path, const DatasetOptions& options) {
    return create(path, type_of<T>(), options);
  }
  Dataset create_string_dataset(const std::string& path, const DatasetOptions& options) {
    return create(path, Type::kString, options);
  }
  Dataset open_dataset(const std::string& path) const;
  // Creates and fills. `options.shape` {} means one dimension of all values.
  template <typename T>
  Dataset write(const std::string& path, std::span<const T> values, DatasetOptions options = {});
  Dataset write_strings(const std::string& path, std::span<const std::string> values,
                        DatasetOptions options = {});
  Dataset write_string(const std::string& path,
                       std::string_view text);  // a scalar of variable length, without NUL

 protected:
  explicit Group(Handle handle) : Node(std::move(handle)) {}

 private:
  Dataset create(const std::string& path, Type type, const DatasetOptions& options);
};

// No locks are taken: whoever writes a file is its only user until it is closed. (The environment variable
// HDF5_USE_FILE_LOCKING=TRUE makes the library lock all the same.)
class File : public Group {
 public:
  static File create(const std::filesystem::path& path);  // an existing file is emptied
  static File open(const std::filesystem::path& path);    // to read and write
  static File open_read_only(const std::filesystem::path& path);
  void flush();  // to the operating system; fsync is the caller's
  void close();  // throws where the library cannot write what it holds

 private:
  explicit File(Handle handle) : Group(std::move(handle)) {}
};

// Whether the file at `path` starts as an HDF5 file does. False where there is none.
bool is_hdf5(const std::filesystem::path& path);

template <typename T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, float>)
    return Type::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return Type::kFloat64;
  else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "a number");
    constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<Type>(width + (std::is_signed_v<T> ? 0 : 4));
  }
}

template <typename T>
std::vector<T> Dataset::read() const {
  return read_rows<T>(0, rows());
}

template <typename T>
std::vector<T> Dataset::read_rows(Size begin, Size count) const {
  std::vector<T> out(count * row_values());
  read_raw(type_of<T>(), begin, count, out.data());
  return out;
}

template <typename T>
void Dataset::write_rows(Size begin, std::span<const T> values) {
  write_raw(type_of<T>(), begin, values.size() / row_values(), values.data());
}

template <typename T>
void Dataset::append(std::span<const T> values) {
  append_raw(type_of<T>(), values.data(), values.size());
}

template <typename T>
Dataset Group::write(const std::string& path, std::span<const T> values, DatasetOptions options) {
  if (options.shape.empty()) options.shape = {values.size()};
  Dataset dataset = create_dataset<T>(path, options);
  dataset.write_rows<T>(0, values);
  return dataset;
}

}  // namespace warpsmith::hdf5

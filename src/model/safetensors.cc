#include "warpsmith/model/safetensors.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith::model {

namespace {

constexpr std::uint64_t kMostHeader = 100u << 20;  // bytes: what the format's own library allows
constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

constexpr std::pair<const char*, std::size_t> kDtypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
    {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw Error(file.string() + ": " + why, kExitUsage);
}

// Bytes of an element; 0: the format has no such dtype.
std::size_t bytes_of_stored(const std::string& dtype) {
  for (const auto& [name, bytes] : kDtypes)
    if (dtype == name) return bytes;
  return 0;
}

// Bytes of a tensor; nothing where that is no number of bytes at all.
bool bytes_of_shape(const StoredTensor& tensor, std::uint64_t* bytes) {
  std::uint64_t all = bytes_of_stored(tensor.dtype);
  if (all == 0) return false;
  for (const std::int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(all, static_cast<std::uint64_t>(size), &all)) return false;
  *bytes = all;
  return true;
}

InputFile opened(const std::filesystem::path& file) {
  try {
    return InputFile(file);
  } catch (const BadContent&) {
    refuse(file, "it is no regular file");
  } catch (const Error& e) {
    refuse(file, std::string("it cannot be opened: ") + std::strerror(e.error_number()));
  }
}

}  // namespace

struct StoredTensors::Mapping {
  explicit Mapping(const std::filesystem::path& file) {
    const InputFile input = opened(file);
    size = static_cast<std::size_t>(input.size());
    if (size == 0) refuse(file, "it is empty");
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.descriptor(), 0);
    if (mapped == MAP_FAILED) refuse(file, "it cannot be mapped");
    data = static_cast<const std::byte*>(mapped);
  }
  ~Mapping() {
    if (data != nullptr) ::munmap(const_cast<std::byte*>(data), size);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

void StoredTensors::add_file(const std::filesystem::path& file) {
  const auto mapping = std::make_shared<const Mapping>(file);
  std::uint64_t length = 0;
  if (mapping->size < sizeof length) refuse(file, "it is cut short");
  std::memcpy(&length, mapping->data, sizeof length);
  if (length > kMostHeader || length > mapping->size - sizeof length)
    refuse(file, fmt::format("its header is said to have {} bytes, and the file has {}: it is cut short or "
                             "not of this format",
                             length, mapping->size));
  const std::span<const std::byte> bytes(mapping->data + sizeof length + length,
                                         mapping->size - sizeof length - length);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  try {
    const Json header =
        parse_json({reinterpret_cast<const char*>(mapping->data) + sizeof length, length}, "its header");
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") continue;
      const std::string what = "tensor " + name;
      StoredTensor tensor{json_at<std::string>(value, "dtype", what),
                          json_at<std::vector<std::int64_t>>(value, "shape", what),
                          {},
                          file};
      const auto ends = json_at<std::vector<std::uint64_t>>(value, "data_offsets", what);
      std::uint64_t wanted = 0;
      if (!bytes_of_shape(tensor, &wanted)) throw Error(what + ": its dtype or shape is none");
      if (ends.size() != 2 || ends[0] > ends[1] || ends[1] > bytes.size())
        throw Error(
            fmt::format("{}: it lies outside of the file, which has {} bytes of tensors: the file is "
                        "cut short or damaged",
                        what, bytes.size()));
      if (ends[1] - ends[0] != wanted)
        throw Error(
            fmt::format("{}: it has {} bytes where its shape has {}", what, ends[1] - ends[0], wanted));
      if (wanted > 0) taken.emplace_back(ends[0], ends[1]);
      tensor.bytes = bytes.subspan(ends[0], wanted);
      if (!tensors_.emplace(name, std::move(tensor)).second) throw Error(what + ": another file has it, too");
    }
  } catch (const Json::exception& e) {
    refuse(file, e.what());
  } catch (const Error& e) {
    refuse(file, e.what());
  }
  std::sort(taken.begin(), taken.end());
  for (std::size_t i = 1; i < taken.size(); ++i)
    if (taken[i].first < taken[i - 1].second) refuse(file, "two of its tensors lie over one another");
  files_.push_back(mapping);
}

StoredTensors StoredTensors::open_file(const std::filesystem::path& file) {
  StoredTensors tensors;
  tensors.add_file(file);
  return tensors;
}

StoredTensors StoredTensors::open(const std::filesystem::path& folder) {
  const std::filesystem::path index = folder / kIndex;
  if (path_exists(folder / kWhole) || !path_exists(index)) return open_file(folder / kWhole);
  StoredTensors tensors;
  std::map<std::string, std::string> where;
  try {
    where = json_at<std::map<std::string, std::string>>(read_json_file(index), "weight_map", "it");
  } catch (const Error& e) {
    refuse(index, e.what());
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : where) names.insert(file);
  for (const std::string& name : names) {
    if (std::filesystem::path(name).filename() != name)
      refuse(index, fmt::format("`{}` is no name of a file in its folder", name));
    tensors.add_file(folder / name);
  }
  for (const auto& [tensor, file] : where) {
    const auto found = tensors.all().find(tensor);
    if (found == tensors.all().end() || found->second.file.filename() != file)
      refuse(folder / file, fmt::format("it lacks tensor {}, which {} says is there", tensor, kIndex));
  }
  return tensors;
}

void write_safetensors(const std::filesystem::path& file, const std::vector<TensorToStore>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end = 0;
  for (const TensorToStore& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes.size()}}};
    end += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), sizeof length}, text};
  for (const TensorToStore& tensor : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  write_parts_atomic(file, parts);
}

}  // namespace warpsmith::model

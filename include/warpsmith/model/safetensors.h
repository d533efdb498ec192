// Files of tensors as Hugging Face writes them (the safetensors format): 8 bytes of length, a JSON header,
// the tensors' bytes. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace warpsmith::model {

struct StoredTensor {
  std::string dtype;  // as the format names it: "F32", "BF16", "F16", …
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // in the file
  std::filesystem::path file;
};

// The tensors of a folder: those of model.safetensors, or of the shards that model.safetensors.index.json
// names. The files are mapped; nothing is copied.
class StoredTensors {
 public:
  // Throws Error (exit code 2) that names the file and what is wrong with it: it is missing or cut short, its
  // header cannot be read, a tensor lies outside of it or over another one, or its bytes are not those of its
  // shape.
  static StoredTensors open(const std::filesystem::path& folder);
  static StoredTensors open_file(const std::filesystem::path& file);

  const std::map<std::string, StoredTensor>& all() const { return tensors_; }

 private:
  void add_file(const std::filesystem::path& file);

  struct Mapping;
  std::vector<std::shared_ptr<const Mapping>> files_;
  std::map<std::string, StoredTensor> tensors_;
};

struct TensorToStore {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};
// Writes `file` whole or not at all, the tensors in this order, the metadata that transformers asks for.
void write_safetensors(const std::filesystem::path& file, const std::vector<TensorToStore>& tensors);

}  // namespace warpsmith::model

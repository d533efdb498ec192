#include "warpsmith/model/folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/model/config.h"
#include "warpsmith/model/safetensors.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::model {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSampledBytes = 4096;
constexpr std::uint64_t kMostBytes = 1u << 30;

void add_weights(const StoredTensors& stored, Sha256& digest) {
  for (const auto& [name, tensor] : stored.all()) {
    digest.field(name).field(tensor.dtype).field(Json(tensor.shape).dump());
    const auto part = [&](std::size_t begin, std::size_t size) {
      digest.field({reinterpret_cast<const char*>(tensor.bytes.data()) + begin, size});
    };
    const std::size_t size = std::min(kSampledBytes, tensor.bytes.size());
    part(0, size);
    part(tensor.bytes.size() - size, size);
  }
}

}  // namespace

Json read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  if (!path_exists(file)) throw Error(file.string() + ": it is not there", kExitUsage);
  try {
    return parse_json(read_file_within(file, kMostBytes), file.string());
  } catch (const Error& e) {
    throw Error(e.what(), kExitUsage);
  }
}

FolderFacts look_at_folder(const fs::path& folder, bool weights, std::int64_t context,
                           const tokenizer::RenderChats& render) {
  if (!is_folder(folder)) throw Error(folder.string() + ": there is no such folder", kExitUsage);
  const Json config = read_config(folder);
  FolderFacts facts;
  facts.settings = settings_of_config(config, (folder / "config.json").string(), context);
  facts.family = config.at("model_type");
  facts.parameters = parameter_count(facts.settings);
  const fs::path tokens = folder / "tokenizer.json";
  if (!path_exists(tokens))
    throw Error(tokens.string() + ": it is not there; byte-level BPE in this form is supported", kExitUsage);
  const auto tokenizer = tokenizer::Pretrained::load(tokens);
  if (tokenizer.size() > facts.settings.vocabulary)
    throw Error(fmt::format("{}: it has {} tokens, and config.json says vocab_size {}", tokens.string(),
                            tokenizer.size(), facts.settings.vocabulary),
                kExitUsage);
  tokenizer::FolderFrame frame = frame_of_folder(folder, tokenizer, render);
  facts.frame = std::move(frame.frame);
  facts.notes = std::move(frame.notes);
  Sha256 digest;
  digest.field(config.dump()).field(read_file(tokens)).field(to_json(facts.frame).dump());
  if (weights) {
    const StoredTensors stored = StoredTensors::open(folder);
    check_weights(stored, facts.settings, folder);
    add_weights(stored, digest);
  }
  facts.digest = digest.hex();
  return facts;
}

Companions companions_of(const fs::path& folder) {
  Companions files;
  for (const char* name : {"config.json", "tokenizer_config.json", "special_tokens_map.json",
                           "chat_template.jinja", "generation_config.json"})
    if (path_exists(folder / name)) files.emplace_back(name, read_file_within(folder / name, kMostBytes));
  return files;
}

std::string weights_digest(const std::filesystem::path& folder) {
  Sha256 digest;
  add_weights(StoredTensors::open(folder), digest);
  return digest.hex();
}

}  // namespace warpsmith::model

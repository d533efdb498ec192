// A checkpoint's manifest.json: what the folder holds, and whether it is whole. No torch. The folder's files
// are listed in checkpoint.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith::model {

inline constexpr std::string_view kCheckpointSchema = "warpsmith.checkpoint/1";
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kOriginFile = "origin.json";
inline constexpr std::string_view kCompanionFolder = "pretrained/";

// Of a model that came as a Hugging Face folder: the folder's small files by name, which its export has
// again.
using Companions = std::vector<std::pair<std::string, std::string>>;

// Where the weights are to which a checkpoint of adapters adds.
struct BaseWeights {
  std::string path;    // of a checkpoint, relative to the folder of the one that adds; else absolute
  bool checkpoint;     // else a Hugging Face folder
  std::string digest;  // of that checkpoint's manifest; of the folder's weights (weights_digest())
  friend bool operator==(const BaseWeights&, const BaseWeights&) = default;
};

struct CheckpointFacts {
  std::string stage;                 // that made it
  std::int64_t step = 0;             // optimiser steps since the random initialisation, over all stages
  double score = 0;                  // the lower the better: the mean loss since the checkpoint before
  std::vector<std::string> parents;  // digests of the checkpoint that it began from and of its reference
  Json origin = Json::object();
  Companions companions = {};
  std::optional<BaseWeights> base = {};  // of a model with LoRA: its checkpoints hold the adapters alone
};

// The checksum that a manifest must hold: over all of it but its checksum.
std::string manifest_checksum(Json manifest);

// The manifest of a folder whose files have the sizes and checksums that it says. Throws Error that names the
// file and what is wrong with it.
Json read_whole_manifest(const std::filesystem::path& folder);
CheckpointFacts facts_of_manifest(const std::filesystem::path& folder, const Json& manifest);

// What read_whole_manifest() finds first, with the folder's name; empty: whole.
std::string checkpoint_damage(const std::filesystem::path& folder);

// Of a folder whose other files are not looked at. Throws Error that names the folder.
CheckpointFacts read_checkpoint_facts(const std::filesystem::path& folder);
std::string checkpoint_digest(const std::filesystem::path& folder);

// Errors of `call` name the folder.
template <typename Call>
auto in_checkpoint(const std::filesystem::path& folder, const Call& call);

}  // namespace warpsmith::model

template <typename Call>
auto warpsmith::model::in_checkpoint(const std::filesystem::path& folder, const Call& call) {
  try {
    return call();
  } catch (const Error& e) {
    throw e.with_context("checkpoint " + folder.string());
  }
}

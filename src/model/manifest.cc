#include "warpsmith/model/manifest.h"

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"

namespace warpsmith::model {

namespace {

Json read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  if (!path_exists(path))
    throw Error(path_exists(folder) ? "no manifest.json: it was never finished" : "there is no such folder");
  const Json manifest = parse_json(read_file(path), kManifestFile);
  const auto schema = json_at<std::string>(manifest, "schema", kManifestFile);
  if (schema != kCheckpointSchema)
    throw Error("manifest.json: schema " + schema + " where " + std::string(kCheckpointSchema) + " is known");
  if (json_at<std::string>(manifest, "checksum", kManifestFile) != manifest_checksum(manifest))
    throw Error("manifest.json is damaged: its checksum is wrong");
  return manifest;
}

void check_file(const fs::path& folder, const std::string& name, const Json& expected) {
  const fs::path path = folder / name;
  if (!path_exists(path)) throw Error(name + " is missing");
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  if (error) throw Error(name + ": " + error.message());
  const auto wanted = json_at<std::uint64_t>(expected, "bytes", name);
  if (bytes != wanted)
    throw Error(name + " has " + std::to_string(bytes) + " bytes, its manifest says " +
                std::to_string(wanted));
  if (sha256_file_hex(path) != json_at<std::string>(expected, "sha256", name))
    throw Error(name + " is damaged: its SHA-256 is not the manifest's");
}

}  // namespace

std::string manifest_checksum(Json manifest) {
  manifest.erase("checksum");
  return sha256_hex(manifest.dump());
}

Json read_whole_manifest(const fs::path& folder) {
  const Json manifest = read_manifest(folder);
  const auto files = json_at<Json::object_t>(manifest, "files", kManifestFile);
  for (const auto& [name, expected] : files) check_file(folder, name, expected);
  return manifest;
}

CheckpointFacts facts_of_manifest(const fs::path& folder, const Json& manifest) {
  CheckpointFacts facts;
  facts.stage = json_at<std::string>(manifest, "stage", kManifestFile);
  facts.step = json_at<std::int64_t>(manifest, "step", kManifestFile);
  facts.score = json_at<double>(manifest, "score", kManifestFile);
  facts.parents = json_at<std::vector<std::string>>(manifest, "parents", kManifestFile);
  if (manifest.contains("base")) {
    const Json& base = manifest["base"];
    facts.base = {json_at<std::string>(base, "path", kManifestFile),
                  json_at<bool>(base, "checkpoint", kManifestFile),
                  json_at<std::string>(base, "digest", kManifestFile)};
  }
  for (const auto& [name, expected] : json_at<Json::object_t>(manifest, "files", kManifestFile))
    if (name.starts_with(kCompanionFolder))
      facts.companions.emplace_back(name.substr(kCompanionFolder.size()), read_file(folder / name));
  if (path_exists(folder / kOriginFile)) facts.origin = read_json_file(folder / kOriginFile);
  return facts;
}

std::string checkpoint_damage(const fs::path& folder) {
  try {
    in_checkpoint(folder, [&] { return read_whole_manifest(folder); });
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

CheckpointFacts read_checkpoint_facts(const fs::path& folder) {
  return in_checkpoint(folder, [&] { return facts_of_manifest(folder, read_manifest(folder)); });
}

std::string checkpoint_digest(const fs::path& folder) { return sha256_file_hex(folder / kManifestFile); }

}  // namespace warpsmith::model

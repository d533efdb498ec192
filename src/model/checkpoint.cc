#include "warpsmith/model/checkpoint.h"

#include <ATen/ops/empty_like.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/hdf5/hdf5.h"
#include "warpsmith/model/folder.h"
#include "warpsmith/model/pretrained.h"

namespace warpsmith::model {

namespace {

constexpr const char* kModelFile = "model.h5";
constexpr const char* kAdapterFile = "adapter.h5";
constexpr const char* kOptimizerFile = "optimizer.h5";
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kFrameFile = "frame.json";

void sync_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw system_error("cannot open " + path.string(), errno);
  const int result = ::fsync(fd), error = errno;
  ::close(fd);
  if (result != 0) throw system_error("cannot sync " + path.string(), error);
}

void write_tensor(hdf5::File& file, const std::string& name, const at::Tensor& tensor) {
  hdf5::DatasetOptions options;
  options.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  file.write<float>(name, std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())),
                    options);
}

void read_tensor(const hdf5::File& file, const std::string& name, const at::Tensor& into) {
  const hdf5::Dataset dataset = file.open_dataset(name);
  const hdf5::Shape shape = dataset.shape();
  if (!std::equal(shape.begin(), shape.end(), into.sizes().begin(), into.sizes().end(),
                  [](hdf5::Size a, std::int64_t b) { return a == static_cast<hdf5::Size>(b); }))
    throw Error("tensor " + name + " has another shape than the model settings say");
  const std::vector<float> values = dataset.read<float>();
  std::memcpy(into.mutable_data_ptr<float>(), values.data(), values.size() * sizeof(float));
}

Json describe_file(const fs::path& path) {
  return {{"bytes", fs::file_size(path)}, {"sha256", sha256_file_hex(path)}};
}

// The weights that a checkpoint of adapters adds to.
Decoder load_base(const fs::path& folder, const BaseWeights& base, const fs::path& base_folder,
                  std::int64_t context) {
  const bool moved = !base.checkpoint && !base_folder.empty() && path_exists(base_folder);
  const fs::path path = base.checkpoint ? (folder / base.path).lexically_normal()
                        : moved         ? base_folder
                                        : fs::path(base.path);
  const auto check = [&](const std::string& digest) {
    if (digest != base.digest)
      throw Error("the weights that it adds to have changed since: " + path.string());
  };
  if (!base.checkpoint) {
    check(weights_digest(path));
    return load_pretrained(path, context);
  }
  check(checkpoint_digest(path));
  return load_checkpoint(path, false, base_folder).decoder;
}

}  // namespace

std::string save_checkpoint(const fs::path& folder, const CheckpointFacts& facts, const Decoder& decoder,
                            const Tokenizer& tokenizer, const OptimizerState* optimizer) {
  return in_checkpoint(folder, [&] {
    std::string manifest_text;
    write_folder_whole(folder, [&](const fs::path& partial) {
      Json tensors = Json::array();
      const bool adapted = decoder.settings().lora.rank > 0;
      if (adapted && !facts.base) throw Error("adapters without weights that they add to");
      const char* const weights_file = adapted ? kAdapterFile : kModelFile;
      hdf5::File model = hdf5::File::create(partial / weights_file);
      for (const NamedTensor& parameter : decoder.trained()) {
        write_tensor(model, parameter.name, parameter.tensor);
        tensors.push_back({{"name", parameter.name},
                           {"shape", parameter.tensor.sizes().vec()},
                           {"dtype", "float32"},
                           {"file", weights_file}});
      }
      model.close();
      Json files = Json::object();
      files[weights_file] = describe_file(partial / weights_file);
      if (optimizer) {
        hdf5::File state = hdf5::File::create(partial / kOptimizerFile);
        write_tensor(state, "first", optimizer->first);
        write_tensor(state, "second", optimizer->second);
        state.set_attribute("steps", optimizer->steps);
        state.close();
        files[kOptimizerFile] = describe_file(partial / kOptimizerFile);
        sync_file(partial / kOptimizerFile);
      }
      const auto write_text = [&](const std::string& name, const std::string& text) {
        write_file_atomic(partial / name, text);
        files[name] = describe_file(partial / name);
      };
      const tokenizer::Frame* frame = tokenizer.frame();
      write_text(kTokenizerFile, frame ? tokenizer.to_json() : tokenizer.to_json() + "\n");
      if (frame) write_text(kFrameFile, tokenizer::to_json(*frame).dump(2) + "\n");
      if (!facts.companions.empty()) make_folders(partial / kCompanionFolder);
      for (const auto& [name, text] : facts.companions)
        write_text(std::string(kCompanionFolder) + name, text);
      write_file_atomic(partial / kOriginFile, facts.origin.dump(2) + "\n");
      sync_file(partial / weights_file);

      Json manifest = {
          {"schema", kCheckpointSchema}, {"stage", facts.stage},     {"step", facts.step},
          {"score", facts.score},        {"parents", facts.parents}, {"model", to_json(decoder.settings())},
          {"tensors", tensors},          {"files", files},           {"tokenizer_tokens", tokenizer.size()}};
      if (adapted)
        manifest["base"] = {{"path", facts.base->path},
                            {"checkpoint", facts.base->checkpoint},
                            {"digest", facts.base->digest}};
      manifest["checksum"] = manifest_checksum(manifest);
      manifest_text = manifest.dump(2) + "\n";
      write_file_atomic(partial / kManifestFile, manifest_text);
    });
    return sha256_hex(manifest_text);
  });
}

Checkpoint load_checkpoint(const fs::path& folder, bool with_optimizer, const fs::path& base_folder) {
  return in_checkpoint(folder, [&] {
    const Json manifest = read_whole_manifest(folder);
    Decoder decoder(decoder_settings_from_json(json_at<Json>(manifest, "model", kManifestFile)));
    CheckpointFacts facts = facts_of_manifest(folder, manifest);
    if (facts.base) {
      const Decoder base = load_base(folder, *facts.base, base_folder, decoder.settings().context);
      if (base.flat().sizes() != decoder.flat().sizes())
        throw Error("the weights that it adds to are of another model");
      at::Tensor flat = decoder.flat();
      flat.copy_(base.flat());
    }
    const hdf5::File model = hdf5::File::open_read_only(folder / (facts.base ? kAdapterFile : kModelFile));
    for (const NamedTensor& parameter : decoder.trained())
      read_tensor(model, parameter.name, parameter.tensor);
    std::optional<OptimizerState> optimizer;
    if (with_optimizer && manifest["files"].contains(kOptimizerFile)) {
      const hdf5::File file = hdf5::File::open_read_only(folder / kOptimizerFile);
      optimizer = OptimizerState{at::empty_like(decoder.trained_flat()),
                                 at::empty_like(decoder.trained_flat()), file.int_attribute("steps")};
      read_tensor(file, "first", optimizer->first);
      read_tensor(file, "second", optimizer->second);
    }
    std::string tokens = read_file(folder / kTokenizerFile);
    Tokenizer tokenizer =
        manifest["files"].contains(kFrameFile)
            ? Tokenizer::pretrained(std::move(tokens), kTokenizerFile,
                                    tokenizer::frame_from_json(read_json_file(folder / kFrameFile)))
            : Tokenizer::from_json(tokens);
    return Checkpoint{std::move(facts), checkpoint_digest(folder), std::move(decoder), std::move(tokenizer),
                      std::move(optimizer)};
  });
}

}  // namespace warpsmith::model

#include "warpsmith/model/pretrained.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <vector>

#include "exported_tokenizer.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/model/folder.h"
#include "warpsmith/model/safetensors.h"

namespace warpsmith::model {

namespace {

at::ScalarType float_type(const std::string& dtype) {
  return dtype == "BF16" ? at::kBFloat16 : dtype == "F16" ? at::kHalf : at::kFloat;
}

}  // namespace

Decoder load_pretrained(const std::filesystem::path& folder, std::int64_t context) {
  const DecoderSettings settings =
      settings_of_config(read_config(folder), (folder / "config.json").string(), context);
  const StoredTensors stored = StoredTensors::open(folder);
  check_weights(stored, settings, folder);
  Decoder decoder(settings);
  for (const NamedTensor& parameter : decoder.parameters()) {
    const at::Tensor values = parameter.tensor.detach();
    std::int64_t row = 0;
    for (const Source& source : sources_of(parameter.name, settings)) {
      const StoredTensor& from = stored.all().at(source.name);
      const at::Tensor copy =
          at::empty(from.shape, float_type(from.dtype));  // bytes in the file need not be aligned
      std::memcpy(copy.mutable_data_ptr(), from.bytes.data(), from.bytes.size());
      values.narrow(0, row, source.rows).copy_(copy);
      row += source.rows;
    }
  }
  return decoder;
}

namespace {

// The weights' types by their names in the folder's files.
struct TypeNames {
  const char *stored, *config;
};
TypeNames names_of(at::ScalarType type) {
  return type == at::kBFloat16 ? TypeNames{"BF16", "bfloat16"} : TypeNames{"F32", "float32"};
}

void save_weights(const std::filesystem::path& file, const Decoder& decoder, at::ScalarType type) {
  std::vector<TensorToStore> tensors;
  std::vector<at::Tensor> kept;  // what was converted
  for (const NamedTensor& parameter : decoder.parameters()) {
    kept.push_back(parameter.tensor.detach().to(type));
    const auto* bytes = static_cast<const std::byte*>(kept.back().const_data_ptr());
    std::vector<std::int64_t> shape = parameter.tensor.sizes().vec();
    const std::size_t row =
        static_cast<std::size_t>(kept.back().numel() / shape[0]) * kept.back().element_size();
    for (const Source& source : sources_of(parameter.name, decoder.settings())) {
      shape[0] = source.rows;
      const std::size_t size = row * static_cast<std::size_t>(source.rows);
      tensors.push_back({source.name, names_of(type).stored, shape, {bytes, size}});
      bytes += size;
    }
  }
  write_safetensors(file, tensors);
}

void save_config(const std::filesystem::path& folder, Json config, at::ScalarType type) {
  for (const char* key : {"torch_dtype", "dtype"}) config[key] = names_of(type).config;
  write_file_atomic(folder / "config.json", config.dump(2) + "\n");
}

// "layers.3.q_proj.a" -> "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight"
std::string peft_name(const std::string& name, const DecoderSettings& settings) {
  const AdapterPlace place = place_of_adapter(name, settings);
  const bool of_mlp = place.matrix == "gate_up" || place.matrix == "down";
  return "base_model.model.model.layers." + std::to_string(place.layer) + (of_mlp ? ".mlp." : ".self_attn.") +
         place.target + (place.is_a ? ".lora_A.weight" : ".lora_B.weight");
}

void save_adapters(const std::filesystem::path& folder, const Checkpoint& checkpoint) {
  make_folders(folder);
  const LoraSettings& lora = checkpoint.decoder.settings().lora;
  std::vector<TensorToStore> tensors;
  for (const NamedTensor& adapter : checkpoint.decoder.adapters()) {
    const std::span values(adapter.tensor.const_data_ptr<float>(),
                           static_cast<std::size_t>(adapter.tensor.numel()));
    tensors.push_back({peft_name(adapter.name, checkpoint.decoder.settings()), names_of(at::kFloat).stored,
                       adapter.tensor.sizes().vec(), std::as_bytes(values)});
  }
  write_safetensors(folder / "adapter_model.safetensors", tensors);
  const std::optional<BaseWeights>& base = checkpoint.facts.base;
  const Json config = {{"peft_type", "LORA"},
                       {"task_type", "CAUSAL_LM"},
                       {"base_model_name_or_path", base && !base->checkpoint ? Json(base->path) : Json()},
                       {"r", lora.rank},
                       {"lora_alpha", lora.alpha},
                       {"target_modules", lora.targets},
                       {"lora_dropout", 0.0},
                       {"bias", "none"},
                       {"fan_in_fan_out", false},
                       {"inference_mode", true}};
  write_file_atomic(folder / "adapter_config.json", config.dump(2) + "\n");
}

}  // namespace

void save_pretrained(const std::filesystem::path& folder, const Decoder& decoder, const std::string& family) {
  const Json config = config_of_settings(decoder.settings(), family);
  make_folders(folder);
  save_weights(folder / "model.safetensors", decoder, at::kFloat);
  save_config(folder, config, at::kFloat);
}

std::uint64_t export_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                at::ScalarType type) {
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  write_folder_whole(folder, [&](const fs::path& partial) {
    DecoderSettings settings = checkpoint.decoder.settings();
    if (settings.lora.rank > 0) {
      save_adapters(partial / "adapter", checkpoint);
      save_weights(partial / "model.safetensors", checkpoint.decoder.merged(), type);
      settings.lora = {};
    } else {
      save_weights(partial / "model.safetensors", checkpoint.decoder, type);
    }
    const bool own = checkpoint.facts.companions.empty();
    if (own) save_config(partial, config_of_settings(settings, family_of_settings(settings)), type);
    for (const auto& [name, text] : checkpoint.facts.companions) {
      if (name == "config.json")
        save_config(partial, parse_json(text, name), type);
      else
        write_file_atomic(partial / name, text);
    }
    const std::string tokens = checkpoint.tokenizer.to_hugging_face();
    if (!tokens.empty()) write_file_atomic(partial / "tokenizer.json", tokens);
    if (own) {
      const auto write = [&](const char* name, const Json& json) {
        write_file_atomic(partial / name, json.dump(2) + "\n");
      };
      write_file_atomic(partial / "tokenizer.warpsmith.json", checkpoint.tokenizer.to_json());
      write("tokenizer_config.json", hugging_face_tokenizer_config(settings.context));
      write("generation_config.json", hugging_face_generation_config());
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(partial))
      if (entry.is_regular_file()) bytes += entry.file_size();
  });
  return bytes;
}

}  // namespace warpsmith::model

// Checkpoints: a folder that is whole or is not there.
//
//   <name>/model.h5        a float32 dataset for each parameter, at its name ("layers.0.qkv"), shapes as in
//                          decoder.h
//   <name>/adapter.h5      of a model with LoRA, in the place of model.h5: the adapters alone; the manifest's
//                          `base` says where the rest is
//   <name>/optimizer.h5    "first", "second": AdamW's moments, flat, in the order of the parameters, with
//                          their padding
//   <name>/tokenizer.json  of our form, or that of the Hugging Face folder that the model came from
//   <name>/frame.json      of such a model: what its chat template puts around a prompt
//   <name>/pretrained/     of such a model: the other small files of that folder
//   <name>/origin.json     who wrote it: free of meaning for what it holds, and outside the digest
//   <name>/manifest.json   written last: model settings, step, stage, parents (digests), dtype, shape and
//                          file of every tensor, bytes and SHA-256 of every file, and a checksum over itself
//
// A checkpoint is written to <name>.partial-<pid> and renamed. The SHA-256 of manifest.json is its digest:
// equal training gives equal digests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/model/decoder.h"
#include "warpsmith/model/manifest.h"
#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {

// AdamW's state, laid out as Decoder::trained_flat().
struct OptimizerState {
  at::Tensor first, second;
  std::int64_t steps = 0;  // taken since the moments were zero
};

struct Checkpoint {
  CheckpointFacts facts;
  std::string digest;
  Decoder decoder;
  Tokenizer tokenizer;
  std::optional<OptimizerState> optimizer;  // where it was written with one and asked for
};

// Writes `folder` and returns the digest. A checkpoint that is there already is replaced. `optimizer` may be
// null.
std::string save_checkpoint(const std::filesystem::path& folder, const CheckpointFacts& facts,
                            const Decoder& decoder, const Tokenizer& tokenizer,
                            const OptimizerState* optimizer);

// Throws Error that names the file and what is wrong with it, where anything is missing, cut short or
// altered. `base_folder`: where the Hugging Face folder lies here whose weights adapters add to; empty, or
// not there: where it lay when the checkpoint was written.
Checkpoint load_checkpoint(const std::filesystem::path& folder, bool with_optimizer = false,
                           const std::filesystem::path& base_folder = {});

}  // namespace warpsmith::model

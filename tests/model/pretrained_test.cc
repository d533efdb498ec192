// Hugging Face folders against transformers: logits, greedy tokens, gradients; and what is refused.
#include "warpsmith/model/pretrained.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "output_of.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/model/safetensors.h"
#include "warpsmith/model/sampler.h"
#include "warpsmith/python/interpreter.h"

namespace warpsmith::model {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHelper = WARPSMITH_SOURCE_DIR "/tests/model/hugging_face_models.py";

at::Tensor tensor_of(const StoredTensors& stored, const std::string& name) {
  const StoredTensor& tensor = stored.all().at(name);
  at::Tensor out = at::empty(tensor.shape, tensor.dtype == "I64" ? at::kLong : at::kFloat);
  std::memcpy(out.mutable_data_ptr(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

std::vector<Token> tokens_of(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

// The logits behind each token.
PackedBatch all_rows(const std::vector<Token>& tokens) {
  PackedBatch batch;
  batch.tokens = tokens;
  batch.segments = {{0, static_cast<std::int64_t>(tokens.size()), -1}};
  for (std::size_t i = 0; i < tokens.size(); ++i) batch.rows.push_back(static_cast<std::int64_t>(i));
  return batch;
}

// transformers' models, made once.
class PretrainedModels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Scratch;
    const std::optional<fs::path> python = python::find_python();
    if (!python) return;
    python_ = "'" + python->string() + "' '" + kHelper + "' ";
    int status = 0;
    const std::string said = output_of(python_ + "'" + (*folder_ / "models").string() + "'", &status);
    if (said.find("No module named") != std::string::npos) return;
    EXPECT_EQ(status, 0) << said;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("model ")) names_.push_back(line.substr(6));
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    if (names_.empty()) GTEST_SKIP() << "there is no python3 with transformers here (cmake/setup.sh test)";
  }
  static fs::path model(const std::string& name) { return *folder_ / "models" / name; }
  static fs::path expected(const std::string& name) { return model(name + ".expected.safetensors"); }

  static void compare_logits();
  static void compare_greedy_tokens();
  static void compare_gradients();

  static inline Scratch* folder_ = nullptr;
  static inline std::string python_;
  static inline std::vector<std::string> names_;
};

void PretrainedModels::compare_logits() {
  EXPECT_GE(names_.size(), 20u);
  for (const std::string& name : names_) {
    SCOPED_TRACE(name);
    const Decoder decoder = load_pretrained(model(name));
    const StoredTensors stored = StoredTensors::open_file(expected(name));
    const at::NoGradGuard guard;
    const at::Tensor logits = decoder.logits(all_rows(tokens_of(tensor_of(stored, "tokens"))));
    EXPECT_LT((logits - tensor_of(stored, "logits")).abs().max().item<double>(), 1e-5);
    const Decoder operators = decoder.copied(at::kFloat, Backend::kOperators);
    const at::Tensor same = operators.logits(all_rows(tokens_of(tensor_of(stored, "tokens"))));
    EXPECT_LT((same - tensor_of(stored, "logits")).abs().max().item<double>(), 1e-5);
  }
}

void PretrainedModels::compare_greedy_tokens() {
  for (const std::string& name : names_) {
    SCOPED_TRACE(name);
    const Decoder decoder = load_pretrained(model(name));
    const StoredTensors stored = StoredTensors::open_file(expected(name));
    std::vector<Token> tokens = tokens_of(tensor_of(stored, "tokens"));
    tokens.resize(5);
    const at::NoGradGuard guard;
    std::vector<Token> greedy;
    for (int i = 0; i < 40; ++i) {
      PackedBatch batch = all_rows(tokens);
      batch.rows = {batch.rows.back()};
      greedy.push_back(static_cast<Token>(decoder.logits(batch).argmax().item<std::int64_t>()));
      tokens.push_back(greedy.back());
    }
    EXPECT_EQ(greedy, tokens_of(tensor_of(stored, "greedy")));
    tokens.resize(5);
    const std::vector<SampleRequest> requests = {{tokens, {1}}};
    const Decoder operators = decoder.copied(at::kFloat, Backend::kOperators);
    EXPECT_EQ(sample_all(operators, requests, {.temperature = 0, .max_tokens = 40, .stops = {}})[0][0].tokens,
              greedy);
  }
}

void PretrainedModels::compare_gradients() {
  for (const std::string& name : names_) {
    SCOPED_TRACE(name);
    Decoder decoder = load_pretrained(model(name));
    const StoredTensors stored = StoredTensors::open_file(expected(name));
    std::vector<Token> tokens = tokens_of(tensor_of(stored, "tokens"));
    PackedBatch batch = all_rows(tokens);
    batch.rows.pop_back();
    batch.targets.assign(tokens.begin() + 1, tokens.end());
    decoder.zero_gradient();
    (-decoder.log_probabilities(batch).mean()).backward();
    // A decoder whose parameters are its gradients is written with their names.
    Decoder gradients(decoder.settings());
    gradients.flat().copy_(decoder.flat_gradient());
    const fs::path written = *folder_ / ("gradients-" + name);
    save_pretrained(written, gradients, family_of_settings(decoder.settings()));
    const StoredTensors own = StoredTensors::open(written);
    std::size_t compared = 0;
    for (const auto& [key, tensor] : own.all()) {
      if (key.ends_with("e_score_correction_bias")) continue;  // nothing trains it
      const at::Tensor wanted = tensor_of(stored, "gradient." + key);
      const double scale = wanted.abs().max().item<double>();
      EXPECT_LT((tensor_of(own, key) - wanted).abs().max().item<double>(), 1e-5 * std::max(1.0, scale))
          << key;
      ++compared;
    }
    EXPECT_EQ(compared + 3, stored.all().size()) << "tokens, logits and greedy are the rest";
  }
}

// One test: a process of its own would make the models again.
TEST_F(PretrainedModels, GiveTheLogitsTheGreedyTokensAndTheGradientsOfTransformers) {
  compare_logits();
  compare_greedy_tokens();
  compare_gradients();
}

TEST_F(PretrainedModels, AreLoadedByTransformersAsWeWriteThem) {
  for (const auto& [name, family] : {std::pair("qwen2_yarn", "qwen2"),
                                     {"qwen3", "qwen3"},
                                     {"llama3", "llama"},
                                     {"qwen2_untied_sharded", "qwen2"},
                                     {"mistral", "mistral"},
                                     {"starcoder2", "starcoder2"},
                                     {"qwen3_moe", "qwen3_moe"},
                                     {"deepseek_v2_groups", "deepseek_v2"},
                                     {"deepseek_v3_yarn", "deepseek_v3"},
                                     {"deepseek_v3", "deepseek_v3"}}) {
    SCOPED_TRACE(name);
    const fs::path written = *folder_ / (std::string("written-") + name);
    save_pretrained(written, load_pretrained(model(name)), family);
    int status = 0;
    const std::string said =
        output_of(python_ + "--load '" + written.string() + "' '" + expected(name).string() + "'", &status);
    ASSERT_EQ(status, 0) << said;
    const std::size_t at = said.rfind("difference ");
    ASSERT_NE(at, std::string::npos) << said;
    EXPECT_LT(std::stod(said.substr(at + 11)), 1e-5) << said;
  }
}

TEST_F(PretrainedModels, AContextMayBeShorterAndAWindowBoundsIt) {
  EXPECT_EQ(load_pretrained(model("llama")).settings().context, 256);
  EXPECT_EQ(load_pretrained(model("llama"), 100).settings().context, 100);
  EXPECT_EQ(load_pretrained(model("llama"), 1000).settings().context, 256);
  EXPECT_EQ(load_pretrained(model("mistral_window")).settings().context, 128);
}

Json plain_config() {
  return {{"model_type", "qwen2"},          {"hidden_size", 32},       {"num_hidden_layers", 1},
          {"num_attention_heads", 4},       {"intermediate_size", 48}, {"vocab_size", 320},
          {"max_position_embeddings", 256}, {"hidden_act", "silu"}};
}

std::string config_error(const char* key, const Json& value) {
  Json config = plain_config();
  config[key] = value;
  try {
    (void)settings_of_config(config, "c.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    return e.what();
  }
  return "none";
}

TEST(PretrainedConfig, WhatThisDecoderDoesNotDoIsRefusedWithItsKey) {
  EXPECT_EQ(config_error("hidden_act", "silu"), "none");
  EXPECT_THAT(config_error("model_type", "gpt2"), HasSubstr("c.json: model_type: `gpt2` is not supported"));
  EXPECT_THAT(config_error("hidden_act", "gelu"), HasSubstr("hidden_act: `gelu` is not supported"));
  EXPECT_THAT(config_error("attention_bias", true), HasSubstr("attention_bias: it is not supported"));
  EXPECT_THAT(config_error("hidden_size", nullptr), HasSubstr("hidden_size: it is not there"));
  EXPECT_THAT(config_error("hidden_size", -3), HasSubstr("hidden_size: -3 is no size"));
  EXPECT_THAT(config_error("hidden_size", "x"), HasSubstr("hidden_size"));
  EXPECT_THAT(config_error("hidden_size", 30), HasSubstr("num_attention_heads: it does not divide"));
  EXPECT_THAT(config_error("num_key_value_heads", 3), HasSubstr("num_key_value_heads: it does not divide"));
  EXPECT_THAT(config_error("head_dim", 7), HasSubstr("head_dim: it must be even"));
  EXPECT_THAT(config_error("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}),
              HasSubstr("rope_scaling: rope_type: `dynamic` is not supported"));
  EXPECT_THAT(config_error("rope_scaling", {{"type", "linear"}}), HasSubstr("factor: it is not there"));
  EXPECT_THAT(config_error("rope_scaling", 3), HasSubstr("rope_scaling: an object was expected"));
}

class PretrainedFolder : public testing::Test {
 protected:
  void SetUp() override {
    DecoderSettings settings;
    settings.layers = 1;
    settings.width = 16;
    settings.heads = 2;
    settings.kv_heads = 1;
    settings.hidden = 24;
    settings.vocabulary = 300;
    settings.context = 64;
    Decoder decoder(settings);
    decoder.initialise(1);
    save_pretrained(folder_ / "m", decoder, "qwen2");
    flat_ = decoder.flat().clone();
  }
  std::string error() {
    try {
      (void)load_pretrained(folder_ / "m");
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage) << e.what();
      return e.what();
    }
    return "none";
  }
  void edit_config(const char* key, const Json& value) {
    const fs::path path = folder_ / "m/config.json";
    Json config = read_json_file(path);
    config[key] = value;
    write_file_atomic(path, config.dump());
  }
  fs::path weights() { return folder_ / "m/model.safetensors"; }

  Scratch folder_;
  at::Tensor flat_;
};

TEST_F(PretrainedFolder, ComesBackBitByBit) {
  EXPECT_TRUE(load_pretrained(folder_ / "m").flat().equal(flat_));
}

TEST_F(PretrainedFolder, OfAnotherShapeIsToldByItsTensor) {
  edit_config("intermediate_size", 32);
  EXPECT_THAT(error(), HasSubstr("tensor model.layers.0.mlp.gate_proj.weight: its shape is [24,16], and"));
  edit_config("intermediate_size", 24);
  edit_config("num_hidden_layers", 2);
  EXPECT_THAT(error(), HasSubstr("there is no tensor model.layers.1.input_layernorm.weight"));
  edit_config("num_hidden_layers", 1);
  edit_config("model_type", "llama");
  EXPECT_THAT(error(), HasSubstr("self_attn.k_proj.bias: such a model has none"));
}

TEST_F(PretrainedFolder, DamagedIsToldByItsFile) {
  const std::string whole = read_file(weights());
  const auto with = [&](const std::string& bytes) {
    std::ofstream(weights(), std::ios::binary) << bytes;
    return error();
  };
  EXPECT_THAT(with(whole.substr(0, whole.size() - 1)), HasSubstr("model.safetensors: tensor "));
  EXPECT_THAT(with(whole.substr(0, 100)), HasSubstr("cut short"));
  EXPECT_THAT(with(whole.substr(0, 5)), HasSubstr("cut short"));
  EXPECT_THAT(with(""), HasSubstr("it is empty"));
  std::string other = whole;
  other[0] = static_cast<char>(0xff);
  other[7] = static_cast<char>(0xff);
  EXPECT_THAT(with(other), HasSubstr("its header is said to have"));
  other = whole;
  other[9] = '}';
  EXPECT_THAT(with(other), HasSubstr("model.safetensors: its header"));
  other = whole;
  other.replace(other.find("\"F32\""), 5, "\"F99\"");
  EXPECT_THAT(with(other), HasSubstr("its dtype or shape is none"));
  other = whole;
  other.replace(other.find("\"F32\""), 5, "\"I32\"");
  EXPECT_THAT(with(other), HasSubstr("its dtype is I32; F32, BF16 and F16 are supported"));
  fs::remove(weights());
  EXPECT_THAT(error(), HasSubstr("model.safetensors: it cannot be opened"));
  fs::create_directory(weights());
  EXPECT_THAT(error(), HasSubstr("it is no regular file"));
}

TEST_F(PretrainedFolder, AConfigThatCannotBeReadIsTheUsersMistake) {
  write_file_atomic(folder_ / "m/config.json", "{");
  EXPECT_THAT(error(), HasSubstr("config.json"));
  fs::remove(folder_ / "m/config.json");
  EXPECT_THAT(error(), HasSubstr("config.json: it is not there"));
}

TEST_F(PretrainedFolder, ShardsMustHaveWhatTheirIndexSays) {
  fs::rename(weights(), folder_ / "m/a.safetensors");
  const auto with = [&](const Json& map) {
    write_file_atomic(folder_ / "m/model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    return error();
  };
  EXPECT_THAT(with({{"model.norm.weight", "b.safetensors"}}),
              HasSubstr("b.safetensors: it cannot be opened"));
  EXPECT_THAT(with({{"x", "a.safetensors"}}), HasSubstr("a.safetensors: it lacks tensor x"));
  EXPECT_THAT(with({{"x", "../a.safetensors"}}), HasSubstr("is no name of a file in its folder"));
  EXPECT_EQ(with({{"model.norm.weight", "a.safetensors"}}), "none");
}

TEST_F(PretrainedFolder, TensorsMustNotLieOverOneAnother) {
  const std::vector<float> values(4);
  write_safetensors(folder_ / "x.safetensors", {{"a", "F32", {2}, std::as_bytes(std::span(values).first(2))},
                                                {"b", "F32", {2}, std::as_bytes(std::span(values).last(2))}});
  EXPECT_EQ(StoredTensors::open_file(folder_ / "x.safetensors").all().size(), 2u);
  std::string text = read_file(folder_ / "x.safetensors");
  text.replace(text.find("[8,16]"), 6, "[4,12]");
  write_file_atomic(folder_ / "x.safetensors", text);
  EXPECT_THROW((void)StoredTensors::open_file(folder_ / "x.safetensors"), Error);
}

TEST_F(PretrainedFolder, AFamilyThatTheWeightsAreNotOfIsRefused) {
  const Decoder decoder = load_pretrained(folder_ / "m");
  EXPECT_THROW(save_pretrained(folder_ / "n", decoder, "llama"), Error);
  EXPECT_THROW(save_pretrained(folder_ / "n", decoder, "gpt2"), Error);
  EXPECT_FALSE(fs::exists(folder_ / "n"));
}

}  // namespace
}  // namespace warpsmith::model

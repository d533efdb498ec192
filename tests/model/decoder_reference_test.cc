// Two steps of supervised training against tests/model/reference_step.py, which was written independently.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "warpsmith/base/files.h"
#include "warpsmith/learn/losses.h"
#include "warpsmith/learn/optimizer.h"
#include "warpsmith/model/decoder.h"

namespace warpsmith::model {
namespace {

const fs::path kFolder = fs::path(WARPSMITH_SOURCE_DIR) / "tests/model";

// The formula of make_parameters() there.
void set_parameters(const Decoder& decoder) {
  for (std::size_t p = 0; p < decoder.parameters().size(); ++p) {
    const NamedTensor& parameter = decoder.parameters()[p];
    float* values = parameter.tensor.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i) {
      const double wave =
          std::sin(0.37 * static_cast<double>(i) * static_cast<double>(1 + p % 3) + static_cast<double>(p));
      values[i] = static_cast<float>(parameter.name.ends_with("norm") ? 1 + 0.2 * wave : 0.3 * wave);
    }
  }
}

TEST(DecoderReference, TwoStepsEqualThePythonProgram) {
  at::set_num_threads(1);
  DecoderSettings settings;
  settings.layers = 2;
  settings.width = 16;
  settings.heads = 4;
  settings.kv_heads = 2;
  settings.hidden = 24;
  settings.vocabulary = 264;
  Decoder decoder(settings);
  set_parameters(decoder);
  learn::OptimizerSettings optimizer;
  optimizer.weight_decay = 0.1;
  optimizer.clip_norm = 0.5;
  learn::AdamW adamw(optimizer, decoder, decoder.flat(), std::nullopt);
  const Json reference = read_json_file(kFolder / "reference_step.json");

  PackedBatch batch;
  append_group(batch, {1, 3, 70, 71, 72, 90, 4}, {{100, 101, 102, 103, 2}, {110, 100, 2}});
  append_sequence(batch, {1, 3, 80, 4}, {100, 120, 121, 122, 123, 124, 2});
  for (const Json& expected : reference.at("steps")) {
    decoder.zero_gradient();
    const at::Tensor log_probabilities = decoder.log_probabilities(batch);
    const at::Tensor gradient =
        learn::likelihood_gradient({5, 3, 7}, {1.0, 0.5, 2.0}, 5 + 1.5 + 14, log_probabilities.options());
    const at::Tensor loss = (log_probabilities * gradient).sum();
    loss.backward();
    const double norm = adamw.step(decoder, 1e-2);
    // Ours is float32, the reference float64: some 20 roundings of 6e-8 of values around 10 on the way.
    EXPECT_NEAR(loss.item<double>(), expected.at("loss").get<double>(), 2e-5);
    EXPECT_NEAR(norm, expected.at("gradient_norm").get<double>(), 2e-5 * norm);
    for (std::size_t i = 0; i < expected.at("log_probabilities").size(); ++i)
      EXPECT_NEAR(log_probabilities[static_cast<std::int64_t>(i)].item<double>(),
                  expected["log_probabilities"][i].get<double>(), 5e-5);
  }
  for (const NamedTensor& parameter : decoder.parameters()) {
    const Json& expected = reference.at("parameters").at(parameter.name);
    const float* values = parameter.tensor.const_data_ptr<float>();
    for (std::size_t i = 0; i < expected.at("values").size(); ++i)
      // AdamW divides by the gradient's own size: an element's error is that of its gradient, relative, times
      // the rate.
      EXPECT_NEAR(values[i * expected["stride"].get<std::size_t>()], expected["values"][i].get<double>(),
                  2e-5)
          << parameter.name << " value " << i;
    EXPECT_NEAR(parameter.tensor.sum().item<double>(), expected.at("sum").get<double>(),
                1e-5 * static_cast<double>(parameter.tensor.numel()));
  }
}

TEST(DecoderReference, TheStoredDumpIsWhatTheProgramWrites) {
  std::string python;
  for (const std::string& candidate :
       {std::string(WARPSMITH_SOURCE_DIR) + "/.venv/bin/python3", std::string("python3")})
    if (python.empty() && std::system((candidate + " -c 'import torch' >/dev/null 2>&1").c_str()) == 0)
      python = candidate;
  if (python.empty()) GTEST_SKIP() << "no python3 with torch here; the stored dump is used";
  const std::string command = python + " " + (kFolder / "reference_step.py").string() + " --check " +
                              (kFolder / "reference_step.json").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace warpsmith::model

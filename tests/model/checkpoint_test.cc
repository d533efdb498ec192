// A checkpoint comes back bit for bit; h5py reads it; damage of every kind is named.
#include "warpsmith/model/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::model {
namespace {

using ::testing::HasSubstr;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest()
      : decoder_(settings()), tokenizer_(Tokenizer::train(std::vector<std::string>{"abab abab"}, 264)) {
    at::set_num_threads(1);
    decoder_.initialise(5);
    optimizer_ = {at::rand_like(decoder_.flat()), at::rand_like(decoder_.flat()), 12};
  }
  static DecoderSettings settings() {
    DecoderSettings s;
    s.layers = 1;
    s.width = 16;
    s.heads = 2;
    s.kv_heads = 1;
    s.hidden = 20;
    s.vocabulary = 264;
    return s;
  }
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "warpsmith-checkpoint-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    folder_ = root_ / "sft-7";
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string save(double score = 1.5) {
    return save_checkpoint(folder_, {"sft", 7, score, {"aa", "bb"}, {{"job", "j"}}}, decoder_, tokenizer_,
                           &optimizer_);
  }
  std::string load_error() {
    try {
      load_checkpoint(folder_, true);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  fs::path root_, folder_;
  Decoder decoder_;
  Tokenizer tokenizer_;
  OptimizerState optimizer_;
};

TEST_F(CheckpointTest, ComesBackBitForBit) {
  const std::string digest = save();
  const Checkpoint back = load_checkpoint(folder_, true);
  EXPECT_EQ(back.digest, digest);
  EXPECT_EQ(back.facts.stage, "sft");
  EXPECT_EQ(back.facts.step, 7);
  EXPECT_EQ(back.facts.score, 1.5);
  EXPECT_EQ(back.facts.parents, (std::vector<std::string>{"aa", "bb"}));
  EXPECT_EQ(back.facts.origin.at("job"), "j");
  EXPECT_EQ(back.decoder.settings(), settings());
  EXPECT_EQ(back.tokenizer.to_json(), tokenizer_.to_json());
  for (std::size_t i = 0; i < decoder_.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(back.decoder.parameters()[i].tensor, decoder_.parameters()[i].tensor));
  ASSERT_TRUE(back.optimizer);
  EXPECT_TRUE(at::equal(back.optimizer->first, optimizer_.first));
  EXPECT_TRUE(at::equal(back.optimizer->second, optimizer_.second));
  EXPECT_EQ(back.optimizer->steps, 12);
  EXPECT_FALSE(load_checkpoint(folder_).optimizer);
}

TEST_F(CheckpointTest, EqualContentHasEqualDigestWhoeverWroteIt) {
  const std::string digest = save();
  const std::string again =
      save_checkpoint(root_ / "other", {"sft", 7, 1.5, {"aa", "bb"}, {{"job", "another"}}}, decoder_,
                      tokenizer_, &optimizer_);
  EXPECT_EQ(digest, again);
  EXPECT_NE(digest, save(1.25));
  for (const auto& entry : fs::directory_iterator(root_))
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr("partial")));
}

TEST_F(CheckpointTest, AFlippedBitIsFoundInEveryFile) {
  for (const char* name : {"model.h5", "optimizer.h5", "tokenizer.json", "manifest.json"}) {
    save();
    std::string bytes = read_file(folder_ / name);
    for (const std::size_t at : {bytes.size() / 3, bytes.size() / 2, bytes.size() - 3}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      write_file_atomic(folder_ / name, damaged);
      EXPECT_THAT(load_error(), ::testing::AllOf(HasSubstr("sft-7"), HasSubstr(name)))
          << name << " at " << at;
      EXPECT_NE(checkpoint_damage(folder_), "");
    }
  }
  save();
  EXPECT_EQ(checkpoint_damage(folder_), "");
}

TEST_F(CheckpointTest, WhatIsMissingOrCutIsNamed) {
  EXPECT_THAT(load_error(), HasSubstr("there is no such folder"));
  save();
  fs::resize_file(folder_ / "model.h5", 100);
  EXPECT_THAT(load_error(), HasSubstr("model.h5 has 100 bytes, its manifest says"));
  fs::remove(folder_ / "model.h5");
  EXPECT_THAT(load_error(), HasSubstr("model.h5 is missing"));
  fs::remove(folder_ / "manifest.json");
  EXPECT_THAT(load_error(), HasSubstr("never finished"));
}

TEST_F(CheckpointTest, H5pyReadsTheTensors) {
  save();
  if (std::system("/usr/bin/python3 -c 'import h5py' >/dev/null 2>&1") != 0) GTEST_SKIP() << "no h5py here";
  write_file_atomic(root_ / "check.py", R"(
import h5py, json, sys
m = json.load(open(sys.argv[1] + '/manifest.json'))
f = h5py.File(sys.argv[1] + '/model.h5', 'r')
for t in m['tensors']:
    d = f[t['name']]
    assert list(d.shape) == t['shape'] and d.dtype == t['dtype'], t
assert abs(float(f['layers.0.qkv'][3, 4]) - float(sys.argv[2])) < 1e-9
)");
  const std::string value = std::to_string(decoder_.layers()[0].qkv[3][4].item<double>() * 1e6) + "e-6";
  EXPECT_EQ(
      std::system(("/usr/bin/python3 " + (root_ / "check.py").string() + " " + folder_.string() + " " + value)
                      .c_str()),
      0);
}

}  // namespace
}  // namespace warpsmith::model
